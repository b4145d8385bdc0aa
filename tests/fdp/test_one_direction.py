"""A bound of one direction of neighbours is not used as one of both directions."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, PrivacyMapError
from opendp_concurrent.fdp.product import Product
from opendp_concurrent.ledger.encoding import decode, encode

from ..build import SPACE, an_odometer, costing

T = oc.TradeoffFunction
REMOVED = T.subsampled_gaussian(1.0, 0.01, unit="removed")
ADDED = REMOVED.inverse()
ONE_WAY = {
    "removed": REMOVED,
    "added": ADDED,
    "laplace": T.subsampled_laplace(1.0, 0.1, unit="added"),
    "power": REMOVED.power(2),
    "composition": T.laplace(0.5).compose(ADDED, T.gaussian(0.1)),
    "mixture": T.mixture([1, 3], [T.pure(0.5), REMOVED]),
    "mixture, inverse": T.mixture([1, 3], [T.pure(0.5), REMOVED]).inverse(),
    "group": REMOVED.group(2),
    "group, inverse": REMOVED.group(2).inverse(),
    "mixture of a group": T.mixture([1, 1], [REMOVED.group(2), T.pure(0.1)]),
    "root": REMOVED.power(6).root(oc.fdp.function.Fraction(1, 2)),
    "pickled": pickle.loads(pickle.dumps(REMOVED.group(2))),
    "read": decode(encode("f", REMOVED.group(2).compose(REMOVED))),
    "session": oc.fdp.Session(T.finite([0.7, 0.3], [0.2, 0.8]), T.gaussian(9.0)).removed,
    "declared": T.finite([0.7, 0.3], [0.2, 0.8]).one_way("added"),
}
every = pytest.mark.parametrize("f", ONE_WAY.values(), ids=ONE_WAY)


def test_the_session_of_the_issue_is_refused_and_the_offered_bound_holds():
    truth = oc.fdp.Session.subsampled_gaussian(1.0, 0.01).power(1000).epsilon_bounds(1e-6)
    assert truth.lower > 2.12
    with pytest.raises(InvalidValueError, match=r"both_directions\(\)"):
        REMOVED.symmetrised()
    assert REMOVED.both_directions().power(1000).epsilon(1e-6) >= truth.lower


@every
def test_it_is_refused_wherever_both_directions_count(f):
    fdp, pure = oc.tradeoff(), T.pure(0.1)
    odometer = an_odometer(fdp, accumulator=oc.accumulators.ladder(pure))
    query = costing(lambda _: f, measure=fdp)
    uses = {
        "symmetrised": f.symmetrised,
        "loss_of": lambda: oc.loss_of(tradeoff=f),
        "unit": lambda: oc.accumulators.ladder(f),
        "d_out": lambda: oc.make_concurrent_filter(odometer, 1, f),
        "d_mids": lambda: oc.make_concurrent_composition(*SPACE, fdp, 1, [f, pure]),
        "map": lambda: oc.make_concurrent_filter(odometer, 1, T.pure(3.0))([1])(query),
        "session": lambda: oc.fdp.Session().compose(f),
    }
    for name, use in uses.items():
        with pytest.raises((InvalidValueError, PrivacyMapError), match="direction"):
            pytest.fail(f"{name}: {use()}")


@every
def test_it_has_a_bound_that_is_valid_everywhere(f):
    both = f.both_directions()
    assert f.direction in ("removed", "added")
    assert f.inverse().direction not in (None, f.direction)
    assert both.direction is None
    assert oc.loss_of(tradeoff=both)[1] == both
    at = np.array([-1.0, 0.05, 1.0])
    for one in (f, f.inverse()):
        assert np.all(both.delta(at) >= one.delta_bounds(at).lower)


def test_a_refused_launch_charges_nothing():
    odometer = an_odometer(oc.tradeoff(), accumulator=oc.accumulators.ladder(T.pure(0.1)))
    root = oc.make_concurrent_filter(odometer, 1, T.pure(3.0))([1, 2])
    query = costing(lambda _: REMOVED, measure=oc.tradeoff())
    with pytest.raises(PrivacyMapError, match="d_mid"):
        root(query)
    assert root.privacy_loss() == T.identity()
    asked = odometer([1, 2])
    asked(query)  # an odometer reads a price when a loss is asked for
    with pytest.raises(PrivacyMapError, match="direction"):
        asked.privacy_loss(1)


def test_the_two_directions_do_not_mix():
    for mixed in (
        lambda: REMOVED.compose(ADDED),
        lambda: T.mixture([1, 1], [REMOVED, ADDED.power(2)]),
        lambda: oc.fdp.Session(ADDED, REMOVED),
        lambda: oc.fdp.Session(REMOVED, REMOVED),
        lambda: ADDED.one_way("removed"),
    ):
        with pytest.raises(InvalidValueError, match="direction|bound"):
            mixed()
    both = T._of(Product(0, {**REMOVED.product.factors, **ADDED.product.factors}))
    assert both.direction == "added and removed"
    with pytest.raises(InvalidValueError, match="direction"):
        both.symmetrised()


@settings(max_examples=2, deadline=None)
@given(st.floats(0.7, 4.0), st.floats(1e-4, 0.5), st.integers(1, 3), st.floats(0.0, 2.0))
def test_the_offered_bound_is_never_below_either_direction(sigma, rate, count, epsilon):
    one = T.subsampled_gaussian(sigma, rate, unit="removed")
    whole, session = one.both_directions().power(count), oc.fdp.Session(one, one.inverse())
    exact = session.power(count)
    assert whole.delta(epsilon) >= exact.delta_bounds(epsilon).lower
    # the hull is rounded to 511 losses: at most 7e-4 of the rate above, in 400 random settings
    assert one.both_directions().delta(epsilon) <= session.delta(epsilon) + 2e-3 * rate + 1e-12


def test_a_function_for_all_pairs_may_still_be_symmetrised():
    f = T.from_profile([0.0, 1.0], [0.3, 0.05], [0.2, 0.1])
    assert f.direction is None
    assert f.symmetrised().delta(0.0) <= min(f.delta(0.0), f.inverse().delta(0.0)) + 1e-9
    for symmetric in (T.gaussian(1.0), T.laplace(1.0).power(2), T.identity(), T.worst()):
        assert symmetric.one_way("removed").direction is None
        assert symmetric.both_directions() is symmetric
