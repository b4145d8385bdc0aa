"""Whether a ledger forgets a charge when processes are killed, and when its server crashes.

    python benchmarks/kills.py [--quick] [--json]

Two processes at a time open one ledger and launch as fast as they can; each says of every answer
that it was given. Both get SIGKILL at random moments: half of them while they open the ledger, half
while they launch. Then the ledger is opened again and read whole. An answer without a charge is
lost: there must be none. A charge without an answer was in flight: at most one for each kill, or
for each launch whose writer was told that it may be charged. Where PostgreSQL is installed, its
clients are killed as well, and the server itself is crashed (``pg_ctl -m immediate``) below three
of them.

What the processes do is a scenario: ``SCENARIOS`` has one for each kind of launch on a ledger. The
kills are divided among them; with ``--scenario NAME`` only that one is run.

A killed process, or server, leaves to the system what it has written. What a disk forgets that
loses power cannot be tried this way: there one relies on its flushes, which every charge waits for.
"""

from __future__ import annotations

import itertools
import os
import random
import select
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

os.environ["RUST_BACKTRACE"] = "0"

import opendp.prelude as dp
from _postgres import binaries, server
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent.errors import LedgerError
from opendp_concurrent.ledger import SqlLedger, create_ledger, open_ledger

dp.enable_features("contrib", "honest-but-curious")

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
EPSILON, BUDGET = 2.0**-10, 2.0**40  # sums of losses are exact
QUERY = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / EPSILON)
ANSWER, FAILURE = b"a", b"f"
PREPAID = 10  # launches at a time
ROUNDS, LONGEST = 50, 5000  # rounds on one ledger, and its charges: reading it takes a while
SEED = 20260101


class Launcher(Protocol):
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

    start: Callable[[SqlLedger], Launcher]
    charged: Callable[[SqlLedger], int]
    at_risk: int = 1


def filtered(ledger: SqlLedger) -> Any:
    """Return a filter on the ledger, whose budget is never exhausted."""
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    return oc.make_concurrent_filter(odometer, 1, BUDGET, ledger=ledger)([1, 2, 3])


def one_by_one(ledger: SqlLedger) -> Launcher:
    """Launch one measurement after the other."""
    root = filtered(ledger)
    return lambda: root(QUERY)


def charges_of_query(ledger: SqlLedger) -> int:
    """Return the number of charges, each of which is that of ``QUERY``."""
    summary = ledger.summary()  # raises if it is inconsistent
    if summary.terms is None or summary.spent != summary.launches * EPSILON:
        raise RuntimeError(f"{summary.launches} charges, but the loss is {summary.spent}")
    return summary.launches


def prepaid(ledger: SqlLedger) -> Launcher:
    """Launch what was prepaid, ``PREPAID`` launches in one transaction; single ones in between."""
    root, numbers = filtered(ledger), itertools.count()
    workers: list[Any] = []

    def launch() -> object:
        if next(numbers) % (PREPAID + 3) == 0:
            return root(QUERY)
        if not workers:
            workers.append(root.leased(QUERY, PREPAID))
        return workers[0](QUERY)

    return launch


WEEKS = range(20)
OF_BLOCKS = 4  # named by each launch


def in_blocks(ledger: SqlLedger) -> Any:
    """Return a block filter on the ledger, whose budgets are never exhausted."""
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    weeks = oc.c.by_key(lambda record: record)
    made = oc.c.make_block_filter(odometer, 1, BUDGET, blocks=weeks, keys=WEEKS, ledger=ledger)
    return made([1, 2, 3])


def on_blocks(ledger: SqlLedger) -> Launcher:
    """Launch on some of the blocks of a block filter, on others each time."""
    root, chosen = in_blocks(ledger), random.Random(os.getpid())
    return lambda: root(chosen.sample(WEEKS, OF_BLOCKS), QUERY)


def prepaid_on_blocks(ledger: SqlLedger) -> Launcher:
    """Launch what was prepaid on some blocks, on others each time; single ones in between."""
    root, chosen, numbers = in_blocks(ledger), random.Random(os.getpid()), itertools.count()
    blocks: list[Any] = []

    def launch() -> object:
        if next(numbers) % (PREPAID + 3) == 0:
            return root(chosen.sample(WEEKS, OF_BLOCKS), QUERY)
        if not blocks or not blocks[-1].unspent:
            blocks[:] = [root.prepaid(chosen.sample(WEEKS, OF_BLOCKS), QUERY, PREPAID)]
        return blocks[-1](QUERY)

    return launch


