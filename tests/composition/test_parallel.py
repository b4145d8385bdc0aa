"""Parallel composition: how data are cut, and what many children cost and do not give away."""

import math
import threading

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent import _opendp as native
from opendp_concurrent.data.kind import Frames, kind_of
from opendp_concurrent.data.partition import by_column, by_key, by_split, by_values
from opendp_concurrent.errors import (
    ClosedChildError,
    InvalidTypeError,
    InvalidValueError,
    ReentrantLaunchError,
    RefusalError,
    SpaceMismatchError,
)

from ..build import (
    APPROXIMATE_ZCDP,
    PURE,
    SPACE,
    ZCDP,
    a_filter,
    asking,
    costing,
    in_threads,
    laplace,
)
from ..moments import interrupted_at

LAPLACE, ROWS = laplace(), costing(float, list)


def parallel(measurements, partition=None, space=SPACE):
    """Measurements for parts, by the last digit of each row if nothing is said."""
    if not isinstance(measurements, dict):
        measurements = dict(enumerate(measurements))
    partition = partition or by_key(lambda row: row % 10)
    return oc.c.make_parallel_composition(*space, partition, measurements)


# --- children --------------------------------------------------------------------------------


def test_a_measurement_that_fails_is_not_run_again():
    runs = []

    def fail(rows):
        runs.append(len(rows))
        raise ValueError("its own words")

    parts = parallel({1: costing(float, fail), 2: LAPLACE})([1])
    with pytest.raises(OpenDPException, match="its own words"):
        parts(1)
    with pytest.raises(RefusalError, match="of the key 1 has failed"):
        parts(1)
    assert runs == [1]
    assert isinstance(parts(2), int)


def test_a_mechanism_that_asks_for_its_own_part_is_refused():
    parts = parallel({1: costing(float, lambda rows: parts(1))})([1])
    with pytest.raises(ReentrantLaunchError):
        parts(1)


def test_children_of_different_parts_run_side_by_side():
    barrier = threading.Barrier(2, timeout=20)
    waiting = costing(0.25, lambda _: dp.new_queryable(lambda _: barrier.wait()))
    parts = parallel([waiting] * 2)([1, 2])
    children, met = [parts(0), parts(1)], []
    in_threads(lambda number: met.append(children[number]("q")), range(2))
    assert sorted(met) == [0, 1]


def test_many_threads_open_and_ask():
    runs, answers = [], []
    count = costing(float, lambda rows: runs.append(1) or len(rows))
    parts = parallel([a_filter(100.0) if key % 2 else count for key in range(10)])([*range(100)])

    def work(_):
        for key in range(10):
            answer = parts(key)
            answers.append(answer(LAPLACE) if key % 2 else answer)

    in_threads(work, range(8))
    assert (len(answers), len(runs)) == (80, 5)


@pytest.mark.parametrize("kind", ["ours", "native"])
def test_parts_with_a_delta_live_together_and_are_closed_together(kind):
    small = (0.001, 1e-9)
    inner = asking(measure=APPROXIMATE_ZCDP, loss=small)
    parent, error = a_filter((1.0, 1e-6), APPROXIMATE_ZCDP), ClosedChildError
    if kind == "native":
        error = OpenDPException
        parent = dp.c.make_adaptive_composition(
            *SPACE, APPROXIMATE_ZCDP, d_in=1, d_mids=[small, small]
        )
    root = parent([1, 2])
    parts = root(parallel([inner] * 2))
    one, two = parts(0), parts(1)
    assert [one("a"), two("b"), one("c")] == [(1, "a"), (1, "b"), (2, "c")]
    root(inner)
    for closed in (lambda: one("d"), lambda: two("d"), lambda: parts(1)):
        with pytest.raises(error):
            closed()


def test_thousands_of_parts_touch_each_record_once(monkeypatch):
    n, real = 500, native.to_pointer
    touched, converted, maps = [], [], []

    def to_pointer(data, carrier_type):
        converted.append(len(data))
        return real(data, carrier_type)

    monkeypatch.setattr(native, "to_pointer", to_pointer)
    shared = costing(lambda d_in: maps.append(d_in) or 0.5 * d_in)
    made = parallel([shared] * n, by_key(lambda row: touched.append(1) or row))
    parts = made(list(range(n)) * 2)
    assert touched == []  # not before a part is asked for
    assert all(parts(key) == 2 for key in range(n))
    assert len(touched) == 2 * n
    assert sum(converted) == 4 * n  # the whole once, each part once
    assert [made.map(k) for k in (1, 2)] == [0.5, 1.0]
    assert maps == [1, 1, 2]  # once for all parts that share it


# --- bad input -------------------------------------------------------------------------------


