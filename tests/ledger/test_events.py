"""Charges as events of dp-accounting: what its accountants make of them is an upper bound."""

import math
import sys

import attr
import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.store import Terms
from opendp_concurrent.ledger.ledger import events as as_events
from opendp_concurrent.measures import composition_measure

from ..build import APPROXIMATE, PURE, ZCDP, an_odometer, costing

dp_accounting = pytest.importorskip("dp_accounting")

from dp_accounting import dp_event  # noqa: E402
from dp_accounting.pld import PLDAccountant  # noqa: E402
from dp_accounting.rdp import RdpAccountant  # noqa: E402

F = oc.TradeoffFunction
DELTA = 1e-5


@pytest.fixture
def charged(sqlite):
    """A ledger with charges under a measure, at a d_in of 1."""

    def charge(measure, *d_mids):
        ledger = sqlite.create()
        rule = oc.accumulators.ladder(F.gaussian(1.0)) if measure == oc.tradeoff() else None
        root = an_odometer(measure, accumulator=rule, ledger=ledger, d_in=1)([1, 2, 3])
        for d_mid in d_mids:
            root(costing(lambda d_in, loss=d_mid: loss, measure=measure))
        return ledger

    return charge


def epsilon(events, accountant=None):
    accountant = accountant or PLDAccountant()
    accountant.compose(events)
    return accountant.get_epsilon(DELTA)


MADE = {  # under a measure: losses, and the function that they are together
    "randomized response": (PURE, [1e-3] * 30, F.pure(1e-3).power(30)),
    "large loss": (PURE, [3.0], F.pure(3.0)),
    "gaussian": (oc.gaussian_tradeoff(), [0.3, 0.4, 1.2], F.gaussian(1.3)),
    **{
        repr(function): (oc.tradeoff(), [function], function)
        for function in (
            F.gaussian(0.7),
            F.laplace(0.5),
            F.laplace(0.5, 8192.0),
            F.laplace(0.1).power(10),
            F.gaussian(0.3).compose(F.laplace(0.5)),
            F.identity(),
        )
    },
}


@pytest.mark.parametrize("name", MADE)
def test_losses_are_at_least_the_mechanisms_that_have_them(charged, name):
    measure, losses, function = MADE[name]
    events = charged(measure, *losses).to_dp_events()
    exact = function.epsilon_bounds(DELTA)
    assert len(events.events) == len(losses)
    # dp-accounting rounds to nearest
    assert exact.lower * (1 - 1e-12) - 1e-12 <= epsilon(events) <= exact.upper + 2e-3


def test_concentrated_losses_are_events_of_their_own(charged):
    events = charged(ZCDP, 0.01, 0.02).to_dp_events()
    assert events.events == [dp_event.ZCDpEvent(0.01), dp_event.ZCDpEvent(0.02)]
    exact = F.gaussian(math.sqrt(2 * 0.03)).epsilon(DELTA)
    assert epsilon(events, RdpAccountant()) >= exact


def test_the_extremes_are_events(charged):
    events = charged(PURE, 0.0, math.inf).to_dp_events().events
    assert events == [dp_event.NoOpDpEvent(), dp_event.NonPrivateDpEvent()]


@pytest.mark.parametrize("loss", [5e-324, 1e-300, 1e300, 1.7976931348623157e308])
def test_any_loss_is_an_event(loss):
    for measure in (PURE, oc.gaussian_tradeoff()):
        name = composition_measure(measure).name
        (event,) = as_events(Terms(name, None, "", 1, None), [loss]).events
        if isinstance(event, dp_event.GaussianDpEvent):
            assert 0.0 <= event.noise_multiplier < math.inf
            assert event.noise_multiplier * loss <= 1.0
        else:
            assert event == dp_event.DiscreteLaplaceDpEvent(loss, 1)


LATER = attr.make_class(
    "EpsilonDeltaDpEvent", {"epsilon": attr.ib(), "delta": attr.ib()}, bases=(dp_event.DpEvent,)
)


def test_approximate_losses_are_events_where_dp_accounting_has_them(charged, monkeypatch):
    made = getattr(dp_event, "EpsilonDeltaDpEvent", LATER)
    monkeypatch.setattr(dp_event, "EpsilonDeltaDpEvent", made, raising=False)
    losses = [(0.5, 1e-7), (0.25, 0.0), (0.0, 1e-9), (0.5, 1.0), (math.inf, 1e-7), (0.0, 0.0)]
    ledger = charged(APPROXIMATE, *losses)
    assert ledger.to_dp_events().events == [
        made(0.5, 1e-7),
        dp_event.DiscreteLaplaceDpEvent(0.25, 1),
        made(0.0, 1e-9),
        *[dp_event.NonPrivateDpEvent()] * 2,
        dp_event.NoOpDpEvent(),
    ]


def test_losses_without_an_event_are_refused_by_accountants(charged, monkeypatch):
    monkeypatch.delattr(dp_event, "EpsilonDeltaDpEvent", raising=False)
    ledger = charged(APPROXIMATE, (0.5, 1e-7))
    events = ledger.to_dp_events()
    assert events.events == [dp_event.UnsupportedDpEvent()]
    for accountant in (PLDAccountant(), RdpAccountant()):
        with pytest.raises(Exception, match="nsupported"):
            accountant.compose(events)


@pytest.mark.parametrize(
    ("part", "event"),
    [
        (F.finite([0.2, 0.5, 0.3], [0.5, 0.4, 0.1]), dp_event.UnsupportedDpEvent()),
        (F.worst(), dp_event.NonPrivateDpEvent()),  # beside which no other counts
    ],
    ids=repr,
)
def test_functions_that_are_not_are_refused_as_a_whole(charged, part, event):
    function = F.gaussian(0.3).compose(part)
    ledger = charged(oc.tradeoff(), function)
    assert ledger.to_dp_events().events == [event]


def test_without_dp_accounting_the_error_names_the_extra(charged, monkeypatch):
    ledger = charged(PURE, 0.5)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"install opendp-concurrent\[events\]"):
        ledger.to_dp_events()
