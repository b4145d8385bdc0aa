"""Batches have the law that is paid for. Bounds fail by chance with odds below 1e-9 each."""

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import binom, chi2

from opendp_concurrent.training.batches import allocation, poisson

dp.enable_features("contrib", "honest-but-curious")
ODDS = 1e-10


@pytest.mark.parametrize("rate", [2.0**-20, 0.001, 0.3, 0.5, 0.7, 0.999])
def test_each_row_is_in_a_batch_with_the_rate(rate):
    rows = 20_000
    counts = np.zeros(rows)
    for _ in range(5):
        batch = poisson(rows, rate)
        assert np.all(np.diff(batch) > 0)
        counts[batch] += 1
    low, high = binom.ppf([ODDS, 1 - ODDS], 5 * rows, rate)
    assert low <= counts.sum() <= high
    for part in (counts[:7], counts[-7:]):  # the ends, where bytes are filled up
        low, high = binom.ppf([ODDS, 1 - ODDS], 35, rate)
        assert low <= part.sum() <= high


def test_rows_take_part_independently():
    together = np.zeros((9, 9))
    for _ in range(2000):
        taken = np.zeros(9)
        taken[poisson(9, 0.5)] = 1
        together += np.outer(taken, taken)
    off = together[~np.eye(9, dtype=bool)]
    low, high = binom.ppf([ODDS, 1 - ODDS], 2000, 0.25)
    assert low <= off.min()
    assert off.max() <= high


@pytest.mark.parametrize("rows", [0, 1, 8])
def test_few_rows(rows):
    assert np.array_equal(poisson(rows, 1.0), np.arange(rows))
    assert set(poisson(rows, 0.5)) <= set(range(rows))
    assert sorted(np.concatenate(allocation(rows, 5)).tolist()) == list(range(rows))


@pytest.mark.parametrize("batches", [2, 3, 8, 100])
def test_each_row_is_in_one_batch_that_is_uniform(batches):
    rows, where = 3000, np.zeros((batches, 3000))
    for _ in range(4):
        epoch = allocation(rows, batches)
        assert len(epoch) == batches
        assert sorted(np.concatenate(epoch).tolist()) == list(range(rows))
        for number, batch in enumerate(epoch):
            where[number, batch] += 1
    sizes, expected = where.sum(axis=1), 4 * rows / batches
    assert ((sizes - expected) ** 2 / expected).sum() < chi2.isf(ODDS, batches - 1)
    first = where[:, :1000].sum(axis=1)  # no part of the rows has a batch of its own
    assert ((first - expected / 3) ** 2 / (expected / 3)).sum() < chi2.isf(ODDS, batches - 1)


def test_a_row_that_is_never_drawn_is_in_no_batch(monkeypatch):
    monkeypatch.setattr("opendp_concurrent.training.batches._TRIES", 0)
    assert [len(batch) for batch in allocation(10, 3)] == [0, 0, 0]
