"""Promises of sums: what is launched reaches what is judged."""

import math

from .promise import Budget
from .promised_sums import (
    OMEGA,
    pure_compositor,
    steep_mechanism,
    zcdp_sum,
)


def test_the_steep_mechanism_is_worse_above_omega_than_below():
    """Its divergence over the order grows: a promise at more orders is broken by it."""
    steep = steep_mechanism()
    shares = [steep.renyi(order) / order for order in (2.0, 4.0, OMEGA, 2 * OMEGA)]
    assert shares == sorted(shares)
    assert shares[-1] > 1.05 * shares[-2]


def test_a_compositor_of_pure_shares_reaches_their_sum_and_no_more():
    whole, zero = pure_compositor(Budget([0.5, 1.0], [2, 1], "epsilon", 1.0, 1.0))
    assert whole.worst == whole.promised == 2
    assert zero.worst <= 1e-12


def test_a_rule_that_is_given_too_much_exceeds_the_promise():
    kept = list(zcdp_sum(Budget([0.5, 1.0], [2, 1], "rho", 1.0, 1.0)))
    broken = list(zcdp_sum(Budget([0.5, 1.0], [2, 1], "rho", 0.9, 1.2)))
    assert max(one.excess for one in kept) <= 1e-12
    assert max(one.excess for one in broken) > 0.01
    assert math.isclose(broken[0].promised, 0.9 * kept[0].promised, rel_tol=1e-12)