def limits_on_blocks(ledger: SqlLedger) -> Launcher:
    """Launch on blocks, below a limit in a limit, below another one, prepaid, and below none."""
    root, chosen = in_blocks(ledger), random.Random(os.getpid())
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())

    def limited(handle: Any, label: str) -> Any:
        return handle(oc.c.make_limited(odometer, 1, BUDGET, label=label))

    bob = limited(root, "bob")
    workers: list[Any] = []
    handles = itertools.cycle([limited(limited(root, "team"), "ann"), bob, root, None])

    def launch() -> object:
        handle = next(handles)
        if handle is not None:
            return handle(chosen.sample(WEEKS, OF_BLOCKS), QUERY)
        if not workers:
            workers.append(bob.leased(chosen.sample(WEEKS, OF_BLOCKS), QUERY, PREPAID))
        return workers[0](QUERY)

    return launch


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


def below_limits(ledger: SqlLedger) -> Launcher:
    """Launch below a limit in a limit, below another limit, and on the cap, in turn."""
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())

    def limited(handle: Any, label: str) -> Any:
        return handle(oc.c.make_limited(odometer, 1, BUDGET, label=label))

    root = filtered(ledger)
    handles = itertools.cycle([limited(limited(root, "team"), "ann"), limited(root, "bob"), root])
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
    "blocks": Scenario(on_blocks, charges_of_blocks),
    "limits": Scenario(below_limits, charges_of_limits),
    "prepaid blocks": Scenario(prepaid_on_blocks, charges_of_blocks, at_risk=PREPAID),
    "limits on blocks": Scenario(limits_on_blocks, charges_of_limits_on_blocks, at_risk=PREPAID),
    "prepaid": Scenario(prepaid, charges_of_query, at_risk=PREPAID),
}


@dataclass
class Tally:
    """What happened, to one kind of ledger."""

    kills: int = 0
    crashes: int = 0
    answers: int = 0
    failures: int = 0
    charges: int = 0
    lost: int = 0
    seconds: float = 0.0

    @property
    def in_flight(self) -> int:
        """Charges without an answer."""
        return self.charges - self.answers + self.lost


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


def fresh(address: str, scenario: Scenario) -> None:
    with create_ledger(address, "survey") as ledger:
        scenario.start(ledger)  # settles the terms


class Account:
    """One ledger: what was answered, beside what is charged."""

    def __init__(self, address: str, scenario: Scenario, tally: Tally) -> None:
        self.address, self.scenario, self._tally = address, scenario, tally
        self._kills = self._answers = self._failures = self._lost = 0
        self.charges = 0
        fresh(address, scenario)

    def add(self, found: list[tuple[int, int]]) -> None:
        """Note what killed processes said, and read the ledger."""
        self._kills += len(found)
        self._answers += sum(answers for answers, _ in found)
        self._failures += sum(failures for _, failures in found)
        with open_ledger(self.address, "survey") as ledger:
            self.charges = self.scenario.charged(ledger)
        self._lost = max(self._lost, self._answers - self.charges)
        spare = self.charges - self._answers
        if spare > (self._kills + self._failures) * self.scenario.at_risk:
            raise RuntimeError(f"{spare} charges without an answer, after {self._kills} kills")

    def close(self) -> None:
        """Add to the tally."""
        self._tally.kills += self._kills
        self._tally.answers += self._answers
        self._tally.failures += self._failures
        self._tally.charges += self.charges
        self._tally.lost += self._lost


