"""A fair truncation keeps each row of a unit with the same probability over its key."""

from collections import Counter

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from .pipelines import Data
from .reference import truncate

SCHEMA = {"person": int, "amount": int, "zone": str}


def counted(engine, rows, step):
    table = engine.load(
        Data(SCHEMA, "person", [dict(zip(SCHEMA, one, strict=True)) for one in rows])
    )
    counts = table.space >> step >> oc.t.then_table_counts("amount", range(21))
    return counts(table)


def test_a_value_with_nine_copies_is_kept_nine_times_of_ten(on_duckdb):
    rows = [(p, amount, "a") for p in range(400) for amount in [1] * 9 + [2]]
    found = counted(on_duckdb, rows, oc.t.then_truncate(1, fair="a key"))
    assert sum(found) == 400
    assert 333 <= found[1] <= 387  # 360, and 27 is 4.5 standard deviations


def test_amounts_do_not_lean_to_one_side(on_duckdb):
    rows = [(p, amount, "a") for p in range(200) for amount in range(1, 21)]
    fair = counted(on_duckdb, rows, oc.t.then_truncate(5, fair=True))
    first = counted(on_duckdb, rows, oc.t.then_truncate(5))
    mean = lambda counts: sum(a * n for a, n in enumerate(counts)) / sum(counts)  # noqa: E731
    assert mean(first) == 3.0
    assert abs(mean(fair) - 10.5) < 0.8


def test_groups_are_chosen_fairly(on_duckdb):
    rows = [(p, amount, "a") for p in range(400) for amount in range(4) for _ in range(2)]
    found = counted(on_duckdb, rows, oc.t.then_group_truncate("amount", groups=1, fair="k"))
    assert sum(found) == 400
    assert all(61 <= one <= 139 for one in found[:4])


def test_the_same_key_keeps_the_same_rows_on_each_engine(engine):
    rows = [(p, (p * amount) % 21, "ab"[p % 2]) for p in range(40) for amount in range(9)]
    found = counted(engine, rows, oc.t.then_truncate(2, fair="shared"))
    named = [dict(zip(SCHEMA, one, strict=True)) for one in rows]
    kept = Counter(one["amount"] for one in truncate(named, "person", 2, fair="shared"))
    assert found == [kept[amount] for amount in range(21)]


def test_keys_are_drawn_anew(on_duckdb):
    rows = [(p, amount, "a") for p in range(50) for amount in range(20)]
    drawn = [tuple(counted(on_duckdb, rows, oc.t.then_truncate(1, fair=True))) for _ in range(3)]
    assert len(set(drawn)) == 3
    step = oc.t.then_truncate(1, fair="mine")
    assert (
        Counter(tuple(counted(on_duckdb, rows, step)) for _ in range(3)).most_common(1)[0][1] == 3
    )


@pytest.mark.parametrize("fair", [1, None, b"key", "nul\0"])
def test_other_keys_are_refused(on_duckdb, fair):
    table = on_duckdb.load(Data(SCHEMA, "person", []))
    with pytest.raises((InvalidTypeError, InvalidValueError), match="fair"):
        oc.t.make_truncate(*table.space, 1, fair=fair)
