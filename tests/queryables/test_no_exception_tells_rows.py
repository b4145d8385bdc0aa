"""0.1.0 handed errors of mechanisms to the analyst; 0.2.0 hid them if they were an ``Exception``.

A panic of Polars and ``SystemExit`` are not, and their text had a row. The same held where the
function of an owner sees one record: what it raises must not tell which record it was.
"""

import asyncio
import builtins
import logging
import sys

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    MechanismError,
    TableError,
)

from ..build import PURE, SPACE, an_odometer, opened

pl = pytest.importorskip("polars")
SEQUENTIAL = dp.approximate(dp.zero_concentrated_divergence())
SEEN = dp.m.make_user_measurement(*SPACE, PURE, list, lambda d_in: d_in)
SECRET = 918273645
ROWS = [SECRET, 2]


def panics(rows):
    """A function on a Polars column that raises what is no ``Exception`` is a panic of Polars."""

    def fails(value):
        raise GeneratorExit(f"UDF failed: {value}")

    pl.DataFrame({"a": list(rows)}).select(pl.col("a").map_elements(fails, return_dtype=pl.Int64))


def panic(rows):
    raise pl.exceptions.PanicException(f"UDF failed: '{rows[0]}'")


def leaves(rows):
    sys.exit(str(rows[0]))


def ends(rows):
    raise GeneratorExit(rows[0])


def is_cancelled(rows):
    raise asyncio.CancelledError(rows[0])


def fails(rows):
    raise type(f"Row{rows[0]}", (BaseException,), {})(rows[0])


def several(rows):
    group = getattr(builtins, "BaseExceptionGroup", None)
    raise group(f"row {rows[0]}", [SystemExit(rows[0])]) if group else SystemExit(rows[0])


def interrupts(rows):
    error = KeyboardInterrupt(f"row {rows[0]}")
    if sys.version_info >= (3, 11):
        error.add_note(f"row {rows[0]}")
    raise error from ValueError(rows[0])


def interrupts_itself(rows):
    class Interrupt(KeyboardInterrupt):
        def __str__(self):
            return str(rows[0])

    try:
        raise ValueError(rows[0])
    except ValueError:
        raise Interrupt(rows[0])  # noqa: B904


def disguised(rows):
    raise BudgetExceededError(rows[0], rows[0], rows[0])


FAILURES = [panics, panic, leaves, ends, is_cancelled, fails, several, disguised]
INTERRUPTS = [interrupts, interrupts_itself]


def user(function, measure=PURE, loss=0.25):
    return dp.m.make_user_measurement(
        *SPACE, measure, function, lambda d_in: loss if measure == PURE else (loss, 0.0)
    )


def odometer(measure=PURE, **options):
    return oc.make_concurrent_odometer(*SPACE, measure, **options)(ROWS)


def filter_(measure=PURE, **options):
    return opened(10.0 if measure == PURE else (10.0, 0.0), measure, data=ROWS, **options)


def composition(measure=PURE, **options):
    share = 1.0 if measure == PURE else (1.0, 0.0)
    return oc.make_concurrent_composition(*SPACE, measure, 1, [share] * 9, **options)(ROWS)


def context(measure=PURE, **options):
    loss = measure, 10.0 if measure == PURE else (10.0, 0.0)
    unit = dp.unit_of(contributions=1)
    return oc.concurrent_context(ROWS, unit, loss, domain=SPACE[0], **options).queryable


def split_context(measure=PURE, **options):
    return context(measure, split_evenly_over=9, **options)


def caught(ask):
    try:
        ask()
    except BaseException as error:
        return error
    raise AssertionError("it must raise")


def check(error, kind=MechanismError):
    fresh = kind()
    assert type(error) is kind
    assert (str(error), error.args) == (str(fresh), fresh.args)
    assert (error.__cause__, error.__context__) == (None, None)
    assert not getattr(error, "__notes__", [])
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != __file__:
            assert SECRET not in trace.tb_frame.f_locals.values()
        trace = trace.tb_next


@pytest.fixture
def logged(caplog):
    """What the owner reads."""
    with caplog.at_level(logging.ERROR, "opendp_concurrent.measurements"):
        yield caplog


@pytest.mark.parametrize("function", [*FAILURES, *INTERRUPTS])
@pytest.mark.parametrize(
    ("make", "measure"),
    [
        *((odometer, SEQUENTIAL), (filter_, PURE), (filter_, SEQUENTIAL), (composition, PURE)),
        *((context, PURE), (split_context, SEQUENTIAL)),
    ],
)
def test_whatever_a_mechanism_raises_is_hidden(make, function, measure, logged):
    assert type(caught(lambda: make(measure)(user(function, measure)))) is not MechanismError
    assert not logged.records
    root = make(measure, opaque_errors=True)
    error = caught(lambda: root(user(function, measure)))
    assert root.privacy_loss(1) not in (0.0, (0.0, 0.0))
    if function in INTERRUPTS:
        check(error, KeyboardInterrupt)
        assert not logged.records
        return
    check(error)
    assert len(logged.records) == 1  # the owner reads why
    if function is not panics:  # Polars may tell a panic's text on stderr only
        assert str(SECRET) in repr(logged.records[0].exc_info[1])


def native_child(root):
    child = root(user(lambda rows: dp.new_queryable(lambda query: query(rows)), loss=0.5))
    return lambda function: child(function)


def machine(root):
    return root(oc.m.make_sparse_vector(*SPACE, PURE, 1, 20.0, 50, 3))


