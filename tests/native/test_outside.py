"""Ledgers and stores are for their owner: what runs on data reaches none of their methods."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import ReentrantLaunchError

pytest.importorskip("sqlalchemy")

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ROW = 7


@pytest.fixture
def ledger(tmp_path):
    with oc.ledger.create_ledger(tmp_path / "spent.db", "survey") as made:
        yield made


def spying(action):
    """A mechanism that reaches for what is not its own if it sees a row."""

    def function(rows):
        if ROW in rows:
            with pytest.raises(ReentrantLaunchError):
                action()
        return 0

    return dp.m.make_user_measurement(
        *SPACE, dp.max_divergence(), function, lambda d_in: 0.25 * d_in, TO=int
    )


def methods(ledger, answers, handles, tmp_path):
    name = handles.keep("ann", object())
    return {
        "ledger.close": ledger.close,
        "ledger.backup": lambda: ledger.backup(tmp_path / "copy.db"),
        "ledger.entries": ledger.entries,
        "ledger.summary": ledger.summary,
        "ledger.charged": lambda: ledger.charged("a"),
        "ledger.__exit__": lambda: ledger.__exit__(None, None, None),
        "answers.close": answers.close,
        "answers.once": lambda: answers.once("ann", "key", lambda: 3),
        "handles.find": lambda: handles.find("ann", name),
        "handles.drop": lambda: handles.drop("ann", name),
    }


def test_no_mechanism_uses_them(ledger, tmp_path):
    answers = oc.serving.AnswerStore(tmp_path / "answers.db")
    handles = oc.serving.HandleStore()
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    budget = oc.make_concurrent_filter(odometer, 1, 100.0, ledger=ledger)
    root = budget([1, ROW])
    found = methods(ledger, answers, handles, tmp_path)
    for name, action in found.items():
        assert root(spying(action)) == 0, name
    assert ledger.summary().launches == len(found)
    assert root.privacy_loss() == 0.25 * len(found)
    answers.close()
