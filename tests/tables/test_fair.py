"""A fair truncation keeps each row of a unit with the same probability over its key."""

from collections import Counter

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from .pipelines import Data
from .reference import truncate

SCHEMA = {"person": int, "amount": int, "zone": str}


def load(engine, rows):
    named = [dict(zip(SCHEMA, one, strict=True)) for one in rows]
    return engine.load(Data(SCHEMA, "person", named))


def counted(table, step):
    counts = table.space >> step >> oc.t.then_table_counts("amount", range(21))
    return counts(table)


def test_a_value_with_nine_copies_is_kept_nine_times_of_ten(on_duckdb):
    rows = [(p, amount, "a") for p in range(100) for amount in [1] * 9 + [2]]
    found = counted(load(on_duckdb, rows), oc.t.then_truncate(1, fair="a key"))
    assert sum(found) == 100
    assert 76 <= found[1] < 100  # 90, and 14 is 4.5 standard deviations


def test_amounts_do_not_lean_to_one_side(on_duckdb):
    rows = [(p, amount, "a") for p in range(100) for amount in range(1, 21)]
    table = load(on_duckdb, rows)
    fair = counted(table, oc.t.then_truncate(5, fair=True))
    first = counted(table, oc.t.then_truncate(5))
    mean = lambda counts: sum(a * n for a, n in enumerate(counts)) / sum(counts)  # noqa: E731
    assert mean(first) == 3.0
    assert abs(mean(fair) - 10.5) < 1.5  # 6.5 standard deviations


def test_groups_are_chosen_fairly(on_duckdb):
    rows = [(p, amount, "a") for p in range(100) for amount in range(4) for _ in range(2)]
    found = counted(load(on_duckdb, rows), oc.t.then_group_truncate("amount", groups=1, fair="k"))
    assert sum(found) == 100
    assert all(6 <= one <= 44 for one in found[:4])


def test_the_same_key_keeps_the_same_rows_on_each_engine(engine):
    rows = [(p, (p * amount) % 21, "ab"[p % 2]) for p in range(40) for amount in range(9)]
    found = counted(load(engine, rows), oc.t.then_truncate(2, fair="shared"))
    named = [dict(zip(SCHEMA, one, strict=True)) for one in rows]
    kept = Counter(one["amount"] for one in truncate(named, "person", 2, fair="shared"))
    assert found == [kept[amount] for amount in range(21)]


def test_keys_are_drawn_anew(on_duckdb):
    table = load(on_duckdb, [(p, amount, "a") for p in range(30) for amount in range(20)])
    drawn = [tuple(counted(table, oc.t.then_truncate(1, fair=True))) for _ in range(3)]
    assert len(set(drawn)) == 3
    step = oc.t.then_truncate(1, fair="mine")
    assert len({tuple(counted(table, step)) for _ in range(3)}) == 1


@pytest.mark.parametrize("fair", [1, None, b"key", "nul\0"])
def test_other_keys_are_refused(on_duckdb, fair):
    table = on_duckdb.load(Data(SCHEMA, "person", []))
    with pytest.raises((InvalidTypeError, InvalidValueError), match="fair"):
        oc.t.make_truncate(*table.space, 1, fair=fair)
