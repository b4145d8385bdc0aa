"""Bounds between two pairs with few losses, and where they start, against sums with 60 digits."""

from itertools import product as all_of
from math import inf

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.fdp import noise as cells
from opendp_concurrent.fdp import sandwich as module
from opendp_concurrent.fdp.bounds import certify
from opendp_concurrent.fdp.exact import Atoms
from opendp_concurrent.fdp.noise import Laplace, Subsampled
from opendp_concurrent.fdp.sandwich import STEPS, measure, sandwich

from ..some import slow
from .conftest import laplace_steps

POINTS = 6


def measures(factor, tail):
    return tuple(measure(factor, tail, above) for above in (False, True))


def delta_of(given, epsilon):
    """δ of a measure, exactly."""
    above = given.losses > float(epsilon) - 1.0
    each = zip(given.losses[above].tolist(), given.masses[above].tolist(), strict=True)
    terms = (mpf(mass) * -mp.expm1(min(epsilon - mpf(loss), mpf(0))) for loss, mass in each)
    return mpf(given.infinite) + mp.fsum(terms)


def drawn(seed):
    draw = np.random.default_rng(seed)
    noise = ("gaussian", "laplace")[seed % 2]
    size = float(np.exp(draw.uniform(-3.0, 1.2)))
    rate = float(10.0 ** draw.uniform(-9.0, -0.02))
    return Subsampled(noise, size, rate, ("removed", "added")[seed // 2 % 2]), draw


def ends_of(factor):
    """The exact losses at the ends of the cells."""
    noise = cells.laplace_cells(factor.size)
    y = list(map(mpf, noise.ends.tolist()))
    if factor.noise == "gaussian":
        m = mpf(factor.size)
        y = [m * mpf(x) - m * m / 2 for x in points_of(factor)]
    side = 1 if factor.unit == "removed" else -1
    return [side * mp.log(1 - mpf(factor.rate) + mpf(factor.rate) * mp.exp(one)) for one in y]


def points_of(factor):
    """The points at which the line is cut."""
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        normal = cells._normal
        patch.setattr(cells, "_normal", lambda x: kept.append(x) or normal(x))
        cells.gaussian_cells.cache_clear()
        cells.gaussian_cells(factor.size, factor.rate, 1e-12)
    return kept[0].tolist()


def at_cells(factor, draw, exact):
    """A few ends of cells, with the exact δ there."""
    ends = ends_of(factor)
    for index in draw.integers(len(ends) // 3, 2 * len(ends) // 3, POINTS):
        yield ends[int(index)], closed_form(factor, ends[int(index)], exact)


def closed_form(factor, epsilon, exact):
    return exact.subsampled_delta(factor.noise, factor.size, factor.rate, factor.unit, epsilon)


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 400))])
def test_pairs_of_sampled_noise_hold_its_profile_where_they_touch_it(seed, exact):
    """Chords and tangents touch the profile at the ends of the cells: there only rounding shows."""
    factor, draw = drawn(seed)
    below, above = measures(factor, 1e-12)
    with mp.workdps(60):
        outside = 0
        for epsilon, value in at_cells(factor, draw, exact):
            low, high = delta_of(below, epsilon), delta_of(above, epsilon)
            assert low <= value <= high, (factor, epsilon, low, value, high)
            scale = value + mpf(factor.rate) * mpf("1e-6")
            outside += not value - low <= mpf("1e-6") * scale
            outside += not high - value <= mpf("1e-6") * scale + mpf("2e-12")
        assert not outside  # so what was checked is the rounding


@pytest.mark.parametrize("seed", [*range(4), *slow(range(4, 16))])
def test_pairs_of_sampled_noise_hold_its_profile_anywhere(seed, exact):
    """Also far out, where the tails are cut."""
    factor, draw = drawn(seed)
    below, above = measures(factor, 1e-30)
    with mp.workdps(60):
        for _ in range(POINTS):
            top = float(above.losses[-1])
            epsilon = mpf(float(top * draw.uniform(-0.1, 1.0) ** (1 + seed % 3)))
            value = closed_form(factor, epsilon, exact)
            low, high = delta_of(below, epsilon), delta_of(above, epsilon)
            assert low <= max(value, 0), (factor, epsilon)
            assert value <= high, (factor, epsilon)
            assert high <= 1.1 * value + 1e-4 * mpf(factor.rate) + mpf("2e-30")


