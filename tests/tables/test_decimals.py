"""Bounds, constants, keys and answers of decimal columns are in the unit of the column, exactly."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from math import floor, trunc
from operator import or_

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from .pipelines import Data

TWO, THREE = oc.tables.Decimal(2), oc.tables.Decimal(3)
SCHEMA = {"person": int, "eur": TWO, "fine": THREE, "n": int, "x": float}
EUR = ["0.00", "0.01", "-0.01", "1.25", "12.50", "-3.75", "9999999.99", "-9999999.99", None]
FINE = ["0.005", "1.250", "-0.001", None, "12.5", "7", "0.000", "1.999", "-1.999"]
ROWS = [
    (person, *(None if one is None else Decimal(one) for one in pair), person - 4, person / 4)
    for person, pair in enumerate(zip(EUR, FINE, strict=True))
]
col = oc.tables.col


@pytest.fixture(scope="module")
def table(engine):
    return engine.load(Data.of(SCHEMA, "person", ROWS), "decimals")


def few(table):
    on = oc.concurrent_context(table, oc.tables.unit_of(units=1), dp.loss_of(epsilon=1e40))
    return on.query(epsilon=1e25).truncate(1)


def known(row):
    return {
        name: Fraction(one) if isinstance(one, Decimal) else one
        for name, one in zip(SCHEMA, row, strict=True)
    }


CONDITIONS = {
    "a constant": (col("eur") > 1.25, lambda r: r["eur"] > Fraction("1.25")),
    "a Decimal": (col("eur") >= Decimal("1.250"), lambda r: r["eur"] >= Fraction("1.25")),
    "more digits": (col("eur") > 0.005, lambda r: r["eur"] > Fraction("0.005")),
    "is in": (
        col("eur").is_in([0.01, Decimal("12.5"), 3]),
        lambda r: r["eur"] in (Fraction("0.01"), Fraction("12.5")),
    ),
    "two scales": (col("eur") == col("fine"), lambda r: r["eur"] == r["fine"]),
    "an integer": (col("fine") < col("n"), lambda r: r["fine"] < r["n"]),
    "between": (col("fine").between(-0.001, 1.25), lambda r: -1 <= 1000 * r["fine"] <= 1250),
    "an integer column": (col("n") > Decimal("1.5"), lambda r: r["n"] > 1.5),
}
VALUES = {
    "a sum": (col("eur") + col("fine"), lambda r: r["eur"] + r["fine"], 3),
    "a difference": (1 - col("eur"), lambda r: 1 - r["eur"], 2),
    "a product": (col("eur") * col("fine"), lambda r: r["eur"] * r["fine"], 5),
    "a factor": (col("eur") * 1.19, lambda r: r["eur"] * Fraction("1.19"), 4),
    "a floor": (col("eur") // 0.25, lambda r: floor(r["eur"] / Fraction("0.25")), 0),
    "an integer": (col("eur").cast(int), lambda r: trunc(r["eur"]), 0),
    "clipped": (col("fine").clip(0, 1.5), lambda r: min(max(r["fine"], 0), Fraction("1.5")), 3),
    "finer": (col("eur").cast(oc.tables.Decimal(4)), lambda r: r["eur"], 4),
    "of an integer": (col("n").cast(TWO), lambda r: r["n"], 2),
    "a choice": (
        oc.tables.when(col("eur") > 0).then(col("fine")).otherwise(0.5),
        lambda r: r["fine"] if (r["eur"] or 0) > 0 else Fraction(1, 2),
        3,
    ),
    "filled": (
        col("eur").fill_null(0.125),
        lambda r: Fraction(1, 8) if r["eur"] is None else r["eur"],
        3,
    ),
}


def meant(truth, row, otherwise):
    """What holds of a row; a comparison with NULL does not hold, and a sum with it is NULL."""
    try:
        return truth(known(row))
    except TypeError:
        return otherwise


def test_conditions_are_in_the_unit_of_the_column(table):
    for name, (condition, truth) in CONDITIONS.items():
        found = few(table).where(condition).count().laplace().release()
        assert found == sum(meant(truth, row, False) for row in ROWS), name


def test_new_columns_are_exact(table):
    for name, (expression, truth, scale) in VALUES.items():
        total = sum(filter(None, (meant(truth, row, None) for row in ROWS)))
        query = few(table).with_columns(made=expression)
        largest = 10**11 if scale <= 3 else 10**10
        found = query.sum("made", (-largest, largest)).laplace().release()
        assert Fraction(found) == total, name
        assert found == (found if scale == 0 else round(Decimal(found), scale))
        assert type(found) is (int if scale == 0 else Decimal)


def test_floats_are_those_next_to_decimals(table):
    known = [row[1] for row in ROWS if row[1] is not None]
    for expression in (col("eur").cast(float), col("eur") / 1.0, col("eur") + col("x") * 0.0):
        each = [(col("eur") == one) & (col("f") == float(one)) for one in known]
        same = few(table).with_columns(f=expression).where(reduce(or_, each))
        assert same.count().laplace().release() == len(known)


def test_answers_are_in_the_unit_of_the_column(table):
    query = few(table)
    assert str(query.sum("eur", (-1, 12.5)).laplace().release()) == "24.25"
    sums = query.sum("eur", (0, Decimal("12.5")), by="n", keys=[-1, 0]).laplace().release()
    assert [str(one) for one in sums] == ["1.25", "12.50"]
    assert query.mean("eur", (-4, 12.5)).laplace().release().value == pytest.approx(2.3125)
    both = query.select(total=query.sum("eur", (-1, 12.5)), n=query.count()).laplace().release()
    assert both["total"].value == pytest.approx(24.25)
    keys = [Decimal("1.25"), 12.5, 7]
    assert query.count("eur", keys).laplace().release() == [1, 1, 0]
    assert query.histogram("eur", [-0.01, 0, 1.25, 12.51]).laplace().release() == [1, 2, 2]
    assert query.quantile("eur", [-0.01, 0, 0.01, 1.25], 0.5).release() in map(
        Decimal, ("0", "0.01")
    )
    assert type(query.quantile("eur", [0, 0.01, 1.25], 0.5).release()) is Decimal
    assert query.top(1, "eur", [7, 12.5]).release() == [12.5]
    joined = query.join("eur", {"rate": TWO}, {1.25: 0.05, Decimal("12.50"): 1})
    assert str(joined.sum("rate", (0, 1)).laplace().release()) == "1.05"


def test_frames_are_in_the_unit_of_the_column(table):
    pytest.importorskip("polars")
    query = few(table)
    found = query.sum("eur", (-1, 12.5)).laplace().release(frame="polars")
    assert str(found.schema["value"]) == "Decimal(precision=38, scale=2)"
    assert found["value"].to_list() == [Decimal("24.25")]
    counts = query.count("eur", [1.25, 7]).laplace().release(frame="polars")
    assert counts["eur"].to_list() == [Decimal("1.25"), Decimal("7.00")]
    panda = query.sum("eur", (0, 9), by="eur", keys=[1.25, 7]).laplace().release(frame="pandas")
    assert panda["value"].tolist() == [Decimal("1.25"), Decimal("0.00")]
    assert panda["eur"].tolist() == [Decimal("1.25"), Decimal("7.00")]


def test_bounds_are_numbers_of_the_column(on_duckdb):
    rows = [(one, Decimal(one % 90).scaleb(-2)) for one in range(1000)]
    table = on_duckdb.load(Data.of({"person": int, "eur": TWO}, "person", rows), "cents")
    assert few(table).bounds("eur").release() == (Decimal("0.00"), Decimal("1.00"))
    above = few(table).where(col("eur") >= 0.5).bounds("eur").release()
    assert above == (Decimal("0.50"), Decimal("1.00"))


def test_keys_of_the_data_and_parts_are_in_the_unit_of_the_column(on_duckdb):
    rows = [{"person": one, "eur": Decimal("0.25") * (1 + one % 2)} for one in range(1000)]
    table = on_duckdb.load(Data({"person": int, "eur": TWO}, "person", rows), "keys")
    loss = dp.loss_of(epsilon=1e3, delta=1e-6)
    on = oc.concurrent_context(table, oc.tables.unit_of(units=1), loss)
    once = on.query(epsilon=10.0, delta=1e-6).group_truncate("eur", 1)
    assert set(once.keys("eur").release()) == {Decimal("0.25"), Decimal("0.50")}
    keys, grouped = [Decimal("0.25"), Decimal("7.00")], few(table).group_truncate("eur", 1)
    parts = grouped.parallel_composition(oc.c.by_column("eur"), keys=keys).release()
    queries = [parts[key].query().count() for key in keys]
    assert [query.laplace(scale=1e-9).release() for query in queries] == [500, 0]


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda query: query.sum("eur", (0, 0.005)), "at most 2 digits"),
        (lambda query: query.sum("eur", (0, float("inf"))), "bounds"),
        (lambda query: query.sum("eur", (0, Decimal("NaN"))), "bounds"),
        (lambda query: query.sum("eur", (0, True)), "bounds"),
        (lambda query: query.sum("eur", (0, 1), 0.5), "quantum"),
        (lambda query: query.sum("eur", (0, 1e18)), "64 bits"),
        (lambda query: query.count("eur", ["1.25"]), "keys"),
        (lambda query: query.count("eur", [1.25, Decimal("1.250")]), "distinct"),
        (lambda query: query.where(col("eur") > "1"), "integer"),
        (lambda query: query.where(col("eur") > date(2024, 1, 1)), "integer"),
        (lambda query: query.where(col("eur").is_in([0.005])), "at most 2 digits"),
        (lambda query: query.with_columns(y=col("eur").cast(str)), "Decimal"),
        (lambda query: query.with_columns(y=col("fine").cast(TWO)), "digits"),
        (lambda query: query.with_columns(y=col("eur") * 1e-17), "18 digits"),
        (lambda query: query.with_columns(y=col("eur") * 1e-19), "18 digits"),
    ],
)
def test_numbers_that_the_column_does_not_have_are_refused(on_duckdb, ask, match):
    table = on_duckdb.load(Data.of(SCHEMA, "person", ROWS), "refusals")
    with pytest.raises((InvalidTypeError, InvalidValueError), match=match):
        ask(few(table))
