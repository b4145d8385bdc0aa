"""Blocks of a table that grows: a truncation bounds a unit's blocks at one moment, not over time.

One person visits in each of some weeks, which are inserted one by one. The block filter says that
it costs the person at most d_out, which is G times the budget of a block. So no order of insertion
may bring the person into the answers of more than G weeks. With the truncation of the table as it
was at each launch, the person was in the answers of 12 weeks of 12.
"""

from itertools import permutations

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError, InvalidTypeError
from opendp_concurrent.ledger import create_ledger

from ..build import PURE, SPACE, ZCDP, costing

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pytest.importorskip("sqlglot")
SCALE, D_OUT = 1e-9, 1e12  # the noise is 0, and everything is admitted
SCHEMA = {"person": int, "week": int}
TRUNCATIONS = {
    "groups": lambda most: oc.t.then_group_truncate("week", groups=most),
    "rows": lambda most: oc.t.then_truncate(most),
}


def empty(unit="person", **options):
    """A connection, and a table without rows."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (person BIGINT, week BIGINT)")
    return connection, oc.tables.scan(connection, "visits", SCHEMA, unit, **options)


def filtered(bounded, keys=(), **options):
    odometer = oc.make_concurrent_odometer(*bounded.output_space, PURE)
    by_week = oc.c.by_column("week")
    return oc.c.make_block_filter(odometer, 1, D_OUT, blocks=by_week, keys=keys, **options)


def counting(bounded):
    return bounded.output_space >> oc.t.then_table_count() >> dp.m.then_laplace(scale=SCALE)


@pytest.mark.parametrize("kind", TRUNCATIONS)
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("early", [False, True], ids=["added", "named at first"])
def test_a_unit_is_in_no_more_weeks_than_it_is_charged_for(kind, most, early):
    orders = list(permutations(range(4)))
    for order in orders[2 * most + early :: 6]:  # other ones for each kind of call
        connection, visits = empty()
        bounded = visits.space >> TRUNCATIONS[kind](most)
        made = filtered(bounded, range(4) if early else ())
        root, weeks = (bounded >> made)(visits), 0
        for week in order:
            connection.execute("INSERT INTO visits VALUES (7, ?)", [week])
            try:
                if not early:
                    root.add_blocks([week])
                weeks += root([week], counting(bounded))
            except ConcurrentError:  # refused before anything ran
                assert root.remaining(week) > 0 if week in root else True
        assert weeks <= most
        spent = weeks / SCALE
        assert spent <= made.map(1) * (1 + 1e-9)


def test_a_ledger_outlives_the_table_whose_truncation_bounds_a_moment(tmp_path):
    _, visits = empty()
    bounded = visits.space >> oc.t.then_group_truncate("week", groups=3)
    with (
        create_ledger(tmp_path / "budgets.db", "weeks") as ledger,
        pytest.raises(InvalidTypeError, match=r"ledger cannot.*unit="),
    ):
        filtered(bounded, [1], ledger=ledger)


def test_parts_of_a_growing_table_are_cut_once():
    for order in permutations(range(3)):
        connection, visits = empty()
        bounded = visits.space >> oc.t.then_group_truncate("week", groups=1)
        one = counting(bounded)
        parallel = oc.c.make_parallel_composition(
            *bounded.output_space, oc.c.by_column("week"), dict.fromkeys(range(3), one)
        )
        assert (bounded >> parallel).map(1) == one.map(1)
        parts, weeks = (bounded >> parallel)(visits), 0
        for week in order:
            connection.execute("INSERT INTO visits VALUES (7, ?)", [week])
            weeks += parts[week]
        assert weeks <= 1


@pytest.mark.parametrize(("measure", "cost"), [(PURE, 1), (ZCDP, 2)])
def test_a_unit_of_person_and_week_is_charged_for_each_week(measure, cost):
    connection, visits = empty(unit=("person", "week"))
    bounded = visits.space >> oc.t.then_truncate(2)
    odometer = oc.make_concurrent_odometer(*bounded.output_space, measure)
    made = oc.c.make_block_filter(odometer, 1, 0.5, blocks=oc.c.by_column("week"))
    root = (bounded >> made)(visits)
    count = bounded.output_space >> oc.t.then_table_count()
    exact = costing(lambda d_in: 0.125 * d_in**cost, count, measure, bounded.output_space)
    for week in range(12):
        for row in range(3):  # rows may come while a block is used: two of them are kept
            connection.execute("INSERT INTO visits VALUES (7, ?), (8, 0)", [week])
            if not row:
                root.add_blocks([week])
            assert root([week], exact) == min(2, row + 1) + (2 if week == 0 and row else week == 0)
    assert root.privacy_loss(11) == 0.375  # three launches of 0.125
    # one launch on all weeks reads two rows of the person in each of them
    assert root(range(12), exact) == 2 * 12 + 2
    assert [made.map(weeks) for weeks in (1, 2, 12)] == [0.5 * k**cost for k in (1, 2, 12)]
    # the group privacy of 12 steps is at least what 12 launches cost that differ in one week each
    assert made.map(12) >= 12 * root.privacy_loss(3)


def test_a_week_that_is_no_part_of_the_unit_is_bounded_at_one_moment():
    _, visits = empty(unit=("person", "week"))
    once = visits.space >> oc.t.then_truncate(1)
    odometer = oc.make_concurrent_odometer(*once.output_space, PURE)
    by_person = oc.c.by_column("person")  # a person is in one block of persons, as part of a unit
    (once >> oc.c.make_block_filter(odometer, 1, 1.0, blocks=by_person))(visits).add_blocks([1])
    joined = once >> oc.t.then_public_join(
        "week", {"month": int}, {week: week // 4 for week in range(9)}
    )
    odometer = oc.make_concurrent_odometer(*joined.output_space, PURE)
    by_month = oc.c.make_block_filter(odometer, 1, 1.0, blocks=oc.c.by_column("month"))
    with pytest.raises(InvalidTypeError, match="keys cannot be added"):
        (joined >> by_month)(visits).add_blocks([1])


def visits_in(path, weeks):
    pl.DataFrame({"person": [7] * len(weeks), "week": weeks}).write_parquet(path)


FRAME = (
    dp.lazyframe_domain(
        [dp.series_domain(name, dp.atom_domain(T="i64")) for name in ("person", "week")]
    ),
    dp.symmetric_distance(),
)


def rows_of(space):
    return dp.m.make_user_measurement(
        *space,
        PURE,
        lambda frame: frame.collect().height,
        lambda d_in: float(d_in),
        TO="ExtrinsicObject",
    )


@pytest.mark.parametrize("chained", [False, True])
def test_a_frame_that_is_truncated_as_it_is_read_is_read_once(tmp_path, chained):
    """A plan of Polars runs at each launch: it keeps another week when the file has grown."""

    def first(frame):
        return frame.sort("week").group_by("person").head(1).select("person", "week")

    for order in [*permutations(range(4))][3::5]:  # the last one falls
        path = tmp_path / "visits.parquet"
        visits_in(path, [])
        odometer = oc.make_concurrent_odometer(*FRAME, PURE)
        by_week = oc.c.by_column("week")
        made = oc.c.make_block_filter(odometer, 1, 1.0, blocks=by_week, keys=range(4))
        frame, weeks = pl.scan_parquet(path, schema={"person": pl.Int64, "week": pl.Int64}), 0
        if chained:
            keep = dp.t.make_user_transformation(*FRAME, *FRAME, first, lambda d_in: d_in)
            root = (keep >> made)(oc.uncollected(frame))
        else:
            root = made(oc.uncollected(first(frame)))
        for number, week in enumerate(order):
            visits_in(path, [*order[: number + 1]])
            weeks += root([week], rows_of(FRAME))
        assert weeks <= made.map(1)
        with pytest.raises(InvalidTypeError, match="files of the LazyFrame are read once"):
            root.add_blocks([4])


@pytest.mark.parametrize("kind", ["chain", "native chain", "odometer", "blocks"])
def test_data_are_not_added_behind_a_transformation(kind):
    """The transformation bounds the records of a unit in the first data, not in those added."""
    space = SPACE
    odometer = oc.make_concurrent_odometer(*space, PURE)
    made = oc.c.make_block_filter(odometer, 2, 1.0, blocks=oc.c.by_key(abs), keys=[1, 2])
    own = dp.user_domain("visits", lambda data: isinstance(data, dict)), dp.symmetric_distance()
    # a person has two visits at most, so a person more is two records more
    two = dp.t.make_user_transformation(
        *own,
        *space,
        lambda data: [one for v in data.values() for one in v[:2]],
        lambda d_in: 2 * d_in,
    )
    people = {"eve": [1, 2, 3], "bob": [2]}
    if kind == "chain":
        root = (two >> made)(people)
    elif kind == "native chain":
        root = dp.c.make_chain_mt(made, two)(people)
    elif kind == "odometer":
        root = (two >> odometer)(people)(made)
    else:
        outer = oc.c.make_block_filter(odometer, 2, 1.0, blocks=oc.c.by_key(abs), keys=[1, 2])
        root = outer([1, 2, 2])(
            [1, 2], oc.c.make_block_filter(odometer, 1, 0.5, blocks=oc.c.by_key(abs), keys=[1, 2])
        )
    with pytest.raises(InvalidTypeError, match="data cannot be added"):
        root.add_blocks([3], [3])
    assert 3 not in root
    root.add_blocks([3])  # of the first data, which are cut once
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=16.0)
    assert isinstance(root([2, 3], count), int)
    made([1, 2]).add_blocks([3], [3])


@pytest.mark.parametrize("native", [False, True])
def test_a_ledger_outlives_the_output_of_a_transformation(tmp_path, native):
    """Each output has one week of a person, and those of two processes have two."""
    space = SPACE
    own = dp.user_domain("visits", lambda data: isinstance(data, dict)), dp.symmetric_distance()
    one = dp.t.make_user_transformation(
        *own, *space, lambda data: [min(weeks) for weeks in data.values()], lambda d_in: d_in
    )
    odometer = oc.make_concurrent_odometer(*space, PURE)
    with create_ledger(tmp_path / "budgets.db", "weeks") as ledger:
        made = oc.c.make_block_filter(
            odometer, 1, 1.0, blocks=oc.c.by_key(abs), keys=[1, 2], ledger=ledger
        )
        chained = dp.c.make_chain_mt(made, one) if native else one >> made
        for weeks in ([2], [1, 2]):
            with pytest.raises((InvalidTypeError, OpenDPException), match="ledger cannot"):
                chained({"eve": weeks})
        made([1, 2])
