"""What a handle says of a launch before it happens, without charging or running it."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.queryables.mechanism import interactive

from ..build import PURE, SPACE, ZCDP, a_filter, an_odometer, costing, laplace, opened


@pytest.mark.parametrize("halt", [False, True])
def test_nothing_is_run_charged_or_halted(halt):
    ran = []

    def user(loss):
        return costing(loss, lambda rows: ran.append(rows) or len(rows))

    root = opened(halt=halt)
    for loss in (0.25, 0.25, 1.0, 1.5, float("inf")):
        for _ in range(3):
            found = root.describe(user(loss))
            assert found.admitted == root.admits(user(loss)) == (loss <= 1.0)
            assert found.interactive is None
    assert (ran, root.privacy_loss(), root.remaining()) == ([], 0.0, 1.0)
    assert "0 launches" in repr(root)
    assert root(user(1.0)) == 3


def test_an_ancestor_refuses_for_a_child():
    root = opened()
    child = root(an_odometer())
    assert child.admits(laplace(1.0))
    root(laplace(0.5))
    assert not child.admits(laplace(1.0))
    found = child.describe(laplace(1.0), d_in=1)
    assert found.refusal.account == ("filter",)
    assert (found.loss, child.privacy_loss(1)) == (1.0, 0.0)


def test_a_compositor_may_be_given_its_own_d_in():
    made = oc.make_concurrent_composition(*SPACE, PURE, 2, [0.5, 1.0])([1, 2, 3])
    assert made.describe(laplace(), d_in=2) == made.describe(laplace())
    assert made.describe(laplace()).loss == 0.5
    for d_in in (0, 1, 3, -1, float("nan"), "1", True):
        with pytest.raises((InvalidTypeError, ValueError)):
            made.describe(laplace(), d_in=d_in)
    assert made.privacy_loss() == 0.0


def test_what_is_handed_out_is_known():
    compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5])
    stream = oc.integer_stream(0, 1), oc.event_presence()
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    native = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5])
    spawned = dp.c.make_fully_adaptive_composition(*SPACE, PURE)
    for measurement, expected in (
        (laplace(), False),
        (SPACE >> dp.t.then_count() >> oc.m.then_certified_laplace(1.0, PURE), False),
        (oc.m.make_certified_laplace(*whole, 1.0, PURE), False),
        (dp.c.make_approximate(laplace()), False),
        (dp.c.make_composition([laplace(), laplace()]), False),
        (oc.c.cast(laplace(), ZCDP), False),
        (oc.c.make_private_selection(laplace(), mean_runs=2), False),
        (oc.c.make_interactive(laplace()), True),
        (compositor, True),
        (oc.c.cast(compositor, ZCDP), True),
        (SPACE >> dp.t.then_cast_default(TOA=int) >> compositor, True),
        (dp.c.make_approximate(compositor), True),
        (dp.c.make_composition([laplace(), compositor]), True),
        (a_filter(), True),
        (oc.m.make_counter(*stream, PURE, scale=1.0), True),
        (oc.m.make_above_threshold(*SPACE, PURE, 1, scale=1.0, threshold=1), True),
        (native, True),
        (dp.c.make_privacy_filter(spawned, 1, 1.0), True),
        (oc.c.cast(native, ZCDP), True),
        (costing(1.0), None),
        (dp.c.make_composition([laplace(), costing(1.0)]), None),
        (compositor >> (lambda queryable: queryable), None),
        (laplace() >> (lambda answer: answer), False),
    ):
        assert interactive(measurement) is expected, measurement
