"""The number of runs has exactly the law that its price is for. Odds of chance are below 1e-9."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from opendp_concurrent.mechanisms.selection import (
    LARGEST,
    RandomRuns,
    fair,
    happens,
    mean_of,
    most_of,
    scale_for,
)

from .selection_oracle import weights

ODDS = 1e-11
COUNT = 500


class Script:
    """Noise that was written down before; it raises when it is used up."""

    def __init__(self, draws):
        self.draws = list(draws)

    def draw(self):
        return self.draws.pop(0)


def probabilities(chance, bits):
    """The probabilities of True, of False, and of more bits being needed."""
    found = Counter()
    for script in product((-1, 1), repeat=bits):
        try:
            found[happens(chance, Script(script))] += 1
        except IndexError:
            found[None] += 1
    return [Fraction(found[key], 2**bits) for key in (True, False, None)]


@given(st.fractions(0, 1, max_denominator=60).filter(lambda one: one < 1))
def test_an_event_has_exactly_its_probability(chance):
    yes, no, open_ = probabilities(chance, 8)
    assert yes <= chance <= yes + open_
    assert no <= 1 - chance <= no + open_
    assert open_ <= Fraction(1, 2**8)


def test_a_fair_bit_is_a_sign_and_never_zero():
    assert [fair(Script([0, 0, 5])), fair(Script([0, -1])), fair(Script([1]))] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("mean", "eta", "most"),
    [(3.0, 1.0, None), (3.0, 1.0, 4), (3.0, 0.5, None), (4.0, 0.0, None), (4.0, 0.0, 6)],
)
def test_runs_have_the_law_of_the_oracle(mean, eta, most):
    scale = scale_for(mean, eta)
    runs = RandomRuns(scale, eta, most_of(scale) if most is None else most)
    found = Counter(runs.draw() for _ in range(COUNT))
    law = weights(runs.scale, eta, runs.most)
    assert max(found) <= runs.most
    for k in range(1, min(runs.most, 12) + 1):
        low, high = binom.ppf(ODDS, COUNT, law[k - 1]), binom.isf(ODDS, COUNT, law[k - 1])
        assert low <= found[k] <= high


def test_a_geometric_law_for_a_logarithmic_one_would_be_seen():
    scale = scale_for(4.0, 0.0)
    found = Counter(RandomRuns(scale, 1.0, 10**6).draw() for _ in range(COUNT))
    law = weights(scale, 0.0, 500)
    assert not binom.ppf(ODDS, COUNT, law[0]) <= found[1] <= binom.isf(ODDS, COUNT, law[0])


@given(st.floats(1.001, 1e6), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_a_scale_is_found_for_each_mean(mean, eta):
    scale = scale_for(mean, eta)
    assert 0.0 < scale <= LARGEST
    assert mean_of(scale, eta) == pytest.approx(mean, rel=1e-6)
    law = RandomRuns(scale, eta, most_of(scale))
    assert math.exp(-(law.most - 1) / scale) <= 2e-22
