"""Progress: what is told, that a callable that raises is an interrupt, and bars that are closed."""

import sys
from types import SimpleNamespace

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.progress import counted

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


class Told(list):
    def __call__(self, done, total):
        self.append((done, total))


def fails(done, total):
    raise OSError("no terminal")


@pytest.mark.parametrize(
    ("length", "every", "said"),
    [(3, 1, [1, 2, 3]), (5, 2, [2, 4, 5]), (4, 2, [2, 4]), (0, 2, [0])],
)
def test_it_is_told_so_often_and_at_the_end(length, every, said):
    told = Told()
    assert list(counted(range(length), told, length, every)) == list(range(length))
    assert told == [(done, length) for done in said]
    assert list(counted(range(3), None)) == list(counted(range(3), False)) == [0, 1, 2]


def test_a_progress_that_raises_is_an_interrupt():
    with pytest.raises(KeyboardInterrupt) as raised:
        list(counted(range(3), fails))
    assert isinstance(raised.value.__cause__, OSError)


@pytest.fixture
def bars(monkeypatch):
    made = []

    class Bar:
        def __init__(self, total):
            self.n, self.total, self.closed = 0, total, False
            made.append(self)

        def update(self, more):
            self.n += more

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=Bar))
    return made


def test_a_bar_is_closed_at_the_end_and_at_an_interrupt(bars):
    def interrupted():
        yield 1
        raise KeyboardInterrupt

    list(counted(range(5), True, 5, 2))
    with pytest.raises(KeyboardInterrupt):
        list(counted(interrupted(), True, 5))
    assert [(bar.n, bar.total, bar.closed) for bar in bars] == [(5, 5, True), (1, 5, True)]


def test_without_tqdm_a_bar_is_refused_in_words(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(InvalidTypeError, match="extra named progress"):
        verify.simulate_batch([1], progress=True)
    with pytest.raises(InvalidTypeError, match="progress must be a callable"):
        verify.simulate_batch([1], progress=3)


def calls(tmp_path):
    """What takes progress, and the last that each tells."""
    pytest.importorskip("sqlalchemy")
    number = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    laplace = dp.m.make_laplace(*number, scale=1.0)
    float_space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    zcdp = dp.zero_concentrated_divergence()

    def make(scale):
        return oc.m.make_certified_gaussian(*float_space, scale, zcdp)

    def audited(progress):
        return verify.audit(laplace, 1, 0, float, 8, progress=progress).runs

    def summed(progress):
        path = tmp_path / "budget.db"
        ledger = (oc.ledger.open_ledger if path.exists() else oc.ledger.create_ledger)(path, "a")
        with ledger:
            odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
            root = oc.make_concurrent_filter(odometer, 1, 1.0, ledger=ledger)([1])
            if not ledger.summary().launches:
                for _ in range(3):
                    root(SPACE >> dp.t.then_count() >> dp.m.then_laplace(100.0))
            return ledger.summary(progress=progress).launches

    return [
        (audited, (8, 8)),
        (summed, (3, 3)),
        (lambda progress: verify.simulate_batch([1, 2], progress=progress)[0], (2, 2)),
        (lambda progress: oc.c.smallest_scale(make, 1.0, 0.5, progress=progress), None),
    ]


@pytest.mark.parametrize("index", range(4))
def test_each_tells_and_ends_at_an_interrupt(tmp_path, index):
    run, last = calls(tmp_path)[index]
    told = Told()
    found = run(told)
    assert told[-1] == last or (last is None and told[-1][1] is None and len(told) < 100)
    with pytest.raises(KeyboardInterrupt):
        run(fails)
    assert run(None) == found  # nothing is half done
