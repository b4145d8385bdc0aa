"""What a sparse vector costs, against its exact law, summed over the threshold's noise.

Outcomes are enumerated, over queries that may depend on the outcomes so far.
"""

import math
from fractions import Fraction
from itertools import pairwise, product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf
from scipy.stats import norm

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.measures.conversion import pure_to_renyi
from opendp_concurrent.measures.renyi import READ
from opendp_concurrent.mechanisms.noise import LaplaceNoise, OneSidedNoise, Steps
from opendp_concurrent.mechanisms.sparse_vector import SparseVectorNoise
from opendp_concurrent.queryables.data import unseal

from ..build import APPROXIMATE, PURE, RENYI, SPACE, ZCDP
from .sparse_vector_oracle import (
    Noise,
    below_tail,
    center,
    law,
    leaves,
    long_loss,
    tail,
    threshold_noise,
)

ORDERS = (1.001, 1.5, 2.0, 4.0, 8.0, 32.0)
CRUMB = 1e-10  # of the oracle's doubles


def pair_of(noise, pairs):
    """The laws on both datasets, as a finite mechanism."""
    first, second = (law(noise, answers) for answers in zip(*pairs, strict=True))
    return verify.FiniteMechanism(tuple(first.values()), tuple(second.values()))


def worst(noise, choose, length):
    """The largest loss of one outcome, in both directions."""
    return leaves(noise, choose, length, lambda p, q, _: abs(math.log(p / q)), max)


def delta(noise, choose, length, epsilon):
    scale = math.exp(epsilon)
    return max(
        leaves(noise, choose, length, lambda *pq, o=order: max(0.0, pq[o] - scale * pq[1 - o]), sum)
        for order in (0, 1)
    )


def renyi(noise, choose, length, alpha, released=0.0):
    """Divergence of outcomes, and of numbers with a divergence of ``released`` each."""
    extra = math.exp((alpha - 1) * released)
    moments = [
        leaves(
            noise,
            choose,
            length,
            lambda *v, o=order: v[o] ** alpha * v[1 - o] ** (1 - alpha) * extra ** v[2].count("A"),
            sum,
        )
        for order in (0, 1)
    ]
    return math.log(max(moments)) / (alpha - 1)


def menu(sensitivity, monotone, values=(-2, 1)):
    """Queries with every way in which they may move."""
    moves = (0, sensitivity) if monotone else (-sensitivity, 0, sensitivity)
    return [(value, value + move) for value in values for move in moves]


def patterns(length, sensitivity, monotone):
    """Answers on a dataset, with every pattern of moves to a neighbour."""
    ways = [(0, 1)] if monotone else [(-1, 1), (0, 1)]
    for levels in ((0,) * length, (-3,) * length, tuple(range(-2, length - 2))):
        for way in ways:
            for moves in product(way, repeat=length):
                pairs = [(v, v + m * sensitivity) for v, m in zip(levels, moves, strict=True)]
                yield pairs


