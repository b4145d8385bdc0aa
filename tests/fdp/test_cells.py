"""Where a sandwich starts, against closed forms with 60 digits, at the points where they touch."""

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.fdp import noise as cells
from opendp_concurrent.fdp.noise import Laplace, Subsampled
from opendp_concurrent.fdp.sandwich import measure

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


@pytest.mark.parametrize("seed", [*range(6), *slow(range(6, 400))])
def test_pairs_of_sampled_noise_hold_its_profile_where_they_touch_it(seed, exact):
    """Chords and tangents touch the profile at the ends of the cells: there only rounding shows."""
    factor, draw = drawn(seed)
    below, above = measures(factor, 1e-12)
    with mp.workdps(60):
        ends = ends_of(factor)
        outside = 0
        for index in draw.integers(len(ends) // 3, 2 * len(ends) // 3, POINTS):
            epsilon = ends[int(index)]
            value = exact.subsampled_delta(
                factor.noise, factor.size, factor.rate, factor.unit, epsilon
            )
            low, high = delta_of(below, epsilon), delta_of(above, epsilon)
            assert low <= value <= high, (factor, epsilon, low, value, high)
            scale = value + mpf(factor.rate) * mpf("1e-6")
            outside += not value - low <= mpf("1e-6") * scale
            outside += not high - value <= mpf("1e-6") * scale + mpf("2e-12")
        assert not outside  # so what was checked is the rounding


@pytest.mark.parametrize("seed", [*range(8), *slow(range(8, 16))])
def test_pairs_of_sampled_noise_hold_its_profile_anywhere(seed, exact):
    """Also far out, where the tails are cut."""
    factor, draw = drawn(seed)
    below, above = measures(factor, 1e-30)
    with mp.workdps(60):
        for _ in range(POINTS):
            top = float(above.losses[-1])
            epsilon = mpf(float(top * draw.uniform(-0.1, 1.0) ** (1 + seed % 3)))
            value = exact.subsampled_delta(
                factor.noise, factor.size, factor.rate, factor.unit, epsilon
            )
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


@pytest.mark.parametrize("seed", [0, 2, 4, 6, *slow(range(8, 24, 2))])
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
        ends = ends_of(factor)
        for index in draw.integers(len(ends) // 3, 2 * len(ends) // 3, POINTS):
            epsilon = ends[int(index)]
            value = exact.subsampled_delta(
                factor.noise, factor.size, factor.rate, factor.unit, epsilon
            )
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
