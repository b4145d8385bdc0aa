"""A scripted analyst against real pipelines: right ones pass, a broken one is flagged.

The bounds hold with probability 1 - 1e-9 each; noise is OpenDP's and cannot be seeded.
"""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.errors import InvalidValueError

X, X_PRIME = [1, 2, 3], [1, 2]


def count(space, scale):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


def test_a_filter_with_interleaved_children_keeps_its_promise(space):
    one = count(space, 4.0)
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    limit = oc.make_concurrent_filter(odometer, 1, 1.0)
    child = oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [0.25, 0.25])

    def analyst(root):
        first, second = root(child), root(child)
        return first(one) + second(one) + first(one) + second(one)

    found = verify.audit(limit, X, X_PRIME, analyst, n=200)
    assert not found.violates(1.0)
    assert found.runs == 200


def test_a_broken_mechanism_is_flagged(space):
    """Says ε = 1 and has noise for ε = 4.

    The score is 1 with a probability of 0.98 or 0.02; all but 10^-22 of the audits show ε > 1.
    Scores of many values would give the audit rare events to choose, by chance and badly.
    """
    honest = count(space, 0.25)
    broken = dp.m.make_user_measurement(
        *space, dp.max_divergence(), lambda rows: honest(rows), lambda d_in: 1.0 * d_in
    )
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    limit = oc.make_concurrent_filter(odometer, 1, 1.0)

    def analyst(root):
        answer = root(broken)
        assert root.privacy_loss() == 1.0
        return answer >= 3

    found = verify.audit(limit, X, X_PRIME, analyst, n=600)
    assert found.violates(1.0)
    assert found.epsilon_lower <= 4.0


def test_a_constant_shows_nothing_and_a_leak_shows_all():
    constant = verify.audit(lambda data: 0.0, 1, 0, float, n=100)
    assert constant.epsilon_lower == 0.0
    leak = verify.audit(lambda data: float(data), 1, 0, float, n=10_000)
    assert leak.epsilon_lower > math.log(200)
    assert "more likely on x" in leak.event
    lower = verify.audit(lambda data: float(data), 0, 1, float, n=10_000, delta=0.5)
    assert 0.0 < lower.epsilon_lower < leak.epsilon_lower


def test_infinite_scores_are_ranked_and_nan_is_refused():
    for sign in (1, -1):
        leak = verify.audit(
            lambda data: data, 1, 0, lambda a, s=sign: s * math.inf * (a - 0.5), n=4_000
        )
        assert leak.epsilon_lower > 4.0
    with pytest.raises(InvalidValueError, match="^strategy must return numbers"):
        verify.audit(lambda data: math.nan, 1, 0, float, n=10)
