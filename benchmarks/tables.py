"""Tables in an engine: what a launch costs beyond the engine's own statement.

    python benchmarks/tables.py [--quick] [--json] [--save]

The peer is the engine: ``count_over_engine`` and ``groups_over_engine`` compare a launch with the
statement that this launch runs, on a cursor of the same connection, to the integers. Both are
measured in turn, and the ratio is the median of those of neighbours, as the machine may have other
work. Rows are made up: a person has 10 rows, and there are 50 regions. Persons are truncated once,
before the launches. The count is of the rows that pass a predicate. ``peak_mib`` is of a process
that truncates and counts with DuckDB's memory limited to 256 MB, as its owner may set it.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"

import duckdb
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent.tables import plan
from opendp_concurrent.tables.aggregates import Joint
from opendp_concurrent.tables.domain import Tables, table_domain, units
from opendp_concurrent.tables.render import statement
from opendp_concurrent.tables.schema import Schema

dp.enable_features("contrib", "honest-but-curious")
ROWS, QUICK_ROWS, SPARK_ROWS, QUICK_SPARK_ROWS = 10_000_000, 1_000_000, 2_000_000, 200_000
LIMIT = "256MB"  # of DuckDB's memory; what is larger goes to a file beside the database
REGIONS = [f"region {number:02}" for number in range(50)]
COUNT = plan.Sums((plan.ROW,))  # of all rows
SCHEMA = {"person": int, "region": str, "week": int, "hours": float}
TARGETS = {
    "count_over_engine": ("at most", 1.15),
    "groups_over_engine": ("at most", 1.15),
    "mean_over_engine": ("at most", 1.5),
    "edges_10000_over_engine": ("at most", 1.5),
    "edges_10000_statement_over_engine": ("at most", 1.5),
    "join_over_engine": ("at most", 1.5),
    "select_5_over_engine": ("at most", 1.3),
    "keys_users": ("at most", 110),
    "keys_users_10": ("at most", 75),
    "peak_mib": ("at most", 600.0),
    "spark_count_over_engine": ("at most", 1.25),
    "polars_builds": ("at most", 100),
}


def make(path: str, rows: int) -> None:
    """Write a table of made-up visits."""
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT range // 10 AS person, "
            "format('region {:02d}', (range * 2654435761 // 4096) % 50) AS region, "
            "(range * 40503 // 64) % 52 AS week, (range % 17) * 0.25e0 AS hours "
            f"FROM range({rows})"
        )
        connection.execute(
            "CREATE TABLE homes AS SELECT range AS person, range * 7919 % 60 AS km "
            f"FROM range({rows // 10})"
        )


def asked(space, aggregate, scale=1e4):
    return space >> aggregate >> dp.m.then_laplace(scale=scale)


def in_turn(subjects, rounds: int) -> tuple[dict[str, float], float]:
    """Median seconds of two functions that alternate, and the median ratio of neighbours."""
    seen: dict[str, list[float]] = {name: [] for name in subjects}
    for number in range(rounds + 1):
        for name in list(subjects) if number % 2 else reversed(list(subjects)):
            begun = time.perf_counter()
            subjects[name]()
            if number:  # the first round warms up
                seen[name].append(time.perf_counter() - begun)
    ratios = [one / other for one, other in zip(*seen.values(), strict=True)]
    return {name: median(times) for name, times in seen.items()}, median(ratios)


def on_duckdb(path: str, rounds: int) -> tuple[dict[str, float], list[list[object]]]:
    """Open the table, and compare launches with the engine's own statements."""
    connection = duckdb.connect(path)
    figures: dict[str, float] = {}
    opened = []
    for _ in range(5):
        begun = time.perf_counter()
        visits = oc.tables.scan(connection, "visits", SCHEMA, "person")
        bounded = visits.space >> oc.t.then_truncate(10)
        odometer = bounded >> oc.then_concurrent_odometer(dp.max_divergence())
        oc.make_concurrent_filter(odometer, 1, 1e9)(visits)
        opened.append(time.perf_counter() - begun)
    figures["open_ms"] = 1e3 * median(opened)
    space, rows = bounded.output_space, []

    # persons are counted without a truncation, rows and regions after one that was stored
    whole = (visits.space >> oc.then_concurrent_odometer(dp.max_divergence()))(visits)
    persons = asked(visits.space, oc.t.then_distinct_units())
    truncate = visits.space >> oc.t.then_truncate(10, materialize=True)
    begun = time.perf_counter()
    stored = truncate(visits)
    figures["materialize_s"] = time.perf_counter() - begun
    on_stored = (space >> oc.then_concurrent_odometer(dp.max_divergence()))(stored)
    some = oc.t.make_where(*space, oc.tables.col("hours") >= 1.0)
    subjects = {
        # DuckDB answers a bare count from its statistics, in less than a millisecond
        "bare_count": (on_stored, asked(space, oc.t.then_table_count()), stored, COUNT),
        "count": (
            on_stored,
            asked(some, oc.t.then_table_count()),
            some(stored),
            COUNT,
        ),
        "groups": (
            on_stored,
            asked(space, oc.t.then_table_count("region", REGIONS)),
            stored,
            plan.Sums(COUNT.of, ("region",), tuple((one,) for one in REGIONS)),
        ),
        "units": (whole, persons, visits, plan.Sums((plan.ROW,), distinct=("person",))),
    }
    for name, (queryable, launch, table, aggregate) in subjects.items():
        found = statement("duckdb", table.relation, aggregate)

        def engine(found=found):
            with connection.cursor() as cursor:
                cursor.execute(found[0], list(found[1])).fetchall()

        seconds, ratio = in_turn(
            {"launch": lambda q=queryable, one=launch: q(one), "engine": engine},
            5 * rounds if "count" in name else rounds,
        )
        figures[f"{name}_over_engine"] = ratio
        if name == "bare_count":
            figures["launch_adds_ms"] = 1e3 * (seconds["launch"] - seconds["engine"])
        rows.append([name, 1e3 * seconds["launch"], 1e3 * seconds["engine"]])
    figures["join_over_engine"], *times = joined(connection, rounds)
    rows.append(["join", *times])
    figures["threads_speedup_2"] = speedup(connection, space, stored, rounds)
    for name, found in answers(connection, space, stored, on_stored, rounds).items():
        figures[f"{name}_over_engine"], *times = found
        rows.append([name, *times])
    return figures, rows


