"""What a durable launch costs, beside the commits of the database itself.

    python benchmarks/ledger.py [--quick] [--json] [--save]

The peer is the database alone: the same row, inserted and committed by its own driver, with the
same durability. For several processes both are measured with 1, 2, 4 and 8 of them: the peers write
rows that have nothing to do with each other, ours decide on one budget that all of them share.
PostgreSQL is a throw-away server from the system's packages. With the individual budgets of
``individual.py``.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

os.environ["RUST_BACKTRACE"] = "0"

import individual
import numpy as np
import opendp.prelude as dp
from _postgres import server
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent.accounting.lifecycle import current_label
from opendp_concurrent.accounting.store import Charge
from opendp_concurrent.ledger import create_ledger, open_ledger

dp.enable_features("contrib", "honest-but-curious")

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
DATASET, ROWS = "survey", [1, 2, 3]
KINDS = "bare", "ours", "compositor"
PAID = 200  # launches below one compositor, which is one charge
TABLE = (
    "CREATE TABLE bare (dataset TEXT, sequence BIGINT, time BIGINT, label TEXT, mechanism TEXT, "
    "d_mid TEXT, hash TEXT, PRIMARY KEY (dataset, sequence))"
)
REST = (1795282338170711, "", "count >> laplace(scale=10.0)", '{"double":"0x1.9p-4"}', "ab" * 32)


def launcher(ledger: Any, below_compositor: bool = False) -> Callable[[], object]:
    """Return what launches once on the ledger's budget, or below a compositor that it launched."""
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    root = oc.make_concurrent_filter(odometer, 1, 1e6, ledger=ledger)(ROWS)
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0)
    if not below_compositor:
        return lambda: root(count)
    shares = [count.map(1)] * PAID
    compositor = oc.make_concurrent_composition(*SPACE, dp.max_divergence(), 1, d_mids=shares)
    paid: list[Any] = []

    def launch() -> object:
        if not paid:
            paid.extend([root(compositor)] * PAID)
        return paid.pop()(count)

    return launch


def fill(ledger: Any, d_mid: float, number: int, turns: int = 1) -> None:
    """Write ``number`` equal charges in each of some turns at a ledger that has its terms."""
    book, charge = ledger.book(ledger.summary().terms), Charge(d_mid, "count", current_label())
    for _ in range(turns):
        with book.turn() as turn:
            for _ in range(number):
                turn.write(charge, turn.accumulator.after(d_mid))


