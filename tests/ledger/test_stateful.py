"""Random programs on a budget in a ledger, with limits, faults and crashes, against a model."""

import contextlib
import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from opendp.mod import OpenDPException

from opendp_concurrent.errors import BudgetExceededError, LedgerError, charged
from opendp_concurrent.ledger.store import Store

from ..build import a_limit, an_odometer, costing
from ..moments import interrupted_at
from .conftest import Child, limit

UNIT = 1 / 64
BOUNDS = {(): 48, ("team",): 36, ("team", "ann"): 20, ("bob",): 60}  # in units
paths = st.sampled_from(sorted(BOUNDS))
below = st.booleans()  # whether the launch is below a child odometer
losses = st.sampled_from([0, 1, 2, 3, 9])
# a statement, and whether it has run: BEGIN, SELECT, INSERT, UPDATE, COMMIT; a server's are fewer
moments = st.sampled_from([(0, True), (1, True), (2, False), (2, True), (4, False), (4, True)])

NUMBERS = itertools.count()


class Model:
    """What is charged, on which limit."""

    def __init__(self):
        self.charges = []

    def spent(self, path):
        return sum(loss for at, loss in self.charges if at[: len(path)] == path)

    def refuses(self, path, loss):
        """The accounts that refuse, the innermost first."""
        up = [path[:end] for end in range(len(path), -1, -1)]
        return [one for one in up if self.spent(one) + loss > BOUNDS[one]]


