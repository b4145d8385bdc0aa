"""What may keep a budget, and for which measures."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.store import Terms
from opendp_concurrent.errors import InvalidTypeError, UnsupportedMeasureError
from opendp_concurrent.measures import Composability, composition_measure
from opendp_concurrent.queryables.root import check_ledger, open_book

PURE = composition_measure(dp.max_divergence())


class Remembering:
    """A ledger that writes down under which terms it was opened."""

    def book(self, terms):
        self.terms = terms
        return self

    def read(self):
        return "all charges so far"


@pytest.mark.parametrize("ledger", [None, "budget.db", object(), {"book": print}, Remembering])
def test_what_is_no_ledger(ledger):
    with pytest.raises(InvalidTypeError, match="^ledger must be made by"):
        check_ledger(ledger, PURE)


def test_a_ledger_keeps_concurrent_measures_and_no_sequential_one(monkeypatch):
    zcdp = dp.zero_concentrated_divergence()
    for measure in (dp.max_divergence(), zcdp, dp.approximate(zcdp), oc.tradeoff()):
        check_ledger(Remembering(), composition_measure(measure))
    sequential = composition_measure(dp.max_divergence())
    monkeypatch.setattr(type(sequential), "composability", Composability.SEQUENTIAL)
    with pytest.raises(UnsupportedMeasureError, match="cannot close the children in another"):
        check_ledger(Remembering(), sequential)


def test_a_book_is_opened_under_all_that_decides_a_launch():
    ledger, basic = Remembering(), oc.accumulators.basic()
    terms = Terms(PURE.name, basic, str(dp.symmetric_distance()), 1, 0.5)
    keeper, so_far = open_book(ledger, terms)
    assert (keeper.recorded, so_far) == (True, "all charges so far")
    assert ledger.terms is terms
