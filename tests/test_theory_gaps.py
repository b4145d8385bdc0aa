"""Theorems that no test of one module checks: they speak of several at once.

Adaptively launched *and* interleaved interactive mechanisms under the rules of production, the
construction that proves concurrent composition for pure DP, postprocessing of finite interactive
mechanisms, continual mechanisms under f-DP, and the tools of truncated concentrated DP against
exact distributions. See docs/theory-map.
"""

import math
from itertools import product

import mpmath as mp
import numpy as np
import opendp.prelude as dp
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.measures.conversion import gaussian_to_zcdp, pure_to_renyi, pure_to_zcdp
from opendp_concurrent.measures.divergences import APPROXIMATE_MAX_DIVERGENCE, MAX_DIVERGENCE
from opendp_concurrent.measures.shapes import SquareSum
from opendp_concurrent.measures.tradeoffs import gaussian_to_delta, pure_to_gaussian
from opendp_concurrent.numerics.bracket import zcdp_to_epsilon
from opendp_concurrent.verify.simulation import joint

CRUMB = 1e-9  # of sums of doubles
UP = 1 + 1e-12


# --- [HSTVVXZ23, Theorems 1.20, 1.22, 4.6, 4.9 to 4.11]: adaptive and concurrent ------------------


def delta(menu, state, rule, epsilon):
    return verify.worst_analyst(menu, state, rule, epsilon).delta_upper


def mechanisms(seed, count=3):
    """Two rounds, two queries, two answers each."""
    return [verify.random_interactive(10 * seed + n, sharp=3.0) for n in range(count)]


def limited(start, rule):
    """At most two launches."""
    return (start, 2), verify.Limited(rule)


def menu_of(seed, declare):
    return [verify.Item(f"{n}", declare(one), one) for n, one in enumerate(mechanisms(seed))]


def pair_budget(losses):
    """The largest and the smallest fit together, the two largest do not."""
    return (max(losses) + min(losses)) * UP


def pure_case(seed, loosened):
    menu = menu_of(seed, lambda one: one.epsilon() * UP)
    budget = pair_budget([item.d_mid for item in menu])
    return delta(
        menu,
        *limited(MAX_DIVERGENCE.total(), Within(budget * loosened)),
        budget,
    )


@pytest.mark.parametrize("seed", range(6))
def test_pure_children_that_are_launched_and_interleaved_adaptively(seed):
    assert pure_case(seed, 1.0) <= CRUMB


DELTA = 0.1


def approximate_case(seed, rule):
    """Children that are (ε, δ)-DP with a δ that is theirs, not 0."""

    def declare(one):
        epsilon = 0.4 * one.epsilon()
        return epsilon, one.delta(epsilon) * UP

    menu = menu_of(seed, declare)
    deltas = sorted(item.d_mid[1] for item in menu)
    budget = rule.start(APPROXIMATE_MAX_DIVERGENCE)
    for d_mid in sorted(item.d_mid for item in menu)[:2]:
        budget = budget.after(d_mid)
    promised = getattr(rule, "delta_slack", 0.0) + sum(deltas[-2:])
    epsilon, within = budget.loss[0], Within((budget.loss[0], promised))
    found = delta(menu, *limited(rule.start(APPROXIMATE_MAX_DIVERGENCE), within), epsilon)
    return found, promised


@pytest.mark.parametrize(
    "rule",
    [oc.accumulators.basic(), oc.accumulators.advanced(DELTA), oc.accumulators.zcdp(DELTA)],
    ids=repr,
)
@pytest.mark.parametrize("seed", range(4))
def test_approximate_children_that_are_launched_and_interleaved_adaptively(seed, rule):
    found, promised = approximate_case(seed, rule)
    assert 0.0 < found <= promised + CRUMB