def test_a_metric_that_does_not_add_up_over_parts_is_refused():
    for metric in (dp.absolute_distance(T=int), dp.user_distance("mine")):
        with pytest.raises(InvalidValueError, match="^input_metric .* does not add up over parts"):
            parallel({1: LAPLACE}, space=(SPACE[0], metric))
    frame = dp.lazyframe_domain([dp.series_domain("region", dp.atom_domain(T=str))])
    space = frame, dp.symmetric_id_distance(pl.col("region"))
    with pytest.raises(InvalidValueError, match="bound their number first"):
        parallel({1: LAPLACE}, by_column("region"), space)


def test_measurements_are_one_for_each_key_under_one_measure():
    with pytest.raises(InvalidTypeError, match="^measurements must be a mapping"):
        oc.c.make_parallel_composition(*SPACE, by_key(abs), [LAPLACE])
    with pytest.raises(InvalidValueError, match="^measurements"):
        parallel({})
    with pytest.raises(SpaceMismatchError, match=r"^measurements\['b'\].output_measure"):
        parallel({"a": LAPLACE, "b": costing(float, measure=ZCDP)})


@pytest.mark.parametrize(
    "make", [oc.make_concurrent_odometer, dp.c.make_fully_adaptive_composition]
)
def test_an_odometer_is_no_part_and_may_be_launched_on_a_block(make):
    odometer = make(*SPACE, PURE)
    with pytest.raises(InvalidTypeError, match="is an odometer, whose loss is not known"):
        parallel([LAPLACE, odometer])
    ours = oc.make_concurrent_odometer(*SPACE, PURE)
    root = oc.c.make_block_filter(ours, 1, 99.0, blocks=by_key(lambda one: one), keys=[1, 2])([1])
    one, two = root([1], odometer), root([2], odometer)
    for handle in (one, two, one):
        handle(LAPLACE)
    loss = LAPLACE.map(1)
    assert (one.privacy_loss(1), two.privacy_loss(1)) == (2 * loss, loss)
    assert max(map(root.privacy_loss, (1, 2))) == 2 * loss


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("opened", [False, True])
def test_an_interrupted_lookup_closes_nothing_else(opened):
    """0.2.0 closed the lookup of all parts if Ctrl-C came during one of them."""
    pair = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5, 0.5])
    made = parallel({"a": pair, "b": pair}, by_values({"a": range(3), "b": range(3, 10)}))
    moment, kept, came = -2, [], True
    while came:
        moment += 3
        handle = made([1, 2, 3, 4])
        if opened:
            assert handle["a"] is handle["a"]
        came = interrupted_at(moment, handle.__getitem__, "a", kept=kept)
        assert isinstance(handle["b"](LAPLACE), int)
        assert isinstance(handle["a"](LAPLACE), int)
    assert len(kept) > 5


# --- streams ---------------------------------------------------------------------------------


BITS = oc.integer_stream(0, 1), oc.event_presence()
COUNTER = oc.m.make_counter(*BITS, PURE, scale=10.0)
EQUAL = by_split(lambda data, keys: dict.fromkeys(keys, data))


@pytest.mark.parametrize("partition", [EQUAL, by_key(abs), by_values({0: [0], 1: [1]})])
def test_a_stream_is_refused_with_the_reason(partition):
    with pytest.raises(InvalidTypeError, match=r"HSV25.*make_parallel_continual"):
        parallel([COUNTER] * 2, partition, BITS)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(
    "wrap", [lambda one: one, dp.c.make_pureDP_to_zCDP, lambda one: oc.c.cast(one, ZCDP)]
)
def test_a_child_that_takes_updates_is_refused_when_it_is_opened(wrap, elsewhere):
    own = dp.user_domain("Tables", lambda data: isinstance(data, dict)), dp.user_distance("Rows")
    before = COUNTER([])
    hidden = costing(lambda d_in: 0.5, lambda data: before if elsewhere else COUNTER([]), PURE, own)
    parts = parallel([wrap(hidden)], EQUAL, own)({})
    with pytest.raises(InvalidTypeError, match=r"takes updates.*HSV25"):
        parts(0)
    with pytest.raises(Exception, match="each measurement runs only once"):
        parts(0)


# --- cutting ---------------------------------------------------------------------------------


def test_keys_that_cannot_be_looked_up_and_errors_put_a_record_in_no_part():
    def key(row):
        if row == 0:
            raise RuntimeError("tells of a record")
        return [row] if row == 1 else row

    parts = parallel([ROWS] * 3, by_key(key))([0, 1, 2, 2])
    assert [parts(name) for name in (0, 1, 2)] == [[], [], [2, 2]]


