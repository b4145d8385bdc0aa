"""Processes that launch on a ledger, and are killed at random moments.

Two processes at a time open one ledger and launch as fast as they can; each says of every answer
that it was given. Both get SIGKILL: half of them while they open the ledger, half while they
launch. Then the ledger is opened again and read whole. An answer without a charge is lost: there
must be none. A charge without an answer was in flight: at most one for each kill, or for each
launch whose writer was told that it may be charged.

What the processes do is a scenario: ``SCENARIOS`` has one for each kind of launch on a ledger. A
killed process, or server, leaves to the system what it has written. What a disk forgets that loses
power cannot be tried this way: there one relies on its flushes, which every charge waits for.
"""

from __future__ import annotations

import itertools
import os
import queue
import random
import select
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.errors import LedgerError
from opendp_concurrent.ledger import SqlLedger, create_ledger, open_ledger

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
EPSILON, BUDGET = 2.0**-10, 2.0**40  # sums of losses are exact
QUERY = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / EPSILON)
ANSWER, FAILURE = b"a", b"f"
ROUNDS, LONGEST = 50, 5000  # rounds on one ledger, and its charges: reading it takes a while
SEED = 20260101


class Session(Protocol):
    """What launches once, and returns when the answer is there."""

    def __call__(self) -> object:
        """Launch once.

        :raises LedgerError: if the launch may or may not be charged
        """


@dataclass(frozen=True)
class Scenario:
    """One way to launch on a ledger.

    :ivar start: settles the terms of the ledger's budget, and returns what launches once on it;
        called when a ledger was created, and by each process that opens it
    :ivar charged: reads the ledger whole, and returns the number of launches that it has charged;
        raises if the ledger is inconsistent
    :ivar at_risk: the most charges without an answer that one kill may leave, or one
        :class:`.LedgerError`
    """

    start: Callable[[SqlLedger], Session]
    charged: Callable[[SqlLedger], int]
    at_risk: int = 1


def filtered(ledger: SqlLedger) -> Any:
    """Return a filter on the ledger, whose budget is never exhausted."""
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    return oc.make_concurrent_filter(odometer, 1, BUDGET, ledger=ledger)([1, 2, 3])


def one_by_one(ledger: SqlLedger) -> Session:
    """Launch one measurement after the other."""
    root = filtered(ledger)
    return lambda: root(QUERY)


THREADS = 6


def from_threads(ledger: SqlLedger) -> Session:
    """Launch from several threads, whose launches share commits; one answer at a time is told."""
    root, answers = filtered(ledger), queue.Queue[Any](1)

    def work() -> None:
        while True:
            try:
                answers.put(root(QUERY))
            except LedgerError as error:
                answers.put(error)

    def launch() -> object:
        if not threads:
            threads.extend(threading.Thread(target=work, daemon=True) for _ in range(THREADS))
            for one in threads:
                one.start()
        found = answers.get()
        if isinstance(found, LedgerError):
            raise found
        return found

    threads: list[threading.Thread] = []
    return launch


def charges_of_query(ledger: SqlLedger) -> int:
    """Return the number of charges, each of which is that of ``QUERY``."""
    summary = ledger.summary()  # raises if it is inconsistent
    if summary.terms is None or summary.spent != summary.launches * EPSILON:
        raise RuntimeError(f"{summary.launches} charges, but the loss is {summary.spent}")
    return summary.launches


WEEKS = range(20)
OF_BLOCKS = 4  # named by each launch


def in_blocks(ledger: SqlLedger) -> Any:
    """Return a block filter on the ledger, whose budgets are never exhausted."""
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    weeks = oc.c.by_key(lambda record: record)
    made = oc.c.make_block_filter(odometer, 1, BUDGET, blocks=weeks, keys=WEEKS, ledger=ledger)
    return made([1, 2, 3])


def in_turn(root: Any) -> Any:
    """Return handles: of a limit in a limit, of another one, and the root, for ever."""
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())

    def limited(handle: Any, label: str) -> Any:
        return handle(oc.c.make_limited(odometer, 1, BUDGET, label=label))

    return itertools.cycle([limited(limited(root, "team"), "ann"), limited(root, "bob"), root])


def limits_on_blocks(ledger: SqlLedger) -> Session:
    """Launch on blocks, below a limit in a limit, below another one, and below none."""
    handles, chosen = in_turn(in_blocks(ledger)), random.Random(os.getpid())
    return lambda: next(handles)(chosen.sample(WEEKS, OF_BLOCKS), QUERY)


def charges_of_blocks(ledger: SqlLedger) -> int:
    """Return the number of charges, each of which is on ``OF_BLOCKS`` blocks."""
    summary, entries = ledger.read()
    named = Counter(key for entry in entries for key in entry.d_mid.keys)
    for week in WEEKS:
        if summary.spent is not None and summary.spent.of(week).loss != named[week] * EPSILON:
            raise RuntimeError(f"{named[week]} charges on block {week}, but another loss")
    if sum(named.values()) != OF_BLOCKS * summary.launches:
        raise RuntimeError("a launch was charged to some of its blocks only")
    return summary.launches


