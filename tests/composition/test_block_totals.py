"""Totals are values: an older one stays what it is, whatever happens to its successors."""

import datetime
import gc
from fractions import Fraction

import duckdb
import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.composition.block_keys import Keys
from opendp_concurrent.composition.block_totals import BITS, Counters, OnBlocks, Shared, Totals
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures.shapes import ScalarSum, SquareSum

from ..build import PURE, SPACE, costing, in_threads

STARTS = {
    "counted": (ScalarSum(), 1.0, 0.0625),
    "shared": (oc.accumulators.advanced(delta_slack=1e-7).start(None), (1.0, 1e-6), (0.1, 0.0)),
}


def start(name):
    keys = Keys()
    keys.add([f"b{number}" for number in range(5)])
    first, d_out, d_mid = STARTS[name]
    return Totals(keys, first, d_out), d_mid


def state(totals):
    return [repr(totals.at(place).to_record()) for place in range(5)]


def living():
    gc.collect()
    return sum(type(one) is Totals for one in gc.get_objects())


@pytest.mark.parametrize("kind", ["counted", "shared"])
def test_an_old_value_keeps_few_later_differences(kind, monkeypatch):
    monkeypatch.setattr("opendp_concurrent.composition.block_totals._EXCHANGES", 50)
    others = living()
    totals, d_mid = start(kind)
    first = totals.after(OnBlocks(np.array([0]), d_mid))
    state_of_first = state(first)
    free = first.read(OnBlocks(np.array([0, 1]), 0.0 if kind == "counted" else (0.0, 0.0)))
    here = there = first
    for _ in range(300):  # as two handles of one ledger do
        here, there = here.after(free), there.after(free)
    assert living() - others < 200
    assert len(here._where[0].cells) < 10
    assert here._where[0].cells.kept < 60
    assert here._where[0] is not there._where[0]
    assert state(first) == state(here) == state(there) == state_of_first
    assert (first.launches, here.launches) == (1, 301)


@pytest.mark.parametrize("kind", ["counted", "shared"])
def test_values_stay_what_they_are_when_arrays_are_copied(kind, monkeypatch):
    monkeypatch.setattr("opendp_concurrent.composition.block_totals._EXCHANGES", 3)
    totals, d_mid = start(kind)
    d_mid = d_mid if kind == "counted" else (0.01, 0.0)
    alone = [totals]
    for _ in range(4):
        alone.append(alone[-1].after(OnBlocks(np.array([0]), d_mid)))
    after = [repr(one.at(0).to_record()) for one in alone]
    rng, wrong = np.random.default_rng(0), []
    versions, counts = [alone[1]], [np.array([1, 0, 0, 0, 0])]

    def read(seed):
        own = np.random.default_rng(seed)
        for at in own.integers(0, len(versions), size=60):
            versions[at].admitted(OnBlocks(np.array([1, 2]), d_mid))
            if state(versions[at]) != [after[count] for count in counts[at]]:
                wrong.append(at)

    for _ in range(10):
        for base in rng.integers(0, len(versions), size=8):
            cost = rng.random(5) < 0.5
            if cost.any() and (counts[base] + cost).max() < 5:
                versions.append(versions[base].after(OnBlocks(np.flatnonzero(cost), d_mid)))
                counts.append(counts[base] + cost)
        in_threads(read, range(3))
    assert not wrong
    assert len({id(one._where[0]) for one in versions}) > 1


# --- counters in two limbs, against exact integers -----------------------------------------------


RNG_OF_COUNTERS = np.random.default_rng(5)


def launched(counters, places, d_mid):
    counters.grow(max(places) + 1)
    after = counters.after(counters.read(places), d_mid)
    if not isinstance(after, tuple):
        counters.write(places, after)
    return after


@pytest.mark.parametrize("start", [ScalarSum(), SquareSum()], ids=["sum", "squares"])
@pytest.mark.parametrize("d_out", [1.0, 0.7, 1e-200, 3e300, 5e-324, 0.0])
def test_totals_are_those_of_the_accumulator(start, d_out):
    counters, exact = Counters(start, d_out), [start] * 8
    for _ in range(200):
        places = np.unique(RNG_OF_COUNTERS.integers(0, 8, size=3))
        d_mid = float(d_out * RNG_OF_COUNTERS.integers(1, 2**20) / 2**24)
        refused = [at for at, p in enumerate(places) if not exact[p].after(d_mid).within(d_out)]
        found = launched(counters, places, d_mid)
        if refused:
            assert found[0] == refused[0]
            assert found[1].spent == exact[places[refused[0]]].loss
            assert found[1].remaining == exact[places[refused[0]]].remaining(d_out)
        else:
            for place in places:
                exact[place] = exact[place].after(d_mid)
    for row, one in zip(counters.read(range(8)), exact, strict=True):
        found = counters.accumulator(row)
        if type(start) is ScalarSum:
            assert found == one
        else:  # squares have twice the digits: each was rounded up by less than a quantum
            assert one.units <= found.units
            assert (
                found.units - one.units
                <= 200 * Fraction(1, 2 ** (BITS - 1)) * Fraction(d_out) ** 2 * 4**1074
            )


