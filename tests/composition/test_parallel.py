"""Parallel composition: many children at once, what they cost and do not give away."""

import threading

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent import _opendp as _native
from opendp_concurrent.composition.parallel import make_parallel_composition
from opendp_concurrent.data.partition import by_column, by_key
from opendp_concurrent.errors import (
    ClosedChildError,
    InvalidTypeError,
    InvalidValueError,
    ReentrantLaunchError,
    RefusalError,
    SpaceMismatchError,
)

from ..moments import interrupted_at
from .parts import laplace, parallel, user

PURE = dp.max_divergence()
ZCDP = dp.zero_concentrated_divergence()
APPROXIMATE_ZCDP = dp.approximate(ZCDP)


def queryable(space, answer=lambda query: query, loss=0.25, measure=None):
    """An interactive mechanism that echoes."""
    return user(space, lambda d_in: loss, lambda _: dp.new_queryable(answer), measure)


def filter_(space, d_out=10.0, measure=None, **keywords):
    odometer = oc.make_concurrent_odometer(*space, measure or PURE)
    return oc.make_concurrent_filter(odometer, 1, d_out, **keywords)


# --- children --------------------------------------------------------------------------------


def test_a_measurement_that_fails_is_not_run_again(space):
    runs = []

    def fail(rows):
        runs.append(len(rows))
        raise ValueError("its own words")

    parts = parallel(space, {1: user(space, float, fail), 2: laplace(space)})([1])
    with pytest.raises(OpenDPException, match="its own words"):
        parts(1)
    with pytest.raises(RefusalError, match="of the key 1 has failed"):
        parts(1)
    assert runs == [1]
    assert isinstance(parts(2), int)


def test_a_mechanism_that_asks_for_its_own_part_is_refused(space):
    parts = None
    measurement = user(space, float, lambda rows: parts(1))
    parts = parallel(space, {1: measurement})([1])
    with pytest.raises(ReentrantLaunchError):
        parts(1)


def test_children_of_different_parts_run_side_by_side(space):
    barrier = threading.Barrier(2, timeout=20)
    made = parallel(space, dict.fromkeys((1, 2), queryable(space, lambda _: barrier.wait())))
    parts = made([1, 2])
    children = [parts(1), parts(2)]
    met = []
    threads = [
        threading.Thread(target=lambda child=child: met.append(child("q"))) for child in children
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(met) == [0, 1]


def test_many_threads_open_and_ask(space):
    runs = []
    count = user(space, float, lambda rows: runs.append(1) or len(rows))
    interactive = filter_(space, 100.0)
    made = parallel(space, {key: interactive if key % 2 else count for key in range(10)})
    parts = made(list(range(100)))
    answers, errors = [], []

    def work():
        try:
            for key in range(10):
                answer = parts(key)
                answers.append(answer(laplace(space)) if key % 2 else answer)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(answers) == 80
    assert len(runs) == 5


@pytest.mark.parametrize("kind", ["ours", "native"])
def test_parts_with_a_delta_live_together_and_are_closed_together(space, kind):
    small = (0.001, 1e-9)
    inner = queryable(space, loss=small, measure=APPROXIMATE_ZCDP)
    parent, error = filter_(space, (1.0, 1e-6), APPROXIMATE_ZCDP), ClosedChildError
    if kind == "native":
        error = OpenDPException
        parent = dp.c.make_adaptive_composition(
            *space, APPROXIMATE_ZCDP, d_in=1, d_mids=[small, small]
        )
    root = parent([1, 2])
    parts = root(parallel(space, dict.fromkeys((1, 2), inner)))
    one, two = parts(1), parts(2)
    assert [one("a"), two("b"), one("c")] == ["a", "b", "c"]
    root(inner)
    for closed in (lambda: one("d"), lambda: two("d"), lambda: parts(1)):
        with pytest.raises(error):
            closed()


# --- cost ------------------------------------------------------------------------------------


def test_thousands_of_parts_touch_each_record_once(space, monkeypatch):
    n = 500
    touched, converted, maps = [], [], []
    real = _native.to_pointer

    def to_pointer(data, carrier_type):
        converted.append(len(data))
        return real(data, carrier_type)

    def privacy_map(d_in):
        maps.append(d_in)
        return 0.5 * d_in

    monkeypatch.setattr(_native, "to_pointer", to_pointer)
    shared = user(space, privacy_map)
    made = parallel(
        space, dict.fromkeys(range(n), shared), by_key(lambda row: touched.append(1) or row)
    )
    parts = made(list(range(n)) * 2)
    assert touched == []  # not before a part is asked for
    assert all(parts(key) == 2 for key in range(n))
    assert len(touched) == 2 * n
    assert sum(converted) == 4 * n  # the whole once, each part once
    assert max(converted[1:]) == 2
    assert [made.map(k) for k in (1, 2, 1, 2)] == [0.5, 1.0, 0.5, 1.0]
    assert maps == [1, 1, 2] * 2  # once for all parts that share it, and again for each query


# --- bad input -------------------------------------------------------------------------------


def test_a_metric_that_does_not_add_up_over_parts_is_refused(space):
    for metric in (dp.absolute_distance(T=int), dp.user_distance("mine")):
        with pytest.raises(InvalidValueError, match="^input_metric .* does not add up over parts"):
            make_parallel_composition(space[0], metric, by_key(abs), {1: laplace(space)})
    frame = dp.lazyframe_domain([dp.series_domain("region", dp.atom_domain(T=str))])
    metric = dp.symmetric_id_distance(pl.col("region"))
    with pytest.raises(InvalidValueError, match="bound their number first"):
        make_parallel_composition(frame, metric, by_column("region"), {1: laplace(space)})


def test_measurements_are_one_for_each_key_under_one_measure(space):
    with pytest.raises(InvalidTypeError, match="^measurements must be a mapping"):
        make_parallel_composition(*space, by_key(abs), [laplace(space)])
    with pytest.raises(InvalidValueError, match="^measurements"):
        parallel(space, {})
    two = {"a": laplace(space), "b": user(space, float, measure=ZCDP)}
    with pytest.raises(SpaceMismatchError, match=r"^measurements\['b'\].output_measure"):
        parallel(space, two)


@pytest.mark.parametrize(
    "make", [oc.make_concurrent_odometer, dp.c.make_fully_adaptive_composition]
)
def test_an_odometer_is_no_part_and_may_be_launched_on_a_block(space, make):
    odometer = make(*space, PURE)
    with pytest.raises(InvalidTypeError, match="is an odometer, whose loss is not known"):
        parallel(space, {1: laplace(space), 2: odometer})
    ours = oc.make_concurrent_odometer(*space, PURE)
    root = oc.c.make_block_filter(ours, 1, 99.0, blocks=by_key(lambda one: one), keys=[1, 2])([1])
    one, two = root([1], odometer), root([2], odometer)
    for handle in (one, two, one):
        handle(laplace(space))
    loss = laplace(space).map(1)
    assert (one.privacy_loss(1), two.privacy_loss(1)) == (2 * loss, loss)
    assert max(map(root.privacy_loss, (1, 2))) == 2 * loss


# --- 0.2.0 closed the lookup of all parts if Ctrl-C came during one of them ----------------------


dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ROWS = [1, 2, 3, 4]


def parts():
    pair = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5, 0.5])
    by = oc.c.by_values({"a": range(3), "b": range(3, 10)})
    return oc.c.make_parallel_composition(*SPACE, by, {"a": pair, "b": pair})(ROWS)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("opened", [False, True])
