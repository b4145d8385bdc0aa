"""The joint law of all levels of Laplace noise, by enumeration, and sums of Gaussian levels."""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise

import opendp.prelude as dp
import pytest
from scipy.stats import chisquare

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures import composition_measure
from opendp_concurrent.queryables.data import seal
from opendp_concurrent.serving import levels as of_levels
from opendp_concurrent.serving.levels import Chain, GeometricDraws, level_of, units_of

from ..build import PURE, ZCDP

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
    assert units_of(0.5) == 2 ** (of_levels.BITS - 1)
    assert units_of(2.0**-of_levels.BITS) == 1
    assert level_of(units_of(0.1)) < 0.1 < level_of(units_of(0.1) + 1)
    assert level_of(units_of(2.0**20)) == 2.0**20
    for level in (2.0**-31, math.nextafter(2.0**20, math.inf)):
        with pytest.raises(InvalidValueError, match="level"):
            units_of(level)


def test_draws_have_the_rate_that_is_asked_for():
    draw = GeometricDraws()
    for rate in (0.75, 0.3):  # of two powers of two, and of many
        units, p = units_of(rate), math.exp(-rate)
        found = Counter(min(draw(units), 7) for _ in range(1000))
        law = [1000 * (1 - p) * p**value for value in range(7)]
        observed = [found[value] for value in range(8)]
        assert chisquare(observed, [*law, 1000 * p**7]).pvalue > 1e-6


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
    for values in ([0] * 20, range(20), range(20, 0, -1)):
        asked, draws = [], iter(values)
        chain = Chain(0, lambda rate: asked.append(rate) or next(draws))  # noqa: B023
        for level in (4, 2, 8, 3):
            chain.at(level)
        assert asked == [4, 4, 2, 2, 2, 2, 4, 4, 1, 1, 1, 1]


# --- what is launched for a level -----------------------------------------------------------------

SPACE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)


def levels_of(kind, measure, space=SPACE):
    levels = kind(space, composition_measure(measure))
    return levels, seal(levels)


def test_steps_of_laplace_levels_add_up_to_the_finest_one_exactly():
    for measure in (PURE, dp.approximate(PURE)):
        levels, own = levels_of(of_levels.LaplaceLevels, measure)
        total = 0.0
        for level in (0.1, 0.25, 1 / 3, 0.9, 7.7):
            step = levels.launch(units_of(level), own).map(3)
            if measure != PURE:
                step, delta = step
                assert delta == 0.0
            total += step
            levels.keep(units_of(level), None)
            assert total == 3 * units_of(level) * 2.0**-30


def gaussian(answers, shares=(0.05, 0.1, 0.35), measure=ZCDP, space=SPACE):
    """Levels that launched, and the prices of their launches."""
    levels, own = levels_of(of_levels.GaussianLevels, measure, space)
    prices, level = [], 0.0
    for answer, share in zip(answers, shares, strict=True):
        level += share
        prices.append(levels.launch(units_of(level), own).map(1))
        levels.keep(units_of(level), answer)
    return levels, prices


def test_gaussian_levels_cost_at_most_their_steps():
    _, prices = gaussian([0, 0, 0])
    before = 0
    for level, price in zip((0.05, 0.15, 0.5), prices, strict=True):
        step = (units_of(level) - before) * 2.0**-30
        assert step * (1 - 1e-11) < price <= step
        before = units_of(level)


def test_gaussian_answers_are_means_weighted_by_precision():
    levels, _ = gaussian([10, 40, 20])
    assert levels.at(units_of(0.05)) == 10
    assert levels.at(units_of(0.16)) == pytest.approx((10 * 1 + 40 * 2) / 3)
    assert levels.at(units_of(0.5)) == pytest.approx((10 * 1 + 40 * 2 + 20 * 7) / 10)
    assert levels.at(units_of(0.1)) == 10  # the coarser one of two
    with pytest.raises(InvalidValueError, match="below that of the first .* level 0.04"):
        levels.check(units_of(0.01))
    vectors, _ = gaussian([[10, 0], [40, 0], [20, 1]], space=ROWS)
    assert vectors.at(units_of(0.5)) == [pytest.approx(23), pytest.approx(0.7)]


def test_a_mean_has_the_variance_of_one_release_at_the_sum():
    """Of each of 2,000 coordinates of one release."""
    release = oc.m.make_shared_release(*ROWS, ZCDP)([0] * 2000)
    for level in (0.05, 0.125, 0.5):
        variance = sum(one**2 for one in release(level)) / 2000
        assert variance == pytest.approx(1 / (2 * level), rel=0.2)


def test_errors_are_within_the_accuracy():
    levels, _ = levels_of(of_levels.GaussianLevels, ZCDP)
    bounds = [levels.accuracy(SPACE[0], units_of(0.5)).at(beta, 1) for beta in (0.5, 0.05, 1e-9)]
    for beta, bound in zip((0.5, 0.05, 1e-9), bounds, strict=True):
        assert bound == pytest.approx(math.sqrt(2 * math.log(2 / beta)))
    assert all(one < other for one, other in pairwise(bounds))
    laplace, _ = levels_of(of_levels.LaplaceLevels, PURE)
    assert laplace.accuracy(SPACE[0], units_of(0.5)).at(0.05, 1) == 6.0
