"""0.2.0 hid exceptions of mechanisms only if they were an ``Exception``.

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
from opendp_concurrent.errors import InvalidValueError, MechanismError, TableError

dp.enable_features("contrib", "honest-but-curious")
pl = pytest.importorskip("polars")
PURE, SEQUENTIAL = dp.max_divergence(), dp.approximate(dp.zero_concentrated_divergence())
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
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


FAILURES = [panics, panic, leaves, ends, is_cancelled, fails, several]
INTERRUPTS = [interrupts, interrupts_itself]


def measurement(function, measure=PURE):
    loss = 0.25 if measure == PURE else (0.25, 0.0)
    return dp.m.make_user_measurement(*SPACE, measure, function, lambda d_in: loss)


def odometer(measure):
    return oc.make_concurrent_odometer(*SPACE, measure, opaque_errors=True)(ROWS)


def filter_(measure):
    d_out = 10.0 if measure == PURE else (10.0, 0.0)
    made = oc.make_concurrent_odometer(*SPACE, measure)
    return oc.make_concurrent_filter(made, 1, d_out, opaque_errors=True)(ROWS)


def composition(measure):
    share = 1.0 if measure == PURE else (1.0, 0.0)
    return oc.make_concurrent_composition(*SPACE, measure, 1, [share] * 9, opaque_errors=True)(ROWS)


def chained(measure):
    same = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows, lambda d_in: d_in)
    return (same >> oc.make_concurrent_odometer(*SPACE, measure, opaque_errors=True))(ROWS)


def below_a_child(root):
    return root(oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5] * 9))


def below_a_native_child(root):
    return root(dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5] * 9))


def caught(ask):
    try:
        ask()
    except BaseException as error:
        return error
    raise AssertionError("it must raise")


def check(error, kind):
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


def outcomes(root, function, measure, caplog):
    with caplog.at_level(logging.ERROR, "opendp_concurrent.measurements"):
        error = caught(lambda: root(measurement(function, measure)))
    return error, [one for one in caplog.records if one.name == "opendp_concurrent.measurements"]


MEASURES = pytest.mark.parametrize("measure", [PURE, SEQUENTIAL], ids=["pure", "sequential"])


@MEASURES
@pytest.mark.parametrize("function", FAILURES)
@pytest.mark.parametrize("make", [odometer, filter_, composition, chained])
def test_whatever_a_mechanism_raises_is_hidden(make, function, measure, caplog):
    error, logged = outcomes(make(measure), function, measure, caplog)
    check(error, MechanismError)
    assert len(logged) == 1  # the owner reads why
    if function is not panics:  # Polars may tell a panic's text on stderr only
        assert str(SECRET) in repr(logged[0].exc_info[1])


@MEASURES
@pytest.mark.parametrize("function", INTERRUPTS)
@pytest.mark.parametrize("make", [odometer, filter_, composition, chained])
def test_an_interrupt_passes_without_its_text(make, function, measure, caplog):
    error, logged = outcomes(make(measure), function, measure, caplog)
    check(error, KeyboardInterrupt)
    assert not logged


@pytest.mark.parametrize("function", FAILURES)
@pytest.mark.parametrize("child", [below_a_child, below_a_native_child])
def test_so_with_children(child, function, caplog):
    error, logged = outcomes(child(filter_(PURE)), function, PURE, caplog)
    check(error, MechanismError)
    assert len(logged) == 1


@pytest.mark.parametrize("function", FAILURES)
def test_so_with_queries_of_a_child(function):
    child = filter_(PURE)(oc.m.make_sparse_vector(*SPACE, PURE, 1, 20.0, 50, 3))
    for _ in range(2):  # the first failure leaves the child open
        check(caught(lambda: child(function)), MechanismError)


# --- functions that see one record ----------------------------------------------------------------


@pytest.fixture(params=FAILURES[1:], ids=lambda one: one.__name__)
def fails_on_secret(request):
    def function(row):
        if row == SECRET:
            request.param([row])
        return row

    return function


def test_a_record_whose_key_cannot_be_told_is_in_no_part(fails_on_secret):
    seen = dp.m.make_user_measurement(*SPACE, PURE, lambda rows: list(rows), lambda d_in: d_in)
    parts = oc.c.make_parallel_composition(*SPACE, oc.c.by_key(fails_on_secret), {2: seen})
    assert parts([2, SECRET, 2])(2) == [2, 2]


def test_a_record_whose_key_cannot_be_told_is_in_no_block(fails_on_secret):
    seen = dp.m.make_user_measurement(*SPACE, PURE, lambda rows: list(rows), lambda d_in: d_in)
    made = oc.make_concurrent_odometer(*SPACE, PURE)
    blocks = oc.c.make_block_filter(made, 1, 9.0, blocks=oc.c.by_key(fails_on_secret))
    root = blocks([2, SECRET, 2])
    root.add_blocks([2])
    assert root([2], seen) == [2, 2]


def test_a_split_that_fails_tells_nothing():
    for function in FAILURES:
        seen = dp.m.make_user_measurement(*SPACE, PURE, lambda rows: list(rows), lambda d_in: d_in)
        split = oc.c.by_split(lambda rows, keys, function=function: function(rows))
        parts = oc.c.make_parallel_composition(*SPACE, split, {2: seen})(ROWS)
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
        seen = dp.m.make_user_measurement(*SPACE, PURE, lambda rows: list(rows), lambda d_in: d_in)
        key = oc.c.by_key(lambda row, function=function: function([row]))
        parts = oc.c.make_parallel_composition(*SPACE, key, {2: seen})(ROWS)
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
        check(caught(frame.collect), MechanismError)
        monkeypatch.undo()