def charges_of_limits_on_blocks(ledger: SqlLedger) -> int:
    """Return the number of charges, each on ``OF_BLOCKS`` blocks in each of its accounts."""
    launches = charges_of_blocks(ledger)
    summary, entries = ledger.read()
    for one in summary.limits:
        below = [entry for entry in entries if entry.limit[: len(one.path)] == one.path]
        named = Counter(key for entry in below for key in entry.d_mid.keys)
        if one.launches != len(below):
            raise RuntimeError(f"{len(below)} charges below {one.path}, but {one.launches} in it")
        for week in WEEKS:
            if one.spent.of(week).loss != named[week] * EPSILON:
                raise RuntimeError(f"{named[week]} charges of {one.path} on {week}, another loss")
    return launches


def below_limits(ledger: SqlLedger) -> Session:
    """Launch below a limit in a limit, below another limit, and on the cap, in turn."""
    handles = in_turn(filtered(ledger))
    return lambda: next(handles)(QUERY)


def charges_of_limits(ledger: SqlLedger) -> int:
    """Return the number of charges, each of which is that of ``QUERY`` in each of its accounts."""
    launches = charges_of_query(ledger)
    summary, entries = ledger.read()
    for one in summary.limits:
        below = sum(entry.limit[: len(one.path)] == one.path for entry in entries)
        if not one.launches == below == one.spent / EPSILON:
            raise RuntimeError(f"{below} charges below {one.path}, but {one.launches} in it")
    return launches


SCENARIOS = {
    "single": Scenario(one_by_one, charges_of_query),
    # each thread may have an answer that it has not told
    "threads": Scenario(from_threads, charges_of_query, at_risk=2 * THREADS + 1),
    "limits": Scenario(below_limits, charges_of_limits),
    "limits on blocks": Scenario(limits_on_blocks, charges_of_limits_on_blocks),
}


class Victim:
    """A process that launches until it is killed."""

    def __init__(self, address: str, scenario: Scenario) -> None:
        self._reader, writer = os.pipe()
        self._text = b""
        self.pid = os.fork()
        if self.pid == 0:
            try:
                launch_forever(address, scenario, writer)
            finally:
                os._exit(1)
        os.close(writer)

    def wait_for_answer(self) -> None:
        """Wait until it launches; it may have to wait for others."""
        while ANSWER not in self._text:
            if not select.select([self._reader], [], [], 60.0)[0]:
                raise RuntimeError("no answer for a minute")
            text = os.read(self._reader, 1 << 16)
            if not text:
                raise RuntimeError("a process that launches has ended by itself")
            self._text += text

    def kill(self) -> tuple[int, int]:
        """Kill it; return how many answers it was given, and how often it was told of a failure."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        if not os.WIFSIGNALED(status):
            raise RuntimeError("a process that launches has ended by itself")
        with os.fdopen(self._reader, "rb") as pipe:
            self._text += pipe.read()
        return self._text.count(ANSWER), self._text.count(FAILURE)


def launch_forever(address: str, scenario: Scenario, writer: int) -> None:
    while True:
        try:
            with open_ledger(address, "survey") as ledger:
                launch = scenario.start(ledger)
                while True:
                    try:
                        launch()
                    except LedgerError:
                        os.write(writer, FAILURE)
                    else:
                        os.write(writer, ANSWER)
        except LedgerError:  # while it is opened: the server is down
            time.sleep(0.01)


class Account:
    """One ledger: what was answered, beside what is charged."""

    def __init__(self, address: str, scenario: Scenario) -> None:
        self.address, self.scenario = address, scenario
        self._kills = self._answers = self._failures = self.charges = 0
        with create_ledger(address, "survey") as ledger:
            scenario.start(ledger)  # settles the terms

    def add(self, found: list[tuple[int, int]]) -> None:
        """Note what killed processes said, and read the ledger."""
        self._kills += len(found)
        self._answers += sum(answers for answers, _ in found)
        self._failures += sum(failures for _, failures in found)
        with open_ledger(self.address, "survey") as ledger:
            self.charges = self.scenario.charged(ledger)
        spare = self.charges - self._answers
        assert spare >= 0, f"{-spare} answers without a charge"
        assert spare <= (self._kills + self._failures) * self.scenario.at_risk


def kill_many(new: Callable[[], str], kills: int, scenario: Scenario) -> int:
    """Kill ``kills`` processes of a scenario, two at a time; return the number of charges."""
    chance, charges, opening = random.Random(SEED), 0, 0.0
    while kills > 0:
        account = Account(new(), scenario)
        for _ in range(min(ROUNDS, (kills + 1) // 2)):
            begun = time.perf_counter()
            victims = [Victim(account.address, scenario) for _ in range(2)]
            if chance.random() < 0.5 or not opening:
                for victim in victims:
                    victim.wait_for_answer()
                opening = opening or time.perf_counter() - begun
                time.sleep(chance.uniform(0.0, opening / 4))
            else:
                time.sleep(chance.uniform(0.0, opening))
            found = [victims[0].kill()]
            time.sleep(chance.uniform(0.0, 0.002))
            account.add([*found, victims[1].kill()])
            kills -= 2
            if account.charges > LONGEST:
                break
        charges += account.charges
    return charges


def crash(address: str, restart: Callable[[], None], scenario: Scenario) -> int:
    """Crash the server below three clients, which go on when it is there again."""
    account = Account(address, scenario)
    victims = [Victim(account.address, scenario) for _ in range(3)]
    for victim in victims:
        victim.wait_for_answer()
    time.sleep(random.uniform(0.0, 0.1))
    restart()
    time.sleep(0.1)
    account.add([victim.kill() for victim in victims])
    return account.charges