def test_losses_are_exact_from_2_to_the_minus_68_and_rounded_up_below():
    counters = Counters(ScalarSum(), 1.0)
    launched(counters, [0], 2.0**-68 * (1 + 2.0**-52))
    assert (
        counters.accumulator(counters.read([0])[0]).units
        == ScalarSum().after(2.0**-68 * (1 + 2.0**-52)).units
    )
    tiny = 2.0**-130
    for _ in range(5):
        launched(counters, [1], tiny)
    loss = Fraction(counters.accumulator(counters.read([1])[0]).loss)
    assert 5 * Fraction(tiny) <= loss <= 5 * Fraction(2) ** -(BITS - 1)


def test_carries_cross_the_limbs():
    counters = Counters(ScalarSum(), 1.0)
    step = 2.0**-60 - 2.0**-113  # all ones in the low limb
    exact = ScalarSum()
    for _ in range(100):
        launched(counters, [0], step)
        exact = exact.after(step)
    assert counters.accumulator(counters.read([0])[0]) == exact


# --- accumulators that blocks share, against one accumulator for each block ----------------------


RNG_OF_SHARED = np.random.default_rng(8)
RULES = {
    "advanced": oc.accumulators.advanced(delta_slack=1e-7).start(None),
    "best_rule": oc.accumulators.best_rule(d_out=(1.0, 1e-6), typical=[(0.1, 0.0)]).start(None),
    "either": oc.accumulators.either(
        oc.accumulators.basic(), oc.accumulators.zcdp(delta_slack=1e-7)
    ).start(None),
}


@pytest.mark.parametrize("name", RULES)
def test_each_block_has_the_accumulator_of_its_own_launches(name):
    start, d_out = RULES[name], (1.0, 1e-6)
    rule, shared, exact = Within(d_out), Shared(start, d_out), [start] * 6
    shared.grow(6)
    refusals = 0
    for _ in range(60):
        places = np.unique(RNG_OF_SHARED.integers(0, 6, size=3))
        d_mid = (float(RNG_OF_SHARED.choice([0.05, 0.1, 0.15])), 0.0)
        verdicts = [rule.admits(exact[place], d_mid) for place in places]
        refused = [
            at for at, one in enumerate(verdicts) if isinstance(one, oc.errors.BudgetExceededError)
        ]
        after = shared.after(shared.read(places), d_mid)
        if refused:
            refusals += 1
            assert after[0] == refused[0]
            assert str(after[1]) == str(verdicts[refused[0]])
        else:
            shared.write(places, after)
            for place, one in zip(places, verdicts, strict=True):
                exact[place] = one
        for place in range(6):
            found = shared.accumulator(shared.read([place])[0])
            assert found.to_record() == exact[place].to_record()
    assert refusals > 5


# --- which records a launch on some blocks gets: vectors, mappings, LazyFrames, tables -----------

OWN = dp.user_domain("weeks", lambda data: isinstance(data, dict)), dp.user_distance("people")


def seen(space):
    """A measurement that shows its data: no noise, for tests."""
    return costing(0.125, lambda data: data, space=space)


def spawn(space, data, blocks, keys=None, d_in=1):
    odometer = oc.make_concurrent_odometer(*space, PURE)
    return oc.c.make_block_filter(odometer, d_in, 1.0, blocks=blocks, keys=keys)(data)


