"""Interactive mechanisms and their tight parameters."""

import math
from itertools import product

import numpy as np
import pytest

from opendp_concurrent import verify
from opendp_concurrent.verify.interactive import hull_pair


def by_definition(mechanism, epsilon):
    """Over all functions from answers to queries, for two rounds."""
    best = 0.0
    first, second = mechanism.tables
    for query in range(first.shape[1]):
        for onward in product(range(second.shape[3]), repeat=first.shape[2]):
            laws = [
                np.array(
                    [
                        first[b, query, a] * second[b, query, a, onward[a], c]
                        for a in range(first.shape[2])
                        for c in range(second.shape[4])
                    ]
                )
                for b in (0, 1)
            ]
            for p, q in (laws, laws[::-1]):
                best = max(best, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_delta_is_that_of_the_best_deterministic_analyst(seed):
    mechanism = verify.random_interactive(seed, queries=2 + seed % 2, answers=2 + seed % 3 // 2)
    for epsilon in (0.0, 0.5, 1.5):
        exact = by_definition(mechanism, epsilon)
        assert mechanism.delta(epsilon) == pytest.approx(exact, abs=1e-12)
        assert mechanism.dominating.delta(epsilon) == pytest.approx(exact, abs=1e-9)
        views = max(view.delta(epsilon) for view in mechanism.analysts())
        assert views == pytest.approx(exact, abs=1e-12)
    worst = max(view.renyi(3.0) for view in mechanism.analysts())
    assert mechanism.renyi(3.0) == pytest.approx(worst, rel=1e-12)
    assert mechanism.epsilon(mechanism.delta(0.5)) <= 0.5 + 1e-6
    for alpha in (0.1, 0.4):
        views = [one for view in mechanism.analysts() for one in (view, view.swapped)]
        best = min(view.tradeoff(alpha) for view in views)
        assert best - 0.1 <= mechanism.tradeoff(alpha) <= best + 1e-12


def test_a_hull_has_the_tradeoff_of_its_points():
    response = verify.randomized_response(1.0)
    assert hull_pair(response.roc()).delta(0.5) == pytest.approx(response.delta(0.5))
    both = hull_pair([*response.roc(), *verify.randomized_response(0.2, 0.1).roc()])
    for epsilon in (0.0, 0.3, 0.8):
        assert both.delta(epsilon) >= response.delta(epsilon) - 1e-12
        assert both.delta(epsilon) >= verify.randomized_response(0.2, 0.1).delta(epsilon) - 1e-12


def test_epsilon_of_an_interactive_mechanism_is_the_largest_loss_of_a_path():
    mechanism = verify.random_interactive(2)
    assert mechanism.epsilon() == pytest.approx(1.45225, abs=1e-5)
    assert mechanism.delta(mechanism.epsilon() + 1e-9) <= 1e-12
    assert mechanism.delta(mechanism.epsilon() - 1e-3) > 0
