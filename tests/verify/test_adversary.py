"""The solver against brute force and closed forms."""

import math
from itertools import product

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.accounts.rule import Within
from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError, InvalidValueError
from opendp_concurrent.measures.sums.square_sum import Squares
from opendp_concurrent.verify.filters.menu import Item


def views(menu, rule, state, depth):
    """Laws of the views of all deterministic analysts of at most ``depth`` launches."""
    yield ((1.0, 1.0),)
    if depth == 0:
        return
    for item in menu:
        after = rule.admits(state, item.d_mid)
        if isinstance(after, BudgetExceededError):
            continue
        below = list(views(menu, rule, after, depth - 1))
        answers = list(zip(item.mechanism.first, item.mechanism.second, strict=True))
        for onward in product(below, repeat=len(answers)):
            yield tuple(
                (p * one, q * other)
                for (p, q), view in zip(answers, onward, strict=True)
                for one, other in view
            )


def brute_force(menu, rule, state, epsilon, depth):
    scale, best = math.exp(epsilon), 0.0
    for view in views(menu, rule, state, depth):
        pairs = np.array(view)
        for p, q in ((pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])):
            best = max(best, float(np.maximum(p - scale * q, 0.0).sum()))
    return best


@pytest.mark.parametrize("seed", range(220))
def test_the_solver_equals_the_enumeration_of_all_analysts(seed):
    generator = np.random.default_rng(seed)
    answers = [2, 2] if seed % 2 else [2, 3]
    depth = 3 if seed % 2 else 2
    bounds = generator.uniform(0.2, 2, size=2)
    mechanisms = [
        verify.random_mechanism(1000 * seed + index, count, epsilon=float(bound))
        for index, (count, bound) in enumerate(zip(answers, bounds, strict=True))
    ]
    if seed % 5 == 0:  # answers that are impossible on one dataset
        mechanisms[0] = verify.randomized_response(0.5, 0.125)
        depth = 2 if seed % 2 else 1
    menu = [
        Item(str(index), float(generator.integers(1, 3)), one)
        for index, one in enumerate(mechanisms)
    ]
    rule, start = Within(float(depth)), oc.accumulators.basic().start(0.0)
    for epsilon in (0.0, 0.4, 1.1):
        worst = verify.worst_analyst(menu, start, rule, epsilon)
        assert worst.delta == pytest.approx(
            brute_force(menu, rule, start, epsilon, depth), abs=1e-12
        )
        assert worst.view.delta(epsilon) == pytest.approx(worst.delta, abs=1e-12)


@pytest.mark.parametrize("epsilon0", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("k", [1, 2, 5, 10, 20])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8, 2.0])
def test_launches_of_one_kind_reach_the_optimal_composition(epsilon0, k, epsilon):
    """[KOV15]: the closed form is a binomial tail."""
    truth = 1 / (1 + math.exp(-epsilon0))
    lie, exact = 1 - truth, 0.0
    for j in range(k + 1):
        p, q = truth**j * lie ** (k - j), truth ** (k - j) * lie**j
        exact += math.comb(k, j) * max(0.0, p - math.exp(epsilon) * q)
    menu = verify.response_menu(epsilon0)
    state = (oc.accumulators.basic().start((0.0, 0.0)), k)
    found = verify.worst_analyst(menu, state, verify.Limited(Within((1e6, 0.0))), epsilon)
    assert found.delta == pytest.approx(exact, abs=1e-12)


def test_printed_values_of_optimal_composition():
    menu = [Item("rr", 0.0, verify.randomized_response(0.1, 1e-6))]
    for epsilon, delta in (
        (1.0, 9.9999550e-6),
        (0.8, 2.98230929e-4),
        (0.6, 3.14223621e-3),
        (0.4, 1.60899711e-2),
        (0.2, 5.23138909e-2),
        (0.0, 0.122544998),
    ):
        state = (oc.accumulators.basic().start(0.0), 10)
        # a launch that costs nothing is not made: count launches instead
        counted = verify.Limited(_Free())
        assert verify.worst_analyst(menu, state, counted, epsilon).delta == pytest.approx(
            delta, rel=1e-7
        )


class _Free:
    def admits(self, accumulator, d_mid):
        return accumulator


def test_different_kinds_reach_the_optimal_composition():
    """[Murtagh and Vadhan 2016], the numbers of theory: ε of (.5, .3, .2, .2) at δ = 0.1."""
    from opendp_concurrent.verify.forbidden import optimal_delta

    for delta, epsilon in ((1e-3, 1.1907061462), (0.01, 1.1029294785), (0.05, 0.7407058929)):
        assert optimal_delta((0.2, 0.2, 0.3, 0.5), epsilon) == pytest.approx(delta, rel=1e-6)


