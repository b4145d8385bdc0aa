"""Transformations of tables: bounds and maps by hand, fair truncation, keys, and refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.domain import GroupBound, Norms, Tables
from opendp_concurrent.tables.schema import schema_of

from .pipelines import Data

pandas, polars = map(pytest.importorskip, ("pandas", "polars"))
col = oc.tables.col
SCHEMA = {"person": int, "zone": str, "day": int, "eur": float}
ROWS = [(1, "a", 1, 2.0), (1, "b", 2, 3.26), (2, None, 1, None), (3, "a", 9, -4.0)]


@pytest.fixture(scope="module")
def table(on_duckdb):
    return on_duckdb.load(Data.of(SCHEMA, "person", ROWS), "stepped")


@pytest.fixture(scope="module")
def bounded(table):
    return table.space >> oc.t.then_truncate(3)


STEPS = {
    "with columns": oc.t.then_with_columns({"late": col("day") > 1, "eur": col("eur") * 2}),
    "where": oc.t.then_where(col("day") == 1),
    "select": oc.t.then_table_select(["zone"]),
    "truncate": oc.t.then_truncate(2),
    "per unit": oc.t.then_per_unit({"n": oc.tables.count(), "late": oc.tables.max("day")}),
    "group truncate": oc.t.then_group_truncate("zone", 2, 3),
    "public join": oc.t.then_public_join("zone", {"big": bool}, {"a": True, "b": None}),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_keeps_the_distance_in_units_and_runs_nothing(table, name, monkeypatch):
    step = table.space >> STEPS[name]
    assert [step.map(d_in) for d_in in (0, 1, 2, 10**9)] == [0, 1, 2, 10**9]
    for wrong in (-1, 1.5, True, "1", None):
        with pytest.raises(Exception, match="d_in"):
            step.map(wrong)
    monkeypatch.setattr(type(table._engine), "run", None)
    derived = step(table)
    assert type(derived) is oc.tables.Table
    assert derived.tables == step.output_domain.descriptor


def norms(tables, by, groups=None):
    return tables.contribution(frozenset(by), groups)


def test_bounds_of_groups_by_hand():
    schema = schema_of(SCHEMA, "person")
    rows = Tables(schema).at_most(5)
    assert norms(rows, {"zone"}) == Norms(5, 25, 5)
    grouped = rows.at_most(6, GroupBound(frozenset({"zone"}), 3, 2))
    assert norms(grouped, {"zone"}) == Norms(5, 4 + 4 + 1, 2)  # 2 + 2 + 1 rows
    assert norms(grouped, {"zone"}, 2) == Norms(4, 8, 2)
    assert norms(grouped, {"zone", "day"}) == Norms(5, 9, 2)  # finer: at most 2 in each
    assert norms(grouped, {"day"}) == Norms(5, 25, 5)  # another column: nothing is known
    finer = Tables(schema).at_most(6, GroupBound(frozenset({"zone", "day"}), 3, 2))
    assert norms(finer, {"zone"}) == Norms(6, 36, 6)  # all groups may be in one zone
    assert finer.groups_at_most(frozenset({"zone"})) == 3
    assert grouped.groups_at_most(frozenset({"zone", "day"})) == 5


def brute(total, each, count):
    """The largest L2 norm, squared, of `count` integers of at most `each` with a sum of `total`."""
    if count == 0 or total == 0:
        return 0
    return max(
        one**2 + brute(total - one, one, count - 1) for one in range(1, min(each, total) + 1)
    )


def test_the_l2_norm_is_the_largest_of_all_vectors():
    schema = schema_of(SCHEMA, "person")
    for total in range(1, 9):
        for each in range(1, 6):
            for count in range(1, 6):
                bound = GroupBound(frozenset({"zone"}), count, each)
                tables = Tables(schema).at_most(min(total, each * count), bound)
                found = norms(tables, {"zone"})
                assert found.l2_squared == brute(min(total, each * count), each, count)
                assert found.l1 == min(total, each * count)


def test_a_bound_goes_with_its_columns(table):
    grouped = table.space >> oc.t.then_group_truncate(["zone", "day"], 2, 1)
    kept = grouped >> oc.t.then_table_select(["zone", "day"])
    lost = grouped >> oc.t.then_table_select(["zone"])
    assert len(kept.output_domain.descriptor.groups) == 1
    assert lost.output_domain.descriptor.groups == frozenset()
    assert lost.output_domain.descriptor.rows == 2


def test_the_l2_map_is_rounded_up(table):
    grouped = table.space >> oc.t.then_group_truncate("zone", 3, 1)
    asked = grouped >> oc.t.then_table_count("zone", list("abc"), norm="l2")
    for d_in in (1, 2, 3, 7, 1000):
        assert Fraction(asked.map(d_in)) ** 2 >= 3 * d_in**2
        assert asked.map(d_in) == pytest.approx(d_in * math.sqrt(3), rel=1e-15)


def test_a_distance_beyond_64_bits_is_refused(bounded):
    asked = bounded >> oc.t.then_table_sum("day", (0, 2**62))
    with pytest.raises(Exception, match="within 64 bits"):
        asked.map(1)
    with pytest.raises(Exception, match="within 64 bits"):
        (bounded >> oc.t.then_table_count()).map(2**62)


def moments(column, bounds, quantum=None, order=1, **groups):
    statistic = "mean" if order == 1 else "variance"
    return oc.t.then_table_answers([oc.tables.Answer(statistic, column, bounds, quantum)], **groups)


REFUSED = {
    "a text": (oc.t.then_where("age > 3"), "oc.tables.col"),
    "a function": (oc.t.then_where(lambda row: True), "deterministic and total"),
    "no column": (oc.t.then_where(col("nowhere") == 1), "must be a column"),
    "a float for an integer": (oc.t.then_where(col("day") == 1.5), "integer"),
    "a Boolean for an integer": (oc.t.then_where(col("day") == True), "integer"),  # noqa: E712
    "NaN": (oc.t.then_where(col("eur") == float("nan")), "NaN"),
    "too large": (oc.t.then_where(col("day") == 2**63), "64 bits"),
    "NUL": (oc.t.then_where(col("zone") == "a\0"), "NUL"),
    "a surrogate": (oc.t.then_where(col("zone") == "\ud800"), "Unicode"),
    "two types": (oc.t.then_where(col("zone") == col("day")), "one type"),
    "no condition": (oc.t.then_where(col("day")), "must hold or not"),
    "no new columns": (oc.t.then_with_columns({}), "at least one"),
    "columns of texts": (oc.t.then_with_columns({"x": "day + 1"}), "oc.tables.col"),
    "the unit again": (oc.t.then_with_columns({"person": col("day")}), "redefine 'person'"),
    "a name in another case": (oc.t.then_with_columns({"Day": col("day")}), "case"),
    "no count": (oc.t.then_per_unit({"n": col("day")}), "oc.tables.count"),
    "a mean": (oc.t.then_per_unit({"n": oc.tables.Answer("mean", "day", (0, 1))}), "count"),
    "a sum without bounds": (oc.t.then_per_unit({"n": oc.tables.sum("day", None)}), "bounds"),
    "the unit anew": (oc.t.then_per_unit({"Person": oc.tables.count()}), "more than case"),
    "nothing of a unit": (oc.t.then_per_unit({}), "at least one"),
    "selected twice": (oc.t.then_table_select(["day", "day"]), "once"),
    "no rows": (oc.t.then_truncate(0), "at least 1"),
    "by a float": (oc.t.then_group_truncate("eur", 1), "found float"),
    "by nothing": (oc.t.then_group_truncate([], 1), "nonempty"),
    "old name": (oc.t.then_public_join("zone", {"DAY": int}, {"a": 1}), "more than case"),
    "wrong key": (oc.t.then_public_join("zone", {"x": int}, {3: 1}), "column's type"),
    "wrong value": (oc.t.then_public_join("zone", {"x": int}, {"a": "b"}), "integer"),
    "too few values": (
        oc.t.then_public_join("zone", {"x": int, "y": int}, {"a": (1,)}),
        "must have 2 values",
    ),
    "no columns": (oc.t.then_public_join("zone", {}, {"a": ()}), "at least one column"),
    "keys twice": (oc.t.then_table_count("zone", ["a", "a"]), "distinct"),
    "no keys": (oc.t.then_table_count("zone", []), "nonempty"),
    "a key of another type": (oc.t.then_table_count("day", ["1"]), "integer"),
    "counts by a float": (oc.t.then_table_count("eur", [1.0]), r"float: .*cast\(int\).*Decimal"),
    "a short key": (oc.t.then_table_count(["zone", "day"], [("a",)]), "2 values"),
    "no quantum": (oc.t.then_table_sum("eur", (0.0, 1.0)), "depend on the order"),
    "quantum of integers": (oc.t.then_table_sum("day", (0, 1), 0.5), "leave it out"),
    "a small quantum": (oc.t.then_table_sum("eur", (0.0, 1.0), 1e-17), "2\\^52 quantum"),
    "an infinite bound": (oc.t.then_table_sum("eur", (0.0, math.inf), 1.0), "2\\^52 quantum"),
    "a bound that is NaN": (oc.t.then_table_sum("eur", (0.0, math.nan), 1.0), "NaN"),
    "turned bounds": (oc.t.then_table_sum("day", (1, 0)), "in this order"),
    "one bound": (oc.t.then_table_sum("day", 3), "pair"),
    "large bounds": (oc.t.then_table_sum("day", (0, 2**62 + 1)), "2\\^62"),
    "moments of texts": (moments("zone", (0, 1)), "found str"),
    "moments of one value": (moments("day", (3, 3)), "which differ"),
    "moments of turned bounds": (moments("day", (3, 1)), "in this order"),
    "large squares": (moments("day", (0, 2**31 + 1), order=2), "2\\^31"),
    "keys of nothing": (moments("day", (0, 1), keys=[1]), "given together"),
    "sum of texts": (oc.t.then_table_sum("zone", (0, 1)), "found str"),
    "edges that fall": (oc.t.then_table_histogram("day", [2, 1]), "increasing"),
    "one edge": (oc.t.then_table_histogram("day", [1]), "from 2"),
    "edges of another type": (oc.t.then_table_histogram("day", [1, 2.5]), "integer"),
    "a share above 1": (oc.t.then_quantile_scores("day", [1], 1.5), "at most 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_shown_to_be_stable_is_refused(bounded, name):
    then, reason = REFUSED[name]
    with pytest.raises((InvalidTypeError, InvalidValueError), match=reason):
        bounded >> then


FRAME = {"day": [1, 1], "zone": ["a", None]}
KEYS = {
    "a mapping": ({"keys": {"zone": ["a", None], "day": [1, 3]}}, [1, 0, 1, 0]),
    "a frame": ({"keys": polars.DataFrame(FRAME)}, [1, 1]),
    "a frame of pandas": ({"by": ["zone", "day"], "keys": pandas.DataFrame(FRAME)}, [1, 1]),
    "a Series": ({"by": "day", "keys": pandas.Series([1, 2])}, [2, 1]),
    "an array": ({"by": "day", "keys": np.array([9, 1])}, [1, 2]),
    "numbers of NumPy": ({"by": "day", "keys": [np.int64(9), np.int8(1)]}, [1, 2]),
    "NULL": ({"by": "zone", "keys": [None, "a"]}, [1, 2]),
    "an array of keys": ({"by": ["day", "person"], "keys": np.array([[1, 1], [9, 3]])}, [1, 1]),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_lists_arrays_frames_or_products(table, bounded, name):
    given, answer = KEYS[name]
    assert (bounded >> oc.t.then_table_count(**given))(table) == answer


@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize(("how", "counts"), [("inner", [2, 2, 1, 0]), ("left", [2, 2, 1, 1])])
def test_a_row_has_as_many_public_partners_as_its_key_and_bounds_grow(table, library, how, counts):
    frame = polars.DataFrame({"big": [1, 2, 3, 4], "zone": ["a", "a", "b", "c"], "more": 0.5})
    rows = frame if library == "polars" else frame.to_pandas()
    bounded = table.space >> oc.t.then_group_truncate("zone", 2, 3)
    joined = bounded >> oc.t.then_public_join("zone", {"big": int}, rows, how)
    known = joined.output_domain.descriptor
    assert (known.rows, [one.rows for one in known.groups]) == (2 * 6, [2 * 3])
    ask = joined >> oc.t.then_table_count("big", [1, 2, 3, None])
    assert (ask(table), ask.map(1)) == (counts, 12)
    with pytest.raises(InvalidValueError, match="rows must have the columns big, zone"):
        bounded >> oc.t.then_public_join("zone", {"big": int}, frame.select("more"))


def test_a_join_with_a_private_table_is_refused(table):
    with pytest.raises(InvalidTypeError, match="two private tables"):
        oc.t.make_public_join(*table.space, "zone", {"x": int}, table)


# --- truncation is fair ---------------------------------------------------------------------------


def kept(engine, rows, step):
    """How often each amount is kept, of 100 persons with the same amounts and zones."""
    schema = {"person": int, "amount": int, "zone": str}
    each = [(person, *row) for person in range(100) for row in rows]
    table = engine.load(Data.of(schema, "person", each), "fair")
    return (table.space >> step >> oc.t.then_table_count("amount", range(21)))(table)


def mean(counts):
    return sum(amount * number for amount, number in enumerate(counts)) / sum(counts)


def test_a_value_with_nine_copies_is_kept_nine_times_of_ten(on_duckdb):
    found = kept(on_duckdb, [(1, "a")] * 9 + [(2, "a")], oc.t.then_truncate(1, key="a key"))
    assert sum(found) == 100
    assert 76 <= found[1] < 100  # 90, and 14 is 4.5 standard deviations


def test_amounts_do_not_lean_to_one_side(on_duckdb):
    """The first rows in the order of the columns were kept: a mean of 3.0."""
    rows = [(amount, "ab"[amount % 2]) for amount in range(1, 21)]
    assert abs(mean(kept(on_duckdb, rows, oc.t.then_truncate(5))) - 10.5) < 1.5  # 6.5 deviations
    for descending, expected in ((False, 3.0), (True, 18.0)):
        step = oc.t.then_truncate(5, "amount", descending=descending)
        assert mean(kept(on_duckdb, rows, step)) == expected
    found = kept(on_duckdb, rows, oc.t.then_truncate(5, ["zone"]))  # equal in the order
    assert found[1::2] == [0] * 10
    assert abs(mean(found) - 11.0) < 1.5  # of 2, 4, ..., 20


def test_groups_are_chosen_fairly(on_duckdb):
    rows = [(amount, "a") for amount in range(4) for _ in range(2)]
    found = kept(on_duckdb, rows, oc.t.then_group_truncate("amount", groups=1))
    assert sum(found) == 100
    assert all(6 <= one <= 44 for one in found[:4])