def answers(connection, space, stored, queryable, rounds: int) -> dict[str, tuple[float, ...]]:
    """Ratios and milliseconds of launches, and of what an owner would write for DuckDB.

    For a mean it is DuckDB's average of clamped doubles. For 10,000 edges it is DuckDB's own
    ``histogram`` with these edges; ``statement`` compares the statement of the launch alone, since
    the noise in 10,000 integers takes OpenDP about 0.3 s, whatever the number of rows is. For five
    answers by region it is the statement that the launch runs, as for groups; and, with the name
    ``plain``, one with the averages and deviations of DuckDB, on doubles.
    """
    table = stored.relation.reference
    own = ".".join(f'"{part}"' for part in table[1:])
    edges = [place * 4.25 / 10_000 for place in range(10_000)]
    bounds = "hours", (0.0, 4.0)
    by = {"by": "region", "keys": REGIONS}
    five = [
        oc.tables.Answer("count"),
        oc.tables.Answer("sum", "week", (0, 52)),
        oc.tables.Answer("mean", *bounds),
        oc.tables.Answer("stdev", *bounds),
        oc.tables.Answer("mean", "week", (0, 52)),
    ]
    several = asked(space, oc.t.then_table_answers(five, **by), 1e12)
    histogram = f"SELECT histogram(hours, $1::DOUBLE[]) FROM {own}"
    binned = statement("duckdb", stored.relation, plan.Bins("hours", tuple(edges)))
    schema = stored.tables.schema
    keys = tuple((one,) for one in REGIONS)
    terms = tuple(term for part in Joint.of(schema, five, "l1").parts for term in part.terms)
    rendered = statement("duckdb", stored.relation, plan.Sums(terms, ("region",), keys))
    texts = {
        "edges_10000": (
            asked(space, oc.t.then_table_histogram("hours", edges)),
            histogram,
            [edges],
        ),
        "edges_10000_statement": (binned, histogram, [edges]),
        "mean": (
            asked(space, oc.t.then_table_answers([oc.tables.Answer("mean", *bounds, 0.25)]), 1e12),
            f"SELECT avg(least(greatest(hours, 0), 4)) FROM {own}",
            [],
        ),
        "select_5": (several, rendered[0], list(rendered[1])),
        "select_5_plain": (
            several,
            "SELECT region, count(*), sum(least(greatest(week, 0), 52)), "
            "avg(least(greatest(hours, 0), 4)), stddev_pop(least(greatest(hours, 0), 4)), "
            f"avg(least(greatest(week, 0), 52)) FROM {own} GROUP BY region",
            [],
        ),
    }
    found = {}
    for name, (launch, text, parameters) in texts.items():

        def engine(text=text, parameters=parameters):
            with connection.cursor() as cursor:
                cursor.execute(text, parameters).fetchall()

        def asking(one=launch):
            if one is binned:
                engine(one[0], list(one[1]))
            else:
                queryable(one)

        seconds, ratio = in_turn({"launch": asking, "engine": engine}, min(rounds, 7))
        found[name] = ratio, 1e3 * seconds["launch"], 1e3 * seconds["engine"]
    return found