SIDES = ["two two", "one one", "two one"]


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("refresh", [False, True])
@pytest.mark.parametrize(
    ("threshold", "query", "hits", "sensitivity", "length"),
    [(1.0, 2.0, 1, 1, 4), (2.0, 3.0, 2, 1, 5), (3.0, 2.0, 3, 1, 4), (4.0, 5.0, 2, 3, 4)],
)
def test_no_outcome_costs_more_than_the_map_says(
    threshold, query, hits, sensitivity, length, refresh, monotone, sides
):
    noise = Noise(threshold, query, hits, refresh, monotone, sides)
    epsilon, found = noise.map(PURE, sensitivity), 0.0
    for pairs in patterns(length, sensitivity, monotone):
        loss = pair_of(noise, pairs).epsilon()
        assert loss <= epsilon + CRUMB
        found = max(found, loss)
    assert found >= 0.3 * epsilon  # the search is not idle


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("refresh", [False, True])
def test_adaptive_queries_cost_no_more_than_the_map_says(refresh, monotone, sides):
    noise = Noise(1.0, 1.5, 2, refresh, monotone, sides)

    def choose(string):
        return menu(1, monotone)

    epsilon = noise.map(PURE)
    found = worst(noise, choose, 4)
    assert 0.4 * epsilon <= found <= epsilon + CRUMB
    curve, rho = noise.map(RENYI), noise.map(ZCDP)
    tcdp = noise.map(oc.truncated_concentrated_divergence(8.0))
    mu = noise.map(oc.gaussian_tradeoff())
    assert tcdp.omega == 8.0
    for alpha in ORDERS:
        fixed = noise.map(oc.fixed_renyi_divergence(alpha))
        assert fixed == curve(alpha) if alpha in READ else fixed <= curve(alpha)
        assert curve(alpha) <= epsilon
    for alpha in ORDERS[1::2]:
        exact = renyi(noise, choose, 3, alpha)
        if sides != "one one":  # under Rényi DP the threshold's noise is two-sided
            assert exact <= curve(alpha) + CRUMB
        assert exact <= rho * alpha + CRUMB
        assert alpha >= 8.0 or exact <= tcdp.rho * alpha + CRUMB
    tradeoff, approximate = noise.map(oc.tradeoff()), noise.map(APPROXIMATE)
    for level in (0.0, 0.8, 2.5):
        exact = delta(noise, choose, 3, level)
        assert exact <= tradeoff.delta(level) + CRUMB
        gaussian = norm.cdf(mu / 2 - level / mu) - math.exp(level) * norm.cdf(-mu / 2 - level / mu)
        assert exact <= gaussian
        assert level < approximate[0] or exact <= approximate[1] + CRUMB


def directed(string):
    """The first outcome decides whether later answers may rise or fall, by up to 1."""
    if not string:
        return [(value, value) for value in (-2, 0, 1)]
    move = 1 if string[0] == "A" else -1
    return [(value, value + step) for value in (-2, 0, 1) for step in (0, move)]


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("refresh", [False, True])
@pytest.mark.parametrize(("threshold", "query", "hits"), [(1.0, 1.5, 2), (2.0, 2.0, 3)])
def test_directions_that_outcomes_decide_cost_what_monotone_queries_do(
    threshold, query, hits, refresh, sides
):
    noise = Noise(threshold, query, hits, refresh, sides=sides)
    own = SparseVectorNoise(threshold, query, None, hits, refresh, *noise.one_sided)

    def loss(measure):
        return own.loss(1, measure, spread=1, decided=True)

    epsilon = loss(PURE)
    assert 0.25 * epsilon <= worst(noise, directed, 3) <= epsilon + CRUMB
    for alpha in ORDERS[::2]:
        exact = renyi(noise, directed, 3, alpha)
        assert exact <= loss(ZCDP) * alpha + CRUMB
        assert exact <= loss(RENYI)(alpha) + CRUMB
    for level in (0.0, 0.8):
        assert delta(noise, directed, 3, level) <= loss(oc.tradeoff()).delta(level) + CRUMB


def test_directions_that_change_along_outcomes_cost_more():
    """The discount is false there: D/s + 2cD/s' is reached, above D/s + cD/s'."""
    asked = [(5, 6), (5, 4), (1, 2), (1, 0), (3, 2), (3, 4)]
    found = worst(Noise(2.0, 2.0, 1, sides="one one"), lambda string: asked, 4)
    assert 1.2 < found <= 1.5 + CRUMB


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("refresh", [False, True])
def test_the_range_of_monotone_queries_bounds_their_zcdp(refresh, sides):
    """All outcomes, for answers that rise: r²/8 with r = D/s + 2cD/s', for small and large r."""
    for threshold, query, hits in ((10.0, 10.0, 1), (3.0, 4.0, 2), (1.0, 1.0, 1)):
        noise = Noise(threshold, query, hits, refresh, monotone=True, sides=sides)
        own, rounds = (1, hits) if refresh else (hits, 1)
        ranged = (1 / threshold + 2 * own / query) ** 2 / 8
        epsilon = 1 / threshold + own / query
        exact = rounds * min(ranged, epsilon * math.tanh(epsilon / 2))
        assert noise.map(ZCDP) == pytest.approx(exact, rel=1e-12)
        for alpha in ORDERS:
            for move in (1, -1):
                found = renyi(noise, lambda _, m=move: [(0, m), (-1, m - 1), (2, 2)], 3, alpha)
                assert found <= noise.map(ZCDP) * alpha + CRUMB
    assert Noise(10.0, 10.0, 1, monotone=True).map(ZCDP) == pytest.approx(0.01125)


