"""Limits: bounds of their own below a cap, which refuses too."""

from concurrent.futures import ThreadPoolExecutor

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.filter import make_limited
from opendp_concurrent.errors import (
    BudgetExceededError,
    HaltedError,
    InvalidTypeError,
    InvalidValueError,
    SpaceMismatchError,
)

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
APPROXIMATE = dp.approximate(PURE)
T = oc.TradeoffFunction


def odometer(measure=PURE, accumulator=None):
    return oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)


def capped(d_out=1.0, measure=PURE, accumulator=None, **options):
    made = odometer(measure, accumulator)
    return oc.make_concurrent_filter(made, 1, d_out, **options)([1, 2, 3])


def limit(d_out=0.5, label="alice", measure=PURE, accumulator=None, d_in=1, **options):
    return make_limited(odometer(measure, accumulator), d_in, d_out, label=label, **options)


def costing(loss, measure=PURE):
    """A measurement with this loss at d_in = 1."""
    return dp.m.make_user_measurement(
        *SPACE, measure, len, lambda d_in: d_in * loss, TO="ExtrinsicObject"
    )


def constant(loss, measure):
    """A measurement with this loss at every d_in."""
    return dp.m.make_user_measurement(*SPACE, measure, len, lambda _: loss, TO="ExtrinsicObject")


def test_a_limit_below_an_odometer_and_a_compositor():
    root = odometer()([1, 2, 3])
    alice = root(limit())
    alice(costing(0.5))
    with pytest.raises(BudgetExceededError, match="^limit 'alice' of the odometer refuses"):
        alice(costing(0.25))
    assert root.privacy_loss(1) == 0.5
    shares = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25, 0.25])([1, 2, 3])
    bob = shares(limit(0.5, "bob"))
    bob(costing(0.125))
    assert (bob.privacy_loss(), shares.remaining()) == (0.125, (0.25,))
    with pytest.raises(BudgetExceededError, match="^the compositor refuses"):
        bob(costing(0.375))  # more than the next share
    with pytest.raises(BudgetExceededError, match="^limit 'bob' of the compositor refuses"):
        bob(costing(0.5))
    bob(costing(0.25))
    assert (bob.privacy_loss(), shares.remaining()) == (0.375, ())


LOSSES = {  # a cap that admits two, and a loss
    "pure": (PURE, 1.0, 0.5),
    "approximate": (APPROXIMATE, (1.0, 1e-6), (0.5, 1e-7)),
    "zCDP": (ZCDP, 1.0, 0.5),
    "approximate zCDP": (dp.approximate(ZCDP), (1.0, 1e-6), (0.5, 1e-7)),
    "Rényi order": (oc.fixed_renyi_divergence(4.0), 1.0, 0.5),
    "Rényi curve": (dp.renyi_divergence(), lambda alpha: alpha, lambda alpha: alpha / 2),
    "tCDP": (
        oc.truncated_concentrated_divergence(8.0),
        oc.TruncatedConcentrated(1.0, 8.0),
        oc.TruncatedConcentrated(0.5, 8.0),
    ),
    "Gaussian": (oc.gaussian_tradeoff(), 1.0, 0.625),
    "f-DP": (oc.tradeoff(), T.gaussian(1.0), T.gaussian(0.625)),
}


@pytest.mark.parametrize("case", LOSSES)
def test_all_measures_whose_filters_are_proven(case):
    measure, d_out, loss = LOSSES[case]
    orders = {"orders": [2.0, 8.0]} if case == "Rényi curve" else {}
    accumulator = oc.accumulators.residue(1.0) if case == "f-DP" else None
    root = capped(d_out, measure, accumulator, **orders)
    query = constant(loss, measure)
    alice = root(limit(d_out, "alice", measure, accumulator, **orders))
    bob = root(limit(loss, "bob", measure, accumulator, **orders))
    assert (alice(query), bob(query)) == (3, 3)
    with pytest.raises(BudgetExceededError, match="^limit 'bob' of the filter refuses"):
        bob(query)
    carol = root(limit(d_out, "carol", measure, accumulator, **orders))
    with pytest.raises(BudgetExceededError, match="^the filter refuses"):
        carol(constant(d_out, measure))


def test_the_limit_may_have_another_accumulator_than_the_cap():
    tight = oc.accumulators.zcdp(1e-6)
    root = capped((1.0, 1e-6), APPROXIMATE, tight)
    alice = root(limit((0.5, 0.0), "alice", APPROXIMATE))
    query = constant((0.01, 0.0), APPROXIMATE)
    for _ in range(49):  # 0.01 is a little more than 1/100
        alice(query)
    with pytest.raises(BudgetExceededError) as refusal:
        alice(query)
    assert refusal.value.account == ("filter", "limit 'alice'")
    assert refusal.value.accumulator == repr(oc.accumulators.basic())
    assert "49 launches" in repr(root)
    assert root.privacy_loss() not in ((0.5, 0.0), (0.5, 1e-6))


