"""The exact worst analyst against the filters, with the accumulators that production uses.

The analyst chooses among randomized responses, adaptively, as long as the filter admits them. Over
all such analysts the largest δ(ε) is found by dynamic programming over what was launched and the
likelihood ratio, which is a power of e^unit.
"""

import math
from functools import cache

import pytest

import opendp_concurrent as oc

UNIT = 0.1


def worst_delta(admits, epsilon, menu=(1, 2, 5)):
    """Largest δ at ``epsilon`` over all analysts; ``admits(counts)`` says who may go on."""

    @cache
    def value(counts, ratio):
        best = max(0.0, -math.expm1(epsilon - ratio * UNIT))
        for index, multiple in enumerate(menu):
            after = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
            if admits(after):
                truth = 1 / (1 + math.exp(-multiple * UNIT))
                best = max(
                    best,
                    truth * value(after, ratio + multiple)
                    + (1 - truth) * value(after, ratio - multiple),
                )
        return best

    return value((0,) * len(menu), 0)


def admitted_by(rule, d_out, menu=(1, 2, 5)):
    @cache
    def state(counts):
        accumulator = rule.start((0.0, 0.0))
        for count, multiple in zip(counts, menu, strict=True):
            if count:
                accumulator = accumulator.after((multiple * UNIT, 0.0), count)
        return accumulator.within(d_out)

    return state


RULES = [
    oc.advanced(0.02),
    oc.zcdp(0.02),
    oc.renyi(4.0, 0.02),
    oc.either(oc.basic(), oc.zcdp(0.02)),
    oc.either(oc.basic(), oc.zcdp(0.01), oc.renyi(3.0, 0.01)),
    oc.either(oc.basic(), oc.advanced(0.02)),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_no_analyst_exceeds_the_bound_of_a_filter(rule):
    d_out = (1.5, 0.02)
    worst = worst_delta(admitted_by(rule, d_out), d_out[0])
    assert 0.0 < worst <= d_out[1]


@pytest.mark.parametrize("rule", [oc.zcdp(0.02), oc.either(oc.basic(), oc.renyi(4.0, 0.02))])
def test_the_bound_is_not_idle(rule):
    """The worst analyst comes within a factor of twenty; with twice the ε he would be over."""
    d_out = (1.5, 0.02)
    assert worst_delta(admitted_by(rule, d_out), d_out[0]) > d_out[1] / 20
    assert worst_delta(admitted_by(rule, (3.0, 0.02)), d_out[0]) > d_out[1]


def test_basic_composition_is_never_exceeded():
    assert worst_delta(admitted_by(oc.basic(), (1.0000001, 0.0)), 1.0000001) == 0.0


def test_optimal_composition_is_no_filter():
    """Pure launches, ε = 0.5: the best non-adaptive choices reach 0.28765, an analyst 0.35425.

    Launch 0.5 first; then 1 if the answer was the truth's, else 0.7425 twice.
    """

    def delta(*epsilons):
        total = 0.0
        for signs in range(2 ** len(epsilons)):
            p, loss = 1.0, 0.0
            for index, epsilon in enumerate(epsilons):
                sign = 1 if signs >> index & 1 else -1
                p *= 1 / (1 + math.exp(-sign * epsilon))
                loss += sign * epsilon
            total += p * max(0.0, -math.expm1(0.5 - loss))
        return total

    def after(loss, *epsilons):
        total = 0.0
        for signs in range(2 ** len(epsilons)):
            p, more = 1.0, loss
            for index, epsilon in enumerate(epsilons):
                sign = 1 if signs >> index & 1 else -1
                p *= 1 / (1 + math.exp(-sign * epsilon))
                more += sign * epsilon
            total += p * max(0.0, -math.expm1(0.5 - more))
        return total

    fixed = max(delta(0.5, 1.0), delta(0.5, 0.7425, 0.7425))
    truth = 1 / (1 + math.exp(-0.5))
    adaptive = truth * max(after(0.5, 1.0), after(0.5, 0.7425, 0.7425)) + (1 - truth) * max(
        after(-0.5, 1.0), after(-0.5, 0.7425, 0.7425)
    )
    assert fixed == pytest.approx(0.2876491366, abs=1e-9)
    assert adaptive == pytest.approx(0.3542546401, abs=1e-9)


def test_gaussian_dp_is_not_exceeded_by_adaptive_responses():
    """Launches as Gaussian DP, each with the μ of its randomized response, against the whole μ."""
    from opendp_concurrent.conversions.gaussian_to_approximate import gaussian_to_delta
    from opendp_concurrent.conversions.pure_to_gaussian import pure_to_gaussian

    mu = 1.0

    def admits(counts):
        total = sum(
            count * pure_to_gaussian(multiple * UNIT) ** 2
            for count, multiple in zip(counts, (1, 2, 5), strict=True)
        )
        return total <= mu * mu

    for epsilon in (0.0, 0.25, 0.5, 1.0, 2.0):
        worst = worst_delta(admits, epsilon)
        assert worst <= gaussian_to_delta(mu, epsilon)
    assert worst_delta(admits, 0.5) > gaussian_to_delta(mu, 0.5) / 2
