"""Random trees of events: there and back, and beside the accountants of dp-accounting; ours.

``PLDAccountant`` rounds each loss up to a grid, so it may be above the exact ε by one step of the
grid for each mechanism. It also moves tails with masses of 10^-15 to infinity, and computes
convolutions with an error that is not stated: :data:`TAILS` allows for both. ``RdpAccountant`` is
an upper bound.
"""

import math
import pickle
import sys
import unittest
from collections.abc import Iterator

import attr
import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, UnsupportedEventError
from opendp_concurrent.fdp.exchange import function_event

pytest.importorskip("dp_accounting")

import dp_accounting
from dp_accounting import dp_event as e
from dp_accounting import privacy_accountant
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from ..some import slow

T, Session = oc.TradeoffFunction, oc.fdp.Session
TAILS = 1e-10  # relative change of δ


# --- random trees ------------------------------------------------------------------------------


def noise(draw: np.random.Generator) -> float:
    return float(np.exp(draw.uniform(-0.5, 3.0)))


LEAVES = {
    "gaussian": lambda draw: e.GaussianDpEvent(noise(draw)),
    "laplace": lambda draw: e.LaplaceDpEvent(noise(draw)),
    "nothing": lambda draw: e.NoOpDpEvent(),
    "discrete": lambda draw: e.DiscreteLaplaceDpEvent(1 / noise(draw), int(draw.integers(1, 4))),
    "sampled": lambda draw: e.PoissonSampledDpEvent(
        float(np.exp(draw.uniform(-3.0, -0.1))), e.GaussianDpEvent(0.5 + noise(draw))
    ),
    "sampled laplace": lambda draw: e.PoissonSampledDpEvent(
        float(np.exp(draw.uniform(-3.0, -0.1))), e.LaplaceDpEvent(noise(draw))
    ),
    "zcdp": lambda draw: e.ZCDpEvent(0.5 / noise(draw) ** 2, 0.1 * float(draw.integers(0, 2))),
}
EVERY = [*LEAVES]
OF_PLD = [one for one in EVERY if one != "zcdp"]
OF_RDP = ["gaussian", "laplace", "nothing", "sampled", "zcdp"]


def random_tree(draw: np.random.Generator, leaves: list[str], depth: int = 2) -> e.DpEvent:
    kind = draw.integers(0, 3) if depth else 2
    if kind == 0:
        parts = [random_tree(draw, leaves, depth - 1) for _ in range(draw.integers(1, 4))]
        return e.ComposedDpEvent(parts)
    if kind == 1:
        return e.SelfComposedDpEvent(random_tree(draw, leaves, depth - 1), int(draw.integers(1, 9)))
    return LEAVES[str(draw.choice(leaves))](draw)


def listed(event: e.DpEvent, times: int = 1) -> Iterator[tuple[e.DpEvent, int]]:
    """The leaves of a tree, and how often each counts: not by the code that is tested."""
    if isinstance(event, e.ComposedDpEvent):
        for one in event.events:
            yield from listed(one, times)
    elif isinstance(event, e.SelfComposedDpEvent):
        yield from listed(event.event, times * event.count)
    elif not isinstance(event, e.NoOpDpEvent):
        yield event, times


# --- there and back ----------------------------------------------------------------------------


def sizes(session: Session) -> dict[tuple, float]:
    """The parameters of the factors, Gaussians together."""
    product, found = session.removed.product, {}
    for factor, count in product.factors.items():
        about = getattr(factor, "size", None) or factor.largest_loss
        key = type(factor).__name__, getattr(factor, "rate", None), round(about, 9)
        found[key] = found.get(key, 0) + count
    return found | {("gaussian",): round(product.mu, 9)}