def test_a_launch_gets_the_records_of_its_blocks_in_order():
    root = spawn(SPACE, [31, 12, 11, 99, 32, 21], oc.c.by_key(lambda r: r // 10), [1, 2, 3, 7])
    assert root([3, 1], seen(SPACE)) == [12, 11, 31, 32]
    assert root([2, 2], seen(SPACE)) == [21]
    assert root([7], seen(SPACE)) == []
    root.add_blocks([9])  # its record was there from the beginning
    assert root([9, 7], seen(SPACE)) == [99]


def test_records_that_arrive_are_in_their_new_blocks_only():
    root = spawn(SPACE, [11, 21], oc.c.by_key(lambda r: r // 10), range(1, 3))
    root.add_blocks(range(3, 5), [41, 12, 31, 55])
    root.add_blocks([5], [56])
    assert root(range(1, 6), seen(SPACE)) == [11, 21, 31, 41, 56]
    with pytest.raises(InvalidValueError, match="keys has 1, which is a block"):
        root.add_blocks([6, 1], [12])
    assert len(root) == 5
    assert 6 not in root
    with pytest.raises(InvalidTypeError, match="data"):
        root.add_blocks([6], ["text"])
    assert 6 not in root


@pytest.mark.parametrize(("after", "whole"), [(False, False), (True, False), (True, True)])
def test_an_interrupt_leaves_new_blocks_with_their_records_or_no_new_blocks(
    after, whole, monkeypatch
):
    root = spawn(SPACE, [11, 21, 22], oc.c.by_key(lambda r: r // 10), [1])
    added = Keys._list

    def interrupted(keys, own):
        if whole:
            added(keys, own)
        elif after:  # keys without places
            keys._listed += own
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Keys, "_list", interrupted)
        with pytest.raises(KeyboardInterrupt):
            root.add_blocks([2], [23])
    assert (2 in root) == whole
    if not whole:
        root.add_blocks([2], [24])
    root.add_blocks([3], [31])
    assert root([1, 2, 3], seen(SPACE)) == [11, 23 if whole else 24, 31]
    assert root([2], seen(SPACE)) == [23 if whole else 24]


def test_a_mapping_has_its_blocks_as_entries():
    root = spawn(OWN, {"a": [1], "b": [2], "z": [9]}, oc.c.by_entry(), ["a", "b", "c"])
    assert root(["b", "c", "a"], seen(OWN)) == {"a": [1], "b": [2]}
    root.add_blocks(["d", "e"], {"d": [4], "a": [666]})
    assert root(["a", "d", "e"], seen(OWN)) == {"a": [1], "d": [4]}


def test_an_error_shows_no_data():
    class Odd(dict):
        def __contains__(self, key):
            raise ValueError("secret")

    root = spawn(OWN, Odd(a=1), oc.c.by_entry(), ["a"])
    with pytest.raises(InvalidValueError, match="failed to select the records;"):
        root(["a"], seen(OWN))
    assert root.privacy_loss("a") == 0.125  # it is charged before it runs


def test_a_lazyframe_is_cut_by_a_column():
    columns = [dp.series_domain(name, dp.atom_domain(T="i64")) for name in ("day", "n")]
    space = dp.lazyframe_domain(columns), dp.symmetric_distance()

    def frame(rows):
        return pl.LazyFrame(rows, schema={"day": pl.Int64, "n": pl.Int64}, orient="row")

    rows = frame([(1, 10), (2, 20), (1, 11), (5, 50)])
    root = spawn(space, rows, oc.c.by_column("day"), [1, 2, 3])
    assert root([2, 1], seen(space)).collect().rows() == [(1, 10), (2, 20), (1, 11)]
    root.add_blocks([4], frame([(4, 40), (1, 666)]))
    assert root([1, 4], seen(space)).collect().rows() == [(1, 10), (1, 11), (4, 40)]
    with pytest.raises(InvalidTypeError, match="day"):
        root.add_blocks(["five"])
    with pytest.raises(InvalidTypeError, match="column"):
        spawn(SPACE, [1], oc.c.by_column("day"), [1])


@pytest.mark.parametrize(
    ("dtype", "kind", "one", "other"),
    [
        (pl.Float32, "f32", 0.1, 0.10000000149),
        (pl.Float64, "f64", 2**53, 2**53 + 1),
        (pl.Float64, "f64", float("nan"), -float("nan")),
    ],
    ids=str,
)
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


def visits(unit):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (person INT, day DATE)")
    rows = [(person, days(person % 4)[0]) for person in range(20)]
    connection.executemany("INSERT INTO visits VALUES (?, ?)", rows)
    return oc.tables.scan(connection, "visits", {"person": int, "day": datetime.date}, unit)


def days(week):
    first = datetime.date(2026, 1, 1) + datetime.timedelta(days=7 * week)
    return [first + datetime.timedelta(days=day) for day in range(7)]


def test_a_table_has_ranges_of_dates_as_blocks():
    table = visits("person")
    once = table.space >> oc.t.then_truncate(1)
    odometer = oc.make_concurrent_odometer(*once.output_space, PURE)
    weeks = oc.c.by_values({week: days(week) for week in range(4)}, of="day")
    made = oc.c.make_block_filter(odometer, 1, 2e9, blocks=weeks)
    assert made.map(1) == 2e9
    root = (once >> made)(table)
    count = once.output_space >> oc.t.then_table_count() >> dp.m.then_laplace(scale=1e-9)
    assert [root([week], count) for week in range(4)] == [5, 5, 5, 5]
    assert root([3, 0, 1], count) == 15
    with pytest.raises(oc.errors.BlockExceededError, match="block 0 of the filter refuses"):
        root([0, 2], count)
    assert root.privacy_loss(2) == pytest.approx(1e9)


def test_the_rows_of_a_new_block_are_in_the_table_already():
    table = visits(("person", "day"))
    root = spawn(table.space, table, oc.c.by_column("day"))
    with pytest.raises(InvalidTypeError, match="data must be left out for tables"):
        root.add_blocks([days(2)[0]], table)
    root.add_blocks([days(2)[0]])
    assert root.remaining(days(2)[0]) == 1.0


def test_by_split_has_no_union():
    with pytest.raises(InvalidTypeError, match="cannot be put together"):
        spawn(SPACE, [1], oc.c.by_split(lambda rows, keys: {}), [1])