@pytest.mark.parametrize("seed", range(8))
def test_the_masses_of_all_cells_are_counted(seed):
    """Also those beyond the outermost points."""
    factor, _ = drawn(seed)
    below, above = measures(factor, 1e-2)
    with mp.workdps(60):
        assert delta_of(above, mpf(-600)) >= 1 - mp.exp(-600)
        assert delta_of(below, mpf(-600)) <= 1
        assert delta_of(below, mpf(-600)) >= 0.99


@pytest.mark.parametrize("seed", [0, 2, *slow(range(4, 24, 2))])
def test_masses_that_err_as_much_as_is_allowed_are_covered(seed, exact, monkeypatch):
    """The normal law by SciPy may err by 2e-13: so are its values moved, up and down."""
    right = cells.scipy.special.ndtr

    def moved(x):
        return right(x) * (1 + 1.9e-13 * np.sign(np.sin(1e3 * np.clip(x, -99, 99))))

    monkeypatch.setattr(cells.scipy.special, "ndtr", moved)
    cells.gaussian_cells.cache_clear()
    factor, draw = drawn(seed)
    below, above = measures(factor, 1e-12)
    monkeypatch.undo()
    cells.gaussian_cells.cache_clear()
    with mp.workdps(60):
        for epsilon, value in at_cells(factor, draw, exact):
            assert delta_of(below, epsilon) <= value <= delta_of(above, epsilon)


@pytest.mark.parametrize("steps", [1, 3, 599, 600, 601, 4321])
@pytest.mark.parametrize("epsilon", [1e-8, 0.3, 4.0, 40.0])
def test_noise_on_a_grid_has_pairs_that_touch_it(epsilon, steps, exact):
    """Each outcome is counted; at the ends of cells, only rounding is between."""
    below, above = measures(Laplace(epsilon, float(steps)), 1e-14)
    with mp.workdps(60):
        pairs = laplace_steps(epsilon, steps)
        for at in (-0.9, -0.3, 0.0, 0.31, 0.99):
            e = mpf(at * epsilon)
            value = mp.fsum(max(p - mp.exp(e) * q, mpf(0)) for p, q in pairs)
            assert delta_of(below, e) <= value <= delta_of(above, e)
            assert delta_of(above, e) - delta_of(below, e) <= 0.02 * epsilon
        whole = [mp.fsum(map(mpf, one.masses.tolist())) for one in (below, above)]
        assert whole[0] <= 1 <= whole[1]
        assert whole[1] - whole[0] <= mpf("1e-6")


def test_what_leaves_the_doubles_and_other_noise_has_no_pairs():
    assert measures(Laplace(1000.0), 1e-10) == (None, None)
    assert measures(Laplace(1000.0, 1e6), 1e-10) == (None, None)
    assert measures(Subsampled("gaussian", 40.0, 0.1, "removed"), 1e-10) == (None, None)


def test_a_finite_pair_is_moved_by_its_errors():
    pair = oc.TradeoffFunction.approximate(0.5, 1e-3).product.single
    below, above = measures(pair, 1e-10)
    assert np.all(below.losses <= pair.losses)
    assert np.all(pair.losses <= above.losses)
    assert np.all(below.masses < pair.masses)
    assert np.all(pair.masses < above.masses)
    assert below.infinite <= 1e-3 <= above.infinite


T = oc.TradeoffFunction
UNITS = ("removed", "added")


def epsilons_of(found, delta):
    """Bounds on the ε at a δ."""
    return certify(found.at, delta, max(0.0, float(found.above.losses[-1])), 1e-6)


def drawn_measure(draw, size=60):
    losses = np.sort(draw.normal(0.0, 1.0, size)) * 10.0 ** draw.integers(-6, 2)
    return Atoms(losses, draw.exponential(1.0, size) / size, float(draw.uniform(0, 1e-6)))


