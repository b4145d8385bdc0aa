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

import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.errors import LedgerError
from opendp_concurrent.ledger import create_ledger, open_ledger

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
EPSILON, BUDGET = 2.0**-10, 2.0**40  # sums of losses are exact
QUERY = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / EPSILON)
ANSWER, FAILURE = b"a", b"f"
ROUNDS, LONGEST = 50, 5000  # rounds on one ledger, and its charges: reading it takes a while
SEED = 20260101


@dataclass(frozen=True)
class Scenario:
    """One way to launch on a ledger.

    :ivar start: settles the terms of the ledger's budget, and returns what launches once on it
    :ivar charged: reads the ledger whole, and returns the number of launches that it has charged
    :ivar at_risk: the most charges without an answer that one kill or one error may leave
    """

    start: Callable
    charged: Callable
    at_risk: int = 1


def odometer():
    return oc.make_concurrent_odometer(*SPACE, dp.max_divergence())


def filtered(ledger):
    """A filter on the ledger, whose budget is never exhausted."""
    return oc.make_concurrent_filter(odometer(), 1, BUDGET, ledger=ledger)([1, 2, 3])


def one_by_one(ledger):
    root = filtered(ledger)
    return lambda: root(QUERY)


THREADS = 6


def from_threads(ledger):
    """Launch from several threads, whose launches share commits; one answer at a time is told."""
    root, answers = filtered(ledger), queue.Queue(1)

    def work():
        while True:
            try:
                answers.put(root(QUERY))
            except LedgerError as error:
                answers.put(error)

    def launch():
        if not threads:
            threads.extend(threading.Thread(target=work, daemon=True) for _ in range(THREADS))
            for one in threads:
                one.start()
        found = answers.get()
        if isinstance(found, LedgerError):
            raise found
        return found

    threads = []
    return launch


def charges_of_query(ledger):
    """The number of charges, each of which is that of ``QUERY`` in each of its accounts."""
    summary, entries = ledger.read()  # raises if it is inconsistent
    assert summary.spent == summary.launches * EPSILON
    for one in summary.limits:
        below = sum(entry.limit[: len(one.path)] == one.path for entry in entries)
        assert one.launches == below == one.spent / EPSILON
    return summary.launches


WEEKS = range(20)
OF_BLOCKS = 4  # named by each launch


def in_turn(root):
    """Handles of a limit in a limit, of another one, and the root, for ever."""

    def limited(handle, label):
        return handle(oc.c.make_limited(odometer(), 1, BUDGET, label=label))

    return itertools.cycle([limited(limited(root, "team"), "ann"), limited(root, "bob"), root])


def below_limits(ledger):
    handles = in_turn(filtered(ledger))
    return lambda: next(handles)(QUERY)


def limits_on_blocks(ledger):
    """Launch on blocks, below a limit in a limit, below another one, and below none."""
    weeks = oc.c.by_key(lambda record: record)
    made = oc.c.make_block_filter(odometer(), 1, BUDGET, blocks=weeks, keys=WEEKS, ledger=ledger)
    handles, chosen = in_turn(made([1, 2, 3])), random.Random(os.getpid())
    return lambda: next(handles)(chosen.sample(WEEKS, OF_BLOCKS), QUERY)


def charges_of_blocks(ledger):
    """The number of charges, each on ``OF_BLOCKS`` blocks in each of its accounts."""
    summary, entries = ledger.read()
    assert all(len(set(entry.d_mid.keys)) == OF_BLOCKS for entry in entries)
    for one in (summary, *summary.limits):
        path = getattr(one, "path", ())
        below = [entry for entry in entries if entry.limit[: len(path)] == path]
        named = Counter(key for entry in below for key in entry.d_mid.keys)
        assert one.launches == len(below)
        if one.spent is not None:
            assert all(one.spent.of(week).loss == named[week] * EPSILON for week in WEEKS)
    return summary.launches


SCENARIOS = {
    "single": Scenario(one_by_one, charges_of_query),
    # each thread may have an answer that it has not told
    "threads": Scenario(from_threads, charges_of_query, at_risk=2 * THREADS + 1),
    "limits": Scenario(below_limits, charges_of_query),
    "limits on blocks": Scenario(limits_on_blocks, charges_of_blocks),
}


class Victim:
    """A process that launches until it is killed."""

    def __init__(self, address, scenario):
        self._reader, writer = os.pipe()
        self._text = b""
        self.pid = os.fork()
        if self.pid == 0:
            try:
                launch_forever(address, scenario, writer)
            finally:
                os._exit(1)
        os.close(writer)

    def wait_for_answer(self):
        """Wait until it launches; it may have to wait for others."""
        while ANSWER not in self._text:
            assert select.select([self._reader], [], [], 60.0)[0], "no answer for a minute"
            text = os.read(self._reader, 1 << 16)
            assert text, "a process that launches has ended by itself"
            self._text += text

    def kill(self):
        """Kill it; return how many answers it was given, and how often it was told of a failure."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        assert os.WIFSIGNALED(status), "a process that launches has ended by itself"
        with os.fdopen(self._reader, "rb") as pipe:
            self._text += pipe.read()
        return self._text.count(ANSWER), self._text.count(FAILURE)


def launch_forever(address, scenario, writer):
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

    def __init__(self, address, scenario):
        self.address, self.scenario = address, scenario
        self._kills = self._answers = self._failures = self.charges = 0
        with create_ledger(address, "survey") as ledger:
            scenario.start(ledger)  # settles the terms

    def add(self, found):
        """Note what killed processes said, and read the ledger."""
        self._kills += len(found)
        self._answers += sum(answers for answers, _ in found)
        self._failures += sum(failures for _, failures in found)
        with open_ledger(self.address, "survey") as ledger:
            self.charges = self.scenario.charged(ledger)
        spare = self.charges - self._answers
        assert spare >= 0, f"{-spare} answers without a charge"
        assert spare <= (self._kills + self._failures) * self.scenario.at_risk


def kill_many(new, kills, scenario):
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


def crash(address, restart, scenario):
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