@pytest.mark.parametrize("seed", [*range(12), *slow(range(12, 60))])
def test_a_random_tree_comes_back(seed):
    event = random_tree(np.random.default_rng(seed), OF_PLD, depth=3)
    session = oc.fdp.from_dp_event(event)
    written = oc.fdp.to_dp_event(session)
    again = oc.fdp.from_dp_event(written)
    assert sizes(again) == sizes(session)
    once = session.removed.product
    for factor, other in zip(once.factors, again.removed.product.factors, strict=True):
        ours, theirs = (getattr(one, "size", one.largest_loss) for one in (factor, other))
        assert ours <= theirs <= ours * (1 + 1e-14)  # never to a smaller loss
    assert once.mu <= again.removed.product.mu <= once.mu * (1 + 1e-14)
    assert again.added == again.removed.inverse()
    third = oc.fdp.to_dp_event(again)
    assert sizes(oc.fdp.from_dp_event(third)) == sizes(session)


@pytest.mark.parametrize("seed", [*range(12), *slow(range(12, 60))])
def test_a_random_tree_is_the_sum_of_its_leaves(seed):
    event = random_tree(np.random.default_rng(seed), EVERY, depth=3)
    rho = math.fsum(n * one.rho for one, n in listed(event) if isinstance(one, e.ZCDpEvent))
    xi = math.fsum(n * one.xi for one, n in listed(event) if isinstance(one, e.ZCDpEvent))
    plain = [(one, n) for one, n in listed(event) if not isinstance(one, e.ZCDpEvent)]
    whole = Session().compose(*(oc.fdp.from_dp_event(one).power(n) for one, n in plain))
    accountant = oc.fdp.Accountant().compose(event)
    assert accountant._losses.rho == pytest.approx(rho, rel=1e-12)
    assert accountant._losses.xi == pytest.approx(xi, rel=1e-12)
    if not (rho or xi):
        assert accountant.session == whole
    assert accountant.session == oc.fdp.from_dp_event(event)


# --- beside dp-accounting ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "interval"),
    [*((seed, 1e-2) for seed in range(6)), *slow((seed, 1e-3) for seed in range(200))],
)
def test_the_pld_accountant_agrees_within_its_grid(seed, interval):
    draw = np.random.default_rng([1, seed])
    event, delta = random_tree(draw, OF_PLD), 10.0 ** -draw.integers(2, 9)
    theirs = PLDAccountant(value_discretization_interval=interval).compose(event)
    session = oc.fdp.from_dp_event(event)
    found = theirs.get_epsilon(delta)
    mechanisms = sum(count for _, count in listed(event))
    lower = session.epsilon_bounds(min(1.0, delta * (1 + TAILS) + TAILS * 1e-3)).lower
    assert lower <= found + 1e-9, (event, delta)
    assert found <= session.epsilon(delta * (1 - TAILS) - 1e-13) + mechanisms * interval + 1e-9


@pytest.mark.parametrize("seed", [*range(6), *slow(range(6, 200))])
def test_the_rdp_accountant_is_above(seed):
    draw = np.random.default_rng([2, seed])
    event, delta = random_tree(draw, OF_RDP), 10.0 ** -draw.integers(2, 9)
    theirs = RdpAccountant().compose(event).get_epsilon(delta)
    if any(isinstance(one, e.ZCDpEvent) for one, _ in listed(event)):  # ours is by 240 chords
        assert oc.fdp.from_dp_event(event).epsilon(delta) <= theirs * 1.01 + 1e-3, (event, delta)
    else:
        assert oc.fdp.from_dp_event(event).epsilon_bounds(delta).lower <= theirs, (event, delta)


# --- what has no event -------------------------------------------------------------------------


ONE_WAY = T.subsampled_gaussian(1.0, 0.1, unit="removed")


@pytest.mark.parametrize(
    "loss",
    [
        T.finite([0.7, 0.3], [0.2, 0.8]).symmetrised(),
        T.gaussian(1.0).compose(T.randomized_response(0.6, 3)),
        Session(ONE_WAY, T.gaussian(1.0)),
        ONE_WAY.both_directions(),
        Session(T.gaussian(0.5), T.gaussian(0.6)),
    ],
    ids=repr,
)
def test_a_loss_without_an_event_is_refused(loss):
    with pytest.raises(UnsupportedEventError, match="loss: dp-accounting has no event"):
        oc.fdp.to_dp_event(loss)