# --- one step at a time, where only rounding is between the ends -----------------------------


@pytest.mark.parametrize("seed", range(20))
def test_spreading_touches_from_above_and_merging_from_below(seed):
    """At the ends of the cells chords and tangents touch: there, only rounding shows."""
    draw = np.random.default_rng(seed)
    given = drawn_measure(draw)
    middle = float(given.losses[20])
    grid = module._grid(float(given.losses[0]), float(given.losses[-1]), middle, 0.1, 0.1)
    above = module._spread_to(grid, given.losses, given.masses, 0.0, 0.0)
    below = module._merged(grid, given.losses, given.masses, 0.0, 0.0)
    bare = Atoms(given.losses, given.masses)
    with mp.workdps(60):
        for epsilon in module.nodes(grid)[:: max(1, len(module.nodes(grid)) // 12)].tolist():
            exact = delta_of(bare, mpf(epsilon))
            low, high = (delta_of(one, mpf(epsilon)) for one in (below, above))
            assert low <= exact <= high
            assert high - low <= mpf("1e-12") * (exact + float(np.sum(given.masses)) * 1e-3)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("above", [False, True])
def test_products_of_two_are_all_sums(seed, above):
    draw = np.random.default_rng(seed)
    one, other = (module._made(drawn_measure(draw, 25), 0.1, 0.0, above) for _ in range(2))
    both = module._times(one, other, 0.1, 0.0, above)
    with mp.workdps(60):
        whole = [
            (mpf(a) + mpf(b), mpf(v) * mpf(w))
            for (a, v), (b, w) in all_of(
                zip(one.losses.tolist(), one.masses.tolist(), strict=True),
                zip(other.losses.tolist(), other.masses.tolist(), strict=True),
            )
            if v * w > 0.0
        ]
        sums = [mp.fsum(map(mpf, each.masses.tolist())) for each in (one, other)]
        first, second = mpf(one.infinite), mpf(other.infinite)
        infinite = first * (sums[1] + second) + second * sums[0]
        for epsilon in module.nodes(both.grid)[5::97].tolist():
            e = mpf(epsilon)
            exact = infinite + mp.fsum(w * -mp.expm1(min(e - loss, mpf(0))) for loss, w in whole)
            found = delta_of(both, e)
            assert (exact <= found) if above else (found <= exact)
            assert abs(found - exact) <= mpf("1e-11") * (exact + mpf("1e-3"))


@pytest.mark.parametrize("seed", range(6))
def test_ends_that_are_cut_stay_on_their_side(seed):
    draw = np.random.default_rng(seed)
    given = drawn_measure(draw, 400)
    whole = module._made(given, 0.05, 0.0, True)
    cut = module._made(given, 0.05, 1e-2, True)
    least = module._made(given, 0.05, 1e-2, False)
    with mp.workdps(60):
        for epsilon in module.nodes(whole.grid)[3::41].tolist():
            e = mpf(epsilon)
            assert delta_of(whole, e) <= delta_of(cut, e)
            assert delta_of(least, e) <= delta_of(given, e)
        assert delta_of(whole, mpf(-800)) <= delta_of(cut, mpf(-800)) * (1 + mpf("1e-18"))
    assert len(cut.losses) < len(whole.losses)


# --- whole products ---------------------------------------------------------------------------


def check_drawn(seed, unit, exact):
    """The exact δ is between both ends: a sum over outcomes of the closed form of the noise."""
    draw = np.random.default_rng(seed)
    noise = ("gaussian", "laplace")[int(draw.integers(2))]
    size, rate = float(np.exp(draw.uniform(-2.0, 1.0))), float(10.0 ** draw.uniform(-6.0, -0.1))
    parts = []
    for _ in range(draw.integers(1, 3)):
        weights = draw.dirichlet(np.ones(int(draw.integers(2, 4))), 2)
        weights[0][0] *= draw.random() >= 0.2  # sometimes there is an infinite loss
        pair = tuple(tuple((one / one.sum()).tolist()) for one in weights)
        parts.append(("finite", pair, int(draw.integers(1, 4))))
    failure = 10.0 ** draw.uniform(-9.0, -2.0)
    factors = exact.build(parts).product.factors.items()
    found = sandwich([(Subsampled(noise, size, rate, unit), 1), *factors], failure, STEPS[0])
    ends = epsilons_of(found, failure)
    assert ends.lower <= ends.upper
    with mp.workdps(60):
        outcomes = exact.outcomes(parts)
        for epsilon in {0.0, *ends, float(draw.normal(0.0, 1.0))} - {inf}:
            value = mp.fsum(
                p * max(0, exact.subsampled_delta(noise, size, rate, unit, epsilon - mp.log(p / q)))
                if q
                else p
                for p, q in outcomes
                if p
            )
            low, high = found.profile(np.array([epsilon]))
            blur = mpf(10) ** -13 * value  # of what the finite pairs stand for
            assert mpf(float(low[0])) <= value + blur, (seed, epsilon)
            assert value - blur <= mpf(float(high[0])), (seed, epsilon)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "seeds", [range(10), *slow(range(n, n + 100) for n in range(10, 5000, 100))]
)
def test_products_are_between_their_bounds(seeds, unit, exact):
    for seed in seeds:
        check_drawn(seed, unit, exact)


KNOWN = [  # sigma, rate, count, delta, ε with the unit removed: two by an integral over the first
    (1.0, 1e-3, 2, 1e-8, 0.088388695),
    (0.6, 1e-4, 2, 1e-5, 0.0030509117),
    (0.6, 1e-6, 2, 1e-8, 1.606367e-4),
    (1.0, 0.01, 1000, 1e-5, 1.82823666),
    (0.8, 256 / 60000, 14040, 1e-5, 4.54600883),
    (2.0, 0.05, 400, 1e-6, 2.55575274),
]


@pytest.mark.parametrize(("sigma", "rate", "count", "delta", "value"), KNOWN)
def test_known_values_are_inside(sigma, rate, count, delta, value):
    found = sandwich([(Subsampled("gaussian", 1 / sigma, rate, "removed"), count)], delta, 0.02)
    low, high = epsilons_of(found, delta)
    assert low <= value * (1 + 1e-6)
    assert value * (1 - 1e-6) <= high
    assert high - low <= 0.005 * high


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("rate", "count", "value"), [(1e-4, 10**5, 0.01651), *slow([(1e-5, 10**6, 0.00445)])]
)
def test_many_uses_of_rare_samples_are_narrow(rate, count, value, unit):
    bounds = T.subsampled_gaussian(5.0, rate, unit=unit).power(count).epsilon_bounds(1e-5)
    assert bounds.width <= 0.01 * bounds.upper
    assert 0.99 * value <= bounds.lower <= bounds.upper <= 1.01 * value