def test_children_of_all_limits_interleave_under_approximate_zcdp():
    measure = dp.approximate(ZCDP)
    root = capped((1.0, 1e-6), measure)
    alice = root(limit((0.5, 1e-6), "alice", measure))
    bob = root(limit((0.5, 1e-6), "bob", measure))
    pair = oc.make_concurrent_composition(*SPACE, measure, 1, [(0.125, 2.0**-22)] * 2)
    query = constant((0.125, 2.0**-22), measure)
    hers = alice(pair)
    for handle in (hers, bob, hers, alice):
        handle(query)
    assert alice.privacy_loss() == (0.375, 3 * 2.0**-22)
    assert root.privacy_loss() == (0.5, 2.0**-20)


def test_d_in_of_a_limit_is_in_units_of_the_queries_below_a_chain():
    twice = dp.t.make_user_transformation(
        *SPACE, *SPACE, lambda rows: rows * 2, lambda d_in: 2 * d_in
    )
    whole = twice >> oc.make_concurrent_filter(odometer(), 2, 1.0)
    inside = oc.make_concurrent_filter(twice >> odometer(), 1, 1.0)
    for made in (whole, inside):
        root = made([1, 2, 3])
        alice = root(limit(0.5, d_in=1))
        assert alice(costing(0.25)) == 6
        assert (alice.privacy_loss(), root.privacy_loss()) == (0.25, 0.5)
        assert alice.privacy_loss(2) == 0.5


def test_a_limit_keeps_its_postprocessor_and_its_opaque_errors():
    root = capped()
    made = make_limited(odometer() >> str, 1, 0.5, label="alice")
    assert root(made)(costing(0.25)) == "3"
    assert root(limit(label="bob") >> str)(costing(0.25)) == "3"
    opaque = oc.make_concurrent_odometer(*SPACE, PURE, opaque_errors=True)
    carol = root(make_limited(opaque, 1, 0.5, label="carol"))

    def fails(rows):
        raise ValueError(f"{rows}")

    broken = dp.m.make_user_measurement(
        *SPACE, PURE, fails, lambda d_in: 0.125 * d_in, TO="ExtrinsicObject"
    )
    with pytest.raises(oc.errors.MechanismError):
        carol(broken)
    assert carol.privacy_loss() == 0.125


def test_a_cap_that_halts_closes_its_limits_and_a_limit_does_not_halt():
    root = capped(halt=True)
    alice, bob = root(limit(0.5)), root(limit(1.0, "bob"))
    with pytest.raises(BudgetExceededError, match="^limit 'alice'"):
        alice(costing(0.75))
    alice(costing(0.25))
    with pytest.raises(BudgetExceededError, match="^the filter"):
        bob(costing(1.0))
    for handle in (alice, bob, root):
        with pytest.raises(HaltedError):
            handle(costing(0.0))


def test_limits_are_exact_when_threads_compete():
    share = 2.0**-6
    root = capped(1.0)
    limits = [root(limit(0.5, name)) for name in ("alice", "bob", "carol")]

    def launch(number):
        try:
            return limits[number % 3](costing(share))
        except BudgetExceededError:
            return None

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(launch, range(3 * 64)))
    assert sum(answer is not None for answer in answers) == 64
    assert root.privacy_loss() == 1.0
    spent = [one.privacy_loss() for one in limits]
    assert sum(spent) == 1.0
    assert max(spent) <= 0.5


def test_what_is_no_limit():
    with pytest.raises(InvalidTypeError, match="^a limit has no data of its own"):
        limit()([1, 2, 3])
    for taken in (
        lambda: make_limited(limit(), 1, 0.5, label="again"),
        lambda: oc.make_concurrent_filter(limit(), 1, 0.5),
        lambda: dp.t.make_user_transformation(*SPACE, *SPACE, len, lambda d_in: d_in) >> limit(),
    ):
        with pytest.raises(InvalidTypeError, match="^odometer has the limit 'alice' already"):
            taken()
    with pytest.raises(InvalidValueError, match="^label must not be empty"):
        limit(label="")
    with pytest.raises(InvalidValueError, match="^label .* without NUL"):
        limit(label="a\0b")
    with pytest.raises(InvalidTypeError, match="^label"):
        limit(label=1)
    with pytest.raises(InvalidValueError, match="^d_out"):
        limit(float("inf"))
    with pytest.raises(InvalidTypeError, match="^orders must be left out"):
        limit(orders=[2.0])
    with pytest.raises(SpaceMismatchError, match="output_measure"):
        capped()(limit(measure=ZCDP))
    assert "limit          = 'alice', 0.5 at d_in=1" in repr(limit())
