"""Queries on tables: the same measurements as by hand, few builds, children, parts, frames."""

import builtins
import itertools
import sys
from decimal import Decimal
from functools import partial

import duckdb
import opendp.prelude as dp
import pytest
from opendp import measurements

import opendp_concurrent as oc
from opendp_concurrent.context.table_query import Top, best_top
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, TooFewRowsError
from opendp_concurrent.tables.aggregates import then_table_count
from opendp_concurrent.tables.moments import spaced

from ..build import PURE, ZCDP

ZONES = ["a", "b", "c"]
SCHEMA = {"person": int, "zone": str, "week": int, "hours": float}
ONE = oc.tables.unit_of(units=1)
EXACT = 1e-9  # a scale at which noise is 0
col = oc.tables.col


@pytest.fixture(scope="module")
def visits():
    """Of 20 persons, each 4 visits in one zone, of 0, 0.5, 1 and 1.5 hours."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (person INT, zone TEXT, week INT, hours DOUBLE)")
    each = itertools.product(range(20), range(4))
    rows = [(person, ZONES[person % 2], week, week / 2) for person, week in each]
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
    return oc.tables.scan(connection, "visits", SCHEMA, "person")


def context(visits, loss=None, unit=ONE, **keywords):
    return oc.concurrent_context(visits, unit, loss or dp.loss_of(epsilon=1e12), **keywords)


@pytest.mark.parametrize("units", [1, 3])
def test_the_loss_is_the_one_of_the_measurement_made_by_hand(visits, units):
    open_ = context(visits, unit=oc.tables.unit_of(units=units))
    query = open_.query().truncate(3).count("zone", ZONES).laplace(scale=6.0)
    query.release()
    counts = visits.space >> oc.t.then_truncate(3) >> oc.t.then_table_count("zone", ZONES)
    by_hand = counts >> dp.m.then_laplace(scale=6.0)
    assert open_.current_privacy_loss() == by_hand.map(units) == units / 2


# --- scales ----------------------------------------------------------------------------------


def test_noise_chooses_the_norm(visits):
    query = context(visits, dp.loss_of(rho=0.5)).query(rho=0.5).group_truncate("week", 4)
    counts = query.count("week", range(4))
    assert counts.gaussian().param() == pytest.approx(2.0)  # the root of 4, at rho 1/2
    assert counts.laplace(scale=4.0).resolve().map(1) == 0.5  # pure 1, and rho = 1/2
    forced = query.count("week", range(4), norm="l1")
    with pytest.raises(Exception, match="l1|L1|L2|metric"):
        forced.gaussian(scale=1.0).resolve()


# --- quantiles -------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_quantile_with_noise_behind_it_has_an_interval(visits, noise):
    measure = PURE if noise == "laplace" else ZCDP
    query = context(visits, (measure, 1e20)).query().truncate(4)
    asked = getattr(query.quantile("week", range(4), alpha=0.4), noise)(scale=1e-3)
    assert asked.release() == oc.tables.Estimate(1.0, 1.0, 1.0)
    one = {"value": [1.0], "lower": [1.0], "upper": [1.0]}
    assert asked.release(frame="pandas").to_dict("list") == one
    with pytest.raises(AttributeError):
        query.median("week", range(4)).launch_rockets  # noqa: B018


def test_two_candidates_are_bounds(visits):
    """The median of (-60, 180) was one of these two numbers."""
    query = context(visits, dp.loss_of(epsilon=1e20)).query(epsilon=1e12).truncate(4)
    some = partial(query.quantile, alpha=0.4)
    for ask, value in ((some, 1.0), (query.min, 0.0), (query.max, 3.0)):
        assert ask("week", (-60, 180)).release() == oc.tables.Estimate(value, value, value)
    found = query.median("hours", (-60.0, 180.0)).laplace().release()
    assert found.lower <= 0.5 <= found.upper + 1.0
    assert found.value in spaced(float, candidates=(-60.0, 180.0))
    by_zone = some("week", (0, 9), by="zone", keys=ZONES[:2]).laplace().release()
    assert [one.value for one in by_zone] == [1.0, 1.0]
    assert some("week", (0, 9), scale=1e-3).release() == 1
    assert some("week", (-6, 18)).release(frame="pandas")["value"].tolist() == [1.0]
    zcdp = context(visits, dp.loss_of(rho=1e20)).query(rho=1e12).truncate(4)
    assert zcdp.quantile("week", (-6, 18), 0.4).release().value == 1.0
    with pytest.raises(InvalidValueError, match="lower and an upper bound"):
        query.median("week", (180, -60))


@pytest.mark.parametrize(
    ("kind", "ends", "size", "step"),
    [
        (int, (-60, 180), 241, 1),
        (int, (0, 249), 250, 1),
        (int, (0, 2**62), 250, None),
        (float, (-60.0, 180.0), 250, 240.0 / 249),
        (float, (0.0, 5e-324), 2, 5e-324),
        (oc.tables.Decimal(2), (0, 1.5), 151, Decimal("0.01")),
    ],
)
def test_candidates_are_spaced_between_bounds(kind, ends, size, step):
    found = spaced(kind, candidates=ends)
    assert (len(found), found[0], found[-1]) == (size, *ends)
    assert sorted(set(found)) == found
    assert step is None or all(
        high - low == pytest.approx(step) for low, high in itertools.pairwise(found)
    )


# --- children --------------------------------------------------------------------------------


def test_a_sparse_vector_is_asked_by_queries_of_the_context(visits):
    open_ = context(visits)
    given = {"threshold": 25, "sensitivity": 3}
    for make, hits in (("sparse_vector", {"max_hits": 2}), ("above_threshold", {})):
        search = getattr(open_.query(), make)(PURE, 1, scale=EXACT, **given, **hits).release()
        weekly = [open_.query().truncate(3).where(col("week") <= week).count() for week in range(2)]
        assert [bool(search(one)) for one in weekly] == [False, True]
    with pytest.raises(InvalidValueError, match=r"sensitivity of the query \(4\)"):
        search(open_.query().truncate(4).count())
    with pytest.raises(InvalidTypeError, match="^the query must be a transformation"):
        search(open_.query().truncate(3).count().laplace(scale=1.0))


def test_parts_share_the_loss_by_the_groups_of_a_unit(visits):
    """A unit in 3 parts is one unit in each of them: the distance in a part stays 1."""
    for units, loss in ((1, 3.0), (2, 4.0)):
        open_ = context(visits, unit=oc.tables.unit_of(units=units))
        few = open_.query(epsilon=loss).truncate(3)
        parts = few.parallel_composition(oc.c.by_column("week"), keys=range(4)).release()
        assert (parts[0].d_in, parts[0].remaining_privacy_loss()) == (units, 1.0)
        assert open_.current_privacy_loss() == loss


# --- frames ----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_have_keys_values_and_accuracy(visits, library):
    query = context(visits).query(epsilon=1e10).truncate(3, ["week"])
    frame = query.count(["zone", "week"], [("a", 0), ("c", 1)]).laplace().release(frame=library)
    assert list(frame.columns) == ["zone", "week", "value", "accuracy"]
    assert frame["week"].to_list() == [0, 1]
    assert frame["value"].to_list() == [10, 0]
    hours = query.sum("hours", (0.0, 1.0), 0.25, "zone", ZONES).laplace().release(frame=library)
    assert hours["value"].to_list() == [15.0, 15.0, 0.0]
    bins = query.histogram("week", [0, 1, 4]).laplace().release(frame=library)
    assert (bins["from"].to_list(), bins["below"].to_list()) == ([0, 1], [1, 4])
    assert query.count().laplace().release(frame=library)["value"].to_list() == [60]


ACCURACY = {
    "laplace": dp.discrete_laplacian_scale_to_accuracy,
    "gaussian": dp.discrete_gaussian_scale_to_accuracy,
}


@pytest.mark.parametrize(("noise", "compute"), ACCURACY.items())
def test_the_accuracy_is_that_of_the_scale(visits, noise, compute):
    open_ = context(visits, dp.loss_of(rho=10.0))
    query = open_.query(rho=0.1).truncate(3).sum("hours", (0.0, 1.0), 0.5)
    for given in (getattr(query, noise)(6.0), getattr(query, noise)(scale=6.0)):
        found = given.release(frame="pandas", alpha=0.1)["accuracy"].to_list()
        assert found == [0.5 * compute(6.0, 0.1)]
    made = getattr(query, noise)()
    accuracy = made.release(frame="pandas", alpha=0.1)["accuracy"].to_list()
    assert accuracy == [0.5 * compute(made.param(), 0.1)]


def test_a_library_is_imported_only_if_asked_for_and_before_the_charge(visits, monkeypatch):
    open_ = context(visits, dp.loss_of(epsilon=1.0))
    query = open_.query(epsilon=0.5).distinct_units().laplace()
    imported = builtins.__import__

    def absent(name, *args, **kwargs):
        if name.partition(".")[0] in ("polars", "pandas"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    for name in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError):
            query.release(frame=name)
    assert open_.current_privacy_loss() == 0.0
    assert isinstance(query.release(), int)
    assert open_.current_privacy_loss() == 0.5


BAD_FRAMES = [(True, "numpy", 0.05, "^frame"), (False, "pandas", 0.05, "^frame is for answers")]


@pytest.mark.parametrize(
    ("noisy", "frame", "alpha", "match"), [*BAD_FRAMES, (True, "pandas", 0.0, "^alpha")]
)
def test_bad_frames_are_refused_before_the_charge(visits, noisy, frame, alpha, match):
    open_ = context(visits, dp.loss_of(epsilon=1.0))
    units = open_.query(epsilon=0.5).distinct_units()
    with pytest.raises((InvalidTypeError, InvalidValueError), match=match):
        (units.laplace() if noisy else units).release(frame=frame, alpha=alpha)
    assert open_.current_privacy_loss() == 0.0


def test_keys_that_are_left_out_are_asked_for_by_name(visits):
    open_ = context(visits, dp.loss_of(epsilon=1.0))
    query = open_.query(epsilon=0.5)
    with pytest.raises(InvalidTypeError, match=r"^keys must be given together .* keys\(by\) finds"):
        query.truncate(1).count("zone")
    with pytest.raises(InvalidValueError, match=r"truncate first: query\.truncate\(rows\)"):
        query.count().laplace().release()
    assert open_.current_privacy_loss() == 0.0


def test_a_ledger_says_which_statistic_of_which_columns(visits):
    query = context(visits).query(epsilon=1.0).truncate(4)
    described = [
        context(visits).queryable.describe(one.resolve()).mechanism.partition(" >> ")[2]
        for one in (
            query.count("zone", ZONES).laplace(10.0),
            query.where(col("week") > 1).sum("hours", (0, 2), 0.5, ["zone"], ZONES).laplace(3.0),
            query.distinct_units().laplace(2.0),
            query.with_columns(late=col("week") > 1).count_distinct("zone").laplace(2.0),
        )
    ]
    assert described == [
        "table_count by zone >> laplace(scale=10.0)",
        "where >> table_sum(quantum=0.5) of hours by zone >> laplace(scale=3.0)",
        "distinct_units >> laplace(scale=2.0)",
        "with_columns >> distinct_values of zone >> laplace(scale=2.0)",
    ]


def test_units_are_counted_by_their_numbers_of_rows(visits):
    query = context(visits).query().truncate(4).rows_per_unit([1, 3, 5]).laplace(scale=EXACT)
    found = query.release(frame="pandas")
    assert (found["from"].to_list(), found["below"].to_list()) == ([1, 3], [3, 5])
    assert found["value"].to_list() == [0, 20]  # each of the 20 has 4


# --- the keys with the most rows, and bounds from the data ----------------------------------------

LOSSES = {"epsilon": 1e9}, {"rho": 1e9}, {"epsilon": 1e9, "delta": 1e-9}
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


def query(table, loss):
    return context(table, dp.loss_of(**loss), split_evenly_over=1).query()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("groups", [1, 10])
def test_the_keys_with_the_most_rows_come_first(table, loss, groups):
    few = query(table, loss).group_truncate("zone", groups)
    found = few.top(1 if groups == 1 else 3, "zone", [9, 8, 7, 2, 1, 0]).release()
    assert found == ([0] if groups == 1 else [0, 1, 2])


@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=str)
@pytest.mark.skipif(not NEW, reason="OpenDP 0.14 has no noisy top-k")
def test_the_way_with_less_noise_is_taken(table, measure):
    """Both ways at the same loss: the noise in a count, and the share of right keys."""
    right = {}
    for groups in (1, 4, 10):
        few = table.space >> oc.t.then_group_truncate("zone", groups)
        then = partial(then_table_count, "zone", list(range(10)))
        counts = {norm: few.output_space >> then(norm=norm) for norm in ("l1", "l2", "linf")}
        for wanted in (1, 5):
            ways = [Top(counts.get, measure, wanted, selects) for selects in (False, True)]
            best = best_top(1, counts.get, measure, wanted)
            assert best.noise(1) == min(way.noise(1) for way in ways)
            right[groups, wanted] = best.selects
    selects = (4, 1), (10, 1), (10, 5)
    assert right == {pair: pair in selects for pair in itertools.product((1, 4, 10), (1, 5))}


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
    on = context(table, dp.loss_of(epsilon=1e-3))
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
