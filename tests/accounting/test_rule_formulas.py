"""The rules' losses against mpmath, with up to ten million launches and extreme parameters."""

import mpmath as mp
import pytest
from mpmath import mpf

import opendp_concurrent as oc

EPSILONS = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 50.0]
COUNTS = [1, 1000, 10**7]
SLACKS = [1e-300, 1e-6, 0.5]
POINTS = [(e, k, s) for e in EPSILONS for k in COUNTS for s in SLACKS]


def check(found, exact, slack, deltas):
    assert mpf(found[0]) >= exact * (1 - mpf("1e-60"))
    assert mpf(found[0]) <= exact * (1 + mpf("1e-12")) + mpf("1e-300")
    total = mpf(slack) + deltas
    assert total <= mpf(found[1]) <= total * (1 + mpf("1e-15"))


@pytest.mark.parametrize(("epsilon", "count", "slack"), POINTS)
def test_advanced(epsilon, count, slack):
    with mp.workdps(100):
        total = count * mpf(epsilon) ** 2
        exact = mp.sqrt(2 * mp.log(1 / mpf(slack)) * total) + total / 2
        found = oc.accumulators.advanced(slack).start(None).after((epsilon, 1e-12), count).loss
        check(found, exact, slack, count * mpf(1e-12))


@pytest.mark.parametrize(("epsilon", "count", "slack"), POINTS)
def test_zcdp(epsilon, count, slack):
    with mp.workdps(100):
        e = mpf(epsilon)
        rho = count * e * mp.tanh(e / 2)
        target = -mp.log(mpf(slack))

        def slope(t):
            return rho * t * t + mp.log(1 + t) - target

        low, high = mpf("1e-30"), mpf("1e140")
        for _ in range(900):
            middle = mp.sqrt(low * high)
            low, high = (low, middle) if slope(middle) > 0 else (middle, high)
        t = low
        exact = (1 + t) * rho + mp.log(t / (1 + t)) + (target - mp.log(1 + t)) / t
        found = oc.accumulators.zcdp(slack).start(None).after((epsilon, 1e-12), count).loss
        check(found, max(exact, 0), slack, count * mpf(1e-12))


@pytest.mark.parametrize(("epsilon", "count", "slack"), POINTS)
@pytest.mark.parametrize("order", [1 + 1e-6, 2.0, 22.5, 1e6])
def test_renyi(epsilon, count, slack, order):
    with mp.workdps(100):
        e, a, d = mpf(epsilon), mpf(order), mpf(slack)
        one = mp.log((mp.exp(a * e) + mp.exp(e - a * e)) / (1 + mp.exp(e))) / (a - 1)
        exact = count * one + mp.log((a - 1) / a) - (mp.log(d) + mp.log(a)) / (a - 1)
        found = oc.accumulators.renyi(order, slack).start(None).after((epsilon, 1e-12), count).loss
        check(found, max(exact, 0), slack, count * mpf(1e-12))