def bare_sqlite(path: Path, dataset: str) -> Callable[[], object]:
    """Return what inserts and commits one row, by Python's own driver."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=60.0)
    connection.execute("PRAGMA synchronous=FULL")
    numbers = iter(range(10**9))

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        row = (dataset, next(numbers), *REST)
        connection.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")

    return insert


def bare_postgresql(url: str, dataset: str) -> Callable[[], object]:
    """Return what inserts and commits one row, by psycopg."""
    import psycopg

    connection = psycopg.connect(url.replace("+psycopg", ""))
    numbers = iter(range(10**9))

    def insert() -> None:
        row = (dataset, next(numbers), *REST)
        connection.execute("INSERT INTO bare VALUES (%s, %s, %s, %s, %s, %s, %s)", row)
        connection.commit()

    return insert


def sqlite_files(folder: Path) -> tuple[Path, Path]:
    """Make a ledger, and a file with the bare table."""
    ledger, bare = folder / "ledger.db", folder / "bare.db"
    create_ledger(ledger, DATASET).close()
    with sqlite3.connect(bare) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(TABLE + " WITHOUT ROWID")
    connection.close()
    return ledger, bare


def postgresql_tables(url: str) -> None:
    """Make a ledger and the bare table in one database."""
    import psycopg

    create_ledger(url, DATASET).close()
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(TABLE)


def microseconds(run: Callable[[], object], count: int) -> float:
    """Microseconds for one run, the mean over ``count``."""
    start = time.perf_counter()
    for _ in range(count):
        run()
    return 1e6 * (time.perf_counter() - start) / count


def alone(folder: Path, blocks: int, count: int = 100) -> tuple[float, float]:
    """Medians over alternating blocks: microseconds of a bare row, and of a launch."""
    path, bare_path = sqlite_files(folder)
    with open_ledger(path, DATASET) as ledger:
        bare, ours = bare_sqlite(bare_path, "alone"), launcher(ledger)
        microseconds(bare, count), microseconds(ours, count)
        pairs = [(microseconds(bare, count), microseconds(ours, count)) for _ in range(blocks)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def opening(folder: Path, count: int, rounds: int) -> tuple[float, float]:
    """Seconds to open a ledger of ``count`` charges: without limits, and with a limit for each."""
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    query = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0)
    paths = folder / "plain.db", folder / "limits.db"
    for path in paths:
        with create_ledger(path, DATASET) as ledger:
            root = oc.make_concurrent_filter(odometer, 1, 1e6, ledger=ledger)(ROWS)
            for number in range(count):
                if path == paths[0]:
                    root(query)
                else:
                    label = f"analyst {number}"
                    root(oc.c.make_limited(odometer, 1, 1.0, label=label))(query)

    def seconds(path: Path) -> float:
        start = time.process_time()
        open_ledger(path, DATASET).close()
        return time.process_time() - start

    pairs = [[seconds(path) for path in paths] for _ in range(rounds)]
    plain, limits = (min(one) for one in zip(*pairs, strict=True))
    return plain, limits


def opening_many(folder: Path, listed: int) -> tuple[float, float]:
    """Seconds to open a ledger of 10^6 charges; megabytes for a walk through ``listed`` of them."""
    path = folder / "many.db"
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    query = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0)
    with create_ledger(path, DATASET) as ledger:
        root = oc.make_concurrent_filter(odometer, 1, 1e6, ledger=ledger)(ROWS)
        root(query)
        fill(ledger, query.map(1), 1000, turns=1000)  # the summary reads every charge
        entries = ledger.entries()
        tracemalloc.start()
        for _ in zip(range(listed), entries, strict=False):
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        open_ledger(path, DATASET).close()
        seconds.append(time.perf_counter() - start)
    return median(seconds), peak / 2**20


def on_blocks(folder: Path, rounds: int) -> float:
    """Milliseconds of a launch on 10^4 of 10^5 blocks that a ledger keeps, all charged before."""
    generator = np.random.default_rng(0)
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    query = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0)
    keys = range(10**5)
    with create_ledger(folder / "blocks.db", DATASET) as ledger:
        made = oc.c.make_block_filter(
            odometer, 1, 1e6, blocks=oc.c.by_key(lambda record: record), keys=keys, ledger=ledger
        )
        root = made(list(range(0, 10**5, 100)))
        for start in range(0, 10**5, 10**4):
            root(range(start, start + 10**4), query)
        found = []
        for _ in range(rounds):
            some = generator.choice(10**5, 10**4, replace=False).tolist()
            start_of = time.perf_counter()
            root(some, query)
            found.append(1e3 * (time.perf_counter() - start_of))
    return median(found)


def worker(number: int, jobs: list[tuple[str, Any]], count: int, barrier: Any) -> None:
    """Run each job ``count`` times, all processes at the same time."""
    for kind, where in jobs:
        ledger = None if kind == "bare" else open_ledger(where, DATASET)
        bare: Any = bare_sqlite if isinstance(where, Path) else bare_postgresql
        own = f"process {number} at {time.time_ns()}"
        run = bare(where, own) if ledger is None else launcher(ledger, kind == "compositor")
        run()
        barrier.wait()
        microseconds(run, count)
        barrier.wait()
        if ledger is not None:
            ledger.close()


def per_second(jobs: list[tuple[str, Any]], processes: int, total: int) -> list[float]:
    """Runs per second of several processes together, job by job."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes + 1)
    running = [
        context.Process(target=worker, args=(number, jobs, total // processes, barrier))
        for number in range(processes)
    ]
    for process in running:
        process.start()
    found = []
    for _ in jobs:
        barrier.wait()
        start = time.perf_counter()
        barrier.wait()
        found.append(total / (time.perf_counter() - start))
    for process in running:
        process.join()
        assert process.exitcode == 0
    return found


def thread_rates(
    places: dict[str, tuple[Any, Any]], threads: int, total: int, rounds: int
) -> list[list[Any]]:
    """A row for each database: commits of bare rows and launches from threads, and their ratio.

    Each thread has a bare connection of its own. All of them launch on one handle.
    """
    rows = []
    for name, (bare, ours) in places.items():
        found = []
        with open_ledger(ours, DATASET) as ledger:
            launch = launcher(ledger)
            for _ in range(rounds):
                commits = from_threads(partial(one_of_many, bare), threads, total)
                found.append((commits, from_threads(partial(constant, launch), threads, total)))
        medians = [median(one) for one in zip(*found, strict=True)]
        rows.append([name, threads, *medians, medians[1] / medians[0]])
    return rows


def one_of_many(where: Any, number: int) -> Callable[[], object]:
    """Return what inserts bare rows in a thread."""
    bare: Any = bare_sqlite if isinstance(where, Path) else bare_postgresql
    inserting: Callable[[], object] = bare(where, f"thread {number} at {time.time_ns()}")
    return inserting


def constant(launch: Callable[[], object], _: int) -> Callable[[], object]:
    """Return what launches: it is the same in all threads."""
    return launch


def from_threads(make: Callable[[int], Callable[[], object]], threads: int, total: int) -> float:
    """Runs per second of several threads of this process together."""
    barrier = threading.Barrier(threads + 1)

    def work(number: int) -> None:
        run = make(number)
        run()
        barrier.wait()
        for _ in range(total // threads):
            run()

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for one in running:
        one.start()
    barrier.wait()
    start = time.perf_counter()
    for one in running:
        one.join()
    return total / (time.perf_counter() - start)


def rates(places: dict[str, tuple[Any, Any]], counts: list[int], total: int, rounds: int) -> Any:
    """A row for each database and number of processes.

    It has the commits of bare rows, launches, their ratio, launches below compositors, their ratio.
    """
    rows = []
    for processes in counts:
        jobs = [
            (kind, bare if kind == "bare" else ours)
            for bare, ours in places.values()
            for kind in KINDS
        ]
        found = iter(per_second(jobs * rounds, processes, total))
        rounds_of = [[[next(found) for _ in KINDS] for _ in places] for _ in range(rounds)]
        for name, measured in zip(places, zip(*rounds_of, strict=True), strict=True):
            commits, launches, below = (median(one) for one in zip(*measured, strict=True))
            ratios = launches / commits, below / commits
            rows.append([name, processes, commits, launches, ratios[0], below, ratios[1]])
    return sorted(rows, key=lambda row: list(places).index(row[0]))


def main() -> None:
    """Measure, print, report."""
    options = parser(__doc__).parse_args()
    print_machine()
    quick = options.quick
    counts, total, rounds = ([8], 1600, 1) if quick else ([1, 2, 4, 8], 4000, 3)
    with tempfile.TemporaryDirectory() as home, server() as url:
        folder = Path(home)
        (folder / "alone").mkdir()
        row, launch = alone(folder / "alone", 10 if quick else 50)
        print_table(
            "One process, SQLite: microseconds (medians of blocks of 100)",
            ["", "µs"],
            [["INSERT and COMMIT", row], ["launch with a ledger", launch]],
        )
        count = 2000 if quick else 10**4
        plain, limits = opening(folder, count, 9)
        print_table(
            f"Opening a ledger of {count} charges: seconds of the processor",
            ["", "s"],
            [["no limits", plain], [f"{count} limits", limits]],
        )
        opened, listed = opening_many(folder, 20_000 if quick else 10**6)
        blocks = on_blocks(folder, 20 if quick else 60)
        print_table(
            "A ledger of 10^6 charges, and a launch on 10^4 of 10^5 blocks",
            ["", ""],
            [["open: s", opened], ["list: MB", listed], ["launch on blocks: ms", blocks]],
        )
        ledger, bare = sqlite_files(folder)
        places: dict[str, tuple[Any, Any]] = {"SQLite": (bare, str(ledger))}
        if url is not None:
            postgresql_tables(url)
            places["PostgreSQL"] = url, url
        by_threads = thread_rates(places, 16, total, rounds)
        print_table(
            "Threads of one process, one handle: per second, all together",
            ["", "threads", "bare rows", "launches", "ratio"],
            by_threads,
        )
        table = rates(places, counts, total, rounds)
        print_table(
            "Several processes, one budget: per second, all together",
            ["", "processes", "bare rows", "launches", "ratio", "below compositors", "ratio"],
            table,
        )
    people = np.random.default_rng(0).normal(size=(10**7, 1))
    bank = median(individual.paired(people, individual.ZCDP, 9 if quick else 60)[0])

    def at_eight(name: str, column: int) -> float:
        return next((row[column] for row in table if row[:2] == [name, 8]), float("nan"))

    threads = {row[0]: row[4] for row in by_threads}
    figures = {
        "insert_ratio": launch / row,
        "threads_16_sqlite_over_engine": threads["SQLite"],
        "threads_16_postgres_over_engine": threads.get("PostgreSQL", float("nan")),
        "sqlite_8_over_engine": at_eight("SQLite", 4),
        "postgres_8_over_engine": at_eight("PostgreSQL", 4),
        "compositor_sqlite_8_over_engine": at_eight("SQLite", 6),
        "compositor_postgres_8_over_engine": at_eight("PostgreSQL", 6),
        "bank_1e7_ms": 1e3 * bank,
        "limits_over_none": limits / plain,
        "open_1e6_s": opened,
        "list_mb": listed,
        "block_launch_ms_1e4_of_1e5": blocks,
    }
    targets = {
        "insert_ratio": ("at most", 1.5),
        "threads_16_sqlite_over_engine": ("at least", 1.0),
        "threads_16_postgres_over_engine": ("at least", 1.0),
        "postgres_8_over_engine": ("at least", 0.5),
        "compositor_sqlite_8_over_engine": ("at least", 3.6),
        "compositor_postgres_8_over_engine": ("at least", 1.8),
        "bank_1e7_ms": ("at most", 100.0),
        "limits_over_none": ("at most", 3.0),
        "open_1e6_s": ("at most", 0.5),
        "list_mb": ("at most", 20.0),
        "block_launch_ms_1e4_of_1e5": ("at most", 10.0),
    }
    report(figures, targets, {}, options)


if __name__ == "__main__":
    main()
