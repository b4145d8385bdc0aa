"""Which records a launch on some blocks gets: vectors, mappings, LazyFrames, tables."""

import datetime

import duckdb
import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.block_keys import Keys
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

dp.enable_features("contrib", "honest-but-curious")
PURE = dp.max_divergence()
VECTOR = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
OWN = dp.user_domain("weeks", lambda data: isinstance(data, dict)), dp.user_distance("people")


def seen(space):
    """A measurement that shows its data: no noise, for tests."""
    return dp.m.make_user_measurement(
        *space, PURE, lambda data: data, lambda d_in: 0.125 * d_in, TO="ExtrinsicObject"
    )


def spawn(space, data, blocks, keys=None, d_in=1):
    odometer = oc.make_concurrent_odometer(*space, PURE)
    return oc.c.make_block_filter(odometer, d_in, 1.0, blocks=blocks, keys=keys)(data)


def test_a_launch_gets_the_records_of_its_blocks_in_order():
    root = spawn(VECTOR, [31, 12, 11, 99, 32, 21], oc.c.by_key(lambda r: r // 10), [1, 2, 3, 7])
    assert root([3, 1], seen(VECTOR)) == [12, 11, 31, 32]
    assert root([2, 2], seen(VECTOR)) == [21]
    assert root([7], seen(VECTOR)) == []
    root.add_blocks([9])  # its record was there from the beginning
    assert root([9, 7], seen(VECTOR)) == [99]


def test_records_that_arrive_are_in_their_new_blocks_only():
    root = spawn(VECTOR, [11, 21], oc.c.by_key(lambda r: r // 10), range(1, 3))
    root.add_blocks(range(3, 5), [41, 12, 31, 55])
    root.add_blocks([5], [56])
    assert root(range(1, 6), seen(VECTOR)) == [11, 21, 31, 41, 56]
    with pytest.raises(InvalidValueError, match="keys has 1, which is a block"):
        root.add_blocks([6, 1], [12])
    assert len(root) == 5
    assert 6 not in root
    with pytest.raises(InvalidTypeError, match="data"):
        root.add_blocks([6], ["text"])
    assert 6 not in root


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_leaves_new_blocks_with_their_records_or_no_new_blocks(after, monkeypatch):
    root = spawn(VECTOR, [11, 21, 22], oc.c.by_key(lambda r: r // 10), [1])
    added = Keys._list

    def interrupted(keys, own):
        if after:
            added(keys, own)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Keys, "_list", interrupted)
        with pytest.raises(KeyboardInterrupt):
            root.add_blocks(range(2, 2000), [23])
    assert (2 in root, 1999 in root) == (after, after)
    root.add_blocks([-4], [-44 + 5])
    if after:
        assert root([2], seen(VECTOR)) == [23]
    assert root([1, -4], seen(VECTOR)) == [11, -39]


def test_an_interrupt_between_keys_and_places_leaves_no_block_with_other_records(monkeypatch):
    root = spawn(VECTOR, [11, 21, 22], oc.c.by_key(lambda r: r // 10), [1])

    def interrupted(keys, own):
        keys._listed += own
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Keys, "_list", interrupted)
        with pytest.raises(KeyboardInterrupt):
            root.add_blocks([2], [23])
    assert 2 not in root
    root.add_blocks([2], [24])
    root.add_blocks([3], [31])
    assert root([1, 2, 3], seen(VECTOR)) == [11, 24, 31]
    assert root([2], seen(VECTOR)) == [24]


def test_a_mapping_has_its_blocks_as_entries():
    root = spawn(OWN, {"a": [1], "b": [2], "z": [9]}, oc.c.by_entry(), ["a", "b", "c"])
    assert root(["b", "c", "a"], seen(OWN)) == {"a": [1], "b": [2]}
    root.add_blocks(["d", "e"], {"d": [4], "a": [666]})
    assert root(["a", "d", "e"], seen(OWN)) == {"a": [1], "d": [4]}


def test_an_error_shows_no_data():
    root = spawn(OWN, {"a": "secret"}, oc.c.by_entry(), np.arange(3))

    class Odd(dict):
        def __contains__(self, key):
            raise ValueError("secret")

    root = spawn(OWN, Odd(a=1), oc.c.by_entry(), ["a"])
    with pytest.raises(InvalidValueError, match="failed to select the records;"):
        root(["a"], seen(OWN))
    assert root.privacy_loss("a") == 0.125  # it is charged before it runs


def frame(rows):
    return pl.LazyFrame(rows, schema={"day": pl.Int64, "n": pl.Int64}, orient="row")


def test_a_lazyframe_is_cut_by_a_column():
    space = (
        dp.lazyframe_domain(
            [dp.series_domain(name, dp.atom_domain(T="i64")) for name in ("day", "n")]
        ),
        dp.symmetric_distance(),
    )
    rows = frame([(1, 10), (2, 20), (1, 11), (5, 50)])
    root = spawn(space, rows, oc.c.by_column("day"), [1, 2, 3])
    assert root([2, 1], seen(space)).collect().rows() == [(1, 10), (2, 20), (1, 11)]
    root.add_blocks([4], frame([(4, 40), (1, 666)]))
    assert root([1, 4], seen(space)).collect().rows() == [(1, 10), (1, 11), (4, 40)]
    with pytest.raises(InvalidTypeError, match="day"):
        root.add_blocks(["five"])
    with pytest.raises(InvalidTypeError, match="column"):
        spawn(VECTOR, [1], oc.c.by_column("day"), [1])


FRAMES = (
    (pl.Float32, "f32", 0.1, 0.10000000149),
    (pl.Float64, "f64", 2**53, 2**53 + 1),
    (pl.Float64, "f64", float("nan"), -float("nan")),
)


@pytest.mark.parametrize(("dtype", "kind", "one", "other"), FRAMES, ids=str)
def test_keys_that_are_equal_in_their_column_are_not_two_blocks(dtype, kind, one, other):
    columns = [dp.series_domain(name, dp.atom_domain(T=kind)) for name in "ab"]
    space = dp.lazyframe_domain(columns), dp.symmetric_distance()
    rows = pl.LazyFrame({"a": [1.0], "b": [1.0]}, schema={"a": dtype, "b": dtype})
    for wrong in (one, other) if one != 2**53 else (other,):
        with pytest.raises(InvalidValueError, match="keys has"):
            spawn(space, rows, oc.c.by_column("a"), []).add_blocks([wrong])
        with pytest.raises(InvalidValueError, match="as another key may be|does not equal itself"):
            spawn(space, rows, oc.c.by_column("a", "b"), [(0.5, 1), (1, wrong)])
    if one == one:
        groups = oc.c.by_values({"one": [one], "other": [other]}, of="a")
        with pytest.raises(InvalidValueError, match="overlap"):
            spawn(space, rows, groups, ["one"])


@pytest.fixture(scope="module")
def visits():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (person INT, day DATE)")
    first = datetime.date(2026, 1, 1)
    rows = [(p, first + datetime.timedelta(days=7 * p % 28)) for p in range(20)]
    connection.executemany("INSERT INTO visits VALUES (?, ?)", rows)
    schema = {"person": int, "day": datetime.date}
    return oc.tables.scan(connection, "visits", schema, "person")


def days(week):
    first = datetime.date(2026, 1, 1) + datetime.timedelta(days=7 * week)
    return [first + datetime.timedelta(days=day) for day in range(7)]


def test_a_table_has_ranges_of_dates_as_blocks(visits):
    once = visits.space >> oc.t.then_truncate(1)
    odometer = oc.make_concurrent_odometer(*once.output_space, PURE)
    weeks = oc.c.by_values({week: days(week) for week in range(4)}, of="day")
    made = oc.c.make_block_filter(odometer, 1, 2e9, blocks=weeks)
    assert made.map(1) == 2e9
    root = (once >> made)(visits)
    count = once.output_space >> oc.t.then_table_count() >> dp.m.then_laplace(scale=1e-9)
    assert [root([week], count) for week in range(4)] == [5, 5, 5, 5]
    assert root([3, 0, 1], count) == 15
    with pytest.raises(oc.errors.BlockExceededError, match="block 0 of the filter refuses"):
        root([0, 2], count)
    assert root.privacy_loss(2) == pytest.approx(1e9)


def test_the_rows_of_a_new_block_are_in_the_table_already():
    space = oc.tables.scan(
        duckdb.connect().execute("CREATE TABLE v (person INT, day DATE)"),
        "v",
        {"person": int, "day": datetime.date},
        ("person", "day"),
    )
    odometer = oc.make_concurrent_odometer(*space.space, PURE)
    root = oc.c.make_block_filter(odometer, 1, 0.75, blocks=oc.c.by_column("day"))(space)
    with pytest.raises(InvalidTypeError, match="data must be left out for tables"):
        root.add_blocks([days(2)[0]], space)
    root.add_blocks([days(2)[0]])
    assert root.remaining(days(2)[0]) == 0.75


def test_by_split_has_no_union():
    with pytest.raises(InvalidTypeError, match="cannot be put together"):
        spawn(VECTOR, [1], oc.c.by_split(lambda rows, keys: {}), [1])
