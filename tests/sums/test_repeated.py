"""Accumulators of other packages add up each of many launches."""

import importlib.util
from dataclasses import dataclass

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.sums.accumulator import repeated

dp.enable_features("contrib", "honest-but-curious")
PURE = dp.max_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


@dataclass(frozen=True)
class Total:
    """A sum; ``counts`` says how it reads ``count``."""

    counts: bool
    loss: float = 0.0

    def read(self, d_mid):
        return d_mid

    def after(self, d_mid, count=1):
        return Total(self.counts, self.loss + d_mid * (count if self.counts else 1))

    def within(self, d_out):
        return self.loss <= d_out

    def remaining(self, d_out):
        return d_out - self.loss

    def to_record(self):
        return self.loss


@dataclass(frozen=True)
class Own:
    """An accumulator of another package."""

    counts: bool

    def supports(self, measure):
        return True

    def start(self, measure):
        return Total(self.counts)

    def from_record(self, measure, record):
        return Total(self.counts, record)


if importlib.util.find_spec("sqlalchemy"):
    from opendp_concurrent.ledger import create_ledger, open_ledger, register

    register("tests-of-repeated:own", Own, {"counts": "counts"})


def odometer(counts):
    return oc.make_concurrent_odometer(*SPACE, PURE, accumulator=Own(counts))


def mechanism(loss=0.25):
    return dp.m.make_user_measurement(*SPACE, PURE, lambda rows: 1, lambda d_in: loss * d_in)


@pytest.mark.parametrize("count", [2, 3, 1000])
def test_one_that_ignores_the_count_is_refused(count):
    with pytest.raises(InvalidTypeError, match=f"^accumulator .*must add up {count} launches"):
        repeated(Total(False), 0.25, count)
    assert repeated(Total(False), 0.25, 1).loss == 0.25
    assert repeated(Total(True), 0.25, count).loss == 0.25 * count


def test_a_loss_at_another_distance_counts_each_launch():
    root, query = odometer(False)([1]), mechanism()
    for _ in range(3):
        root(query)
    with pytest.raises(InvalidTypeError, match="must add up 3 launches"):
        root.privacy_loss(2)


def test_a_ledger_that_is_read_again_counts_each_launch(tmp_path):
    pytest.importorskip("sqlalchemy")
    path = tmp_path / "ledger.db"
    query = mechanism()
    made = oc.make_concurrent_filter(odometer(True), 1, 1.0, ledger=create_ledger(path, "data"))
    root = made([1])
    for _ in range(4):
        root(query)
    again = oc.make_concurrent_filter(odometer(True), 1, 1.0, ledger=open_ledger(path, "data"))
    assert again([1]).privacy_loss() == 1.0
