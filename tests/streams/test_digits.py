"""Trees of odd degree with signed digits: their nodes, their noise, exact adversaries."""

import math
from collections import Counter
from itertools import count, pairwise

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.mechanisms.noise import EDGES
from opendp_concurrent.streams import counter as methods
from opendp_concurrent.streams import window
from opendp_concurrent.streams.digits import (
    DigitNoise,
    Digits,
    NodeNoise,
    best_digits,
    least_base,
)

from ..some import slow

LOWEST, HIGHEST = EDGES

PURE = dp.max_divergence()
SHAPES = [(3, 1), (3, 3), (5, 2), (7, 2), (13, 1)]
MODULUS = 5


@pytest.fixture(params=SHAPES, ids=str)
def digits(request):
    return Digits(*request.param)


def most(digits):
    return (digits.base**digits.height - 1) // 2


def test_digits_are_balanced_and_add_up(digits):
    for number in range(most(digits) + 1):
        found = list(digits.of(number))
        assert sum(digit * digits.base**level for level, _, digit in found) == number
        assert all(abs(digit) <= digits.base // 2 for _, _, digit in found)


def test_signed_nodes_are_the_prefix(digits):
    """Each step is once in the signed sum of nodes if it is in the prefix, and else not at all."""
    for number in range(most(digits) + 1):
        signs = Counter()
        for level, start, digit in digits.of(number):
            unit = digits.base**level
            for node in range(min(start, start + digit), max(start, start + digit)):
                for step in range(node * unit, (node + 1) * unit):
                    signs[step] += 1 if digit > 0 else -1
        assert {step for step, sign in signs.items() if sign} == set(range(number))
        assert all(signs[step] == 1 for step in range(number))


def test_the_sum_of_nodes_is_that_of_each_step(digits):
    total = 0
    for number in range(1, most(digits) + 1):
        total += digits.nodes(number)
        assert digits.total_nodes(number) == total


@given(horizon=st.integers(1, 2**61), height=st.integers(1, 63))
@settings(max_examples=25, deadline=None)
def test_the_least_base(horizon, height):
    base = least_base(horizon, height)
    assert base % 2 == 1
    assert (base**height - 1) // 2 >= horizon
    assert base == 3 or ((base - 2) ** height - 1) // 2 < horizon


@pytest.mark.parametrize(
    ("horizon", "shape", "error"),
    [
        (2**10 - 1, Digits(13, 3), 13.0575),
        (2**14 - 1, Digits(33, 3), 20.7781),
        (2**20 - 1, Digits(19, 5), 33.8738),
    ],
)
def test_the_best_degree_and_its_error(horizon, shape, error):
    assert best_digits(horizon) == shape
    assert oc.streams.counter_rmse(horizon, output_measure=PURE) == pytest.approx(error, abs=1e-4)


@pytest.mark.parametrize("horizon", [1, 2, 5, 17, 60])
def test_no_other_degree_is_better(horizon):
    best = best_digits(horizon)
    error = best.height**2 * best.total_nodes(horizon)
    for base in range(3, 2 * horizon + 2, 2):
        height = next(h for h in count(1) if (base**h - 1) // 2 >= horizon)
        assert height**2 * Digits(base, height).total_nodes(horizon) >= error


class Numbered(NodeNoise):
    """Noise that tells which draw it is."""

    def __init__(self):
        self.drawn = 0

    def draw(self):
        self.drawn += 1
        return 10**6 + self.drawn


@pytest.mark.parametrize("asked", [1, 2, 3])
def test_a_node_has_its_noise_once_and_keeps_it(digits, asked):
    """Against a table of all nodes, from the answers alone, when only some steps are asked."""
    noise, table, source = DigitNoise(digits, numbered := Numbered()), {}, Counter()
    for number in range(1, most(digits) + 1, asked):
        before, total = numbered.drawn, noise.total(number, None)
        assert noise.total(number, None) == total
        new = iter(range(before + 1, numbered.drawn + 1))
        expected = 0
        for level, start, digit in digits.of(number):
            nodes = range(min(start, start + digit), max(start, start + digit))
            for node in nodes:
                if (level, node) not in table:
                    table[level, node] = 10**6 + next(new)
                    source[level, node] += 1
                expected += table[level, node] if digit > 0 else -table[level, node]
        assert total == expected
        assert next(new, None) is None


def test_noise_goes_on_beyond_64_bits(monkeypatch):
    """A draw where OpenDP's integers end is continued by noise that is not negative."""
    script = []
    monkeypatch.setattr(NodeNoise, "_next", lambda self: script.pop(0))
    for script, expected in (
        ([7], 7),
        ([HIGHEST, 5], HIGHEST + 5),
        ([HIGHEST, -4, -1, 0], HIGHEST),
        ([LOWEST, -4, 3], LOWEST - 3),
        ([HIGHEST, HIGHEST, 2], 2 * HIGHEST + 2),
        ([LOWEST, LOWEST, 9, 1], LOWEST - 1),
        ([HIGHEST - 1], HIGHEST - 1),
    ):
        assert NodeNoise(1.0, True).draw() == expected
        assert not script


# --- exact adversaries -----------------------------------------------------------------------


def around(total, scale):
    """Laplace noise modulo a number: a postprocessing of noise on all integers, of any signs."""
    decay = math.exp(-1 / scale)
    mass = [decay**one + decay ** (MODULUS - one) for one in range(MODULUS)]
    return [((total + one) % MODULUS, chance / sum(mass)) for one, chance in enumerate(mass)]


@pytest.fixture
def modular(replayed, monkeypatch):
    """The exact law of a handle whose answers are taken modulo a number."""

    def law(spawn, ask=lambda handle, query: handle(query) % MODULUS, **keywords):
        made = replayed(spawn, low=0, high=1)
        return verify.Replayed(made._make, around, ask=ask, **keywords)

    return law


@pytest.mark.parametrize(("horizon", "steps"), [(1, 1), (4, 2), (13, 2)])
@pytest.mark.parametrize("base", [3, None])
def test_an_adversary_gains_what_is_declared(bits, modular, monkeypatch, horizon, steps, base):
    """All adversaries who choose both streams adaptively; degree 3 has negative digits at once."""
    if base is not None:
        height = next(h for h in count(1) if (base**h - 1) // 2 >= horizon)
        monkeypatch.setattr(methods, "best_digits", lambda horizon: Digits(base, height))
    counter = oc.m.make_counter(*bits, PURE, scale=0.5, horizon=horizon)
    neighbouring = verify.events_differ(1)
    found = verify.continual_epsilon([modular(lambda: counter([]))], (None, 1), neighbouring, steps)
    assert found <= counter.map(1) + 1e-9
    if (horizon, base) == (4, 3):
        assert found > 0.7 * counter.map(1)
        assert counter.map(1) == 4.0  # two nodes


@pytest.mark.slow
def test_an_adversary_over_three_steps(bits, modular, monkeypatch):
    monkeypatch.setattr(methods, "best_digits", lambda horizon: Digits(3, 2))
    counter = oc.m.make_counter(*bits, PURE, scale=0.5, horizon=4)
    neighbouring = verify.events_differ(1)
    found = verify.continual_epsilon([modular(lambda: counter([]))], (None, 1), neighbouring, 3)
    assert 0.9 * counter.map(1) < found <= counter.map(1) + 1e-9


def test_noise_that_is_drawn_anew_is_caught(bits, modular, monkeypatch):
    """The exact check sees a node that gets other noise at the next step."""
    counter = oc.m.make_counter(*bits, PURE, scale=0.5, horizon=2)
    assert counter.map(1) == 2.0  # one node of five
    total, neighbouring = DigitNoise.total, verify.events_differ(1)

    def forgetful(self, number, size):
        self._known.clear()
        return total(self, number, size)

    monkeypatch.setattr(DigitNoise, "total", forgetful)
    law = modular(lambda: counter([]))
    assert verify.continual_epsilon([law], (None, 1), neighbouring, 2) > 2.5


@pytest.mark.parametrize("size", [1, *slow([2])])
def test_an_adversary_against_a_window(bits, modular, monkeypatch, size):
    counter = oc.m.make_window_counter(*bits, PURE, 0.5, size)
    law = modular(lambda: counter([]))
    found = verify.continual_epsilon([law], (None, 1), verify.events_differ(1), 3)
    assert 0.5 * counter.map(1) < found <= counter.map(1) + 1e-9


# --- the window ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_a_window_has_the_variance_of_its_nodes(bits, monkeypatch, size):
    """Draws that are powers of four show which nodes an answer has, and with which signs."""
    drawn = []

    class Powers:
        def __init__(self, scale, laplace):
            pass

        def draw(self):
            drawn.append(None)
            return 8 ** (len(drawn) - 1)

    monkeypatch.setattr(window, "NodeNoise", Powers)
    handle = oc.m.make_window_counter(*bits, PURE, 1.0, size)([])
    shape = best_digits(size, window=True)
    for step in range(1, 3 * size + 1):
        handle.update(0)
        rest, squares = handle(None), 0
        for _ in drawn:
            digit = (rest + 3) % 8 - 3
            squares += digit**2
            rest = (rest - digit) // 8
        assert rest == 0
        if step > size:
            place = (step - 1) % size + 1
            once, twice = shape.window_nodes(np.array([place]), size)
            assert squares == once[0] + 4 * twice[0]


def test_the_measured_error_is_the_formula():
    """2,000 categories have counters with noise of their own; seven deviations of the mean."""
    runs, horizon = 2000, 30
    space = oc.category_stream(runs), oc.event_presence()
    handle = oc.m.make_histogram_counter(*space, PURE, 20.0, horizon=horizon)([])
    shape = best_digits(horizon)
    for low, high in pairwise((0, 1, 7, 16, 30)):
        handle.update_all([None] * (high - low))
        found = np.mean(np.array(handle(None), dtype=float) ** 2)
        expected = 2 * shape.nodes(high) * 20.0**2
        assert found == pytest.approx(expected, rel=7 * math.sqrt(5 / runs))
