"""Approximate zCDP does not add up beside a mechanism that is approximate only as a whole.

The numbers are recomputed, and the analyst of the counterexample plays against a filter.
"""

from fractions import Fraction
from random import Random

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import ClosedChildError

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
MEASURE = dp.approximate(dp.zero_concentrated_divergence())
FOUND = oc.verify.approximate_zcdp_counterexample()


def largest_rho(p, q):
    """A bound on D_a(P||Q) / a over all orders a > 1, in both directions.

    The divergence grows with the order: that at the end of an interval, divided by its start, is a
    bound on the interval.
    """
    grid = np.concatenate([np.linspace(1, 12, 60_000), np.linspace(12, 60, 2000)[1:]])
    top = 0.0
    for left, right in ((p, q), (q, p)):
        x, y = (np.log(np.array(law, float)) for law in (left, right))
        powers = np.outer(grid[1:], x) - np.outer(grid[1:] - 1, y)
        divergence = np.logaddexp.reduce(powers, axis=1) / (grid[1:] - 1)
        top = max(top, (divergence / grid[:-1]).max(), (x - y).max() / 60)
    return top


def bit(p):
    return p, 1 - p


X = Fraction(1, 128), Fraction(1, 2**25)
Y = Fraction(1, 16), Fraction(1, 2**19)


def test_each_mechanism_has_the_parameters():
    rho, delta = FOUND.rho, FOUND.delta
    assert max(largest_rho(*map(bit, X)), largest_rho(*map(bit, Y))) <= rho
    # query 0: without what shows the dataset, of mass delta, the rest is that of X
    assert delta / (1 - delta) == X[0]
    assert (1 - delta) * X[1] / (1 - delta) == X[1]
    # query 1: without y, of mass at most delta, the rest is that of Y
    assert (1 - delta) * X[1] <= delta
    for dataset in (0, 1):
        first, second = (table[dataset] for table in FOUND.whole.tables)
        assert first[0][1] == pytest.approx(float((delta, (1 - delta) * X[1])[dataset]))
        assert first[0][0] * second[0][0][0][dataset] == pytest.approx(float(delta))
        assert second[0][0][1][0] == float(Y[dataset])
        assert FOUND.plain.tables[0][dataset].tolist() == [
            list(map(float, bit(law[dataset]))) for law in (X, Y)
        ]


def test_the_interleaved_view_costs_more_than_the_sum():
    for dataset, law in enumerate(FOUND.view):
        assert sum(law) == 1
        assert min(law) >= 0
        first, second = (table[dataset] for table in FOUND.whole.tables)
        (x, y), bits = first[0], FOUND.plain.tables[0][dataset]
        played = [*(y * bits[1]), *(x * bits[0][1] * second[0][0][0])]
        played += [*(x * bits[0][0] * second[0][0][1][:2])]
        assert [float(one) for one in law] == pytest.approx(played, rel=1e-9)
    assert 2 * FOUND.rho < FOUND.least_rho < 7.906
    assert 1.0195 * FOUND.delta < FOUND.least_delta < 1.0199 * FOUND.delta


def played(law, random):
    return random.choices(range(len(law)), law)[0]


def mechanism(tables, d_mid):
    """A finite interactive mechanism as a measurement."""

    def function(rows):
        random, past = Random(len(rows)), []

        def transition(query):
            law = tables[len(past) // 2][(len(rows), *past, query)]
            past.extend((query, played(law, random)))
            return past[-1]

        return dp.new_queryable(transition)

    return dp.m.make_user_measurement(
        *SPACE, MEASURE, function, lambda d_in: d_mid, TO="ExtrinsicObject"
    )


@pytest.mark.parametrize("first", ["whole", "plain"])
@pytest.mark.parametrize("rows", [[], [1]])
@pytest.mark.parametrize("below", [False, True], ids=["on one handle", "below a limit"])
def test_a_filter_defeats_the_analyst(first, rows, below):
    """If a launch closed the older children only, ``plain``, launched first, would not end it."""
    rho, delta = float(FOUND.rho), float(FOUND.delta)
    odometer = oc.make_concurrent_odometer(*SPACE, MEASURE)
    root = oc.make_concurrent_filter(odometer, 1, (2 * rho, delta))(rows)
    other = root(oc.c.make_limited(odometer, 1, (rho, 0.0), label="a")) if below else root
    whole = mechanism(FOUND.whole.tables, (rho, delta))
    plain = mechanism(FOUND.plain.tables, (rho, 0.0))
    if first == "whole":
        handle = root(whole)
        assert handle(0) == 0  # x, almost surely
        bits = other(plain)
    else:
        bits, handle = other(plain), root(whole)
        assert handle(0) == 0
    query = bits(0)
    with pytest.raises(ClosedChildError, match="only as a whole"):
        handle(query)
    assert root.privacy_loss() == (2 * rho, delta)
