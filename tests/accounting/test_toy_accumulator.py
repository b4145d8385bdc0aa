"""An accumulator from outside the package: one file, which then works everywhere.

Rounding up: each ε counts as the least multiple of 1/8 that is at least ε. The sum of larger losses
is larger than that of the losses, which is valid for concurrent children under pure DP with losses
chosen on the way [VW21, Theorem 1.5]; so this is, too. The total is a short integer.
"""

import math
from dataclasses import dataclass

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import _checks as checks
from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import BudgetExceededError, UnsupportedMeasureError
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.measures import composition_measure
from opendp_concurrent.plot import plot_ledger

# --- the one file ----------------------------------------------------------------------------


@dataclass(frozen=True)
class EighthsSpent:
    """The number of eighths spent; None if it is infinite."""

    eighths: int | None = 0

    @property
    def loss(self):
        return math.inf if self.eighths is None else self.eighths / 8

    def read(self, d_mid):
        return d_mid

    def after(self, d_mid, count=1):
        epsilon, count = checks.non_negative(d_mid=d_mid), checks.count(count=count)
        if self.eighths is None or epsilon == math.inf:
            return EighthsSpent(None)
        return EighthsSpent(self.eighths + count * math.ceil(epsilon * 8))

    def within(self, d_out):
        return self.loss <= d_out

    def remaining(self, d_out):
        if d_out == math.inf:
            return d_out
        return 0.0 if self.eighths is None else max(0, math.floor(d_out * 8) - self.eighths) / 8

    def to_record(self):
        return self.eighths


@oc.extend.register("toy:eighths")
@dataclass(frozen=True)
class Eighths:
    """Adds up losses in eighths."""

    made_for = "pure DP"

    def supports(self, measure):
        return measure == composition_measure(dp.max_divergence())

    def start(self, measure):
        return EighthsSpent()

    def from_record(self, measure, record):
        return EighthsSpent(record)


# --- it works everywhere ---------------------------------------------------------------------


@pytest.fixture
def odometer(space):
    return oc.make_concurrent_odometer(*space, dp.max_divergence(), accumulator=Eighths())


@pytest.fixture
def count(space):
    return space >> dp.t.then_count() >> dp.m.then_laplace(10.0)


def test_an_odometer_and_a_filter_use_it(odometer, count):
    root = odometer([1, 2, 3])
    root(count)
    assert root.privacy_loss(1) == 0.125
    assert root.privacy_loss(2) == 0.25
    bounded = oc.make_concurrent_filter(odometer, 1, 0.3)([1, 2, 3])
    first, second = (bounded(oc.c.make_interactive(count)) for _ in range(2))
    assert all(isinstance(one(None), int) for one in (second, first))
    with pytest.raises(BudgetExceededError):
        bounded(count)
    assert (bounded.privacy_loss(), bounded.remaining()) == (0.25, 0.0)


def test_another_measure_is_refused_in_its_words(space):
    with pytest.raises(UnsupportedMeasureError, match=r"Eighths\(\)\) supports pure DP"):
        oc.make_concurrent_odometer(
            *space, dp.zero_concentrated_divergence(), accumulator=Eighths()
        )


def test_a_ledger_goes_on_with_it(odometer, count, tmp_path):
    path = tmp_path / "budget.db"
    with create_ledger(path, dataset="toy") as ledger:
        oc.make_concurrent_filter(odometer, 1, 0.25, ledger=ledger)([1, 2, 3])(count)
    with open_ledger(path, dataset="toy") as ledger:
        bounded = oc.make_concurrent_filter(odometer, 1, 0.25, ledger=ledger)([1, 2, 3])
        bounded(count)
        with pytest.raises(BudgetExceededError):
            bounded(count)
        assert plot_ledger(ledger).get_lines()[0].get_ydata().tolist() == [0.125, 0.25]


@pytest.mark.parametrize(("launches", "each"), [(3, 0.25), (8, 0.125), (9, 0.0), ([1, 2], 0.3125)])
def test_the_largest_shares_are_those_it_admits(odometer, space, launches, each):
    """Three equal parts of 1 cost 3/8 each, which is too much."""
    pure = dp.max_divergence()
    shares = oc.c.largest_share((pure, 1.0), launches, accumulator=Eighths())
    assert (shares[0] if isinstance(shares, list) else shares) == each
    if shares == 0.25:
        bounded = oc.make_concurrent_filter(odometer, 1, 1.0)([1, 2, 3])
        count = space >> dp.t.then_count() >> dp.m.then_laplace(4.0)
        assert [type(bounded(count)) for _ in range(3)] == [int] * 3


def test_its_launches_are_counted():
    assert oc.accumulators.launches_admitted(Eighths(), 1.0, [0.1]) == 8
    assert oc.accumulators.launches_admitted(Eighths(), 1.0, [0.1, 0.2]) == 5


def test_no_analyst_exceeds_its_filter():
    menu = [verify.Item(f"{e}", e, verify.randomized_response(e)) for e in (0.1, 0.2)]
    start = Eighths().start(None)
    for bound in (0.25, 0.5):
        assert verify.worst_loss(menu, start, Within(bound)) <= bound
        assert verify.worst_analyst(menu, start, Within(bound), bound).delta == 0.0
