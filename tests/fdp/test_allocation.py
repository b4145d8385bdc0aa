"""Random allocation: certified bounds on its profiles, against quadrature and enumeration."""

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy.stats import norm

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.fdp import allocation as module
from opendp_concurrent.fdp.allocation import allocation

T, Session = oc.TradeoffFunction, oc.fdp.Session
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0)


def law_of_two(sigma):
    """The ratio A and its probability under Q, for two batches, by quadrature."""
    z = np.linspace(-9, 9, 3001)
    weight = norm.pdf(z) * (z[1] - z[0])
    ratio = np.exp(z / sigma - 0.5 / sigma**2)
    return ((ratio[:, None] + ratio[None, :]) / 2).ravel(), np.outer(weight, weight).ravel()


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_two_batches_are_as_by_quadrature_and_never_below(sigma):
    ratio, weight = law_of_two(sigma)
    session = Session.random_allocation(sigma, 2)
    for epsilon in (*EPSILONS, 5.0):  # at 5, far below the mean of A, in both directions
        removed = weight @ np.maximum(ratio - math.exp(epsilon), 0)
        added = weight @ np.maximum(1 - math.exp(epsilon) * ratio, 0)
        for function, exact in ((session.removed, removed), (session.added, added)):
            bound = function.delta(epsilon)
            assert exact - 1e-9 <= bound <= exact * 1.01 + 1e-9, function.direction


@pytest.mark.parametrize("cut", ["_TAIL", "_SPARE"])
def test_what_is_cut_off_is_paid_for(cut, monkeypatch):
    """Far more is cut off here: the bounds are wide, and hold."""
    monkeypatch.setattr(module, cut, 0.01)
    ratio, weight = law_of_two(1.0)
    pair = allocation.__wrapped__(1.0, 2)
    for epsilon in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0):
        removed = weight @ np.maximum(ratio - math.exp(epsilon), 0)
        added = weight @ np.maximum(1 - math.exp(epsilon) * ratio, 0)
        for one, exact in ((pair, removed), (pair.swapped(), added)):
            assert exact - 1e-9 <= one.profile(np.array([epsilon])).upper[0]


def test_published_numbers():
    one = Session.random_allocation(1.0, 100)
    assert one.epsilon(1e-5) == pytest.approx(0.6210, abs=4e-4)
    assert one.power(10).epsilon(1e-5) == pytest.approx(1.7017, abs=1e-3)
    assert Session.random_allocation(2.0, 100).power(10).epsilon(1e-5) == pytest.approx(
        0.6031, abs=4e-4
    )


@pytest.mark.slow
def test_many_batches_are_above_means_of_cells():
    """A law of R on means of cells is smaller in the convex order: a lower bound."""
    for batches, sigma in ((5, 1.0), (100, 1.0), (100, 3.0), (1000, 1.0)):
        step, count = 1e-2 / sigma, 2**15
        edges = np.append(step * np.arange(count), np.inf)
        with np.errstate(divide="ignore"):
            score = np.log(edges) * sigma
        mass = np.diff(norm.cdf(score + 0.5 / sigma))
        mean = np.diff(norm.cdf(score - 0.5 / sigma))
        kept = mass > 0
        centre = mean[kept] / mass[kept]
        rng = np.random.default_rng(0)
        draws = rng.choice(centre, p=mass[kept] / mass[kept].sum(), size=(20000, batches))
        a = draws.mean(axis=1)
        session = Session.random_allocation(sigma, batches)
        for epsilon in (0.0, 0.05, 0.2):
            for function, gains in (
                (session.removed, np.maximum(a - math.exp(epsilon), 0)),
                (session.added, np.maximum(1 - math.exp(epsilon) * a, 0)),
            ):
                error = 5 * gains.std() / math.sqrt(len(a)) + 1e-9
                assert gains.mean() - error <= function.delta(epsilon) <= gains.mean() + 3 * error


