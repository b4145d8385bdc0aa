"""Promises of (ε, δ)-DP: the ε of a theorem, from what launches really tell."""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify

from .promise import Budget
from .promised_approximate import (
    RULES,
    approximate,
    theorem_epsilon,
)

MEASURE = oc.extend.composition_measure(dp.approximate(dp.max_divergence()))
MECHANISMS, COUNTS = [verify.randomized_response(0.25)], [40]


def test_the_theorem_of_advanced_composition():
    """[WRRW23]: the sum of mean losses, and a deviation of sub-Gaussian losses."""
    slack = 1e-5
    found = theorem_epsilon(oc.accumulators.advanced(delta_slack=slack), MECHANISMS, COUNTS)
    declared = oc.accumulators.advanced(delta_slack=slack).start(MEASURE)
    declared = declared.after((0.25, 0.0), 40).loss[0]
    mean = 40 * 0.25 * math.tanh(0.125)
    assert mean < found <= declared


def test_a_theorem_is_never_above_what_its_rule_declares():
    for rule in RULES.values():
        accounting = rule(Budget([0.25], COUNTS, "epsilon", 1.0, 1.0))
        declared = accounting.start(MEASURE).after((0.25, 0.0), 40).loss[0]
        assert theorem_epsilon(accounting, MECHANISMS, COUNTS) <= declared * (1 + 1e-12)


@pytest.mark.parametrize("part", ["epsilon", "delta"])
def test_the_plain_sum_is_kept_and_a_rule_with_more_is_not(part):
    kept = list(approximate("basic", Budget([0.5], [2], part, 1.0, 1.0)))
    broken = list(approximate("basic", Budget([0.5], [2], part, 0.9, 1.2)))
    assert max(one.excess for one in kept) <= 1e-12
    assert max(one.excess for one in broken) > 1e-8