@pytest.mark.parametrize("one_sided", [False, True])
def test_noise_is_one_sided_where_its_price_allows(one_sided):
    for measure in (PURE, ZCDP, RENYI, oc.fixed_renyi_divergence(2.0), oc.tradeoff()):
        made = oc.m.make_sparse_vector(*SPACE, measure, 1, 2.0, 0, 2, one_sided=one_sided)
        comparison = unseal(made([1])._machine)._comparison
        curves = measure in (RENYI, oc.fixed_renyi_divergence(2.0))
        assert comparison._noise.one_sided_query is one_sided
        assert comparison._noise.one_sided_threshold is (one_sided and not curves)
        assert isinstance(comparison._query, OneSidedNoise if one_sided else LaplaceNoise)


def test_one_sided_noise_costs_what_two_sided_noise_costs():
    for measure in (PURE, ZCDP, oc.gaussian_tradeoff(), APPROXIMATE):
        for refresh, monotone in ((False, False), (True, False), (False, True)):
            maps = [Noise(2.0, 3.0, 3, refresh, monotone, s).map(measure) for s in SIDES]
            assert maps[0] == maps[1]
    own = SparseVectorNoise(2.0, 3.0, None, 3, refresh=False, one_sided_threshold=True)
    other = SparseVectorNoise(2.0, 3.0, None, 3, refresh=False)
    two = oc.fixed_renyi_divergence(2.0)
    assert own.loss(1, two) == pure_to_renyi(own.loss(1, PURE), 2.0) > other.loss(1, two)


@pytest.mark.parametrize(("refresh", "monotone"), [(False, False), (True, False), (False, True)])
def test_numbers_that_are_released_are_paid_for(refresh, monotone):
    """The number is q with noise of its own, whatever the outcomes: divergences multiply."""
    noise, scale = Noise(1.0, 2.0, 2, refresh, monotone), 1.5
    q = math.exp(-1 / scale)

    def choose(string):
        return menu(1, monotone, (-1, 0))

    def released(measure):
        return noise.map(measure, answer_scale=scale)

    curve, plain = released(RENYI), noise.map(PURE)
    for alpha in ORDERS[1::2]:
        moment = sum(
            (1 - q) / (1 + q) * q ** (alpha * abs(j) + (1 - alpha) * abs(j - 1))
            for j in range(-400, 400)
            if alpha * abs(j) + (1 - alpha) * abs(j - 1) < 1000
        )
        exact = renyi(noise, choose, 3, alpha, math.log(moment) / (alpha - 1))
        fixed = released(oc.fixed_renyi_divergence(alpha))
        assert exact <= fixed + CRUMB
        assert curve(alpha) >= fixed * (1 - 1e-14)  # the value at a larger order may count
        assert fixed > noise.map(oc.fixed_renyi_divergence(alpha))
    rho, pure, gaussian = released(ZCDP), released(PURE), oc.gaussian_tradeoff()
    assert rho > noise.map(ZCDP)
    assert plain + 2 / scale - 1e-15 <= pure <= (plain + 2 / scale) * (1 + 1e-14)
    assert released(APPROXIMATE) == (pytest.approx(pure, rel=1e-14), 0.0)
    assert released(gaussian) > noise.map(gaussian)
    assert released(oc.tradeoff()).delta(0.5) > noise.map(oc.tradeoff()).delta(0.5)
    tcdp = released(oc.truncated_concentrated_divergence(4.0))
    assert tcdp.rho == pytest.approx(rho, rel=1e-14)


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("refresh", [False, True])
@pytest.mark.parametrize("hits", [1, 2, 5])
@pytest.mark.parametrize("sensitivity", [1, 4])
def test_the_bound_is_reached_by_long_conversations(refresh, hits, sensitivity, sides):
    d = sensitivity
    noise = Noise(2.0 * d, 3.0 * d, hits, refresh, sides=sides)
    found = [long_loss(noise, (0, d), (0, -d), count) for count in (1, 100, 10_000, 1_000_000)]
    epsilon = noise.map(PURE, d)
    assert all(b > a - CRUMB for a, b in pairwise(found))
    assert 0.99 * epsilon <= found[-1] <= epsilon + 1e-9
    monotone = Noise(2.0 * d, 3.0 * d, hits, refresh, monotone=True, sides=sides)
    epsilon = monotone.map(PURE, d)
    assert 0.99 * epsilon <= long_loss(monotone, (0, d), (0, 0), 1_000_000) <= epsilon + 1e-9


