"""The best of several runs as an event: its number of runs, and its loss beside exact laws."""

import mpmath as mp
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.fdp.session import SELECTIONS
from opendp_concurrent.mechanisms import selection as events
from opendp_concurrent.mechanisms.selection import runs_of_mean, selection

T = oc.TradeoffFunction


def mean_of(runs):
    """The mean of the truncated negative binomial distribution, to 50 digits."""
    gamma = -mp.expm1(-1 / mpf(runs.scale))
    if runs.eta == 0.0:
        return (1 / gamma - 1) / -mp.log(gamma)
    eta = mpf(runs.eta)
    return eta * (1 - gamma) / (gamma * -mp.expm1(eta * mp.log(gamma)))


@pytest.mark.parametrize("mean", [1 + 1e-9, 1.5, 10.0, 1 / 3 * 100, 1e6])
@pytest.mark.parametrize("shape", [0.0, 1e-6, 0.3, 1.0, 2.5, 50.0])
def test_the_mean_is_never_below_that_of_the_event(mean, shape):
    runs = runs_of_mean(mean, shape)
    with mp.workdps(50):
        assert mpf(mean) <= mean_of(runs) <= mpf(mean) * (1 + mpf("1e-9"))


def test_what_has_no_scale_or_no_bound_is_no_privacy(monkeypatch):
    strong = oc.fdp.Session(T.gaussian(50.0), T.gaussian(50.0))
    assert selection(strong, 100.0, 1.0).delta(10.0) > 0.9
    assert selection(oc.fdp.Session(), 2.0, 1.0) == T.identity()
    monkeypatch.setattr(events, "_STEPS", 0)
    assert runs_of_mean(2.0, 1.0) is None
    assert selection(oc.fdp.Session(), 2.0, 1.0) == T.worst()


def test_the_reader_of_events_knows_it():
    assert SELECTIONS == [selection]
    run = oc.fdp.Session(T.pure(0.1), T.pure(0.1))
    assert 0.1 < SELECTIONS[0](run, 5.0, 1.0).epsilon(0.0) < 0.3