def adaptive_law(scale, shift, batches, present):
    """The law of one epoch of two or three rounds on one row, whose gradients turn with answers."""
    n = np.arange(-int(8 * scale) - shift, int(8 * scale) + shift + 1)
    p = np.exp(-(n**2) / (2 * scale**2))
    p /= p.sum()
    moved = {way: np.interp(n - way * shift, n, p, 0, 0) for way in (-1, 1)}
    law = 0
    for chosen in range(batches) if present else (None,):
        joint = np.ones(1)
        history = np.zeros((1, 0), dtype=int)
        for number in range(batches):
            sign = np.where(history.sum(axis=1) < 0, -1, 1)
            here = [moved[way] if number == chosen else p for way in sign.tolist()]
            joint = (joint[:, None] * np.array(here)).ravel()
            history = np.hstack([np.repeat(history, len(n), 0), np.tile(n, len(history))[:, None]])
        law = law + joint / (batches if present else 1)
    return law


@pytest.mark.parametrize(("batches", "scale", "shift"), [(2, 6.0, 6), (2, 6.0, 3), (3, 3.0, 3)])
def test_an_adaptive_epoch_loses_at_most_the_bound(batches, scale, shift):
    law = {one: adaptive_law(scale, shift, batches, one) for one in (True, False)}
    session = Session.random_allocation(scale / shift, batches)
    slack = batches * 3.0 / scale**2  # of discrete noise: see tests/tradeoffs/test_rounds.py
    for epsilon in EPSILONS:
        for left, function in ((True, session.removed), (False, session.added)):
            exact = np.maximum(law[left] - math.exp(epsilon) * law[not left], 0).sum()
            assert exact <= math.exp(batches / (24 * scale**2)) * function.delta(epsilon - slack)
            assert exact >= 0.6 * function.delta(epsilon) - 1e-3


def test_order_of_neighbours():
    removed = T.random_allocation(1.0, 50, unit="removed")
    added = T.random_allocation(1.0, 50, unit="added")
    assert removed.direction == "removed"
    assert added.direction == "added"
    assert added == removed.inverse()
    assert added != removed
    assert removed.delta(0.0) == pytest.approx(added.delta(0.0), rel=1e-6)
    assert removed.delta(0.5) > added.delta(0.5)
    assert removed.upper_only
    assert removed.units(removed) == 1
    both = removed.both_directions()
    assert both.delta(0.5) >= removed.delta(0.5) * (1 - 1e-9)


def test_it_is_between_nothing_and_its_noise():
    for sigma, batches in itertools.product((0.5, 1.0, 30.0), (2, 1000)):
        function = T.random_allocation(sigma, batches, unit="removed")
        whole = T.gaussian(1 / sigma)
        for epsilon in (0.0, 1.0, 5.0):
            assert function.delta(epsilon) <= whole.delta(epsilon) * (1 + 1e-9) + 1e-15
        assert 0 < function.delta(0.0)


def test_one_batch_is_the_noise_and_more_batches_lose_less():
    assert T.random_allocation(2.0, 1, unit="added") == T.gaussian(0.5)
    losses = [Session.random_allocation(1.0, batches).epsilon(1e-5) for batches in (2, 10, 100)]
    assert losses == sorted(losses, reverse=True)


def test_it_is_written_and_read():
    function = allocation(1.0, 10)
    assert pickle.loads(pickle.dumps(function)) == function
    made = T.random_allocation(1.0, 10, unit="removed")
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("arguments", "error", "what"),
    [
        ((0.49, 10), InvalidValueError, "sigma"),
        ((101.0, 10), InvalidValueError, "sigma"),
        ((math.nan, 10), InvalidValueError, "sigma"),
        ((1.0, 0), InvalidValueError, "batches"),
        ((1.0, 10**5 + 1), InvalidValueError, "batches"),
        ((1.0, 2.5), InvalidTypeError, "batches"),
        (("1", 2), InvalidTypeError, "sigma"),
    ],
)
def test_what_is_out_of_range_is_refused(arguments, error, what):
    with pytest.raises(error, match=what):
        T.random_allocation(*arguments, unit="removed")
    with pytest.raises(InvalidValueError, match="unit"):
        T.random_allocation(1.0, 2, unit="both")