def joined(connection, rounds: int) -> tuple[float, float, float]:
    """The ratio and milliseconds of a sum over two private tables, and of DuckDB's own join."""
    visits = oc.tables.scan(connection, "visits", SCHEMA, "person")
    homes = oc.tables.scan(connection, "homes", {"person": int, "km": int}, "person")
    both = visits.with_tables(homes=(homes.space >> oc.t.then_truncate(1, materialize=True))(homes))
    stored = (both.space >> oc.t.then_truncate(10, materialize=True))(both)
    root = (stored.space >> oc.then_concurrent_odometer(dp.max_divergence()))(stored)
    rows = stored.space >> oc.t.then_private_join("homes", ["km"])
    launch = asked(rows, oc.t.then_table_sum("km", (0, 60)), 1e6)
    own = ".".join(f'"{part}"' for part in stored.relation.reference[1:])
    text = f"SELECT sum(km) FROM {own} JOIN homes USING (person)"

    def engine():
        with connection.cursor() as cursor:
            cursor.execute(text).fetchall()

    seconds, ratio = in_turn({"launch": lambda: root(launch), "engine": engine}, min(rounds, 7))
    return ratio, 1e3 * seconds["launch"], 1e3 * seconds["engine"]


def users(loss: tuple[float, float], keys: int) -> int:
    """How many persons with so many keys each a key needs, to be found with probability 1/2."""
    schema = Schema((("person", int), ("key", int)), ("person",))
    tables = Tables(schema, keys)
    space = table_domain(tables), units()
    return oc.m.make_table_keys(*space, "key", loss).users


def speedup(connection, space, stored, rounds: int) -> float:
    """Launches per second of two children in two threads, over one child in one thread.

    DuckDB runs a statement on all cores. To see whether two statements run side by side, each gets
    one: the connection's threads are its callers.
    """
    connection.execute("SET threads = 1")
    half = asked(space, oc.t.then_table_count("region", REGIONS))
    child = oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [1e6] * 100)
    root = (space >> oc.then_concurrent_odometer(dp.max_divergence()))(stored)
    handles = [root(child) for _ in range(2)]

    def work(handle):
        for _ in range(3):
            handle(half)

    def rate(threads: int) -> float:
        workers = [threading.Thread(target=work, args=(handles[i],)) for i in range(threads)]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return 3 * threads / (time.perf_counter() - begun)

    rates = {1: [], 2: []}
    for _ in range(min(rounds, 5)):
        for threads, seen in rates.items():
            seen.append(rate(threads))
    return max(rates[2]) / max(rates[1])


