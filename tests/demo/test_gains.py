"""The figures of the demonstration, against the mechanisms themselves."""

import math
from statistics import NormalDist

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.demo import gains

dp.enable_features("contrib", "honest-but-curious")


def launched(root, query):
    launches = 0
    try:
        while True:
            root(query)
            launches += 1
    except OpenDPException:
        return launches


def test_as_many_counts_are_launched_as_it_says():
    best, basic, converted = gains.launches()
    measure = dp.approximate(dp.max_divergence())
    count = gains.SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=100.0)
    query = dp.c.make_approximate(count)
    odometer = dp.c.make_fully_adaptive_composition(*gains.SPACE, measure)
    assert launched(dp.c.make_privacy_filter(odometer, 1, gains.D_OUT)([1]), query) == basic
    rule = oc.accumulators.best_rule(gains.D_OUT, [(0.01, 0.0)])
    odometer = oc.make_concurrent_odometer(*gains.SPACE, measure, accumulator=rule)
    assert launched(oc.make_concurrent_filter(odometer, 1, gains.D_OUT)([1]), query) == best
    assert best > converted > basic
    assert gains._epsilon(converted * 5e-5) <= 1.0 < gains._epsilon((converted + 1) * 5e-5)


def test_noise_on_each_count_is_given_the_same_budget_and_is_further_off():
    ours, plain, rho = gains.threshold_error()
    measure = dp.zero_concentrated_divergence()
    above = oc.m.make_above_threshold(
        *gains.SPACE, measure, 1, 2.0, 0, query_scale=2.0, monotone=True
    )
    each = dp.m.make_gaussian(
        dp.atom_domain(T=int), dp.absolute_distance(T=int), math.sqrt(1000 / (2 * rho))
    )
    assert rho == above.map(1) == pytest.approx(1.5**2 / 8)
    assert 1000 * each.map(1) == pytest.approx(rho, abs=1e-4)
    within = 2 * NormalDist(0.0, math.sqrt(1000 / (2 * rho))).cdf(plain) - 1
    assert within**1000 == pytest.approx(0.95, abs=1e-6)
    assert 7 * ours < plain


def test_a_counter_has_the_error_that_is_printed_at_the_same_budget():
    steps = 127
    expected, each, fresh = gains.counter_error(steps)
    space = oc.integer_stream(0, 1), oc.event_presence(), dp.zero_concentrated_divergence()
    unit = oc.m.make_counter(*space, scale=1.0, horizon=steps)
    scale = math.sqrt(unit.map(1) / gains.RHO)
    counter = oc.m.make_counter(*space, scale=scale, horizon=steps)
    assert counter.map(1) == pytest.approx(gains.RHO)
    runs, squares = 60, 0.0
    for _ in range(runs):
        queryable = counter([])
        for _ in range(steps):
            queryable.update(0)
            squares += queryable(None) ** 2
    measured = math.sqrt(squares / (runs * steps))
    assert measured == pytest.approx(expected, rel=0.35)
    assert expected < each < fresh


def test_every_figure_is_printed_beside_the_plain_one(capsys):
    gains.show(6366)
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert max(map(len, printed.splitlines())) <= 80
    rows = [line.split()[-2:] for line in printed.splitlines()[1:] if not line.startswith(" ")]
    launches, *errors = [tuple(map(float, row)) for row in rows]
    assert launches == (490.0, 99.0)
    *errors, seconds = errors
    assert len(errors) == 2
    assert all(here < plain for here, plain in errors)
    assert min(seconds) >= 0.0  # which is faster depends on what else the machine does