def kill_many(new: Callable[[], str], kills: int, scenario: Scenario, tally: Tally) -> None:
    """Kill ``kills`` processes of a scenario, two at a time."""
    chance, start = random.Random(SEED), time.perf_counter()
    opening = launching = 0.0
    left = kills
    while left > 0:
        account = Account(new(), scenario, tally)
        for _ in range(min(ROUNDS, (left + 1) // 2)):
            begun = time.perf_counter()
            victims = [Victim(account.address, scenario) for _ in range(2)]
            if chance.random() < 0.5 or not opening:
                for victim in victims:
                    victim.wait_for_answer()
                if not opening:
                    opening = time.perf_counter() - begun
                    launching = opening / 4
                time.sleep(chance.uniform(0.0, launching))
            else:
                time.sleep(chance.uniform(0.0, opening))
            found = [victims[0].kill()]
            time.sleep(chance.uniform(0.0, 0.002))
            account.add([*found, victims[1].kill()])
            left -= 2
            if account.charges > LONGEST:
                break
        account.close()
    tally.seconds += time.perf_counter() - start


def crash_many(
    new: Callable[[], str],
    restart: Callable[[], None],
    crashes: int,
    scenario: Scenario,
    tally: Tally,
) -> None:
    """Crash the server below three clients, which go on when it is there again."""
    chance, start = random.Random(SEED), time.perf_counter()
    tally.crashes += crashes
    for _ in range(crashes):
        account = Account(new(), scenario, tally)
        victims = [Victim(account.address, scenario) for _ in range(3)]
        for victim in victims:
            victim.wait_for_answer()
        time.sleep(chance.uniform(0.0, 0.1))
        restart()
        time.sleep(0.1)
        account.add([victim.kill() for victim in victims])
        account.close()
    tally.seconds += time.perf_counter() - start


def restarter(url: str) -> Callable[[], None]:
    """What crashes the server at ``url`` and starts it again."""
    import psycopg

    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    data = row[0] if row else ""
    command = f"{binaries()}/pg_ctl -D {data} -m immediate -l {data}/log -w restart"
    as_user = ["su", "postgres", "-c"] if os.geteuid() == 0 else ["sh", "-c"]
    return lambda: (
        subprocess.run([*as_user, command], check=True, stdout=subprocess.DEVNULL, cwd="/") and None
    )


def schemas(url: str) -> Callable[[], str]:
    """What makes an empty schema on the server at ``url``, and returns the URL of that."""
    import psycopg

    names = iter(range(10**6))

    def new() -> str:
        name = f"kills_{next(names)}"
        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{url}?options=-csearch_path%3D{name}"

    return new


def kill_scenarios(new: Callable[[], str], kills: int, names: Iterable[str] = SCENARIOS) -> Tally:
    """Divide ``kills`` among scenarios; return the tally of all of them."""
    tally, names = Tally(), tuple(names)
    each = -(-kills // len(names))
    for name in names:
        kill_many(new, each, SCENARIOS[name], tally)
    return tally


def main() -> None:
    """Run, print, report."""
    arguments = parser(__doc__)
    arguments.add_argument("--scenario", choices=SCENARIOS, action="append", help="run only this")
    options = arguments.parse_args()
    print_machine()
    names = options.scenario or list(SCENARIOS)
    on_file, on_server, crashes = (200, 40, 2) if options.quick else (1000, 500, 20)
    tallies: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory() as folder, server() as url:
        files = (str(Path(folder) / f"{number}.db") for number in itertools.count())
        for name in names:
            killed = tallies[f"{name}, SQLite, processes killed"] = Tally()
            kill_many(files.__next__, -(-on_file // len(names)), SCENARIOS[name], killed)
        if url is None:
            print("PostgreSQL is not installed: the ledger was NOT tried on it")
        else:
            new, restart = schemas(url), restarter(url)
            for name in names:
                killed = tallies[f"{name}, PostgreSQL, clients killed"] = Tally()
                kill_many(new, -(-on_server // len(names)), SCENARIOS[name], killed)
                crashed = tallies[f"{name}, PostgreSQL, crashed"] = Tally()
                each = -(-crashes // len(names))
                crash_many(new, restart, each, SCENARIOS[name], crashed)
    every = tallies.values()
    print_table(
        "Two processes at a time; three where the server crashes",
        ["", "kills", "crashes", "answers", "charges", "lost", "in flight", "failures", "s"],
        [
            [
                name,
                one.kills,
                one.crashes,
                one.answers,
                one.charges,
                one.lost,
                one.in_flight,
                one.failures,
                one.seconds,
            ]
            for name, one in tallies.items()
        ],
    )
    kills = sum(one.kills for one in every)
    report(
        {
            "kills": kills,
            "lost": sum(one.lost for one in every),
            "charged_in_flight": sum(one.in_flight for one in every),
        },
        {
            "kills": ("at least", on_file),
            "lost": ("at most", 0),
        },
        {"kills": "1,000 and more without --quick"} if options.quick else {},
        options,
    )


if __name__ == "__main__":
    main()