def test_only_losses_are_written():
    with pytest.raises(InvalidTypeError, match="loss must be a Session"):
        oc.fdp.to_dp_event(0.5)
    with pytest.raises(InvalidValueError, match="one direction only"):
        oc.fdp.to_dp_event(ONE_WAY)


def test_approximate_dp_is_written_where_there_is_an_event(monkeypatch):
    loss = T.approximate(0.5, 1e-6).power(2)
    if not hasattr(e, "EpsilonDeltaDpEvent"):
        with pytest.raises(UnsupportedEventError):
            oc.fdp.to_dp_event(loss)
        fields = {"epsilon": attr.ib(), "delta": attr.ib()}
        made = attr.make_class("EpsilonDeltaDpEvent", fields, bases=(e.DpEvent,), frozen=True)
        monkeypatch.setattr(e, "EpsilonDeltaDpEvent", made, raising=False)
    written = oc.fdp.to_dp_event(loss)
    assert written == e.SelfComposedDpEvent(e.EpsilonDeltaDpEvent(epsilon=0.5, delta=1e-6), 2)
    assert oc.fdp.from_dp_event(written) == Session(loss, loss)
    assert oc.fdp.to_dp_event(T.approximate(0.0, 0.1)) == e.EpsilonDeltaDpEvent(0.0, 0.1)
    other = T.finite([0.7, 0.3], [0.2, 0.8])  # two losses that no (ε, δ) has
    with pytest.raises(UnsupportedEventError):
        oc.fdp.to_dp_event(Session(other, other.inverse()))


@pytest.mark.parametrize(
    ("function", "event"),
    [
        (T.identity(), e.NoOpDpEvent()),
        (T.worst(), e.NonPrivateDpEvent()),
        (T.approximate(1.0, 1e-6), e.UnsupportedDpEvent()),
        (T.pure(0.5), e.DiscreteLaplaceDpEvent(0.5, 1)),
        (
            T.pure(0.5).power(2),
            e.SelfComposedDpEvent(e.DiscreteLaplaceDpEvent(0.5, 1), 2),
        ),
        (
            T.pure(0.5).power(2000),
            e.SelfComposedDpEvent(e.DiscreteLaplaceDpEvent(0.5, 1), 2000),
        ),
    ],
    ids=["nothing", "worst", "pair", "once", "twice", "many"],
)
def test_the_event_of_a_product(function, event):
    assert function_event(e, function) == event


def test_the_noise_of_a_gaussian_is_rounded_to_less():
    event = function_event(e, T.gaussian(0.5))
    assert 2.0 - 1e-14 < event.noise_multiplier < 2.0


# --- the accountant beside those of dp-accounting ---


Accountant = oc.fdp.Accountant
RELATIONS = [*privacy_accountant.NeighboringRelation]
STEP = e.PoissonSampledDpEvent(0.01, e.GaussianDpEvent(1.0))


class Theirs(Accountant):
    """With the one private method that dp-accounting's tests call."""

    def _maybe_compose(self, event, count, do_compose):
        assert not do_compose
        try:
            self._read(event, count)
        except UnsupportedEventError as error:
            details = privacy_accountant.PrivacyAccountant.CompositionErrorDetails
            return details(error.event, str(error))


def test_the_tests_of_dp_accounting_pass(monkeypatch):
    """Its base class of tests, which every accountant of dp-accounting inherits."""
    pytest.importorskip("absl.testing")
    from dp_accounting import privacy_accountant_test

    class InterfaceTest(privacy_accountant_test.PrivacyAccountantTest):
        def _make_test_accountants(self):
            return [Theirs(one) for one in RELATIONS]

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(InterfaceTest).run(result)
    assert result.testsRun >= 13
    assert not [*result.failures, *result.errors], [*result.failures, *result.errors][0][1]