def test_an_interrupted_lookup_closes_nothing_else(opened):
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    moment, kept = 1, []
    while True:
        handle = parts()
        if opened:
            assert handle["a"] is handle["a"]
        came = interrupted_at(moment, handle.__getitem__, "a", kept=kept)
        assert isinstance(handle["b"](count), int)
        assert isinstance(handle["a"](count), int)
        if not came:
            break
        moment += 3
    assert len(kept) > 5


# --- parallel streams ----------------------------------------------------------------------------


PARTITIONS = {
    "split": lambda: oc.c.by_split(lambda data, keys: dict.fromkeys(keys, data)),
    "key": lambda: oc.c.by_key(lambda item: item),
    "values": lambda: oc.c.by_values({0: [0], 1: [1]}),
}


def stream():
    return oc.integer_stream(0, 1), oc.event_presence()


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_stream_is_refused_with_the_reason(partition):
    one = oc.m.make_counter(*stream(), PURE, 10.0)
    with pytest.raises(InvalidTypeError, match=r"HSV25.*make_parallel_continual"):
        oc.c.make_parallel_composition(*stream(), PARTITIONS[partition](), {0: one, 1: one})


def own():
    return dp.user_domain("Tables", lambda data: isinstance(data, dict)), dp.user_distance("Rows")


def hidden():
    """On a domain of one's own, and spawns a counter."""
    return dp.m.make_user_measurement(
        *own(),
        PURE,
        lambda data: oc.m.make_counter(*stream(), PURE, 1.0)([]),
        lambda d_in: 0.5,
        TO="ExtrinsicObject",
    )


@pytest.mark.parametrize(
    "wrap",
    [
        lambda one: one,
        dp.c.make_pureDP_to_zCDP,
        lambda one: oc.c.cast(one, dp.zero_concentrated_divergence()),
    ],
)
def test_a_child_that_takes_updates_is_refused_when_it_is_opened(wrap):
    parts = oc.c.make_parallel_composition(*own(), PARTITIONS["split"](), {0: wrap(hidden())})({})
    with pytest.raises(InvalidTypeError, match=r"takes updates.*HSV25"):
        parts(0)
    with pytest.raises(Exception, match="each measurement runs only once"):
        parts(0)


def made_before():
    """Hands out a counter that it did not spawn itself."""
    counter = oc.m.make_counter(*stream(), PURE, 1.0)([])
    return dp.m.make_user_measurement(
        *own(), PURE, lambda data: counter, lambda d_in: 0.5, TO="ExtrinsicObject"
    )


def test_a_child_that_was_made_elsewhere_is_refused_when_it_is_opened():
    parts = oc.c.make_parallel_composition(*own(), PARTITIONS["split"](), {0: made_before()})({})
    with pytest.raises(InvalidTypeError, match=r"measurements\[0\] takes updates.*HSV25"):
        parts(0)