def test_groups_of_values():
    groups = {"young": range(30), "old": range(30, 120), "nobody": [500]}
    tens = by_values({"young": [0, 1, 2], "old": range(3, 12)}, of=lambda row: row // 10)
    for partition in (by_values(groups), tens):
        parts = parallel(dict.fromkeys(("young", "old"), ROWS), partition)([12, 40, 29, 300, 500])
        assert (parts("young"), parts("old")) == ([12, 29], [40])


def test_a_users_own_data():
    domain = dp.user_domain("tables", lambda _: True)
    split = by_split(lambda tables, keys: {key: tables.get(key, ()) for key in keys})
    for metric in (dp.symmetric_distance(), dp.user_distance("mine")):
        own = domain, metric
        made = parallel(dict.fromkeys("ab", costing(float, space=own)), split, own)
        parts = made({"a": (1, 2), "c": (3,)})
        assert (parts("a"), parts("b")) == (2, 0)
        assert [made.map(d_in) for d_in in (1, 2)] == [1.0, 2.0]
        with pytest.raises((InvalidTypeError, InvalidValueError), match="d_in"):
            made.map(0.5)
    rows = parallel([ROWS], by_split(lambda rows, keys: {0: rows[:1]}))([1, 2])(0)
    assert rows == [1]


TYPES = {"region": dp.atom_domain(T=str), "age": dp.option_domain(dp.atom_domain(T="i64"))}
TYPES["weight"] = dp.atom_domain(T="f32")
FRAME = dp.lazyframe_domain([dp.series_domain(name, one) for name, one in TYPES.items()])
TABLE = {
    "region": ["n", "s", "n", "e", "s"],
    "age": [30, None, 31, 30, 0],
    "weight": [0.0, -0.0, 1.0, math.nan, 16777216.0],
}


def cut_frame(partition, keys):
    space = FRAME, dp.symmetric_distance()
    ages = costing(float, lambda rows: rows.collect()["age"].to_list(), PURE, space)
    frame = pl.LazyFrame(TABLE, schema_overrides={"weight": pl.Float32})
    parts = parallel(dict.fromkeys(keys, ages), partition, space)(frame)
    return [parts(key) for key in keys]


def test_a_frame_is_cut_by_columns():
    assert type(kind_of(FRAME)) is Frames
    assert cut_frame(by_column("region"), ["s", "n", "w"]) == [[None, 0], [30, 31], []]
    assert cut_frame(by_column("age"), [30, None]) == [[30, 30], [None]]
    assert cut_frame(by_column("region", "age"), [("n", 30), ("s", None)]) == [[30], [None]]
    assert cut_frame(by_column("weight"), [0.0]) == [[30, None]]  # with -0.0


def test_a_frame_of_categories_is_cut():
    enum = dp.enum_domain(pl.Series(["a", "b"]))
    for dtype, kind in (
        (pl.Categorical, dp.categorical_domain()),
        (pl.Enum(["a", "b"]), enum),
    ):
        space = dp.lazyframe_domain([dp.series_domain("kind", kind)]), dp.symmetric_distance()
        height = costing(float, lambda rows: rows.collect().height, PURE, space)
        made = parallel(dict.fromkeys("ab", height), by_column("kind"), space)
        parts = made(pl.LazyFrame({"kind": pl.Series(["b", "a", "b"], dtype=dtype)}))
        assert (parts("a"), parts("b")) == (1, 2)


def test_margins_but_the_greatest_length_are_left_out():
    margin, domain_of_parts = dp.polars.Margin, kind_of(FRAME).domain_of_parts
    with_keys = dp.with_margin(FRAME, margin(by=["region"], invariant="keys", max_groups=3))
    assert domain_of_parts(with_keys) == FRAME
    lengths = dp.with_margin(with_keys, margin(by=[], max_length=9, invariant="lengths"))
    assert domain_of_parts(lengths) == dp.with_margin(FRAME, margin(by=[], max_length=9))


@pytest.mark.parametrize(
    "split",
    [
        lambda rows, keys: 1 // 0 if 271828 in rows else {1: rows},
        lambda rows, keys: {},
        lambda rows, keys: None,
        lambda rows, keys: {1: "271828"},
    ],
)
def test_a_split_that_fails_tells_no_data(split):
    with pytest.raises(InvalidValueError, match="^partition failed to split the data") as caught:
        parallel({1: LAPLACE}, by_split(split))([271828])(1)
    assert "271828" not in str(caught.value)
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)


@pytest.mark.parametrize(
    ("partition", "keys", "words"),
    [
        (by_column("age"), ["thirty"], "the public values must be of the type"),
        (by_column("age"), [1.5], "the public values must be of the type"),
        (by_column("age"), [2**70], "the public values must be of the type"),
        (by_column("region", "age"), ["n"], "measurements has the key 'n', which must be"),
        (
            by_values({"a": [16777216.0], "b": [16777217.0]}, of="weight"),
            ["a", "b"],
            "the public values overlap",
        ),
    ],
)
def test_public_values_that_are_not_of_the_columns_type(partition, keys, words):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=f"^{words}"):
        cut_frame(partition, keys)


def test_groups_that_overlap_or_are_missing_are_refused():
    with pytest.raises(InvalidValueError, match="^groups overlap: 30 is in both 'a' and 'b'"):
        by_values({"a": range(31), "b": range(30, 40)})
    with pytest.raises(InvalidValueError, match="^groups overlap: True is in both"):
        by_values({"a": [1], "b": [True]})
    with pytest.raises(InvalidValueError, match=r"no values for measurements\['b'\]"):
        parallel({"b": LAPLACE}, by_values({"a": [1]}))