def test_twenty_launches_from_three_items():
    menu = verify.response_menu(0.125, 0.25, 0.375)
    found = verify.worst_analyst(
        menu, oc.accumulators.basic().start((0.0, 0.0)), Within((2.5, 0.0)), epsilon=1.25
    )
    assert 0.0 < found.delta < 0.2
    assert len(str(found.strategy).splitlines()) > 10


def test_divergences_of_equal_launches_add_up():
    menu = verify.response_menu(0.5)
    for k in (1, 2, 7):
        start = (oc.accumulators.basic().start((0.0, 0.0)), k)
        found = verify.worst_renyi(menu, start, verify.Limited(Within((9.0, 0.0))), 3.0)
        assert found == pytest.approx(k * menu[0].mechanism.renyi(3.0), rel=1e-12)


def test_infinite_divergences_are_told():
    menu = [Item("fails", (0.5, 0.1), verify.randomized_response(0.5, 0.1))]
    start = oc.accumulators.basic().start((0.0, 0.0))
    assert verify.worst_renyi(menu, start, Within((1.0, 0.2)), 2.0) == math.inf


def test_the_strategy_can_be_read():
    menu = verify.response_menu(0.5, 1.0)
    found = verify.worst_analyst(
        menu, oc.accumulators.basic().start((0.0, 0.0)), Within((1.5, 0.0)), 1.0
    )
    assert isinstance(found.strategy, verify.Launch)
    text = str(found.strategy)
    assert text.startswith("launch 0.5\n  answer 0 (0.6225 | 0.3775): launch 1")
    assert "stop at loss 1.5" in text
    nothing = verify.worst_analyst(
        menu, oc.accumulators.basic().start((0.0, 0.0)), Within((0.1, 0.0)), 1.0
    )
    assert isinstance(nothing.strategy, verify.Stop)
    assert nothing.delta == 0.0


def test_tradeoff_of_the_worst_view():
    menu = verify.response_menu(1.0)
    found = verify.worst_analyst(
        menu, oc.accumulators.basic().start((0.0, 0.0)), Within((1.0, 0.0)), 0.0
    )
    truth = 1 / (1 + math.exp(-1.0))
    assert found.view.tradeoff(1 - truth) == pytest.approx(1 - truth)
    assert found.view.tradeoff(0.0) == 1.0
    assert found.view.tradeoff(1.0) == 0.0


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda m, s: verify.worst_analyst([], s, Within(1.0), 0.5),
            InvalidTypeError,
            "^menu must",
        ),
        (
            lambda m, s: verify.worst_analyst([1], s, Within(1.0), 0.5),
            InvalidTypeError,
            r"^menu\[0\]",
        ),
        (
            lambda m, s: verify.worst_analyst(m, s, Within((9.0, 0.0)), 0.5, most=3),
            InvalidValueError,
            "^most .3. launches",
        ),
        (
            lambda m, s: verify.worst_renyi(m, s, Within((9.0, 0.0)), 1.0),
            InvalidValueError,
            "^order",
        ),
        (lambda m, s: verify.FiniteMechanism((0.5, 0.4), (0.5, 0.5)), InvalidValueError, "^first"),
        (lambda m, s: verify.FiniteMechanism((1.0,), (0.5, 0.5)), InvalidValueError, "^second"),
        (
            lambda m, s: verify.FiniteMechanism((1.5, -0.5), (1.0, 0.0)),
            InvalidValueError,
            r"^first\[1",
        ),
        (lambda m, s: verify.FiniteMechanism(1.0, (1.0,)), InvalidTypeError, "^first must"),
        (lambda m, s: verify.randomized_response(-1.0), InvalidValueError, "^epsilon"),
        (lambda m, s: verify.randomized_response(1.0, 2.0), InvalidValueError, "^delta"),
        (lambda m, s: verify.k_ary_response(0.5, 1), InvalidValueError, "^categories"),
        (lambda m, s: verify.truncated_geometric(0.0, 1, 4), InvalidValueError, "^scale"),
        (lambda m, s: verify.truncated_geometric(1.0, 4, 4), InvalidValueError, "^size"),
    ],
)
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call(verify.response_menu(0.5), oc.accumulators.basic().start((0.0, 0.0)))