@pytest.mark.parametrize("order", [1.5, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_renyi_children_that_are_launched_and_interleaved_adaptively(seed, order):
    menu = menu_of(seed, lambda one: one.renyi(order) * UP)
    budget = pair_budget([item.d_mid for item in menu])
    start = limited(MAX_DIVERGENCE.total(), Within(budget))
    assert verify.worst_renyi(menu, *start, order) <= budget + CRUMB


@pytest.mark.parametrize("seed", range(4))
def test_zcdp_children_that_are_launched_and_interleaved_adaptively(seed):
    """Declared by their ε, as [Ste24] does; the divergence is held at several orders."""
    menu = menu_of(seed, lambda one: pure_to_zcdp(one.epsilon() * UP))
    rho = pair_budget([item.d_mid for item in menu])
    start = limited(MAX_DIVERGENCE.total(), Within(rho))
    for order in (1.2, 8.0):
        assert verify.worst_renyi(menu, *start, order) <= rho * order + CRUMB


@pytest.mark.parametrize("seed", range(4))
def test_gaussian_children_that_are_launched_and_interleaved_adaptively(seed):
    menu = menu_of(seed, lambda one: pure_to_gaussian(one.epsilon() * UP))
    sizes = sorted(item.d_mid for item in menu)
    mu = math.hypot(sizes[0], sizes[-1]) * UP
    start = limited(SquareSum(), Within(mu))
    for epsilon in (0.0, 1.0):
        found = delta(menu, *start, epsilon)
        assert 0.0 < found <= gaussian_to_delta(mu, epsilon) + CRUMB


def test_a_rule_that_admits_too_much_is_noticed():
    assert max(pure_case(seed, 1.5) for seed in range(3)) > 1e-3


# --- [VW21, Theorems 1.5 and 5.2]: the construction for pure DP -----------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_construction_for_pure_dp_simulates_every_mechanism(seed):
    """N^b = (e^ε M^b - M^(1-b)) / (e^ε - 1), on every sequence of queries at once."""
    mechanism = verify.random_interactive(seed, rounds=2 + seed % 2)
    epsilon = mechanism.epsilon() * UP
    laws = [joint(mechanism, side) for side in (0, 1)]
    scale = math.exp(epsilon)
    pair = [(scale * laws[b] - laws[1 - b]) / (scale - 1) for b in (0, 1)]
    assert pair[0].min() >= -CRUMB
    assert pair[1].min() >= -CRUMB
    built = verify.Simulation(verify.randomized_response(epsilon), 0.0, np.array(pair))
    assert verify.certify(mechanism, built) <= CRUMB
    less = 0.9 * mechanism.epsilon()
    short = [(math.exp(less) * laws[b] - laws[1 - b]) / (math.exp(less) - 1) for b in (0, 1)]
    assert min(one.min() for one in short) < -CRUMB  # no law at a smaller ε


# --- [HSTVVXZ23, Theorem 2.17]: a person in the middle --------------------------------------------


def in_the_middle(mechanism, generator):
    """Random state machine in the middle: asks a random query, answers at random.

    Its law is summed over what it and the mechanism hide.
    """
    asks = generator.dirichlet([1.0, 1.0], size=(2, 2))  # from the last answer, and the query
    says = generator.dirichlet([1.0, 1.0], size=(2, 2, 2))  # from query, own query, answer

    def step(law, query):
        """From {hidden: probabilities} to the same for each thing said."""
        split = [{}, {}]
        for (history, memory), weights in law.items():
            for asked, answer, said in product(range(2), repeat=3):
                chance = mechanism.answers(history, asked)[answer]
                factor = asks[memory, query, asked] * says[query, asked, answer, said]
                key = (*history, (asked, answer)), answer
                old = split[said].get(key, (0.0, 0.0))
                split[said][key] = tuple(
                    o + w * c * factor for o, w, c in zip(old, weights, chance, strict=True)
                )
        return split

    def mass(law):
        return np.array([sum(w[side] for w in law.values()) for side in (0, 1)])

    first, second = np.zeros((2, 2, 2)), np.zeros((2, 2, 2, 2, 2))
    for query in range(2):
        for said, law in enumerate(step({((), 0): (1.0, 1.0)}, query)):
            first[:, query, said] = mass(law)
            for again in range(2):
                for then, onward in enumerate(step(law, again)):
                    second[:, query, said, again, then] = mass(onward) / mass(law)
    return verify.FiniteInteractiveMechanism((first, second))


@pytest.mark.parametrize("seed", range(12))
def test_a_person_in_the_middle_does_not_raise_the_loss(seed):
    generator = np.random.default_rng(seed)
    mechanism = verify.random_interactive(seed)
    wrapped = in_the_middle(mechanism, generator)
    assert wrapped.epsilon() <= mechanism.epsilon() + CRUMB
    for epsilon in (0.0, 0.3, 1.0):
        assert wrapped.delta(epsilon) <= mechanism.delta(epsilon) + CRUMB
    for order in (1.5, 5.0):
        assert wrapped.renyi(order) <= mechanism.renyi(order) + CRUMB
    for alpha in (0.1, 0.5):
        assert wrapped.tradeoff(alpha) >= mechanism.tradeoff(alpha) - CRUMB


# --- [HSV25, Corollaries 6.3 and 6.4]: continual mechanisms under f-DP ----------------------------


class Telling:
    """Tells the sum so far, clamped and with noise; a law, written as one."""

    queries, start = (None,), (0, False)

    def __init__(self, scale):
        noise = verify.clamped_noise(0, 1)
        self.law = {total: noise(total, scale) for total in range(4)}

    def update(self, state, item):
        return state[0] + (item or 0), False

    def answers(self, state, query):
        if state[1]:
            return [("asked already", 1.0, state)]
        return [(said, chance, (state[0], True)) for said, chance in self.law[state[0]]]


@pytest.mark.parametrize("scales", [(2.0, 3.0), (1.0, 4.0)])
def test_continual_mechanisms_compose_as_trade_off_functions(scales):
    """Each by itself has a profile against all strongly adaptive adversaries; chords are above."""
    neighbouring, laws = verify.events_differ(1), [Telling(scale) for scale in scales]
    space = (None, 1), neighbouring, 2
    grid = [0.0, 0.15, 0.35, 0.6, 1.0, 1.5, 2.0]
    each = [
        oc.TradeoffFunction.from_profile(
            grid, [verify.continual_delta([law], *space, epsilon) for epsilon in grid]
        )
        for law in laws
    ]
    whole = each[0].compose(each[1])
    for epsilon in (0.0, 0.25, 0.6):
        found = verify.continual_delta(laws, *space, epsilon)
        alone = max(verify.continual_delta([law], *space, epsilon) for law in laws)
        assert alone < found <= whole.delta(epsilon) + CRUMB


# --- [BS16], [BDRS18], [Mir17]: concentrated DP against exact distributions -----------------------


def one_way(p, q, order):
    return math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (
        order - 1
    )


ORDERS = [1.01, 1.1, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 9.9]


@pytest.mark.parametrize("seed", range(30))
def test_group_privacy_of_truncated_concentrated_dp(seed):
    """A chain x, y, z of neighbours: from x to z, (ρ, ω) becomes (4ρ, ω/2)."""
    generator, omega = np.random.default_rng(seed), 10.0
    chain = [generator.dirichlet([4.0, 4.0, 4.0]).tolist() for _ in range(3)]
    pairs = [(chain[0], chain[1]), (chain[1], chain[2])]
    rho = max(
        one_way(a, b, order) / order
        for one, other in pairs
        for a, b in ((one, other), (other, one))
        for order in (*ORDERS, omega)
    )
    group = oc.measures.group_tcdp(oc.TruncatedConcentrated(rho * 1.001, omega), 2)
    for order in np.linspace(1.001, group.omega, 20):
        for a, b in ((chain[0], chain[2]), (chain[2], chain[0])):
            assert one_way(a, b, order) <= group.rho * order


@pytest.mark.parametrize("rho", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("slack", [1e-12, 1e-6, 0.01])
def test_conversions_are_never_worse_than_those_of_the_papers(rho, slack):
    """[BS16, Proposition 1.3], and its form for truncated loss where ω binds."""
    root = math.sqrt(rho * math.log(1 / slack))
    assert zcdp_to_epsilon(rho, slack) <= rho + 2 * root
    for omega in (1.5, 3.0, 20.0):
        if math.log(1 / slack) > (omega - 1) ** 2 * rho:
            assert zcdp_to_epsilon(rho, slack, omega) <= rho * omega + math.log(1 / slack) / (
                omega - 1
            )


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 4.0])
def test_pure_dp_as_concentrated_dp_is_never_worse_than_half_its_square(epsilon):
    """[BS16, Proposition 1.4]; and every order stays below it."""
    assert pure_to_zcdp(epsilon) <= epsilon**2 / 2
    for order in (1.001, 2.0, 50.0):
        assert pure_to_renyi(epsilon, order) <= pure_to_zcdp(epsilon) * order * UP


# --- noisy one-way marginals [BS16] ------------------------------------------------------------


def test_marginals_of_a_thousand_records():
    """d = 10^4 attributes, noise 0.1 on each mean of n = 1000 records: ρ = d/(2 σ² n²) = 0.5."""
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    marginals = oc.m.make_certified_gaussian(*space, 0.1, dp.zero_concentrated_divergence())
    assert marginals.map(math.sqrt(1e4) / 1000) == pytest.approx(0.5, rel=1e-9)


# --- noise and its divergence: sums and integrals against what is charged -------------------------


@pytest.mark.parametrize("sigma", [0.3, 0.7, 1.0, 2.5, 10.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_discrete_gaussian_has_at_most_the_divergence_of_the_gaussian(sigma, shift):
    """[CKS20, Theorem 14], for integers; as OpenDP, and so our odometers, charge it."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    noisy = space >> dp.t.then_count() >> dp.m.then_gaussian(scale=sigma)
    for alpha in (1.01, 1.5, 2.0, 5.0, 30.0):
        with mp.workdps(40):
            s, a, d = mpf(sigma), mpf(alpha), mpf(shift)
            reach = int(abs(a) * shift + 14 * sigma) + 10
            ks = range(-reach - shift * int(a + 1), reach + shift * int(a + 1))
            mass = mp.fsum(mp.exp(-(mpf(k) ** 2) / (2 * s**2)) for k in ks)
            moment = mp.fsum(
                mp.exp((-a * mpf(k) ** 2 - (1 - a) * (k - d) ** 2) / (2 * s**2)) for k in ks
            )
            exact = mp.log(moment / mass) / (a - 1)
            gaussian = a * d**2 / (2 * s**2)
            assert exact <= gaussian * (1 + mpf(10) ** -25)
            assert mpf(noisy.map(shift)) * a >= gaussian  # ρ α, rounded up
            if sigma >= 2.5:
                assert exact >= gaussian * (1 - mpf(10) ** -9)  # and no slack to speak of


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_gaussian_noise_has_the_divergence_that_it_is_charged(mu):
    """[BS16, Proposition 1.6]: N(0, 1) and N(μ, 1), integrated."""
    rho = gaussian_to_zcdp(mu)
    for alpha in (1.5, 2.0, 8.0):
        with mp.workdps(30):
            m, a = mpf(mu), mpf(alpha)
            middle = (1 - a) * m
            moment = mp.quad(
                lambda x, a=a, m=m: mp.exp((-a * x**2 - (1 - a) * (x - m) ** 2) / 2),
                [middle - 40, middle, middle + 40],
            ) / mp.sqrt(2 * mp.pi)
            exact = mp.log(moment) / (a - 1)
            assert mpf(rho) * a >= exact * (1 - mpf(10) ** -20)
            assert mpf(rho) * a <= exact * (1 + mpf(10) ** -14)


def test_renyi_divergences_are_between_kullback_leibler_and_max():
    """They grow with the order, from the mean of the loss to its maximum."""
    for seed in range(20):
        mechanism = verify.random_mechanism(seed)
        pairs = (mechanism.first, mechanism.second), (mechanism.second, mechanism.first)
        least = max(sum(p * math.log(p / q) for p, q in zip(*pair, strict=True)) for pair in pairs)
        found = [mechanism.renyi(alpha) for alpha in (1.0001, 1.5, 2.0, 8.0, 100.0)]
        assert found == sorted(found)
        assert least - CRUMB <= found[0] <= found[-1] <= mechanism.epsilon() + CRUMB
        assert found[0] == pytest.approx(least, rel=1e-3)
