"""Finite mechanisms against closed forms, and their edges."""

import math

import pytest

from opendp_concurrent import verify
from opendp_concurrent.errors import InvalidValueError


def test_finite_mechanisms_against_closed_forms():
    response = verify.randomized_response(1.0)
    assert response.epsilon() == pytest.approx(1.0)
    assert response.delta(0.5) == pytest.approx(0.2876491366, abs=1e-10)
    assert response.renyi(2.0) == pytest.approx(0.7353256641, abs=1e-10)
    failing = verify.randomized_response(0.5, 0.01)
    assert failing.epsilon() == math.inf
    assert failing.epsilon(0.01) == pytest.approx(0.5, abs=1e-9)
    assert failing.delta(0.5) == pytest.approx(0.01)
    assert failing.renyi(2.0) == math.inf
    assert failing.swapped == verify.FiniteMechanism(failing.second, failing.first)
    for seed in range(30):
        assert verify.random_mechanism(seed, 4, epsilon=0.7).epsilon() <= 0.7 + 1e-9


@pytest.mark.parametrize(
    ("first", "second", "alpha", "expected"),
    [
        ((1, 0), (0, 1), 0.0, 0.0),
        ((1, 0), (0.5, 0.5), 0.0, 0.5),
        ((0.5, 0.5, 0), (0, 0.5, 0.5), 0.0, 0.5),
        ((0.5, 0.5), (0.5, 0.5), 0.25, 0.75),
        ((0.5, 0.5, 0), (0, 0.5, 0.5), 0.25, 0.25),
        ((0.5, 0.5, 0), (0, 0.5, 0.5), 1.0, 0.0),
    ],
)
def test_tradeoffs_with_impossible_answers(first, second, alpha, expected):
    assert verify.FiniteMechanism(first, second).tradeoff(alpha) == pytest.approx(expected)


def test_edges_of_finite_mechanisms():
    response = verify.randomized_response(1.0)
    for order in (math.inf, math.nan, 1.0, 0.5):
        with pytest.raises(InvalidValueError, match="^order"):
            response.renyi(order)
    for alpha in (-0.5, 1.5, math.nan):
        with pytest.raises(InvalidValueError, match="^alpha"):
            response.tradeoff(alpha)
    assert response.delta(1000.0) == 0.0
    assert verify.FiniteMechanism((1, 0), (0, 1)).delta(math.inf) == 1.0
    assert verify.FiniteMechanism((1.0, 1e-16), (1.0, 0)).epsilon() == math.inf
    assert verify.randomized_response(30.0).delta(30.0) == pytest.approx(0.0, abs=1e-12)
    assert verify.randomized_response(20.0).epsilon() == pytest.approx(20.0, rel=1e-12)
    with pytest.raises(InvalidValueError, match="^epsilon"):
        response.delta(math.nan)
    with pytest.raises(InvalidValueError, match="^epsilon"):
        verify.random_mechanism(0, 3, epsilon=-1.0)
    thirds = verify.FiniteMechanism((0.3333333333,) * 3, (0.25, 0.25, 0.5))
    assert math.fsum(thirds.first) == pytest.approx(1.0, abs=1e-15)
