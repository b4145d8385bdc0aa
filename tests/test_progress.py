"""Bars of tqdm, if it is installed; what is computed is the same with and without one."""

import sys
from types import SimpleNamespace

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent._checks import counted
from opendp_concurrent.errors import InvalidTypeError


@pytest.fixture
def bars(monkeypatch):
    made = []

    class Bar:
        def __init__(self, items, total):
            self.items, self.total, self.done, self.closed = items, total, 0, False
            made.append(self)

        def __iter__(self):
            try:
                for item in self.items:
                    self.done += 1
                    yield item
            finally:
                self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=Bar))
    return made


def test_a_bar_is_closed_at_the_end_at_an_interrupt_and_when_left(bars):
    def interrupted():
        yield 1
        raise KeyboardInterrupt

    assert list(counted(range(5), True, 5)) == [0, 1, 2, 3, 4]
    with pytest.raises(KeyboardInterrupt):
        list(counted(interrupted(), True, 5))
    left = counted(range(5), True)
    assert next(left) == 0
    left.close()
    assert [(bar.done, bar.total, bar.closed) for bar in bars] == [
        (5, 5, True),
        (1, 5, True),
        (1, None, True),
    ]
    assert list(counted(range(3), False)) == [0, 1, 2]
    assert len(bars) == 3


def test_without_tqdm_there_is_no_bar(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert list(counted(range(3), True, 3)) == [0, 1, 2]
    with pytest.raises(InvalidTypeError, match="^progress"):
        verify.audit(len, [], [], float, 8, progress=print)


def test_a_bar_changes_no_result(bars):
    number = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    laplace = dp.m.make_laplace(*number, scale=1.0)
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    zcdp = dp.zero_concentrated_divergence()

    def make(scale):
        return oc.m.make_certified_gaussian(*space, scale, zcdp)

    for run, total in (
        (lambda progress: verify.audit(laplace, 1, 0, float, 8, progress=progress).runs, 8),
        (lambda progress: oc.c.smallest_scale(make, 1.0, 0.5, progress=progress), None),
    ):
        found = run(True)
        assert (bars[-1].total, bars[-1].closed) == (total, True)
        assert total is None or bars[-1].done == total
        made = len(bars)
        assert run(False) == found
        assert len(bars) == made
