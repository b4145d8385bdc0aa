"""Sparse vectors that were published and are wrong, and that they are caught [LSL17, Figure 1].

Algorithms 3 to 6 there, with the noise that their authors gave, on whole steps. Exact laws are sums
over the threshold's noise. ``make_sparse_vector`` goes through the same and passes.
"""

import math

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

PURE = dp.max_divergence()
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)


def log_tail(scale, least):
    """log P(noise >= least), for discrete Laplace noise."""
    far = -np.maximum(least, 1 - least) / scale - math.log1p(math.exp(-1 / scale))
    return np.where(least >= 1, far, np.log1p(-np.exp(far)))


def log_mass(scale, at):
    return math.log(math.tanh(1 / (2 * scale))) - np.abs(at) / scale


def log_probability(threshold, query, answers, string, *, numbers=()):
    """Of outcomes A and B for whole answers minus the threshold; no cap on A.

    :param query: scale of the queries' noise, or None for none
    :param numbers: what is released for each A, if that is the noisy answer that was compared
    """
    reach = int(80 * threshold) + 50
    grid = np.arange(-reach, reach + 1)
    logs, numbers = log_mass(threshold, grid), list(numbers)
    for answer, outcome in zip(answers, string, strict=True):
        least = grid - answer
        if query is None:
            with np.errstate(divide="ignore"):
                logs = logs + np.log((least <= 0) if outcome == "A" else (least > 0))
        elif outcome == "B":
            logs = logs + log_tail(query, 1 - least)
        elif numbers:
            number = numbers.pop(0)
            with np.errstate(divide="ignore"):
                logs = logs + log_mass(query, number - answer) + np.log(grid <= number)
        else:
            logs = logs + log_tail(query, least)
    return float(np.logaddexp.reduce(logs))


def loss(answers, others, string, scales, **more):
    one, other = (log_probability(*scales, a, string, **more) for a in (answers, others))
    return abs(one - other)


@pytest.mark.parametrize("hits", [1, 3])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_algorithm_3_publishes_the_noise_of_the_comparison(hits, epsilon):
    """[LSL17, Theorem 6]: q = 0 against 1, m times below, then the number 0; e^(m ε/(2c))."""
    scales = 2 / epsilon, 2 * hits / epsilon
    found = [
        loss((0,) * m + (0,), (1,) * m + (0,), "B" * m + "A", scales, numbers=(0,))
        for m in (1, 10, 100, 1000)
    ]
    for m, value in zip((1, 10, 100, 1000), found, strict=True):
        assert value >= m * epsilon / (2 * hits) - 1e-6
    assert found[-1] > 100 * epsilon
    assert found[1] > found[0]


@pytest.mark.parametrize("hits", [1, 2, 5])
def test_algorithm_4_costs_one_and_six_c_quarters(hits):
    """Lee and Clifton: noise of the queries without c. True: (1+6c)/4 ε, reached."""
    epsilon = 1.0
    scales = 4 / epsilon, 4 / (3 * epsilon)
    true, m = (1 + 6 * hits) / 4 * epsilon, 1_000_000
    string = "B" * 1 + "A" * hits
    found = repeated(scales, m, hits)
    assert 0.99 * true <= found <= true + 1e-9
    assert found > 1.5 * epsilon
    short = loss((0,) + (0,) * hits, (1,) + (-1,) * hits, string, scales)
    assert short < found
    right = oc.m.make_sparse_vector(*WHOLE, PURE, 1, scales[0], 0, hits, query_scale=scales[1])
    assert right.map(1) == pytest.approx(true, rel=1e-12)  # what this package would say of it


def repeated(scales, m, hits):
    """Loss of m times below and ``hits`` times above, 0 against 1 and then -1."""
    threshold, query = scales
    reach = int(100 * threshold) + 50
    grid = np.arange(-reach, reach + 1)
    logs = [
        np.logaddexp.reduce(
            log_mass(threshold, grid)
            + m * log_tail(query, 1 - (grid - below))
            + hits * log_tail(query, grid - above)
        )
        for below, above in ((0, 0), (1, -1))
    ]
    return abs(float(logs[0] - logs[1]))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_algorithm_5_is_not_private_at_all(epsilon):
    """[LSL17, Theorem 3]: no noise on queries; q = (0, 1) against (1, 0), outcome B A."""
    scales = 2 / epsilon, None
    possible = log_probability(*scales, (0, 1), "BA")
    assert math.exp(possible) == pytest.approx(math.exp(log_mass(2 / epsilon, 1)), rel=1e-12)
    assert log_probability(*scales, (1, 0), "BA") == -math.inf


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_algorithm_6_grows_with_the_queries(epsilon):
    """[LSL17, Theorem 7]: no cap; 0^(2m) against 1^m (-1)^m, outcome B^m A^m; e^(m ε/2)."""
    scales = 2 / epsilon, 2 / epsilon
    for m in (1, 5, 20, 200):
        string = "B" * m + "A" * m
        found = loss((0,) * (2 * m), (1,) * m + (-1,) * m, string, scales)
        assert found >= m * epsilon / 2
        assert m < 5 or found > 2 * epsilon


def test_the_right_one_keeps_its_promise_on_all_their_counterexamples():
    """With c = 3: the counterexamples, cut at the third hit."""
    made = oc.m.make_sparse_vector(*WHOLE, PURE, 1, 2.0, 0, 3, query_scale=12.0)
    scales, promised = (2.0, 12.0), made.map(1)
    assert promised == pytest.approx(1.0, rel=1e-14)
    for answers, others, string in (
        ((0,) * 101, (1,) * 100 + (0,), "B" * 100 + "A"),
        ((0, 1), (1, 0), "BA"),
        ((0,) * 6, (1,) * 3 + (-1,) * 3, "BBBAAA"),
        ((0,) * 203, (1,) * 200 + (-1,) * 3, "B" * 200 + "AAA"),
    ):
        assert 0.0 < loss(answers, others, string, scales) <= promised + 1e-12
    assert 0.99 * promised <= repeated(scales, 1_000_000, 3) <= promised + 1e-9
