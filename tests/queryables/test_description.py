"""What a handle says of a launch before it happens, without charging or running it."""

import re
import threading

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    HaltedError,
    InvalidTypeError,
    PrivacyMapError,
    ReentrantLaunchError,
    SpaceMismatchError,
)
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.queryables.mechanism import interactive
from opendp_concurrent.queryables.named_queries import Description

dp.enable_features("contrib", "honest-but-curious")

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
DATA = [1, 2, 3]
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def count(scale=4.0):
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


def user(loss, ran=None, function=len):
    def run(rows):
        if ran is not None:
            ran.append(rows)
        return function(rows)

    losses = loss if callable(loss) else lambda d_in: loss * d_in
    return dp.m.make_user_measurement(*SPACE, PURE, run, losses, TO="ExtrinsicObject")


def odometer():
    return oc.make_concurrent_odometer(*SPACE, PURE)


def bounded(d_out=1.0, **options):
    return oc.make_concurrent_filter(odometer(), 1, d_out, **options)(DATA)


def test_it_has_the_kind_the_loss_and_the_verdict():
    root = bounded()
    found = root.describe(count())
    assert found == Description("count >> laplace(scale=4.0)", False, 1, 0.25, None)
    assert found.admitted
    assert root.admits(count())
    refused = root.describe(count(0.5))
    assert (refused.loss, refused.admitted) == (2.0, False)
    assert (refused.refusal.asked, refused.refusal.remaining) == (2.0, 1.0)
    assert not root.admits(count(0.5))


def test_another_d_in_has_another_loss_and_the_same_verdict():
    found = bounded().describe(count(), d_in=8)
    assert (found.d_in, found.loss, found.admitted) == (8, 2.0, True)


@pytest.mark.parametrize("halt", [False, True])
def test_nothing_is_run_charged_or_halted(halt):
    ran = []
    root = bounded(halt=halt)
    for loss in (0.25, 0.25, 1.0, 1.5, float("inf")):
        for _ in range(3):
            found = root.describe(user(loss, ran))
            assert found.admitted == root.admits(user(loss, ran)) == (loss <= 1.0)
            assert found.interactive is None
    assert (ran, root.privacy_loss(), root.remaining()) == ([], 0.0, 1.0)
    assert "0 launches" in repr(root)
    assert root(user(1.0, ran)) == 3


def test_the_verdict_is_that_of_the_launch_to_the_last_ulp():
    root, losses = bounded(), [0.1, 0.2, 0.3, 0.1, 0.2, 0.1, 0.05, 0.5]
    admitted = []
    for loss in losses:
        found = root.describe(user(loss))
        if found.admitted:
            root(user(loss))
        else:
            with pytest.raises(BudgetExceededError, match=re.escape(str(found.refusal))):
                root(user(loss))
        admitted.append(found.admitted)
    assert True in admitted
    assert False in admitted


def test_an_ancestor_refuses_for_a_child():
    root = bounded()
    child = root(odometer())
    assert child.admits(count(1.0))
    root(count(2.0))
    assert not child.admits(count(1.0))
    found = child.describe(count(1.0), d_in=1)
    assert found.refusal.account == ("filter",)
    assert (found.loss, child.privacy_loss(1)) == (1.0, 0.0)


def test_a_compositor_may_be_given_its_own_d_in():
    made = oc.make_concurrent_composition(*SPACE, PURE, 2, [0.5, 1.0])([1, 2, 3])
    assert made.describe(count(4.0), d_in=2) == made.describe(count(4.0))
    assert made.describe(count(4.0)).loss == 0.5
    for d_in in (0, 1, 3, -1, float("nan"), "1", True):
        with pytest.raises((InvalidTypeError, ValueError)):
            made.describe(count(4.0), d_in=d_in)
    assert made.privacy_loss() == 0.0


def test_a_chain_is_described_in_units_of_its_head():
    double = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows, lambda d_in: 2 * d_in)
    root = oc.make_concurrent_filter(double >> odometer(), 1, 1.0)(DATA)
    assert root.describe(count(4.0)).loss == 0.5
    assert root.describe(count(4.0), d_in=3).loss == 1.5
    assert not root.admits(count(1.9))
    assert root.admits(count(2.0))


def test_an_odometer_admits_everything_and_a_compositor_its_next_share():
    root = odometer()(DATA)
    assert root.describe(count(), 2).loss == 0.5
    assert root.admits(user(float("inf")))
    root = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5, 0.1])(DATA)
    assert root.describe(count(2.0)).admitted
    root(count(2.0))
    assert not root.describe(count(2.0)).admitted
    assert root.admits(count(10.0))


