"""What a launch on individual budgets in an engine costs, beside the sums that it charges for.

    python benchmarks/individual_tables.py [--quick] [--json] [--save]

Tables of two rows a unit, in a DuckDB file and in PostgreSQL. The peer is the engine's own
statement without budgets: the sum of the clipped sums of all units. Both take turns. A launch also
joins the budgets, writes all of them anew, and waits until they are durable. Then it prints how
many launches individual budgets allow, beside one budget for all.
"""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile
import time
from pathlib import Path
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"

import duckdb
import opendp.prelude as dp
from _postgres import server
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")

ZCDP = dp.zero_concentrated_divergence()
SCHEMA = {"person": int, "eur": int}
BOUND, LAUNCHES = 100, 100
MIB = 2.0**20
PEER = (
    "SELECT SUM(CASE WHEN n > 100 THEN 100 WHEN n < -100 THEN -100 ELSE n END) "
    "FROM (SELECT person, SUM(eur) AS n FROM visits GROUP BY person) AS t"
)


def query() -> oc.m.NoisyTableSum:
    scale = oc.m.individual_scale(ZCDP, d_out=1.0, bound=BOUND, launches=LAUNCHES)
    return oc.m.NoisyTableSum("eur", bound=BOUND, scale=scale)


def opened(connection):
    visits = oc.tables.scan(connection, "visits", SCHEMA, "person")
    oc.tables.create_budgets(visits, "spent")
    return oc.m.make_individual_table_filter(*visits.space, ZCDP, 1.0, "spent")(visits)


def seconds(ask) -> float:
    start = time.perf_counter()
    ask()
    return time.perf_counter() - start


def paired(queryable, peer, repeats: int) -> tuple[float, float]:
    """Median seconds of a launch, and of the peer, in turns; the first of each is left out."""
    asked, ours, theirs = query(), [], []
    for _ in range(repeats + 1):
        ours.append(seconds(lambda: queryable(asked)))
        theirs.append(seconds(peer))
    return median(ours[1:]), median(theirs[1:])


def on_duckdb(units: int, repeats: int) -> list:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "survey.duckdb"
        with contextlib.closing(duckdb.connect(str(path))) as connection:
            connection.execute(
                f"CREATE TABLE visits AS SELECT (range * 7919) % {units} AS person, "
                f"(range * 31) % 60 AS eur FROM range({2 * units})"
            )
            connection.execute("CHECKPOINT")
            before = path.stat().st_size
            queryable = opened(connection)
            ours, theirs = paired(queryable, lambda: connection.execute(PEER).fetchall(), repeats)
            connection.execute("CHECKPOINT")
            size = (path.stat().st_size - before) / units
            del queryable
    return ["DuckDB", units, ours, theirs, ours / theirs, size]


def on_postgres(units: int, repeats: int) -> list | None:
    with server() as url:
        if url is None:
            return None
        import psycopg

        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(
                f"CREATE TABLE visits AS SELECT (i * 7919) % {units} AS person, "
                f"(i * 31) % 60 AS eur FROM generate_series(1::bigint, {2 * units}) AS i"
            )
            connection.execute("VACUUM ANALYZE visits")
            queryable = opened(connection)
            ours, theirs = paired(queryable, lambda: connection.execute(PEER).fetchall(), repeats)
            found = connection.execute("SELECT pg_total_relation_size('spent')").fetchone()
            size = found[0] / units
            del queryable
    return ["PostgreSQL", units, ours, theirs, ours / theirs, size]


def launches_gained(units: int) -> tuple[int, int]:
    """Launches until a tenth of the sum is missing: individual budgets, and one budget for all."""
    with contextlib.closing(duckdb.connect()) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            "CREATE TABLE visits AS SELECT range AS person, "
            f"LEAST({BOUND}, CAST(-20 * ln(1 - random()) AS INTEGER)) AS eur FROM range({units})"
        )
        ((whole,),) = connection.execute("SELECT SUM(eur) FROM visits").fetchall()
        queryable, asked = opened(connection), 0
        while queryable(query()) > 0.9 * whole:
            asked += 1
        del queryable
    return asked, LAUNCHES


def main() -> None:
    """Run, print, report."""
    options = parser(__doc__).parse_args()
    print_machine()
    sizes = (10**5, 10**6) if options.quick else (10**5, 10**6, 10**7)
    repeats = 3 if options.quick else 5
    rows = [on_duckdb(units, repeats) for units in sizes]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB
    rows += [found for units in sizes[:2] if (found := on_postgres(units, repeats)) is not None]
    print_table(
        f"one launch, seconds; medians of {repeats} in turns",
        ["engine", "units", "launch", "bare sums", "over bare", "bytes per unit"],
        rows,
    )
    print(f"\npeak memory of this process with DuckDB, at {sizes[-1]:,} units: {peak:,.0f} MiB")
    asked, planned = launches_gained(20_000)
    print_table(
        "what individual budgets gain",
        ["launches until 10% is missing", "with one budget for all"],
        [[asked, planned]],
    )
    by = {(row[0], row[1]): row[2] for row in rows}
    report(
        {
            "budgets_duckdb_1e6_s": by["DuckDB", 10**6],
            "budgets_duckdb_1e7_s": by.get(("DuckDB", 10**7), float("nan")),
            "budgets_postgres_1e6_s": by.get(("PostgreSQL", 10**6), float("nan")),
        },
        {},
        {},
        options,
    )


if __name__ == "__main__":
    main()
