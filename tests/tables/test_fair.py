"""A truncation keeps each row of a unit with the same probability over its key."""

import opendp_concurrent as oc

from .pipelines import Data

SCHEMA = {"person": int, "amount": int, "zone": str}


def load(engine, rows):
    return engine.load(Data.of(SCHEMA, "person", rows))


def counted(table, step):
    counts = table.space >> step >> oc.t.then_table_count("amount", range(21))
    return counts(table)


def mean(counts):
    return sum(amount * number for amount, number in enumerate(counts)) / sum(counts)


def test_a_value_with_nine_copies_is_kept_nine_times_of_ten(on_duckdb):
    rows = [(p, amount, "a") for p in range(100) for amount in [1] * 9 + [2]]
    found = counted(load(on_duckdb, rows), oc.t.then_truncate(1, key="a key"))
    assert sum(found) == 100
    assert 76 <= found[1] < 100  # 90, and 14 is 4.5 standard deviations


def test_amounts_do_not_lean_to_one_side(on_duckdb):
    """The first rows in the order of the columns were kept: a mean of 3.0."""
    rows = [(p, amount, "a") for p in range(100) for amount in range(1, 21)]
    table = load(on_duckdb, rows)
    assert abs(mean(counted(table, oc.t.then_truncate(5))) - 10.5) < 1.5  # 6.5 deviations
    assert mean(counted(table, oc.t.then_truncate(5, ["amount"]))) == 3.0
    assert mean(counted(table, oc.t.then_truncate(5, "amount", descending=True))) == 18.0


def test_rows_that_are_equal_in_the_order_are_chosen_fairly(on_duckdb):
    rows = [(p, amount, "ab"[amount % 2]) for p in range(100) for amount in range(1, 21)]
    found = counted(load(on_duckdb, rows), oc.t.then_truncate(5, ["zone"]))
    assert found[1::2] == [0] * 10
    assert abs(mean(found) - 11.0) < 1.5  # of 2, 4, ..., 20


def test_groups_are_chosen_fairly(on_duckdb):
    rows = [(p, amount, "a") for p in range(100) for amount in range(4) for _ in range(2)]
    found = counted(load(on_duckdb, rows), oc.t.then_group_truncate("amount", groups=1))
    assert sum(found) == 100
    assert all(6 <= one <= 44 for one in found[:4])
