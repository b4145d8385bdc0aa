"""OpenDP's guide to tabular data, on tables in an engine.

Each test has the name of a page in docs/source/getting-started/tabular-data of opendp/opendp. The
columns are those of its labour force survey; the rows are made up. docs/tables.rst lists what
cannot be translated. Noise is negligible, so that answers are compared with plain Python.
"""

import statistics
from itertools import pairwise

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

pytest.importorskip("sqlglot", reason="!!! TABLES ARE NOT TESTED: no sqlglot !!!")
pytest.importorskip("pandas")
dp.enable_features("contrib", "honest-but-curious")
NAMES = ("SEX", "AGE", "ILOSTAT", "HWUSUAL", "QUARTER", "YEAR", "PIDENT")
SCHEMA = dict.fromkeys(NAMES, int)
col = oc.tables.col
WORKS = col("HWUSUAL") != 99


def row(person, quarter):
    hours = [99, 35, 0, 48, None, 40, 20, 80, 97][(person + quarter) % 9]
    return 1 + person % 2, 15 + person % 60, (1, 2, 3, 9)[person % 4], hours, quarter, 2008, person


ROWS = [row(person, quarter) for person in range(300) for quarter in range(1, 5)]


def hours(rows=ROWS):
    return [one[3] for one in rows if one[3] is not None and one[3] != 99]


@pytest.fixture(scope="module")
def table():
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE lfs ({', '.join(f'{name} BIGINT' for name in NAMES)})")
    connection.executemany(f"INSERT INTO lfs VALUES ({', '.join('?' * 7)})", ROWS)
    return oc.tables.scan(connection, "lfs", SCHEMA, "PIDENT")


@pytest.fixture
def context(table):
    return oc.concurrent_context(
        data=table,
        privacy_unit=oc.tables.unit_of(units=1),
        privacy_loss=dp.loss_of(epsilon=1e9),
        split_evenly_over=5,
    )


def released(query, frame="pandas"):
    return query.laplace().release(frame=frame)["value"].to_list()


def test_essential_statistics_count(context):
    everyone = context.query().truncate(36)
    assert released(everyone.count()) == [len(ROWS)]
    rows_with_hours = context.query().truncate(36).where(~col("HWUSUAL").is_null())
    assert released(rows_with_hours.count()) == [sum(one[3] is not None for one in ROWS)]
    nulls = context.query().truncate(36).where(col("HWUSUAL").is_null())
    assert released(nulls.count()) == [sum(one[3] is None for one in ROWS)]
    assert released(context.query().distinct_units()) == [300]


def test_essential_statistics_sum(context):
    query = context.query().where(WORKS).truncate(36).sum("HWUSUAL", bounds=(0, 80))
    assert query.laplace().param() == pytest.approx(36 * 80 / (1e9 / 5))
    assert released(query) == [sum(min(one, 80) for one in hours())]


def test_essential_statistics_mean(context):
    """Of the sum and the count, on one truncated table, as the guide does where rows are added."""
    work = context.query().where(WORKS & ~col("HWUSUAL").is_null()).truncate(36)
    both = work.compositor(split_evenly_over=2).release()
    (total,) = released(both.query().sum("HWUSUAL", bounds=(0, 80)))
    (count,) = released(both.query().count())
    assert total / count == pytest.approx(statistics.fmean(min(one, 80) for one in hours()))


def test_essential_statistics_median_and_quantiles(context):
    candidates = list(range(20, 60))
    work = context.query().where(WORKS).truncate(36)
    three = work.compositor(split_evenly_over=3).release()
    found = [three.query().quantile("HWUSUAL", candidates, a).release() for a in (0.25, 0.5, 0.75)]
    for one, alpha in zip(found, (0.25, 0.5, 0.75), strict=True):
        distances = {
            candidate: abs(
                (1 - alpha) * sum(value < candidate for value in hours())
                - alpha * sum(value > candidate for value in hours())
            )
            for candidate in candidates
        }
        assert distances[one] == min(distances.values())


def test_grouping_explicit_keys(context):
    keys = [(age, status) for age in range(15, 75) for status in (1, 2, 3, 9)]
    query = context.query().truncate(36).count(["AGE", "ILOSTAT"], keys)
    frame = query.laplace().release(frame="pandas")
    assert list(frame.columns) == ["AGE", "ILOSTAT", "value", "accuracy"]
    exact = [sum((one[1], one[2]) == key for one in ROWS) for key in keys]
    assert frame["value"].to_list() == exact


def test_grouping_invariant_keys_are_public_keys(context):
    keys = [(2008, quarter) for quarter in range(1, 5)]
    query = context.query().truncate(36).count(["YEAR", "QUARTER"], keys)
    assert released(query) == [300] * 4


def test_identifier_truncation_of_rows(context):
    work = context.query().where(WORKS).truncate(2, order_by=["YEAR", "QUARTER"])
    both = work.compositor(split_evenly_over=2).release()
    (count,) = released(both.query().count())
    persons = [ROWS[4 * person : 4 * person + 4] for person in range(300)]
    assert count == sum(min(2, len(hours(own))) for own in persons)
    (total,) = released(both.query().sum("HWUSUAL", bounds=(0, 80)))
    assert total == sum(min(one, 80) for own in persons for one in hours(own)[:2])


def test_identifier_truncation_of_groups(context):
    """At most one row of a person in a quarter, and at most ten quarters of a person."""
    keys = [(quarter, 2008) for quarter in range(1, 5)]
    by = ["QUARTER", "YEAR"]
    quarterly = context.query().where(WORKS).group_truncate(by, groups=10, rows=1)
    both = quarterly.compositor(split_evenly_over=2).release()
    lengths = both.query().count(by, keys)
    assert lengths.laplace().resolve().map(1) <= 1e9 / 10
    assert lengths.laplace().param() == pytest.approx(4 / (1e9 / 10))  # there are four keys
    exact = [
        [one for one in ROWS if one[4] == quarter and one[3] not in (None, 99)]
        for quarter, _ in keys
    ]
    assert released(lengths) == [len(one) for one in exact]
    sums = both.query().sum("HWUSUAL", (0, 80), by=by, keys=keys)
    assert released(sums) == [sum(min(one, 80) for one in hours(group)) for group in exact]


def test_preparing_microdata_binned(context):
    edges = [0, 20, 40, 60, 80, 98, 100]
    query = context.query().truncate(36).histogram("HWUSUAL", edges)
    exact = [one[3] for one in ROWS if one[3] is not None]
    assert released(query) == [
        sum(low <= one < high for one in exact) for low, high in pairwise(edges)
    ]
