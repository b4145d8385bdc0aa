"""Queries on tables: the same measurements as by hand, few builds, children, parts, frames."""

import builtins
import itertools
import sys
from decimal import Decimal
from functools import partial

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
)
from opendp_concurrent.tables.moments import spaced

pytest.importorskip("sqlglot", reason="!!! TABLES ARE NOT TESTED: no sqlglot !!!")
dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
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
    rows = [
        (person, ZONES[person % 2], week, week / 2) for person in range(20) for week in range(4)
    ]
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
    return oc.tables.scan(connection, "visits", SCHEMA, "person")


def context(visits, loss=None, unit=ONE, **keywords):
    return oc.concurrent_context(visits, unit, loss or dp.loss_of(epsilon=1e12), **keywords)


@pytest.mark.parametrize("units", [1, 3])
def test_the_loss_is_the_one_of_the_measurement_made_by_hand(visits, units):
    open_ = context(visits, unit=oc.tables.unit_of(units=units))
    query = open_.query().truncate(3).count("zone", ZONES).laplace(scale=6.0)
    query.release()
    by_hand = (
        visits.space
        >> oc.t.then_truncate(3)
        >> oc.t.then_table_count("zone", ZONES)
        >> dp.m.then_laplace(scale=6.0)
    )
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
    measure = dp.max_divergence() if noise == "laplace" else dp.zero_concentrated_divergence()
    query = context(visits, (measure, 1e20)).query().truncate(4)
    asked = getattr(query.quantile("week", range(4), alpha=0.4), noise)(scale=1e-3)
    assert asked.release() == oc.tables.Estimate(1.0, 1.0, 1.0)
    assert asked.release(frame="pandas").to_dict("list") == {
        "value": [1.0],
        "lower": [1.0],
        "upper": [1.0],
    }
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
    for make in ("sparse_vector", "above_threshold"):
        search = getattr(open_.query(), make)(
            PURE,
            1,
            scale=EXACT,
            threshold=25,
            sensitivity=3,
            **({"max_hits": 2} if make == "sparse_vector" else {}),
        ).release()
        weekly = [open_.query().truncate(3).where(col("week") <= week).count() for week in range(2)]
        assert [bool(search(one)) for one in weekly] == [False, True]
    with pytest.raises(InvalidValueError, match=r"sensitivity of the query \(4\)"):
        open_.query().sparse_vector(
            PURE, 1, scale=1.0, threshold=25, max_hits=1, sensitivity=3
        ).release()(open_.query().truncate(4).count())
    with pytest.raises(InvalidTypeError, match="^the query must be a transformation"):
        search(open_.query().truncate(3).count().laplace(scale=1.0))


def test_parts_share_the_loss_by_the_groups_of_a_unit(visits):
    """A unit in 3 parts is one unit in each of them: the distance in a part stays 1."""
    open_ = context(visits)
    few = open_.query(epsilon=3.0).truncate(3)
    parts = few.parallel_composition(oc.c.by_column("week"), keys=range(4)).release()
    assert parts[0].d_in == 1
    assert parts[0].remaining_privacy_loss() == 1.0
    assert open_.current_privacy_loss() == 3.0
    pair = context(visits, unit=oc.tables.unit_of(units=2))
    parts = pair.query(epsilon=4.0).truncate(3)
    parts = parts.parallel_composition(oc.c.by_column("week"), keys=range(4)).release()
    assert parts[0].d_in == 2
    assert parts[0].remaining_privacy_loss() == 1.0


# --- frames ----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_have_keys_values_and_accuracy(visits, library):
    pytest.importorskip(library)
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


@pytest.mark.parametrize(
    ("noise", "compute"),
    [
        ("laplace", dp.discrete_laplacian_scale_to_accuracy),
        ("gaussian", dp.discrete_gaussian_scale_to_accuracy),
    ],
)
def test_the_accuracy_is_that_of_the_scale(visits, noise, compute):
    pytest.importorskip("pandas")
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


@pytest.mark.parametrize(
    ("noisy", "frame", "alpha", "match"),
    [
        (True, "numpy", 0.05, "^frame"),
        (False, "pandas", 0.05, "^frame is for answers"),
        (True, "pandas", 0.0, "^alpha"),
        (True, "pandas", 2.0, "^alpha"),
    ],
)
def test_bad_frames_are_refused_before_the_charge(visits, noisy, frame, alpha, match):
    pytest.importorskip("pandas")
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
