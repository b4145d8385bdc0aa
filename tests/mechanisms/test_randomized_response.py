"""Certificates of randomized response, against exact sums."""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

ZCDP, RENYI = dp.zero_concentrated_divergence(), dp.renyi_divergence()
T = oc.TradeoffFunction


@pytest.mark.parametrize("alpha", [1.5, 2.0, 16.0])
def test_randomized_response(alpha):
    measure = oc.fixed_renyi_divergence(alpha)
    bit = oc.m.make_certified_randomized_response_bool(0.75, measure)
    three = oc.m.make_certified_randomized_response(["a", "b", "c"], 0.75, measure)
    p, q, r = 0.75, 0.25, 0.125
    for made, moment in (
        (bit, p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha)),
        (three, p**alpha * r ** (1 - alpha) + r**alpha * p ** (1 - alpha) + r),
    ):
        assert made.map(1) == pytest.approx(math.log(moment) / (alpha - 1), rel=1e-12)
        assert made.map(0) == 0.0
    assert isinstance(bit(True), bool)
    assert three("a") in {"a", "b", "c"}
    assert three.map(1) < oc.c.cast(
        dp.m.make_randomized_response(["a", "b", "c"], 0.75), measure
    ).map(1)
    curve = oc.m.make_certified_randomized_response_bool(0.75, RENYI).map(1)
    assert curve(alpha) == bit.map(1)
    assert oc.m.make_certified_randomized_response_bool(0.75, ZCDP).map(1) == pytest.approx(
        math.log(3) * 0.5, rel=1e-14
    )


@pytest.mark.parametrize(("prob", "categories"), [(0.75, 2), (0.5, 3), (0.6, 5)])
def test_randomized_response_is_exact(prob, categories):
    names = [str(n) for n in range(categories)]
    function = oc.m.make_certified_randomized_response(names, prob, oc.tradeoff()).map(1)
    lie = (1 - prob) / (categories - 1)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        exact = max(0.0, prob - math.exp(epsilon) * lie)
        if epsilon == 0.0:
            exact = prob - lie
        assert function.delta(epsilon) == pytest.approx(exact, rel=1e-12, abs=1e-15)
        assert function.delta(epsilon) >= exact * (1 - 1e-15)
    assert (
        oc.m.make_certified_randomized_response(names, prob, oc.tradeoff()).map(0) == T.identity()
    )