def test_it_adds_up_as_one_event_does():
    accountant = Accountant()
    assert accountant.compose(STEP, 300) is accountant
    accountant.compose(e.SelfComposedDpEvent(STEP, 700)).compose(e.LaplaceDpEvent(10.0))
    whole = e.ComposedDpEvent([e.SelfComposedDpEvent(STEP, 1000), e.LaplaceDpEvent(10.0)])
    assert accountant.session == oc.fdp.from_dp_event(whole)
    assert accountant.ledger == whole
    assert accountant.get_epsilon(1e-5) == accountant.session.epsilon(1e-5)
    assert accountant.get_delta(1.0) == accountant.session.delta(1.0)
    lower, upper = accountant.session.epsilon_bounds(1e-5)
    assert lower <= accountant.get_epsilon(1e-5) == upper < 1.873


def test_it_is_an_accountant_of_dp_accounting():
    accountant = Accountant()
    assert isinstance(accountant, privacy_accountant.PrivacyAccountant)
    for one in RELATIONS:
        assert Accountant(one).neighboring_relation is one
        assert Accountant(one.name).neighboring_relation is one
    assert accountant.neighboring_relation is privacy_accountant.NeighboringRelation(1)
    with pytest.raises(InvalidValueError, match="neighboring_relation"):
        Accountant("both")
    with pytest.raises(InvalidValueError, match="neighboring_relation"):
        Accountant(1e-4)


def test_calibration_of_dp_accounting_takes_it():
    found = dp_accounting.calibrate_dp_mechanism(Accountant, e.GaussianDpEvent, 1.0, 1e-6)
    assert found == pytest.approx(4.2247, abs=1e-3)
    assert Accountant().compose(e.GaussianDpEvent(found)).get_epsilon(1e-6) <= 1.0


@pytest.mark.parametrize("count", [0, -1, 1.0, True])
def test_a_refused_event_changes_nothing(count):
    accountant = Accountant().compose(e.LaplaceDpEvent(2.0))
    before = accountant.session, accountant.ledger
    with pytest.raises((InvalidValueError, InvalidTypeError), match="count"):
        accountant.compose(e.LaplaceDpEvent(1.0), count)
    refused = e.ComposedDpEvent([e.LaplaceDpEvent(1.0), e.UnsupportedDpEvent()])
    assert not accountant.supports(refused)
    with pytest.raises(privacy_accountant.UnsupportedEventError, match="UnsupportedDpEvent"):
        accountant.compose(refused)
    assert (accountant.session, accountant.ledger) == before
    assert accountant.supports(e.LaplaceDpEvent(1.0))
    assert (accountant.session, accountant.ledger) == before


def test_an_error_can_be_pickled():
    with pytest.raises(UnsupportedEventError) as caught:
        Accountant().compose(e.UnsupportedDpEvent())
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (type(caught.value), str(caught.value))
    assert again.event == e.UnsupportedDpEvent()


def test_too_many_events_over_several_calls_are_refused():
    accountant = Accountant().compose(e.LaplaceDpEvent(1e9), 2**52)
    with pytest.raises(InvalidValueError, match="equal mechanisms"):
        accountant.compose(e.LaplaceDpEvent(1e9), 2**53)
    assert accountant.get_epsilon(1.0) == 0.0


def test_without_dp_accounting_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.delitem(sys.modules, "opendp_concurrent.fdp.reading", raising=False)
    for call in (
        Accountant,
        lambda: oc.fdp.from_dp_event(e.NoOpDpEvent()),
        lambda: oc.fdp.to_dp_event(oc.TradeoffFunction.pure(0.1)),
    ):
        with pytest.raises(ImportError, match=r"install opendp-concurrent\[events\]"):
            call()
