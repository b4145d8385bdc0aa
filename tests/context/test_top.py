"""The keys with the most rows, and bounds from the data: the better way, its price, refusals."""

from functools import partial

import duckdb
import opendp.prelude as dp
import pytest
from opendp import measurements

import opendp_concurrent as oc
from opendp_concurrent.context.table_query import Top, best_top
from opendp_concurrent.errors import TooFewRowsError
from opendp_concurrent.tables import schema
from opendp_concurrent.tables.aggregates import then_table_count

pytest.importorskip("sqlglot", reason="!!! TABLES ARE NOT TESTED: no sqlglot !!!")
dp.enable_features("contrib", "honest-but-curious")
LOSSES = {"epsilon": 1e9}, {"rho": 1e9}, {"epsilon": 1e9, "delta": 1e-9}
MEASURES = {"pure": dp.max_divergence(), "zcdp": dp.zero_concentrated_divergence()}
NEW = hasattr(measurements, "then_noisy_top_k")


@pytest.fixture(scope="module")
def table():
    """Person p has the zones 0 to p % 10, and an income of 2 ** (p % 10)."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT p AS person, z AS zone, CAST(2.0 ** (p % 10) AS BIGINT) AS eur, "
        "0.001e0 * z AS share FROM range(500) AS a(p), range(10) AS b(z) WHERE z <= p % 10"
    )
    schema = {"person": int, "zone": int, "eur": int, "share": float}
    return oc.tables.scan(connection, "t", schema, "person")


def context(table, loss, **options):
    return oc.concurrent_context(table, oc.tables.unit_of(units=1), dp.loss_of(**loss), **options)


def query(table, loss):
    return context(table, loss, split_evenly_over=1).query()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("groups", [1, 10])
def test_the_keys_with_the_most_rows_come_first(table, loss, groups):
    few = query(table, loss).group_truncate("zone", groups)
    found = few.top(1 if groups == 1 else 3, "zone", [9, 8, 7, 2, 1, 0]).release()
    assert found == ([0] if groups == 1 else [0, 1, 2])


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.skipif(not NEW, reason="OpenDP 0.14 has no noisy top-k")
def test_the_way_with_less_noise_is_taken(table, name):
    """Both ways at the same loss: the noise in a count, and the share of right keys."""
    measure, right = MEASURES[name], {}
    for groups in (1, 4, 10):
        few = table.space >> oc.t.then_group_truncate("zone", groups)
        then = partial(then_table_count, "zone", list(range(10)))
        counts = {norm: few.output_space >> then(norm=norm) for norm in ("l1", "l2", "linf")}
        for wanted in (1, 5):
            ways = [Top(counts.get, measure, wanted, selects) for selects in (False, True)]
            best = best_top(1, counts.get, measure, wanted)
            assert best.noise(1) == min(way.noise(1) for way in ways)
            right[groups, wanted] = best.selects
    assert right == {(1, 1): False, (1, 5): False, (4, 1): True, (4, 5): False} | {
        (10, 1): True,
        (10, 5): True,
    }


def test_a_search_for_the_scale_checks_the_keys_once_for_each_norm(table, monkeypatch):
    read = []
    monkeypatch.setattr(
        schema, "row_of", lambda *a, k=schema.row_of, **b: read.append(a) or k(*a, **b)
    )
    query(table, {"epsilon": 0.5}).group_truncate("zone", 10).top(1, "zone", range(10)).resolve()
    assert 10 <= len(read) <= 30


@pytest.mark.parametrize("loss", [{"epsilon": 0.5}, {"rho": 0.5}], ids=str)
@pytest.mark.parametrize("groups", [1, 10])
def test_the_price_is_the_loss_of_the_query(table, loss, groups):
    few = query(table, loss).group_truncate("zone", groups)
    for asked in (few.top(1, "zone", range(10)), few.bounds("eur")):
        measurement = asked.resolve()
        assert 0.99 * 0.5 <= measurement.map(1) <= 0.5


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_bounds_are_next_to_the_values(table, loss):
    assert query(table, loss).truncate(1).bounds("eur").release() == (1, 1024)
    assert query(table, loss).truncate(1).bounds("eur", 0.15).release() == (2, 512)
    assert query(table, loss).truncate(1).bounds("eur", exponents=range(0, 5)).release() == (1, 16)
    low, high = query(table, loss).truncate(10).bounds("share").release()
    assert (low, high) == (0.0, 2.0**-6)
    assert type(low) is float
    assert type(query(table, loss).truncate(1).bounds("eur").release()[0]) is int


def test_too_few_rows_to_tell_are_an_error_that_is_charged(table):
    """Noise alone was taken for rows: the answer was a useless pair."""
    on = context(table, {"epsilon": 1e-3})
    with pytest.raises(TooFewRowsError, match="too few rows to tell") as caught:
        on.query(epsilon=1e-3).truncate(1).bounds("eur", alpha=1e-12).release()
    assert caught.value.charged is True
    assert caught.value.threshold > 1e4
    assert on.current_privacy_loss() == pytest.approx(1e-3)


@pytest.mark.parametrize(("rows", "epsilon"), [(1000, 0.5), (5000, 0.1)])
def test_bounds_of_few_rows_are_next_to_the_values(rows, epsilon):
    """About half of the answers were useless, such as (-3e10, 1e12)."""
    connection = duckdb.connect().execute(
        f"CREATE TABLE t AS SELECT range::INT AS person, (20 + range % 30)::INT AS age, "
        f"(20 + range % 30)::DOUBLE AS kg FROM range({rows})"
    )
    known = oc.tables.scan(connection, "t", {"person": int, "age": int, "kg": float}, "person")
    for column in ("age", "kg"):
        for loss in ({"epsilon": epsilon}, {"rho": epsilon**2 / 2}):
            found = query(known, loss).truncate(1).bounds(column, alpha=1e-12).release()
            assert found == (16, 64)