def test_a_false_promise_of_monotone_queries_is_seen_by_the_oracle():
    noise, loose = Noise(1.0, 1.5, 2, monotone=True), Noise(1.0, 1.5, 2)
    claimed = noise.map(PURE)
    assert long_loss(noise, (0, 1), (0, -1), 1_000_000) > 1.4 * claimed
    assert noise.map(ZCDP) < loose.map(ZCDP)
    assert claimed < loose.map(PURE)


def cost(measure, scale, hits=1, **more):
    return oc.m.make_sparse_vector(*SPACE, measure, 1, scale, 0, hits, **more).map(1)


def test_values_of_the_theory():
    for monotone, own, query in (
        (False, 5.6415888336, 12.1544346900),
        (True, 3.9240177382, 6.7099759467),
    ):
        found = cost(PURE, own, 5, sensitivity=1.0, monotone=monotone)
        explicit = cost(PURE, own, 5, query_scale=query, monotone=monotone)
        assert (found, explicit) == pytest.approx((1.0, 1.0), abs=1e-9)
    for c in (1, 7):  # any number of hits
        scales = {"sensitivity": 1.0, "query_scale": 4.0 * c}
        assert cost(RENYI, 2.0, c, **scales)(4.0) == pytest.approx(0.8209265302, abs=1e-9)
        fixed = cost(oc.fixed_renyi_divergence(4.0), 2.0, c, **scales)
        assert fixed == pytest.approx(0.8209265302, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_above_threshold_is_that_of_dwork_and_roth(epsilon):
    for d in (1, 1.0, 3.0):
        scale, query = 2 * d / epsilon, 4 * d / epsilon
        more = {"sensitivity": d, "query_scale": query}
        made = oc.m.make_above_threshold(*SPACE, PURE, 1, scale, 0, **more)
        assert epsilon * (1 - 1e-15) <= made.map(1) <= epsilon * (1 + 1e-14)
    for measure, exact in ((PURE, epsilon), (ZCDP, epsilon * math.tanh(epsilon / 6))):
        found = cost(measure, 6 / epsilon, 3, query_scale=12 / epsilon, refresh=True)
        assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("hits", [1, 2, 8])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_default_query_scale_costs_least(hits, monotone):
    """At the ε of the default, no other split has less variance."""
    default = cost(PURE, 5.0, hits, sensitivity=1.0, monotone=monotone)
    factor = hits if monotone else 2 * hits
    query = factor / (default - 1 / 5.0)
    assert query == pytest.approx(5.0 * factor ** (1 / 3), rel=1e-9)
    for share in (0.9, 0.99, 1.01, 1.1):
        other = 5.0 * share
        assert other**2 + (factor / (default - 1 / other)) ** 2 > 25.0 + query**2


SCALES = st.floats(0.01, 1e6)


@given(
    scale=SCALES,
    query=SCALES,
    answer=st.none() | SCALES,
    hits=st.integers(1, 50),
    sensitivity=st.integers(1, 1000) | st.floats(1e-3, 1e3),
    refresh=st.booleans(),
    monotone=st.booleans(),
)
def test_a_map_is_never_below_the_exact_value(
    scale, query, answer, hits, sensitivity, refresh, monotone
):
    def loss(measure):
        options = {"sensitivity": sensitivity, "refresh": refresh, "monotone": monotone}
        return cost(measure, scale, hits, query_scale=query, answer_scale=answer, **options)

    with mp.workdps(50):
        d = mpf(sensitivity)
        rounds, each = (hits, 1) if refresh else (1, hits)
        of_round = d / mpf(scale) + each * (1 if monotone else 2) * d / mpf(query)
        release = mpf(0) if answer is None else d / mpf(answer)
        exact = rounds * of_round + hits * release
        steps = 0 if isinstance(sensitivity, int) else 2 if monotone else 1  # of 2^-30 or less
        slack = mpf("1e-13") + steps * mpf(2) ** -30
        assert exact <= mpf(loss(PURE)) <= exact * (1 + slack)
        epsilon, nothing = loss(APPROXIMATE)
        assert nothing == 0.0
        assert exact <= mpf(epsilon) <= exact * (1 + slack)
        two = loss(oc.fixed_renyi_divergence(2.0))
        assert mpf(two) <= exact * (1 + slack)
        assert mpf(loss(ZCDP)) <= exact * (1 + slack)
        # the Laplace formula is a lower bound on what is charged for whole steps
        b = mpf(scale) / d
        thrown = mp.log(mpf(2) / 3 * mp.exp(1 / b) + mpf(1) / 3 * mp.exp(-2 / b))
        response = mp.log((mp.exp(2 * of_round) + mp.exp(-of_round)) / (1 + mp.exp(of_round)))
        most = (1 if monotone else 2) * d
        ranged = (most / mpf(scale) + 2 * each * most / mpf(query)) ** 2 / 8
        least = rounds * min(thrown + of_round - d / mpf(scale), response, 2 * ranged)
        if answer is not None:
            b = mpf(answer) / d
            least += hits * mp.log(mpf(2) / 3 * mp.exp(1 / b) + mpf(1) / 3 * mp.exp(-2 / b))
        assert mpf(two) >= least * (1 - mpf("1e-30"))
        if answer is None:
            least = rounds * min(of_round * mp.tanh(of_round / 2), ranged)
            assert mpf(loss(ZCDP)) >= least * (1 - mpf("1e-30"))


def test_a_shift_of_several_steps_costs_more_than_the_laplace_formula():
    """On whole steps; a map of the continuous formula would be below the exact divergence."""
    noise = Noise(1.0, 1e4)
    formula = math.log(2 / 3 * math.exp(2.0) + 1 / 3 * math.exp(-4.0))
    q = math.exp(-1.0)
    exact = math.log(
        sum((1 - q) / (1 + q) * q ** (2 * abs(j) - abs(j - 2)) for j in range(-100, 100))
    )
    found = noise.map(oc.fixed_renyi_divergence(2.0), 2)
    assert formula < exact <= found <= exact + 2 * 2 / 1e4 + CRUMB


def failure(noise, distances, alpha):
    """P(some answer is wrong) for fixed queries at ``distances`` from the threshold."""
    one, other = noise.one_sided
    grid, prior = threshold_noise(noise.threshold, one)
    grid = grid + other * center(noise.query) - one * center(noise.threshold)
    right = np.ones_like(prior)
    for distance in distances:
        if distance <= -alpha:
            right *= below_tail(noise.query, grid - distance - 1, other)
        elif distance >= alpha:
            # above as often as is asked: hits are not bounded here
            right *= tail(noise.query, grid - distance, other)
    return 1.0 - float((prior * right).sum())


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("query", [0.7, 2.0, 6.0])
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-4])
@pytest.mark.parametrize("sides", SIDES)
def test_accuracy_holds_on_whole_and_on_fine_grids(scale, query, beta, sides):
    kind = {"one_sided": sides != "two two", "renyi": sides == "two one"}
    for count in (1, 5, 40):
        alpha = oc.mechanisms.sparse_vector_accuracy(scale, query, count, beta, **kind)
        for fine in (1, 16):  # steps to one; a query just outside
            noise = Noise(scale * fine, query * fine, sides=sides)
            # one more for numbers that are compared in whole steps
            edge = math.ceil(alpha * fine) + (fine > 1)
            for below in (0, count // 2, count):
                distances = [-edge] * below + [edge] * (count - below)
                assert failure(noise, distances, alpha * fine) <= beta
    near = [-math.ceil(alpha / 4)] * 40
    assert failure(Noise(scale, query, sides=sides), near, 0.0) > beta  # a quarter would not do


@pytest.mark.parametrize(("scale", "query"), [(10.0, 30.0), (40.0, 120.0), (60.0, 20.0)])
@pytest.mark.parametrize(("beta", "count"), [(0.9, 1), (0.2, 1), (0.05, 200)])
def test_accuracy_of_one_sided_noise_is_close(scale, query, beta, count):
    """It holds, and fails with more than β/3 if it were smaller by the larger scale."""
    noise = Noise(scale, query, sides="one one")
    alpha = oc.mechanisms.sparse_vector_accuracy(scale, query, count, beta)

    def fails(alpha):
        edge = math.ceil(alpha)
        return max(failure(noise, [side * edge] * count, alpha) for side in (-1, 1))

    assert fails(alpha) <= beta
    assert fails(max(1.0, alpha - max(scale, query))) > beta / 3


def test_accuracy_for_refreshed_thresholds():
    """m thresholds, each followed by its share of the queries."""
    for m in (1, 2, 5):
        alpha = oc.mechanisms.sparse_vector_accuracy(2.0, 3.0, 4 * m, 0.05, thresholds=m)
        edge = math.ceil(alpha)
        each = failure(Noise(2.0, 3.0, sides="one one"), [-edge] * 3 + [edge], alpha)
        assert 1 - (1 - each) ** m <= 0.05
    with pytest.raises(oc.errors.InvalidValueError, match="^beta"):
        oc.mechanisms.sparse_vector_accuracy(2.0, 4.0, 9, beta=0.0)


def test_rises_and_falls_that_are_rounded_down_cost_one_step_more():
    """One answer rises by D steps, another falls by 1: a promise of D, rounded down to steps."""
    far, found = 4, 0.0
    noise, own = Noise(8.0, 3.0, hits=2), SparseVectorNoise(8.0, 3.0, None, 2, refresh=False)
    for low, high in product((-100, -60, -30), (10, 30, 60)):
        pairs = [(high, high + far)] * 3 + [(low, low - 1)] * 2
        found = max(found, pair_of(noise, pairs).epsilon())
    claimed, bound = (own.loss(far, PURE, spread=spread) for spread in (far, far + 1))
    assert claimed + 0.5 < found <= bound + CRUMB


def test_a_float_sensitivity_pays_for_rounding_down():
    """The answers of two queries on neighbours, 1 and 2 for each other, at the limit."""
    steps = Steps.for_sensitivity(1.0)
    most, step = steps.up(1.0), 2.0**steps.k
    rise, fall = (step / 2, 1.0), (step, step / 2)  # on [2], and on [1]
    moved = [steps.of("q", b) - steps.of("q", a) for a, b in (rise, fall)]
    assert (rise[1] - rise[0]) + (fall[0] - fall[1]) == 1.0
    assert moved == [most, -1]
    monotone = Noise(2.0, 4.0, monotone=True).map(PURE, 1.0)
    assert monotone >= Fraction(most, 2 * 2**-steps.k) + Fraction(most + 1, 4 * 2**-steps.k)
    assert monotone == pytest.approx(0.75, rel=1e-9)
    assert Noise(2.0, 4.0, monotone=True).map(PURE, 1) == 0.75


@pytest.mark.parametrize("integer", [int, np.int64])
def test_rational_losses_are_rounded_once(integer):
    """1/3 + 2/3, each rounded up, was above 1; and integers of NumPy were refused."""
    one, three = integer(1), integer(3)
    scales = {"sensitivity": one, "query_scale": three}
    made = oc.m.make_sparse_vector(*SPACE, PURE, one, three, one, one, **scales)
    assert made.map(one) == 1.0
    assert oc.c.largest_share(oc.loss_of(mu=1.0), launches=integer(4)) == 0.5
