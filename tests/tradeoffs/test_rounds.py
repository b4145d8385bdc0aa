"""Units of rounds: the slack of discrete noise, by exact enumeration, and how many rounds fit."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi, norm

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError
from opendp_concurrent.tradeoffs import rounds as module
from opendp_concurrent.tradeoffs.rounds import Round, Rounds, noise_slack

POISSON = Rounds(1.0, 0.01, 1, 100, 1e-5)


def discrete(scale, reach):
    """Probabilities of discrete Gaussian noise at -reach, ..., reach, to about a double."""
    n = np.arange(-reach, reach + 1)
    exponent = -(n**2) / (2 * scale**2)
    return n, np.exp(exponent - logsumexp(exponent))


def rounded(scale, n):
    """Probabilities of continuous noise, rounded to the grid."""
    low, high = (np.abs(n) - 0.5) / scale, (np.abs(n) + 0.5) / scale
    return norm.sf(low) - norm.sf(high)


@pytest.mark.parametrize("scale", [0.5, 0.7, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("size", [1, 2])
def test_the_two_laws_of_noise_are_as_near_as_the_slack_says(scale, size):
    n, p = discrete(scale, math.ceil(9 * scale) + 3)
    q = rounded(scale, n)
    points = np.stack(np.meshgrid(*[n] * size), axis=-1).reshape(-1, size)
    ratio = np.sum(np.log(p / q)[points - n[0]], axis=1)  # ln p/q of a vector
    h, g = noise_slack(size, scale)
    assert np.all(ratio <= h + 1e-12)
    long = math.sqrt(size) + math.sqrt(size) / (2 * scale) + module.LONG
    short = np.linalg.norm(points, axis=1) <= long * scale
    assert np.all(-ratio[short] <= g + 1e-12)


def test_the_upper_side_is_attained_nearly_and_needs_its_radius(monkeypatch):
    monkeypatch.setattr(module, "LONG", 2.0)
    scale = 30.0
    n, p = discrete(scale, 200)
    ratio = np.log(rounded(scale, n) / p)
    (h, g), long = noise_slack(1, scale), 3.0 + 1 / (2 * scale)
    inside = np.abs(n) <= long * scale
    assert g - 1.2 * h <= np.max(ratio[inside]) <= g < np.max(ratio)


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_long_noise_is_as_rare_as_is_said(size):
    for t in (1.0, 4.0, 20.0, 30.0):
        assert chi.sf(math.sqrt(size) + t, size) <= math.exp(-(t**2) / 2)


def adaptive_law(scale, shift, rate, present):
    """The law of two rounds; the second gradient is turned around where the first answer is < 0."""
    n, p = discrete(scale, math.ceil(9 * scale) + shift)
    moved = {way: np.interp(n - way * shift, n, p, 0, 0) for way in (-1, 0, 1)}
    one = {way: (1 - rate) * p + rate * moved[way] if present else p for way in (-1, 1)}
    second = np.where((n < 0)[:, None], one[-1][None, :], one[1][None, :])
    return (one[1][:, None] * second).ravel()


@pytest.mark.parametrize(("scale", "shift", "rate"), [(4.0, 4, 0.3), (8.0, 4, 1.0), (2.0, 2, 0.05)])
def test_adaptive_rounds_on_one_row_lose_at_most_their_units(monkeypatch, scale, shift, rate):
    monkeypatch.setattr(module, "LONG", 7.0)
    sigma = scale / shift
    whole = oc.fdp.Session.subsampled_gaussian(sigma, rate).power(2)
    h, g = (2 * one for one in noise_slack(1, scale))
    c = 2 * math.exp(-(7.0**2) / 2)
    law = {one: adaptive_law(scale, shift, rate, one) for one in (True, False)}
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        for left, function in ((True, whole.removed), (False, whole.added)):
            exact = np.maximum(law[left] - math.exp(epsilon) * law[not left], 0).sum()
            bound = math.exp(h) * function.delta(epsilon - h - g) + c * math.exp(epsilon)
            assert exact <= bound
            if epsilon == 0.0:  # and the bound is no larger than its slack
                assert exact >= function.delta_bounds(h + g).lower * math.exp(-h) - 2 * c


def test_continuous_units_alone_are_no_bound_for_discrete_noise():
    law, unit = {one: adaptive_law(2.0, 1, 1.0, one) for one in (True, False)}, 0.5
    excess = [
        np.maximum(law[True] - math.exp(epsilon) * law[False], 0).sum()
        - oc.TradeoffFunction.gaussian(unit).power(2).delta(epsilon)
        for epsilon in np.linspace(0, 2, 41).tolist()
    ]
    assert max(excess) > 1e-3


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 254), (2.0, 1202), (3.0, 2666)])
def test_equal_rounds_reach_the_bound_of_rounds_that_are_fixed_up_front(epsilon, most):
    spent = POISSON.start().after(Round(), most)
    assert spent.within((epsilon, 1e-5))
    assert not spent.after(Round()).within((epsilon, 1e-5))
    session = oc.fdp.Session.subsampled_gaussian(1.0, 0.01).power(most)
    assert session.epsilon(1e-5) <= spent.loss[0] <= session.epsilon(1e-5) + 1e-7


def test_the_loss_is_that_of_the_worse_order():
    unit = POISSON.session
    assert POISSON.epsilon(254) > unit.removed.power(254).epsilon(1e-5)
    assert unit.added.power(254).epsilon(1e-5) < unit.removed.power(254).epsilon(1e-5)


def test_slack_is_added_and_grows_with_the_size():
    small, large = (Rounds(1.0, 0.01, 1, size, 1e-5).epsilon(1000) for size in (10, 2**26))
    h, g = noise_slack(2**26, 2.0**24)
    assert 1000 * (h + g) * 0.99 < large - small < 1000 * (h + g) * 1.2  # and δ is a part of δ
    assert Rounds(1.0, 0.01, 1, 10, 1e-100).epsilon(10) < 300
    assert Rounds(0.1, 1.0, 1, 10, 1e-5).epsilon(100) == math.inf  # long noise is likelier


def test_an_epoch_of_random_allocation_costs_less_than_its_rounds():
    epochs = Rounds(1.0, 0.0, 100, 10, 1e-5)
    assert epochs.epsilon(1) == pytest.approx(0.6210, abs=2e-4)
    assert POISSON.epsilon(100) == pytest.approx(0.7180, abs=1e-4)


def test_another_launch_costs_whole_units_that_cover_it():
    none = POISSON.start()
    spent = none.after((0.1, 0.0)).spent
    unit, pure = POISSON.session.removed, oc.TradeoffFunction.pure(0.1)
    assert spent is not None
    assert pure <= unit.power(spent)
    assert not pure <= unit.power(spent // 2)
    assert none.after((0.1, 0.0), 2).spent == 2 * spent
    assert none.after((math.inf, 0.0)).spent is None
    assert none.after((math.inf, 0.0)).after(Round()).loss == (math.inf, 1e-5)


def test_what_remains_is_admitted():
    spent = POISSON.start().after(Round(), 100)
    left = spent.remaining((1.0, 1e-5))
    assert left[0] > 0.05
    assert spent.after(left).within((1.0, 1e-5))
    assert not spent.after((left[0] * 1.2, 0.0)).within((1.0, 1e-5))
    assert POISSON.start().after(Round(), 254).remaining((1.0, 1e-5)) == (0.0, 0.0)


def test_a_smaller_delta_than_that_of_the_rounds_admits_nothing():
    assert not POISSON.start().after(Round()).within((5.0, 1e-6))


def test_records_continue():
    spent = POISSON.start().after(Round(), 7)
    again = POISSON.from_record(None, spent.to_record())
    assert again == spent
    assert again.after(Round()).spent == 8


@pytest.mark.parametrize("bad", [math.nan, None, 1.0, (-1.0, 0.0), (1.0, math.nan), "round"])
def test_what_is_no_loss_is_refused(bad):
    with pytest.raises(ConcurrentError):
        POISSON.start().after(bad)
    for count in (0, -1, 1.5):
        with pytest.raises(ConcurrentError):
            POISSON.start().after(Round(), count)


def test_losses_rise_and_two_counts_of_a_ledger_are_merged():
    losses = [POISSON.epsilon(units) for units in (0, 1, 2, 100, 101, 5000)]
    assert losses == sorted(losses)
    assert losses[0] == 0.0
    one, other = (POISSON.start().after(Round(), count) for count in (100, 101))
    assert one.merged(other) == other
    assert one.merged(Rounds(2.0, 0.01, 1, 100, 1e-5).start()) is None
