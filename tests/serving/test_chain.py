"""The joint law of all levels, by exact enumeration, and that of the draws."""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import pytest
from scipy.stats import chisquare

from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.serving.levels import BITS, Chain, GeometricDraws, level_of, units_of

BASE = Fraction(1, 4)  # in place of exp(-1) per unit of the rate
CUT = 5  # draws are enumerated below it
WHOLE = 4**100  # masses are counted in its parts, which is exact
LEVELS = 1, 2, 3


class Tape:
    """Answers draws from a list, and says how many values each may have."""

    def __init__(self, values, which):
        self.left, self.which, self.mass, self.asked = list(values), which, WHOLE, 0

    def __call__(self, rate):
        """Draw, for A or for B only: the other one is 0."""
        self.asked += 1
        if not self.which(self.asked):
            return 0
        value = self.left.pop(0)
        self.mass = self.mass * (4**rate - 1) // 4 ** (rate * (value + 1))
        return value


def places(order):
    """For each draw that these levels make, in order: whether it is one of A."""
    held, mine = [], []
    for level in order:
        between = any(one > level for one in held)
        mine += [True] * (1 + between) + [False] * (1 + between)
        held.append(level)
    return mine


def enumerated(order, of_a=True):
    """The law of A, or of -B, at all levels, below the cut."""
    mine = [one is of_a for one in places(order)]
    law = defaultdict(int)
    for values in itertools.product(range(CUT), repeat=sum(mine)):
        tape = Tape(values, lambda place: mine[place - 1])
        chain = Chain(0, tape)
        for level in order:
            chain.at(level)
        law[tuple(chain.at(level) for level in LEVELS)] += tape.mass
    return {values: Fraction(mass, WHOLE) for values, mass in law.items()}


def forward(first, second, third):
    """The law of A at the three levels if they are asked from the coarsest to the finest."""

    def step(before, after):  # after = min(before, R)
        if after > before:
            return Fraction(0)
        return BASE**after * (1 - BASE) if after < before else BASE**after

    return (1 - BASE) * BASE**first * step(first, second) * step(second, third)


@pytest.mark.parametrize(
    ("order", "of_a"),
    [*((order, True) for order in itertools.permutations(LEVELS)), ((3, 1, 2), False)],
)
def test_levels_in_any_order_have_the_law_of_a_chain(order, of_a):
    """Each probability is the mass that is enumerated, up to the mass that is cut off."""
    law = enumerated(order, of_a)
    missing = 1 - sum(law.values())
    assert 0 < missing < Fraction(1, 200)
    sign = 1 if of_a else -1
    for values in itertools.product(range(3), repeat=3):
        exact = forward(*values)
        found = law.get(tuple(sign * one for one in values), Fraction(0))
        assert found <= exact <= found + missing
        assert (found == 0) is (exact == 0)


def difference(coarse, fine, value):
    """The law of A at a coarser level less A at a finer one."""
    p, q = BASE**coarse, BASE**fine
    return (1 - p) / (1 - q) if value == 0 else p**value * (1 - p) * (1 - q / p) / (1 - q)


def test_differences_of_levels_are_independent_of_the_finest_level():
    """All 216 cells of the joint law are products, exactly."""
    for i, j, k in itertools.product(range(6), repeat=3):
        finest = (1 - BASE**3) * BASE ** (3 * k)
        product = difference(1, 2, i) * difference(2, 3, j) * finest
        assert forward(i + j + k, j + k, k) == product


def laplace(p, value):
    return (1 - p) / (1 + p) * p ** abs(value)


def answers(exact, values):
    """The joint law of the answers at the three levels."""
    mass = laplace(BASE**3, values[2] - exact)
    for coarse, fine in ((1, 2), (2, 3)):
        p, q = BASE**coarse, BASE**fine
        zero = (q / p) * ((1 - p) / (1 - q)) ** 2
        gap = values[coarse - 1] - values[fine - 1]
        mass *= zero * (gap == 0) + (1 - zero) * laplace(p, gap)
    return mass


def test_the_gap_of_two_answers_is_that_of_two_differences():
    """The law of the gap of the answers, from the differences of A and of B, up to 1e-25."""
    for coarse, fine in ((1, 2), (2, 3)):
        p, q = BASE**coarse, BASE**fine
        zero = (q / p) * ((1 - p) / (1 - q)) ** 2
        for gap in range(4):
            summed = sum(
                difference(coarse, fine, one + gap) * difference(coarse, fine, one)
                for one in range(60)
            )
            assert abs(summed - (zero * (gap == 0) + (1 - zero) * laplace(p, gap))) < 1e-25


@pytest.mark.parametrize("shift", [1, 2])
def test_all_answers_lose_what_the_finest_one_loses(shift):
    worst = max(
        answers(0, values) / answers(shift, values)
        for values in itertools.product(range(-4, 6), repeat=3)
    )
    assert worst == (1 / BASE**3) ** shift


def test_each_level_has_laplace_noise():
    """Summed over the answers at the other levels, up to a rest."""
    wide = range(-16, 17)
    for place, level in enumerate(LEVELS):
        others = itertools.product(wide, repeat=2)
        mass = sum(float(answers(0, (*two[:place], 1, *two[place:]))) for two in others)
        assert mass == pytest.approx(float(laplace(BASE**level, 1)), abs=1e-9)


def test_a_level_is_rounded_down_to_a_multiple():
    assert units_of(0.5) == 2 ** (BITS - 1)
    assert units_of(2.0**-BITS) == 1
    assert level_of(units_of(0.1)) < 0.1 < level_of(units_of(0.1) + 1)
    assert level_of(units_of(2.0**20)) == 2.0**20
    for level in (2.0**-31, math.nextafter(2.0**20, math.inf)):
        with pytest.raises(InvalidValueError, match="level"):
            units_of(level)


def expected(p, cells):
    law = [(1 - p) * p**value for value in range(cells - 1)]
    return [*law, 1 - sum(law)]


def test_draws_have_the_rate_that_is_asked_for():
    draw, cells = GeometricDraws(), 8
    for rate in (0.75, 0.3):  # of two powers of two, and of many
        units, found = units_of(rate), Counter()
        for _ in range(1000):
            found[min(draw(units), cells - 1)] += 1
        law = expected(math.exp(-rate), cells)
        observed = [found[value] for value in range(cells)]
        assert chisquare(observed, [1000 * one for one in law]).pvalue > 1e-6


def test_a_vector_has_noise_of_its_own_in_each_coordinate():
    chain = Chain([10**6, -(10**6)], GeometricDraws())
    first, second = chain.at(units_of(2.0))
    assert abs(first - 10**6) < 100 > abs(second + 10**6)
    assert chain.at(units_of(2.0)) == [first, second]
    noise = [Chain([0, 0], GeometricDraws()).at(2**20) for _ in range(5)]
    assert any(one != two for one, two in noise)
    assert len(set(map(tuple, noise))) > 1


def test_a_level_draws_as_often_whatever_the_noise_is():
    """How often is public, so that no time tells of the noise: each insertion draws twice."""

    def scripted(asked, draws):
        return lambda rate: asked.append(rate) or next(draws)

    for values in ([0] * 20, range(20), range(20, 0, -1)):
        asked = []
        chain = Chain(0, scripted(asked, iter(values)))
        for level in (4, 2, 8, 3):
            chain.at(level)
        assert asked == [4, 4, 2, 2, 2, 2, 4, 4, 1, 1, 1, 1]