def person_in_the_middle(root):
    inner = oc.m.make_sparse_vector(*SPACE, PURE, 1, 20.0, 50, 3)
    return root(oc.c.make_interactive_postprocessing(inner, lambda *now: now))


def launched(child):
    return lambda function: child(user(function))


def ours():
    return oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25] * 9)


def native():
    return dp.c.make_adaptive_composition(*SPACE, PURE, 1, [2.5] * 2)


CHILDREN = {
    "native child": native_child,
    "machine": machine,
    "person in the middle": person_in_the_middle,
    "nested": lambda root: launched(root(ours())),
    "native nested": lambda root: launched(root(native())),
    "ours below native": lambda root: launched(root(native())(ours())),
    "child odometer": lambda root: launched(root(an_odometer())),
    "in a list": lambda root: launched(root(user(lambda rows: [ours()(rows)], loss=2.5))[0]),
}


@pytest.mark.parametrize("name", CHILDREN)
def test_so_with_children_and_theirs(name, logged):
    for function in (ends, disguised, fails):
        ask = CHILDREN[name](filter_(opaque_errors=True))
        for count in (1, 2):  # the first failure leaves the child open
            check(caught(lambda ask=ask, function=function: ask(function)))
            assert len(logged.records) == count
        logged.clear()
    assert str(SECRET) in str(caught(lambda: CHILDREN[name](filter_())(fails)))


def test_a_chain_keeps_it_and_refusals_stay_as_they_are():
    made = an_odometer(opaque_errors=True)
    same = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows, lambda d_in: d_in)
    for one in (same >> made, made >> str, oc.make_concurrent_filter(made, 1, 1.0)):
        root = one(ROWS)
        check(caught(lambda root=root: root(user(fails))))
    assert type(caught(lambda: root(user(len, loss=100.0)))) is BudgetExceededError
    assert type(caught(lambda: root("nonsense"))) is InvalidTypeError
    assert root.privacy_loss() == 0.25


class Exiting(logging.Handler):
    def emit(self, record):
        raise SystemExit(f"row {SECRET}")


def test_a_log_that_fails_hides_what_it_was_told():
    logger, handler = logging.getLogger("opendp_concurrent.measurements"), Exiting()
    logger.addHandler(handler)
    try:
        check(caught(lambda: filter_(opaque_errors=True)(user(fails))))
    finally:
        logger.removeHandler(handler)


# --- functions that see one record ----------------------------------------------------------------


@pytest.fixture(params=FAILURES[1:], ids=lambda one: one.__name__)
def fails_on_secret(request):
    def function(row):
        if row == SECRET:
            request.param([row])
        return row

    return function


def test_a_record_whose_key_cannot_be_told_is_in_no_part(fails_on_secret):
    parts = oc.c.make_parallel_composition(*SPACE, oc.c.by_key(fails_on_secret), {2: SEEN})
    assert parts([2, SECRET, 2])(2) == [2, 2]


def test_a_record_whose_key_cannot_be_told_is_in_no_block(fails_on_secret):
    by = oc.c.by_key(fails_on_secret)
    blocks = oc.c.make_block_filter(an_odometer(), 1, 9.0, blocks=by)
    root = blocks([2, SECRET, 2])
    root.add_blocks([2])
    assert root([2], SEEN) == [2, 2]


def test_a_split_that_fails_tells_nothing():
    for function in FAILURES:
        split = oc.c.by_split(lambda rows, keys, function=function: function(rows))
        parts = oc.c.make_parallel_composition(*SPACE, split, {2: SEEN})(ROWS)
        error = caught(lambda parts=parts: parts(2))
        assert type(error) is InvalidValueError
        assert "918273645" not in str(error)
        assert (error.__cause__, error.__context__) == (None, None)


def test_an_item_whose_function_fails_is_none(fails_on_secret):
    space = oc.integer_stream(0, 2**31), oc.event_presence()
    same = oc.t.make_stream_filter(*space, lambda item: fails_on_secret(item) > 0)
    counter = (same >> oc.m.then_counter(PURE, scale=1e-6))([])
    counter.update_all([2, SECRET, 3])  # an error here would tell the item to who sees the stream
    assert round(counter.read()) == 5


def test_an_interrupt_of_a_function_on_records_has_no_text():
    for function in INTERRUPTS:
        key = oc.c.by_key(lambda row, function=function: function([row]))
        parts = oc.c.make_parallel_composition(*SPACE, key, {2: SEEN})(ROWS)
        error = caught(lambda parts=parts: parts(2))
        assert (type(error), error.args) == (KeyboardInterrupt, ())
        assert (error.__cause__, error.__context__) == (None, None)


# --- engines and frames ---------------------------------------------------------------------------


def test_what_an_engine_raises_is_hidden():
    engine_module = pytest.importorskip("opendp_concurrent.tables.engine")
    for function in FAILURES:
        error = caught(lambda function=function: engine_module.opaque(lambda: function(ROWS)))
        assert type(error) is TableError
        assert (error.__cause__, error.__context__) == (None, None)


def test_what_a_released_frame_raises_is_hidden(monkeypatch):
    for function in FAILURES:
        context = oc.concurrent_context(
            pl.LazyFrame({"a": [1]}), dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
        )
        frame = context.query(epsilon=0.5).select(dp.len(signed=True)).release()
        monkeypatch.setattr(
            "opendp.extras.polars.OnceFrame.collect", lambda _, function=function: function(ROWS)
        )
        check(caught(frame.collect))
        monkeypatch.undo()
