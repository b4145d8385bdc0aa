"""The Python account decides and adds up as the one in docs/proofs/rocq, which is verified."""

import math
import shutil
from fractions import Fraction

import pytest

from opendp_concurrent.accounting.account import Account, Launch
from opendp_concurrent.accounting.lifecycle import Lifecycle
from opendp_concurrent.errors import BudgetExceededError
from opendp_concurrent.measures.shapes import ScalarSum

from .test_rocq import FOLDER, rocq_is_here
from .traces import compile_account, differences, ledger_trace, memory_trace

pytestmark = pytest.mark.skipif(not rocq_is_here(), reason="coqc or mathcomp is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the verified account, compiled."""
    made = tmp_path_factory.mktemp("rocq")
    compile_account(made, FOLDER)
    yield made
    shutil.rmtree(made)


def test_traces_agree_with_the_verified_account(folder):
    traces = [memory_trace(seed) for seed in range(5)]
    traces += [ledger_trace(seed, folder / "quick.db", events=30) for seed in range(2)]
    assert differences(folder, traces) == [None] * 7


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_traces_of_fifty_events_agree(folder, part):
    seeds = range(100 * part + 1000, 100 * part + 1100)
    traces = [memory_trace(seed) for seed in seeds[:80]]
    traces += [ledger_trace(seed, folder / f"{part}.db") for seed in seeds[80:]]
    assert differences(folder, traces) == [None] * 100


# --- faults in the Python account are noticed ----------------------------------------------------


def states(launch):
    return [(account, account._state) for account in launch.chain]


def refund(patch):
    """A mechanism that fails is not paid for."""
    commit, run, last = Launch.commit, Lifecycle.run, []

    def remembers(launch):
        last[:] = states(launch)
        return commit(launch)

    def refunds(lifecycle, *called):
        before = list(last)
        try:
            return run(lifecycle, *called)
        except Exception:
            for account, state in before:
                account._state = state
            raise

    patch.setattr(Launch, "commit", remembers)
    patch.setattr(Lifecycle, "run", refunds)


def parent_is_not_charged(patch):
    commit = Launch.commit
    patch.setattr(Launch, "commit", lambda launch: commit(launch._replace(chain=launch.chain[:1])))


def charge_after_run(patch):
    commit, run, last = Launch.commit, Lifecycle.run, []

    def later(launch):
        before = states(launch)
        begun = commit(launch)
        last[:] = states(launch)
        for account, state in before:
            account._state = state
        return begun

    def charges(lifecycle, *called):
        after = list(last)
        answer = run(lifecycle, *called)
        for account, state in after:
            account._state = state
        return answer

    patch.setattr(Launch, "commit", later)
    patch.setattr(Lifecycle, "run", charges)


def rounding_down(patch):
    loss = ScalarSum.loss.fget

    def down(total):
        rounded = loss(total)
        exact = total.units is None or Fraction(rounded) == Fraction(total.units, 2**1074)
        return rounded if exact else math.nextafter(rounded, 0.0)

    patch.setattr(ScalarSum, "loss", property(down))


def limit_is_forgotten(patch):
    plan = Account._plan

    def forgets(account, state, price):
        verdict = plan(account, state, price)
        if isinstance(verdict, BudgetExceededError) and len(account._chain) > 1:
            return {
                key: one._replace(accumulator=one.accumulator.after(price.at(one.query_d_in), 1))
                for key, one in state.items()
            }
        return verdict

    patch.setattr(Account, "_plan", forgets)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [refund, parent_is_not_charged, charge_after_run, rounding_down, limit_is_forgotten]
)
def test_a_fault_is_noticed(folder, monkeypatch, fault):
    with monkeypatch.context() as patch:
        fault(patch)
        traces = [memory_trace(seed) for seed in range(10)]
    noticed = [one for one in differences(folder, traces) if one is not None]
    assert len(noticed) >= 5