def test_finite_mechanisms_against_closed_forms():
    response = verify.randomized_response(1.0)
    assert response.epsilon() == pytest.approx(1.0)
    assert response.delta(0.5) == pytest.approx(0.2876491366, abs=1e-10)
    assert response.renyi(2.0) == pytest.approx(0.7353256641, abs=1e-10)
    failing = verify.randomized_response(0.5, 0.01)
    assert failing.epsilon() == math.inf
    assert failing.epsilon(0.01) == pytest.approx(0.5, abs=1e-9)
    assert failing.delta(0.5) == pytest.approx(0.01)
    assert failing.renyi(2.0) == math.inf
    assert failing.swapped == verify.FiniteMechanism(failing.second, failing.first)
    geometric = verify.truncated_geometric(2.0, 1, 6)
    assert geometric.epsilon() == pytest.approx(0.5)
    many = verify.k_ary_response(0.75, 3)
    assert many.epsilon() == pytest.approx(math.log(6))
    for seed in range(30):
        assert verify.random_mechanism(seed, 4, epsilon=0.7).epsilon() <= 0.7 + 1e-9


def test_accumulators_of_other_measures_may_be_used():
    menu = [Item("rr", 0.5, verify.randomized_response(0.3))]
    found = verify.worst_analyst(menu, Squares().start(None), Within(1.0), 0.5)
    assert 0.0 < found.delta < 0.2  # four launches, since squares add up


# --- edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "alpha", "expected"),
    [
        ((1, 0), (0, 1), 0.0, 0.0),
        ((1, 0), (0.5, 0.5), 0.0, 0.5),
        ((0.5, 0.5, 0), (0, 0.5, 0.5), 0.0, 0.5),
        ((0.5, 0.5), (0.5, 0.5), 0.25, 0.75),
        ((0.5, 0.5, 0), (0, 0.5, 0.5), 0.25, 0.25),
        ((0.5, 0.5, 0), (0, 0.5, 0.5), 1.0, 0.0),
    ],
)
def test_tradeoffs_with_impossible_answers(first, second, alpha, expected):
    assert verify.FiniteMechanism(first, second).tradeoff(alpha) == pytest.approx(expected)


def test_edges_of_finite_mechanisms():
    response = verify.randomized_response(1.0)
    for order in (math.inf, math.nan, 1.0, 0.5):
        with pytest.raises(InvalidValueError, match="^order"):
            response.renyi(order)
    for alpha in (-0.5, 1.5, math.nan):
        with pytest.raises(InvalidValueError, match="^alpha"):
            response.tradeoff(alpha)
    assert response.delta(1000.0) == 0.0
    assert verify.FiniteMechanism((1, 0), (0, 1)).delta(math.inf) == 1.0
    assert verify.FiniteMechanism((1.0, 1e-16), (1.0, 0)).epsilon() == math.inf
    assert verify.randomized_response(30.0).delta(30.0) == pytest.approx(0.0, abs=1e-12)
    assert verify.randomized_response(20.0).epsilon() == pytest.approx(20.0, rel=1e-12)
    with pytest.raises(InvalidValueError, match="^epsilon"):
        response.delta(math.nan)
    with pytest.raises(InvalidValueError, match="^epsilon"):
        verify.random_mechanism(0, 3, epsilon=-1.0)
    thirds = verify.FiniteMechanism((0.3333333333,) * 3, (0.25, 0.25, 0.5))
    assert math.fsum(thirds.first) == pytest.approx(1.0, abs=1e-15)


def test_edges_of_the_solver():
    start = oc.accumulators.basic().start((0.0, 0.0))
    with pytest.raises(InvalidValueError, match="^epsilon"):
        verify.worst_analyst(verify.response_menu(1.0), start, Within((1.0, 0.0)), math.nan)
    with pytest.raises(InvalidTypeError, match="^epsilon"):
        verify.worst_analyst(verify.response_menu(1.0), start, Within((1.0, 0.0)), "1")
    with pytest.raises(InvalidValueError, match="^most .300. launches"):
        verify.worst_analyst(verify.response_menu(0.5), start, Within((500.0, 0.0)), 1.0)
    huge = verify.worst_analyst(verify.response_menu(30.0), start, Within((90.0, 0.0)), 1.0)
    assert huge.delta == pytest.approx(1.0)
    assert (
        verify.worst_analyst(verify.response_menu(1.0), start, Within((2.0, 0.0)), 1e3).delta == 0
    )


def test_the_worse_order_of_the_datasets_is_told_and_answers_keep_their_numbers():
    one = verify.FiniteMechanism((0.0, 0.5, 0.5, 0.0), (0.0, 0.7, 0.2, 0.1))
    for mechanism, swapped in ((one, True), (one.swapped, False)):
        found = verify.worst_analyst(
            [Item("x", 1.0, mechanism)], oc.accumulators.basic().start(0.0), Within(1.0), 1.0
        )
        assert found.swapped is swapped
        assert found.delta == pytest.approx(0.1)
        assert found.view.delta(1.0) == pytest.approx(0.1)
        branches = found.strategy.branches
        assert [pair[:2] for pair in branches] == list(
            zip(mechanism.first, mechanism.second, strict=True)
        )
        assert branches[3][2].loss == (-math.inf if swapped else math.inf)
