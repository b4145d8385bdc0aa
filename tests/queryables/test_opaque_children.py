"""0.1.0 handed errors of mechanisms, with rows in their text, to the analyst."""

import logging
from functools import partial

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError, MechanismError

dp.enable_features("contrib", "honest-but-curious")
PURE, SEQUENTIAL = dp.max_divergence(), dp.approximate(dp.zero_concentrated_divergence())
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
SECRET = 987654321
ROWS = [SECRET, 2]


def telling(rows):
    raise ValueError(f"row {rows[0]}")


def disguised(rows):
    raise BudgetExceededError(rows[0], rows[0], rows[0])


def user(function, measure=PURE, loss=0.25):
    return dp.m.make_user_measurement(*SPACE, measure, function, lambda d_in: loss)


def odometer(measure, **options):
    return oc.make_concurrent_odometer(*SPACE, measure, **options)(ROWS)


def filter_(measure, **options):
    d_out = 10.0 if measure == PURE else (10.0, 0.0)
    return oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*SPACE, measure), 1, d_out, **options
    )(ROWS)


def composition(measure, **options):
    share = 1.0 if measure == PURE else (1.0, 0.0)
    return oc.make_concurrent_composition(*SPACE, measure, 1, [share] * 9, **options)(ROWS)


def context(measure, **options):
    found = oc.concurrent_context(
        data=ROWS,
        domain=SPACE[0],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=(measure, 10.0 if measure == PURE else (10.0, 0.0)),
        **options,
    )
    return found.queryable


def split_context(measure, **options):
    return context(measure, split_evenly_over=9, **options)


MAKERS = [odometer, filter_, composition, context, split_context]


def told(ask):
    """What the analyst is told."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        ask()
    return caught.value


def check(error, caplog, secrets=1):
    fresh = MechanismError()
    assert type(error) is MechanismError
    assert (str(error), error.args) == (str(fresh), fresh.args)
    assert error.__cause__ is None
    assert error.__context__ is None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_filename != __file__:
            assert SECRET not in frame.f_locals.values()
        assert frame.f_code.co_name not in ("telling", "disguised")
        trace = trace.tb_next
    logged = [one for one in caplog.records if one.name == "opendp_concurrent.measurements"]
    assert len(logged) == secrets
    for one in logged:
        assert one.levelno == logging.ERROR
        assert str(SECRET) in str(one.exc_info[1])
    caplog.clear()


@pytest.mark.parametrize("measure", [PURE, SEQUENTIAL], ids=["pure", "sequential"])
@pytest.mark.parametrize("function", [telling, disguised])
@pytest.mark.parametrize("make", MAKERS)
def test_the_analyst_is_told_nothing_and_the_owner_all(make, function, measure, caplog):
    query = user(function, measure, 0.25 if measure == PURE else (0.25, 0.0))
    assert str(SECRET) in str(told(lambda: make(measure)(query)))
    root = make(measure, opaque_errors=True)
    check(told(lambda: root(query)), caplog)
    assert root.privacy_loss(1) != root.privacy_loss.__self__._session.measure.zero


def native_child(root):
    child = root(user(lambda rows: dp.new_queryable(lambda query: query(rows)), loss=0.5))
    return lambda: child(telling)


def machine(root):
    child = root(oc.m.make_sparse_vector(*SPACE, PURE, 1, 20.0, 50, 3))
    return lambda: child(telling)


def nested(root):
    child = root(oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5, 0.5]))
    return lambda: child(user(telling))


def native_nested(root):
    child = root(dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5, 0.5]))
    return lambda: child(user(telling))


def ours_below_native(root):
    native = root(dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5, 0.5]))
    child = native(oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25, 0.25]))
    return lambda: child(user(telling))


def child_odometer(root):
    child = root(oc.make_concurrent_odometer(*SPACE, PURE))
    return lambda: child(user(telling))


def person_in_the_middle(root):
    inner = oc.m.make_sparse_vector(*SPACE, PURE, 1, 20.0, 50, 3)
    child = root(oc.c.make_interactive_postprocessing(inner, lambda *now: now))
    return lambda: child(telling)


def in_a_list(root):
    inner = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25, 0.25])
    (child,) = root(user(lambda rows: [inner(rows)], loss=0.5))
    return lambda: child(user(telling))


CHILDREN = [
    native_child,
    machine,
    nested,
    native_nested,
    ours_below_native,
    child_odometer,
    person_in_the_middle,
    in_a_list,
]


@pytest.mark.parametrize("make", [odometer, filter_, composition])
@pytest.mark.parametrize("child", CHILDREN)
def test_so_with_children_and_theirs(child, make, caplog):
    if child is child_odometer and make is composition:
        return
    ask = child(make(PURE, opaque_errors=True))
    check(told(ask), caplog)
    assert str(SECRET) in str(told(child(make(PURE))))


def test_refusals_before_a_mechanism_runs_stay_as_they_are():
    root = filter_(PURE, opaque_errors=True)
    assert type(told(lambda: root(user(len, loss=100.0)))) is BudgetExceededError
    assert type(told(lambda: root("nonsense"))) is InvalidTypeError
    assert root.privacy_loss() == 0.0


def test_a_chain_keeps_it(caplog):
    made = oc.make_concurrent_odometer(*SPACE, PURE, opaque_errors=True)
    same = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows, lambda d_in: d_in)
    for one in (same >> made, made >> str, oc.make_concurrent_filter(made, 1, 1.0)):
        check(told(partial(one(ROWS), user(telling))), caplog)