def test_what_has_no_pairs_has_no_sandwich():
    assert sandwich([(Subsampled("gaussian", 16.0, 0.5, "removed"), 2)], 1e-300, 0.02) is None


def test_a_pair_above_has_the_largest_loss_and_the_profile():
    for unit in UNITS:
        f = T.subsampled_laplace(1.0, 0.01, unit=unit).power(50)
        pair = f.product.pair_above
        assert pair.infinite == 0.0
        for epsilon in (0.0, 0.1, 0.5, 2.0):
            upper = pair.profile(np.array([epsilon])).upper[0]
            assert f.delta_bounds(epsilon).lower <= upper <= 1.01 * f.delta(epsilon) + 1e-12
    unbounded = T.subsampled_gaussian(1.0, 0.01, unit="removed").power(2)
    assert unbounded.product.pair_above is None


@pytest.mark.parametrize(
    ("delta", "rate", "count"),
    [
        (1e-250, 0.01, 8),
        *slow((delta, rate, 1000) for delta in (1e-100, 1e-250) for rate in (1e-5, 0.01)),
    ],
)
def test_steps_have_an_epsilon_at_the_least_deltas(delta, rate, count):
    f = T.subsampled_gaussian(1.0, rate, unit="removed").power(count)
    low, high = f.epsilon_bounds(delta)
    assert 0.0 < low < high <= 1.3 * low
    assert f.delta(high) <= delta * (1 + 1e-3)