class Ledgers(RuleBasedStateMachine):
    """Two connections to one budget; ``store`` is the fixture."""

    store = None

    def __init__(self):
        super().__init__()
        self.model, self.ran, self.dataset = Model(), [], f"budget {next(NUMBERS)}"
        self.connections = [self.connect(self.store.create)]

    def teardown(self):
        self.close()

    def close(self):
        for ledger, _ in self.connections:
            ledger.close()
        self.connections = []

    def connect(self, how):
        """A connection, and the handles of the filter and its limits there."""
        ledger = how(self.dataset)
        handles = {(): limit(ledger, BOUNDS[()] * UNIT)}
        for path in (("team",), ("bob",), ("team", "ann")):
            handles[path] = handles[path[:-1]](a_limit(BOUNDS[path] * UNIT, path[-1]))
        return ledger, handles

    def handle(self, path, below):
        """The handle of the newest connection, or a child odometer of it."""
        found = self.connections[-1][1][path]
        return found(an_odometer()) if below else found

    def query(self, loss, ends=lambda: None):
        def function(rows):
            self.ran.append(loss)
            ends()
            return len(rows)

        return costing(loss * UNIT, function)

    # --- launches --------------------------------------------------------------------------

    @rule(path=paths, below=below, loss=losses, fails=st.booleans())
    def launch(self, path, below, loss, fails):
        def ends():
            if fails:
                raise ZeroDivisionError

        refusing = self.model.refuses(path, loss)
        before, handle = len(self.ran), self.handle(path, below)
        assert handle.admits(self.query(loss, ends)) == (not refusing)
        if refusing:
            with pytest.raises(BudgetExceededError) as refusal:
                handle(self.query(loss, ends))
            assert len(self.ran) == before
            assert refusal.value.account[1:] == tuple(f"limit '{one}'" for one in refusing[0])
            assert refusal.value.spent == self.model.spent(refusing[0]) * UNIT
            return
        with pytest.raises(OpenDPException) if fails else contextlib.nullcontext():
            handle(self.query(loss, ends))
        assert len(self.ran) == before + 1
        self.model.charges.append((path, loss))

    @rule(path=paths, loss=losses, count=st.integers(2, 4))
    def launch_in_threads(self, path, loss, count):
        query, handles = self.query(loss), [one[path] for _, one in self.connections]

        def launch(number):
            with contextlib.suppress(BudgetExceededError):
                handles[number % len(handles)](query)

        before = len(self.ran)
        with ThreadPoolExecutor(count) as threads:
            list(threads.map(launch, range(count)))
        for _ in range(count):
            if not self.model.refuses(path, loss):
                self.model.charges.append((path, loss))
                before += 1
        assert len(self.ran) == before

    # --- crashes ---------------------------------------------------------------------------

    def settle(self, path, loss, ran, known=None):
        """Take over whether the launch that was cut is charged; it is if its mechanism ran."""
        with self.store.open(self.dataset) as ledger:
            found = ledger.summary().launches - len(self.model.charges)
        assert found in (0, 1)
        assert found >= ran
        assert known is None or found == known
        if found:
            assert not self.model.refuses(path, loss)
            self.model.charges.append((path, loss))

    @contextlib.contextmanager
    def cut(self, moment, end):
        """End the program, or a statement, at a moment of a transaction."""
        left, late = moment
        take = Store._take

        def taken(store):
            driver, used = take(store)
            execute = driver.execute

            def run(*arguments):
                nonlocal left
                left -= 1
                if left == -1 and not late:
                    end()
                answer = execute(*arguments)
                if left == -1 and late:
                    end()
                return answer

            driver.execute = run
            return driver, used

        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Store, "_take", taken)
                yield
        finally:
            for ledger, _ in self.connections:
                while ledger._store._idle:  # those have the statements that are cut
                    ledger._store._idle.pop().drop()

    @rule(path=paths, below=below, loss=losses, moment=moments)
    def fail(self, path, below, loss, moment):
        """A statement fails, or its answer is lost."""
        before, known = len(self.ran), None

        def lose():
            raise self.store.lost()

        try:
            with self.cut(moment, lose):
                self.handle(path, below)(self.query(loss))
        except LedgerError as error:
            assert len(self.ran) == before
            known = error.charged
        except BudgetExceededError:
            assert self.model.refuses(path, loss)
        self.settle(path, loss, len(self.ran) - before, known)

    @rule(path=paths, below=below, loss=losses, moment=st.integers(1, 400))
    def interrupt(self, path, below, loss, moment):
        kept, before = [], len(self.ran)

        def launch():
            with contextlib.suppress(BudgetExceededError):
                self.handle(path, below)(self.query(loss))

        interrupted_at(moment, launch, kept=kept)
        self.settle(path, loss, len(self.ran) - before, charged(kept[0]) if kept else None)

    @rule(path=paths, loss=losses, moment=moments)
    def kill(self, path, loss, moment):
        """The process that launches ends between two statements."""
        self.close()
        reading, writing = os.pipe()

        def launch():
            connection = self.connect(self.store.open)
            query = self.query(loss, lambda: os.write(writing, b"ran"))
            with self.cut(moment, lambda: os._exit(0)), contextlib.suppress(BudgetExceededError):
                connection[1][path](query)

        Child(launch).wait()
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            ran = pipe.read()
        self.connections = [self.connect(self.store.open)]
        self.settle(path, loss, len(ran) > 0)

    # --- connections -----------------------------------------------------------------------

    @precondition(lambda self: len(self.connections) < 2)
    @rule()
    def connect_again(self):
        self.connections.append(self.connect(self.store.open))

    @rule()
    def reopen(self):
        self.close()
        self.connections = [self.connect(self.store.open)]

    @invariant()
    def all_say_what_is_charged(self):
        for _, handles in self.connections:
            for path, handle in handles.items():
                spent = self.model.spent(path)
                assert handle.privacy_loss() == spent * UNIT
                assert handle.remaining() == (BOUNDS[path] - spent) * UNIT


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interrupt
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork beside threads
@pytest.mark.parametrize("programs", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_a_budget_in_a_ledger_is_what_was_charged_whatever_happens(store, programs):
    machine = type("Machine", (Ledgers,), {"store": store})
    many = programs if store.embedded else programs // 2
    run_state_machine_as_test(machine, settings=settings(max_examples=many, stateful_step_count=25))
