"""The accountant beside those of dp-accounting: its own tests of the interface, and values."""

import pickle
import unittest

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

dp_accounting = pytest.importorskip("dp_accounting")

from dp_accounting import dp_event as e  # noqa: E402
from dp_accounting import privacy_accountant  # noqa: E402

Accountant = oc.fdp.Accountant
RELATIONS = [*privacy_accountant.NeighboringRelation]
STEP = e.PoissonSampledDpEvent(0.01, e.GaussianDpEvent(1.0))


class Theirs(Accountant):
    """With the one private method that dp-accounting's tests call."""

    def _maybe_compose(self, event, count, do_compose):
        assert not do_compose
        try:
            self._read(event, count)
        except oc.errors.UnsupportedEventError as error:
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
    with pytest.raises(oc.errors.UnsupportedEventError) as caught:
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
    import sys

    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.delitem(sys.modules, "opendp_concurrent.fdp.reading", raising=False)
    for call in (
        Accountant,
        lambda: oc.fdp.from_dp_event(e.NoOpDpEvent()),
        lambda: oc.fdp.to_dp_event(oc.TradeoffFunction.pure(0.1)),
    ):
        with pytest.raises(ImportError, match=r"install opendp-concurrent\[events\]"):
            call()