def peak(path: str, limit: str) -> float:
    """MiB of a process that opens the table and makes the launches."""
    text = (
        "import resource, sys; sys.path.insert(0, sys.argv[1]); import tables\n"
        "tables.launches(*sys.argv[2:])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    made = subprocess.run(
        [sys.executable, "-c", text, str(Path(__file__).parent), path, limit],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(made.stdout.splitlines()[-1])


def launches(path: str, limit: str) -> None:
    """Truncate the table, store the result, and launch counts of rows, persons and regions."""
    connection = duckdb.connect(path)
    if limit:
        connection.execute(f"SET memory_limit = '{limit}'")
    visits = oc.tables.scan(connection, "visits", SCHEMA, "person")
    bounded = visits.space >> oc.t.then_truncate(10, materialize=True)
    root = (bounded >> oc.then_concurrent_odometer(dp.max_divergence()))(visits)
    for aggregate in (
        oc.t.then_table_count(),
        oc.t.then_distinct_units(),
        oc.t.then_table_count("region", REGIONS),
    ):
        root(asked(bounded.output_space, aggregate))


def on_spark(rows: int, rounds: int) -> float:
    """A count of persons on Spark over the same statement; NaN without pyspark or Java."""
    try:
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
    except Exception as error:
        print(f"!!! SPARK IS NOT MEASURED: {type(error).__name__}: no pyspark, or no Java !!!")
        return math.nan
    try:
        session.sparkContext.setLogLevel("ERROR")
        folder = tempfile.mkdtemp()
        session.range(rows).selectExpr("id DIV 10 AS person", "id % 52 AS week").write.mode(
            "overwrite"
        ).parquet(folder)
        session.sql(f"CREATE TABLE oc_visits USING parquet LOCATION '{folder}'")
        visits = oc.tables.scan(session, "oc_visits", {"person": int, "week": int}, "person")
        root = (visits.space >> oc.then_concurrent_odometer(dp.max_divergence()))(visits)
        persons = asked(visits.space, oc.t.then_distinct_units())
        found = statement("spark", visits.relation, plan.Sums((plan.ROW,), distinct=("person",)))
        engine = visits._engine
        _, ratio = in_turn(
            {
                "launch": lambda: root(persons),
                "engine": lambda: engine.run(*found),
            },
            rounds,
        )
        session.sql("DROP TABLE oc_visits")
    finally:
        session.stop()
    return ratio


def polars_builds() -> float:
    """The largest number of measurements that a release on a LazyFrame builds; NaN without it."""
    try:
        import polars as pl
    except ImportError:
        print("!!! POLARS IS NOT MEASURED: no polars !!!")
        return math.nan
    from opendp_concurrent.context.frame_query import dp as native_names

    native = native_names.m

    made, builds = 0, []
    original = native.make_private_lazyframe

    def counted(*args, **kwargs):
        nonlocal made
        made += 1
        return original(*args, **kwargs)

    native.make_private_lazyframe = counted
    try:
        frame = pl.LazyFrame({"age": [20, 30, 40] * 50})
        margins = [dp.polars.Margin(by=(), max_length=1000)]
        for loss in ({"epsilon": 0.7}, {"rho": 0.1}, {"epsilon": 0.7, "delta": 1e-7}):
            context = oc.concurrent_context(
                frame, dp.unit_of(contributions=1), dp.loss_of(**loss), margins=margins
            )
            for plan_of in (
                lambda query: query.select(dp.len(signed=True)),
                lambda query: query.select(pl.col("age").fill_null(0).dp.sum((0, 90))),
            ):
                made = 0
                plan_of(context.query(**loss)).resolve()
                builds.append(made)
    finally:
        native.make_private_lazyframe = original
    return max(builds)


def main() -> None:
    options = parser(__doc__).parse_args()
    print_machine()
    rows, rounds = (QUICK_ROWS, 7) if options.quick else (ROWS, 15)
    spark_rows = QUICK_SPARK_ROWS if options.quick else SPARK_ROWS
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "visits.db")
        make(path, rows)
        largest, unlimited = peak(path, LIMIT), peak(path, "")
        figures, table = on_duckdb(path, rounds)
    figures["peak_mib"], figures["peak_without_limit_mib"] = largest, unlimited
    print_table(
        f"Milliseconds on DuckDB, {rows:,} rows", ["statement", "launch", "engine's own"], table
    )
    figures["spark_count_over_engine"] = on_spark(spark_rows, rounds)
    figures["polars_builds"] = polars_builds()
    figures["keys_users"] = users((0.1, 1e-6), 1)
    figures["keys_users_10"] = users((1.0, 1e-6), 10)
    figures["rows"], figures["spark_rows"] = rows, spark_rows
    fewer = f"{rows:,} rows instead of {ROWS:,}"
    estimated = {}
    if options.quick:
        names = ("count_over_engine", "groups_over_engine", "open_ms", "peak_mib")
        estimated = dict.fromkeys((*names, "threads_speedup_2"), fewer)
        estimated["spark_count_over_engine"] = f"{spark_rows:,} rows instead of {SPARK_ROWS:,}"
    report(figures, TARGETS, estimated, options)


if __name__ == "__main__":
    main()