def test_an_odometer_as_a_query_costs_nothing():
    found = bounded().describe(odometer())
    assert found == Description("odometer", True, 1, None, None)
    other = oc.make_concurrent_odometer(*SPACE, ZCDP)
    with pytest.raises(SpaceMismatchError):
        bounded().describe(other)


def test_a_halted_filter_says_that_it_is_halted():
    root = bounded(halt=True)
    with pytest.raises(BudgetExceededError):
        root(count(0.5))
    assert isinstance(root.describe(count()).refusal, HaltedError)
    assert not root.admits(count())


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (None, InvalidTypeError),
        (lambda: dp.m.then_laplace(1.0), InvalidTypeError),
        (count().map, InvalidTypeError),
        (oc.c.cast(count(), ZCDP), SpaceMismatchError),
        (user(lambda d_in: float("nan")), PrivacyMapError),
        (user(lambda d_in: 1 / 0), PrivacyMapError),
    ],
)
def test_what_does_not_fit_is_refused_as_a_launch_is(query, error):
    root = bounded()
    for ask in (root.admits, root.describe, root):
        with pytest.raises(error):
            ask(query)
    assert root.privacy_loss() == 0.0


def test_a_d_in_that_is_none_is_refused():
    for d_in in (-1, float("nan"), "1", True):
        with pytest.raises((InvalidTypeError, ValueError)):
            bounded().describe(count(), d_in=d_in)


def test_a_map_that_changes_is_charged_what_it_returns_at_the_launch():
    losses = iter([0.1, 0.2, 0.7])
    root, changing = bounded(), user(lambda d_in: next(losses))
    assert root.describe(changing).loss == 0.1
    assert root.describe(changing).loss == 0.2
    root(changing)
    assert root.privacy_loss() == 0.7


def test_a_running_mechanism_cannot_ask():
    def function(rows):
        return root.admits(count())

    root = bounded()
    with pytest.raises(ReentrantLaunchError):
        root(user(0.1, function=function))


def test_others_on_the_ledger_count(tmp_path):
    create_ledger(tmp_path / "a.db", "survey").close()
    with (
        open_ledger(tmp_path / "a.db", "survey") as a,
        open_ledger(tmp_path / "a.db", "survey") as b,
    ):
        one, other = (
            oc.make_concurrent_filter(odometer(), 1, 1.0, ledger=kept)(DATA) for kept in (a, b)
        )
        assert other.admits(count(2.0))
        one(count(1.5))
        assert not other.admits(count(2.0))
        assert not other.describe(count(2.0)).admitted
        assert other.admits(count(4.0))
        assert len(a.entries()) == 1


def test_asking_in_threads_neither_blocks_nor_charges():
    root, answers = bounded(), []

    def ask():
        for _ in range(50):
            answers.append(root.admits(count(8.0)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        root(count(8.0))
    for thread in threads:
        thread.join()
    assert len(answers) == 200
    assert not root.admits(count(8.0))
    assert root.privacy_loss() == 1.0


def test_what_is_handed_out_is_known():
    compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5])
    stream = oc.integer_stream(0, 1), oc.event_presence()
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    native = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5])
    spawned = dp.c.make_fully_adaptive_composition(*SPACE, PURE)
    for measurement, expected in (
        (count(), False),
        (SPACE >> dp.t.then_count() >> oc.m.then_certified_laplace(1.0, PURE), False),
        (oc.m.make_certified_laplace(*whole, 1.0, PURE), False),
        (dp.c.make_approximate(count()), False),
        (dp.c.make_composition([count(), count()]), False),
        (oc.c.cast(count(), ZCDP), False),
        (oc.c.make_private_selection(count(), mean_runs=2), False),
        (oc.c.make_interactive(count()), True),
        (compositor, True),
        (oc.c.cast(compositor, ZCDP), True),
        (SPACE >> dp.t.then_cast_default(TOA=int) >> compositor, True),
        (dp.c.make_approximate(compositor), True),
        (dp.c.make_composition([count(), compositor]), True),
        (oc.make_concurrent_filter(odometer(), 1, 1.0), True),
        (oc.m.make_counter(*stream, PURE, scale=1.0), True),
        (oc.m.make_above_threshold(*SPACE, PURE, 1, scale=1.0, threshold=1), True),
        (native, True),
        (dp.c.make_privacy_filter(spawned, 1, 1.0), True),
        (oc.c.cast(native, ZCDP), True),
        (user(1.0), None),
        (dp.c.make_composition([count(), user(1.0)]), None),
        (compositor >> (lambda queryable: queryable), None),
        (count() >> (lambda answer: answer), False),
    ):
        assert interactive(measurement) is expected, measurement
