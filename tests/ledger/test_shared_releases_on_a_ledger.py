"""Shared releases on a ledger: each step is a charge, which a later process finds."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError
from opendp_concurrent.serving.levels import Chain

PURE = dp.max_divergence()


def shared(tools):
    return tools.space() >> dp.t.then_count() >> oc.m.then_shared_release(PURE)


def pool(handle, tools):
    """A limit for all that is shared."""
    odometer = oc.make_concurrent_odometer(*tools.space(), PURE)
    return handle(oc.c.make_limited(odometer, 1, 1.0, label="shared"))


def test_steps_are_recorded_and_free_levels_are_not(store, tools):
    with store.create() as ledger:
        root = tools.limit(ledger, 2.0)
        release = pool(root, tools)(shared(tools))
        for level in (0.25, 0.125, 0.5, 0.25, 0.375):
            release(level)
        with oc.labelled("the finest"):
            release(0.75)
        entries = ledger.entries()
        assert [(one.d_mid, one.loss, one.limit) for one in entries] == [
            (0.25, 0.25, ("shared",)),
            (0.25, 0.5, ("shared",)),
            (0.25, 0.75, ("shared",)),
        ]
        assert [one.label for one in entries] == ["", "", "the finest"]
        assert "shared_release(level=0.75)" in entries[-1].mechanism
    with store.open() as ledger:
        root = tools.limit(ledger, 2.0)
        again = pool(root, tools)(shared(tools))
        assert (again.finest, root.privacy_loss()) == (0.0, 0.75)  # a chain ends with its process
        with pytest.raises(BudgetExceededError, match="limit 'shared'"):
            again(0.5)
        again(0.25)
        assert root.remaining() == 1.0


def test_a_crash_between_charge_and_answer_leaves_the_charge(store, tools, monkeypatch):
    with store.create() as ledger:
        release = tools.limit(ledger, 2.0)(shared(tools))
        release(0.25)
        with monkeypatch.context() as crashing:
            crashing.setattr(Chain, "at", lambda *_: (_ for _ in ()).throw(SystemExit))
            with pytest.raises(SystemExit):
                release(1.0)
    with store.open() as ledger:
        root = tools.limit(ledger, 2.0)
        assert root.privacy_loss() == 1.0
        root(shared(tools))(1.0)
        assert root.remaining() == 0.0
