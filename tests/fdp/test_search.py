"""0.1.0 searched for ever for an ε that is infinite, and in other loops over doubles."""

from heapq import heappush
from math import inf

import pytest

import opendp_concurrent as oc
from opendp_concurrent.fdp import bounds as search
from opendp_concurrent.fdp.bounds import Bounds
from opendp_concurrent.measures import slots

T = oc.TradeoffFunction


def test_delta_equal_to_the_infinite_mass_beside_a_gaussian():
    whole = T.approximate(0.1, 1e-6).compose(T.gaussian(1.0))
    low, high = whole.epsilon_bounds(1e-6)
    assert 0.0 < low < high == inf
    assert whole.epsilon(1.0001e-6) < 20.0


@pytest.mark.parametrize("near", [0.0, 1.0, 1e300, inf])
def test_a_profile_that_never_falls_ends_the_search(near):
    asked = []

    def profile(epsilon):
        asked.append(epsilon)
        assert len(asked) < 500
        return Bounds(0.0, 1.0)

    assert search.certify(profile, 0.5, near, 1.0) == (0.0, inf)
    search.halved(0.0, near, lambda at: profile(at).upper <= 0.5, most=200)


def test_searches_below_the_doubles_end():
    assert T.gaussian(5e-324).residual(T.pure(5e-324)) is None
    assert T.pure(5e-324).gaussian_bound >= 5e-324
    assert T.pure(5e-324).units(T.gaussian(5e-324)) is None
    assert oc.accumulators.residue(5e-324).start(None).after(T.pure(5e-324)).left is None


def test_no_width_is_too_narrow():
    product = T.laplace(0.1).power(3)
    for width in (0.0, 5e-324):
        low, high = product.delta_bounds(0.1, width)
        assert 0.0 < low < high < 0.1
        low, high = product.epsilon_bounds(0.01, width)
        assert 0.0 < low < high < 0.3


def test_a_search_among_many_slots_keeps_few_sets(monkeypatch):
    """Sets of a thousand kinds of slots filled the memory before a child was covered."""
    pushed = []

    def push(queue, one):
        pushed.append(one)
        heappush(queue, one)

    monkeypatch.setattr(slots, "_KEPT", 2**14)
    monkeypatch.setattr(slots, "heappush", push)
    plan = tuple(T.pure(0.01 + 1e-5 * place) for place in range(300))
    taken = next(slots.covers(plan, T.laplace(0.025)))
    assert T.laplace(0.025) <= T.identity().compose(*taken)
    assert len(pushed) <= 2 * 300
