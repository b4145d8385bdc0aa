"""The example of visits runs, on fewer rows, and its counter and its search are right."""

import importlib.util
from pathlib import Path

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

pytest.importorskip("sqlglot", reason="!!! THE EXAMPLE OF VISITS IS NOT RUN: no sqlglot !!!")
for _extra in ("polars", "pandas", "statsmodels", "matplotlib"):
    pytest.importorskip(_extra)
PATH = Path(__file__).parents[1] / "docs" / "examples" / "visits.py"
ROWS = 6_000


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("visits_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.SLOTS, module.ROWS = 2**8, ROWS
    dp.enable_features("contrib", "honest-but-curious")
    return module


@pytest.fixture(scope="module")
def folder(example, tmp_path_factory):
    made = tmp_path_factory.mktemp("visits")
    example.write_visits(made / "visits.parquet", ROWS)
    return made


def test_what_is_released_is_near_the_truth(example, folder):
    found = example.analyse(folder, frame="pandas")
    with duckdb.connect() as connection:
        few = connection.execute(
            "SELECT region, sum(least(n, 5))::BIGINT FROM (SELECT region, person, count(*) AS n "
            f"FROM read_parquet('{folder / 'visits.parquet'}') GROUP BY ALL) GROUP BY 1 ORDER BY 1"
        ).fetchall()
        first = connection.execute(
            "SELECT count(*) FROM (SELECT person, min(week) AS week "
            f"FROM read_parquet('{folder / 'visits.parquet'}') WHERE region = 'east' "
            "GROUP BY 1) WHERE week <= 25"
        ).fetchone()[0]
    counts = found["counts"]
    assert counts["region"].to_list() == example.REGIONS == [region for region, _ in few]
    for value, (_, exact) in zip(counts["value"].to_list(), few, strict=True):
        assert abs(value - exact) < 16 * 9  # 9 scales: 10^-18
    assert abs(found["seen"][25] - first) < 15 * 9 * 4.5  # at most 20 nodes
    assert found["busy"] == []  # a fiftieth of the visits: far below the threshold
    assert found["losses"][-1] + found["remaining"] == pytest.approx(0.5)
    assert found["losses"][3:] == [found["losses"][3]] * (len(found["losses"]) - 3)
    with oc.ledger.open_ledger(folder / "budget.db", dataset="visits") as ledger:
        assert len(ledger.entries()) == 4
    example.draw(found, folder / "visits.svg")
    assert "<svg" in (folder / "visits.svg").read_text()


def test_a_person_more_changes_one_step_of_the_counter(example, folder):
    table = oc.tables.scan(
        duckdb.connect(), str(folder / "visits.parquet"), example.SCHEMA, "person"
    )
    mechanism = example.counter_of_weeks(table, scale=1e-6)
    stream = oc.integer_stream(0, 1), oc.event_change()
    horizon = example.SLOTS * 52
    alone = oc.m.make_counter(*stream, example.ZCDP, scale=1e-6, horizon=horizon)
    assert [mechanism.map(d_in) for d_in in (1, 3)] == [alone.map(d_in) for d_in in (1, 3)]
    counter = mechanism(table)
    seen = [counter(None) for _ in range(54)]
    with duckdb.connect() as connection:
        weekly = connection.execute(
            "SELECT week, count(*) FROM (SELECT person, min(week) AS week "
            f"FROM read_parquet('{folder / 'visits.parquet'}') WHERE region = 'east' "
            "GROUP BY 1) GROUP BY 1"
        ).fetchall()
    exact = [sum(min(n, example.SLOTS) for week, n in weekly if week <= last) for last in range(52)]
    assert seen == [*exact, exact[-1], exact[-1]]
