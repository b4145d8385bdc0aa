"""Parallel composition: the distances of parts, the loss, and many children at once."""

import math
import pickle
import threading
from collections import Counter
from fractions import Fraction
from itertools import product

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    ClosedChildError,
    HaltedError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    ReentrantLaunchError,
    RefusalError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.native import opendp as _native
from opendp_concurrent.parallel.parallel import make_parallel_composition, then_parallel_composition
from opendp_concurrent.parallel.parallel_loss import join, partitions
from opendp_concurrent.parallel.partition import (
    by_column,
    by_key,
    by_split,
    by_values,
    domain_of_parts,
)

PURE = dp.max_divergence()
APPROXIMATE = dp.approximate(PURE)
ZCDP = dp.zero_concentrated_divergence()
APPROXIMATE_ZCDP = dp.approximate(ZCDP)
RENYI = dp.renyi_divergence()
F = oc.TradeoffFunction


def user(space, privacy_map, function=len, measure=None):
    return dp.m.make_user_measurement(
        *space, measure or PURE, function, privacy_map, TO="ExtrinsicObject"
    )


def queryable(space, answer=lambda query: query, loss=0.25, measure=None):
    """An interactive mechanism that echoes."""
    return user(space, lambda d_in: loss, lambda _: dp.new_queryable(answer), measure)


def parallel(space, measurements, partition=None):
    if not isinstance(measurements, dict):
        measurements = dict(enumerate(measurements))
    return make_parallel_composition(
        *space, partition or by_key(lambda row: row % 10), measurements
    )


def laplace(space, epsilon=0.25):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def filter_(space, d_out=10.0, measure=None, **keywords):
    odometer = oc.make_concurrent_odometer(*space, measure or PURE)
    return oc.make_concurrent_filter(odometer, 1, d_out, **keywords)


# --- distances of parts, by brute force ------------------------------------------------------


def symmetric(one, other):
    left, right = Counter(one), Counter(other)
    return sum(((left - right) + (right - left)).values())


def insert_delete(one, other):
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return insert_delete(one[1:], other[1:])
    return 1 + min(insert_delete(one[1:], other), insert_delete(one, other[1:]))


def change_one(one, other):
    return symmetric(one, other) // 2 if len(one) == len(other) else math.inf


def hamming(one, other):
    if len(one) != len(other):
        return math.inf
    return sum(a != b for a, b in zip(one, other, strict=True))


METRICS = {
    "symmetric": (dp.symmetric_distance(), symmetric, dp.symmetric_distance(), symmetric, 1),
    "insert-delete": (
        dp.insert_delete_distance(),
        insert_delete,
        dp.insert_delete_distance(),
        insert_delete,
        1,
    ),
    "change-one": (dp.change_one_distance(), change_one, dp.symmetric_distance(), symmetric, 2),
    "hamming": (
        dp.hamming_distance(),
        hamming,
        dp.insert_delete_distance(),
        insert_delete,
        2,
    ),
}
DATASETS = [list(rows) for size in range(4) for rows in product(range(5), repeat=size)]


@pytest.mark.parametrize("name", METRICS)
def test_distances_of_parts_add_up_to_at_most_the_factor_which_is_attained(name):
    metric, distance, metric_of_parts, distance_of_parts, factor = METRICS[name]
    domain = dp.vector_domain(dp.atom_domain(T=int))
    partition = by_key(lambda row: row % 3)  # 2 is in no part
    assert partition.metric_of_parts(metric) == (metric_of_parts, factor)
    cut = partition.cutter(domain, (0, 1))
    pieces = [cut(rows) for rows in DATASETS]
    attained = set()
    for one, cut_one in zip(DATASETS, pieces, strict=True):
        for other, cut_other in zip(DATASETS, pieces, strict=True):
            whole = distance(one, other)
            parts = sum(distance_of_parts(cut_one[key], cut_other[key]) for key in (0, 1))
            assert parts <= factor * whole
            if parts == factor * whole:
                attained.add(whole)
    assert attained >= {1, 2, 3}


@pytest.mark.parametrize("name", METRICS)
def test_the_map_reads_the_parts_at_the_factor(name):
    metric, _, metric_of_parts, _, factor = METRICS[name]
    domain = dp.vector_domain(dp.atom_domain(T=int))
    inner = user((domain, metric_of_parts), lambda d_in: 0.25 * d_in)
    made = make_parallel_composition(domain, metric, by_key(abs), {0: inner, 1: inner})
    assert [made.map(d_in) for d_in in range(4)] == [0.25 * factor * d_in for d_in in range(4)]
    assert made.check(1, 0.25 * factor)
    assert not made.check(1, 0.24 * factor)


def test_a_size_does_not_belong_to_the_parts(space):
    atom = dp.atom_domain(T=int)
    sized = dp.vector_domain(atom, size=4)
    inner = user(space, float)
    made = make_parallel_composition(sized, dp.change_one_distance(), by_key(abs), {1: inner})
    assert made([1, 2, 1, 1])(1) == 3
    with pytest.raises(SpaceMismatchError, match=r"^measurements\[1\].input_domain"):
        make_parallel_composition(sized, space[1], by_key(abs), {1: user((sized, space[1]), float)})


# --- the loss --------------------------------------------------------------------------------


def by_distance(*losses):
    return lambda d_in: losses[d_in - 1]


def oracle(losses, k, parts, add=sum):
    """Largest composition of at most ``parts`` losses whose distances add up to k."""
    whole = [d for d in product(range(k + 1), repeat=parts) if sum(d) == k]
    return max(add([losses[j - 1] for j in d if j]) for d in whole)


MAPS = {
    "linear": (0.5, 1.0, 1.5),
    "quadratic": (0.125, 0.5, 1.125),
    "flat": (0.3, 0.3, 0.3),
    "concave": (0.5, 0.6, 0.65),
}


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
@pytest.mark.parametrize("losses", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("measure", [PURE, ZCDP, "fixed"], ids=["pure", "zCDP", "fixed Rényi"])
def test_numbers_add_up(space, measure, losses, parts):
    measure = oc.fixed_renyi_divergence(4.0) if measure == "fixed" else measure
    made = parallel(space, [user(space, by_distance(*losses), measure=measure)] * parts)
    assert made.output_measure == measure
    assert made.map(0) == 0.0
    for k in (1, 2, 3):
        exact = oracle([Fraction(loss) for loss in losses], k, parts)
        assert Fraction(made.map(k)) >= exact
        assert Fraction(math.nextafter(made.map(k), 0.0)) < exact
    assert made.map(1) == losses[0]


def test_the_maximum_over_unequal_parts_at_distance_one(space):
    measurements = [user(space, lambda d_in, e=e: e * d_in) for e in (0.25, 0.75, 0.5)]
    assert [parallel(space, measurements).map(k) for k in (1, 2, 3)] == [0.75, 1.5, 2.25]


def test_pairs_are_joined_by_component(space):
    one = user(space, by_distance((1.0, 1e-7), (2.0, 1e-3)), measure=APPROXIMATE)
    other = user(space, by_distance((0.5, 1e-6), (1.0, 2e-6)), measure=APPROXIMATE)
    made = parallel(space, [one, other])
    assert made.map(0) == (0.0, 0.0)
    assert made.map(1) == (1.0, 1e-6)
    assert made.map(2) == (2.0, 1e-3)


def test_gaussian_dp_takes_the_root_of_the_squares(space):
    measure = oc.gaussian_tradeoff()
    shift = parallel(space, [user(space, lambda d_in: 0.5 * d_in, measure=measure)] * 3)
    assert [shift.map(k) for k in range(4)] == [0.0, 0.5, 1.0, 1.5]
    flat = parallel(space, [user(space, lambda d_in: 0.5, measure=measure)] * 3)
    for k in (1, 2, 3):
        assert flat.map(k) == pytest.approx(0.5 * math.sqrt(k), rel=1e-15)
        assert Fraction(flat.map(k)) ** 2 >= Fraction(k, 4)


def test_truncated_concentrated_dp_takes_the_least_omega(space):
    measure = oc.truncated_concentrated_divergence(omega=2.0)
    T = oc.TruncatedConcentrated
    one = user(space, lambda d_in: T(0.1 * d_in**2, 24.0 / d_in), measure=measure)
    other = user(space, lambda d_in: T(0.2 * d_in**2, 36.0 / d_in), measure=measure)
    made = parallel(space, [one, other])
    assert made.map(1) == T(0.2, 24.0)
    assert made.map(2) == T(0.2 * 4, 12.0)
    assert made.map(3) == T(0.2 * 9, 8.0)


def test_renyi_curves_are_joined_by_order(space):
    one = user(space, lambda d_in: lambda alpha: alpha * d_in**2 / 8, measure=RENYI)
    other = user(space, lambda d_in: lambda alpha: min(alpha / 2, 1.0), measure=RENYI)
    made = parallel(space, [one, other])
    assert made.map(0)(2.0) == 0.0
    for alpha in (1.5, 2.0, 8.0, 20.0):
        losses = [[alpha * j**2 / 8, min(alpha / 2, 1.0)] for j in (1, 2, 3)]
        joined = [max(pair) for pair in losses]
        for k in (1, 2, 3):
            assert made.map(k)(alpha) == pytest.approx(oracle(joined, k, 2), rel=1e-15)
    assert made.map(2)(2.0) == made.map(2)(2.0)
    with pytest.raises(InvalidValueError, match="^alpha"):
        made.map(1)(1.0)


def test_tradeoff_functions_of_one_family_are_exact(space):
    measure = oc.tradeoff()
    gauss = parallel(space, [user(space, lambda d: F.gaussian(0.5 * d), measure=measure)] * 3)
    assert [gauss.map(k) for k in (1, 2)] == [F.gaussian(0.5), F.gaussian(1.0)]
    assert gauss.map(3).mu == 1.5
    flat = parallel(space, [user(space, lambda d: F.gaussian(0.5), measure=measure)] * 3)
    assert flat.map(3) == F.gaussian(0.5).power(3)
    alone = parallel(space, [user(space, lambda d: F.gaussian(0.5), measure=measure)])
    assert alone.map(3) == F.gaussian(0.5)
    assert alone.map(0) == F.identity()


GRID = [0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0, 1.3, 2.0, 4.0]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_tradeoff_functions_that_cross_are_joined_below_all(space, k):
    measure = oc.tradeoff()
    one = user(space, lambda d: F.gaussian(0.7 * d), measure=measure)
    other = user(space, lambda d: F.approximate(0.4 * d, 1e-3 * d), measure=measure)
    made = parallel(space, [one, other, one]).map(k)
    joined = [
        lambda e, j=j: max(F.gaussian(0.7 * j).delta(e), F.approximate(0.4 * j, 1e-3 * j).delta(e))
        for j in (1, 2, 3)
    ]
    singles = [[F.gaussian(0.7 * j), F.approximate(0.4 * j, 1e-3 * j)] for j in (1, 2, 3)]
    for epsilon in GRID:
        assert made.delta(epsilon) >= joined[k - 1](epsilon)
        for distances in partitions(k, 3, k):  # any product of what the parts may lose
            for choice in product(*(singles[j - 1] for j in distances)):
                assert (
                    made.delta(epsilon)
                    >= choice[0].compose(*choice[1:]).delta_bounds(epsilon).lower
                )
    if k == 1:
        for epsilon in GRID:
            assert made.delta(epsilon) <= joined[0](epsilon) * 1.02 + 1e-9


def test_a_join_is_below_all_and_exact_where_chords_are():
    one, other = F.pure(1.0), F.approximate(0.25, 0.05)
    joined = join([one, other])
    assert one <= joined
    assert other <= joined
    assert not joined <= one
    for epsilon in GRID:
        exact = max(one.delta(epsilon), other.delta(epsilon))
        assert exact <= joined.delta(epsilon) <= exact * 1.01 + 1e-12  # a crossing is cut short
    lopsided = F.finite([0.9, 0.1, 0.0], [0.5, 0.3, 0.2])
    assert join([lopsided, F.pure(0.1)]) == lopsided
    joined = join([lopsided, F.pure(1.5)])
    for epsilon in GRID:
        for way in (lopsided, lopsided.inverse()):
            assert joined.delta(epsilon) >= way.delta_bounds(epsilon).lower
            assert joined.inverse().delta(epsilon) >= way.delta_bounds(epsilon).lower
    assert join([F.pure(0.5), F.pure(1.0), F.identity()]) == F.pure(1.0)
    assert join([F.gaussian(1.0), F.worst()]) == F.worst()


def test_approximate_zcdp_is_the_maximum_at_distance_one_and_refused_above(space):
    measurements = [
        user(space, lambda d_in, rho=rho: (rho * d_in, 1e-9), measure=APPROXIMATE_ZCDP)
        for rho in (0.1, 0.3)
    ]
    made = parallel(space, measurements)
    assert made.map(1) == (0.3, 1e-9)
    with pytest.raises(UnsupportedMeasureError, match="open question"):
        made.map(2)
    assert parallel(space, measurements[1:]).map(2) == (0.6, 1e-9)  # one part: nothing composes
    change = make_parallel_composition(
        space[0], dp.change_one_distance(), by_key(abs), {1: measurements[0], 2: measurements[1]}
    )
    with pytest.raises(UnsupportedMeasureError, match="at total distance 1"):
        change.map(1)


numbers = st.floats(0.0, 10.0)
rising = st.lists(numbers, min_size=6, max_size=6).map(sorted)


@given(st.lists(rising, min_size=1, max_size=3), st.integers(1, 4))
def test_the_loss_is_monotone_and_the_maximum_at_one(maps, copies):
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    distinct = [user(space, by_distance(*losses)) for losses in maps]
    made = parallel(space, distinct * copies)
    losses = [made.map(k) for k in range(6)]
    assert losses == sorted(losses)
    assert losses[1] == max(one[0] for one in maps)
    joined = [Fraction(max(one[j] for one in maps)) for j in range(6)]
    for k in (2, 3):
        exact = oracle(joined, k, min(3, len(distinct) * copies))
        assert Fraction(losses[k]) >= exact
        assert losses[k] == 0.0 or Fraction(math.nextafter(losses[k], 0.0)) < exact


def test_limits_of_the_distance_are_said(space):
    inner = user(space, lambda d_in: 0.001)
    made = parallel(space, [inner] * 300)
    assert Fraction(made.map(256)) >= 256 * Fraction(0.001)
    with pytest.raises(InvalidValueError, match=r"add up to 257, which must be at most 256"):
        made.map(257)
    few = parallel(space, [inner] * 5)
    assert few.map(256) == pytest.approx(0.005, rel=1e-15)
    curve = user(space, lambda d_in: lambda alpha: alpha, measure=RENYI)
    with pytest.raises(InvalidValueError, match="at most 64"):
        parallel(space, [curve]).map(65)
    function = user(space, lambda d_in: F.pure(0.1), measure=oc.tradeoff())
    assert parallel(space, [function] * 5).map(4) == F.pure(0.1).power(4)
    with pytest.raises(InvalidValueError, match="at most 4"):
        parallel(space, [function]).map(5)


def test_an_infinite_loss_stays_infinite(space):
    made = parallel(space, [user(space, lambda d_in: math.inf), user(space, float)])
    assert made.map(1) == math.inf
    assert made.map(3) == math.inf
    assert made.map(0) == 0.0


def test_maps_are_not_trusted(space):
    good = user(space, float)
    for value in (-1.0, math.nan, "much"):
        bad = parallel(space, {"good": good, "bad": user(space, lambda d_in, v=value: v)})
        with pytest.raises((PrivacyMapError, OpenDPException), match=r"measurements\['bad'\]"):
            bad.map(1)
    bounded = oc.make_concurrent_composition(*space, PURE, 1, [0.5])
    made = parallel(space, {"a": good, "b": bounded})
    assert made.map(1) == 1.0
    with pytest.raises(PrivacyMapError, match=r"d_in \(2\).*measurements\['b'\].*at most 1"):
        made.map(2)


@pytest.mark.parametrize("d_in", [-1, 1.5, "1", None, True])
def test_distances_that_are_none(space, d_in):
    with pytest.raises((InvalidTypeError, InvalidValueError), match="^d_in"):
        parallel(space, [laplace(space)]).map(d_in)


# --- the exact loss of randomized responses --------------------------------------------------


def views(cut, rows, truth):
    """Law of one randomized response per part: is anybody there?"""
    present = [bool(part) for part in cut(rows).values()]
    return {
        answers: math.prod(
            truth if answer == bit else 1 - truth
            for answer, bit in zip(answers, present, strict=True)
        )
        for answers in product([False, True], repeat=len(present))
    }


@pytest.mark.parametrize("k", [1, 2, 3])
def test_randomized_responses_in_parallel_lose_exactly_what_is_claimed(space, k):
    truth, epsilon = Fraction(3, 4), math.log(3)
    partition = by_key(lambda row: row)
    cut = partition.cutter(space[0], (0, 1, 2))
    laws = [(rows, views(cut, rows, truth)) for rows in DATASETS if len(set(rows)) == len(rows)]
    most, profile = Fraction(0), dict.fromkeys(GRID, 0.0)
    for one, p in laws:
        for other, q in laws:
            if symmetric(one, other) <= k:
                most = max(most, *(p[view] / q[view] for view in p))
                for at in GRID:
                    excess = sum(max(0.0, p[view] - math.exp(at) * q[view]) for view in p)
                    profile[at] = max(profile[at], float(excess))
    assert most == 3**k
    claimed = parallel(space, [user(space, lambda d_in: epsilon)] * 3, partition).map(k)
    assert claimed == pytest.approx(math.log(most), rel=1e-12)
    function = user(space, lambda d_in: F.pure(epsilon), measure=oc.tradeoff())
    curve = parallel(space, [function] * 3, partition).map(k)
    for at in GRID:
        assert curve.delta(at) == pytest.approx(profile[at], rel=1e-9, abs=1e-12)


# --- cutting ---------------------------------------------------------------------------------


def rows_of(space):
    return user(space, float, list)


def test_records_whose_key_is_not_listed_are_in_no_part(space):
    parts = parallel(space, dict.fromkeys((1, 3), rows_of(space)))([1, 12, 13, 3, 1, 5])
    assert parts(1) == [1, 1]
    assert parts(3) == [13, 3]


def test_keys_that_cannot_be_looked_up_and_errors_put_a_record_in_no_part(space):
    def key(row):
        if row == 0:
            raise RuntimeError("tells of a record")
        return [row] if row == 1 else row

    parts = parallel(space, dict.fromkeys((0, 1, 2), rows_of(space)), by_key(key))([0, 1, 2, 2])
    assert [parts(name) for name in (0, 1, 2)] == [[], [], [2, 2]]


def test_groups_of_values(space):
    groups = {"young": range(30), "old": range(30, 120), "nobody": [500]}
    both = dict.fromkeys(("young", "old"), rows_of(space))
    parts = parallel(space, both, by_values(groups))([12, 40, 29, 300, 500])
    assert (parts("young"), parts("old")) == ([12, 29], [40])
    tens = by_values({"young": [0, 1, 2], "old": range(3, 12)}, of=lambda row: row // 10)
    parts = parallel(space, both, tens)([12, 40, 29, 300])
    assert (parts("young"), parts("old")) == ([12, 29], [40])


def test_records_of_any_kind():
    records = dp.vector_domain(dp.user_domain("records", lambda _: True))
    sized = dp.vector_domain(dp.user_domain("records", lambda _: True), size=3)
    space = records, dp.symmetric_distance()
    made = parallel(space, dict.fromkeys("ab", rows_of(space)), by_key(lambda row: row["who"]))
    data = [{"who": "a", "age": 3}, {"who": "b"}, {"age": 9}, {"who": "a", "age": 4}]
    parts = made(data)
    assert parts("a") == [data[0], data[3]]
    assert parts("b") == [data[1]]
    assert "size" not in str(domain_of_parts(sized))


def test_a_users_own_data(space):
    domain = dp.user_domain("tables", lambda _: True)
    split = by_split(lambda tables, keys: {key: tables.get(key, ()) for key in keys})
    for metric in (dp.symmetric_distance(), dp.user_distance("mine")):
        own = domain, metric
        made = make_parallel_composition(*own, split, dict.fromkeys("ab", user(own, float)))
        parts = made({"a": (1, 2), "c": (3,)})
        assert (parts("a"), parts("b")) == (2, 0)
        assert [made.map(d_in) for d_in in (1, 2)] == [1.0, 2.0]
        with pytest.raises((InvalidTypeError, InvalidValueError), match="d_in"):
            made.map(0.5)
    assert isinstance(
        parallel(space, [laplace(space)], by_split(lambda rows, keys: {0: rows[:1]}))([1, 2])(0),
        int,
    )


def test_in_a_chain(space):
    chained = dp.t.make_clamp(*space, (0, 1)) >> then_parallel_composition(
        by_key(abs),
        dict.fromkeys((0, 1), rows_of((dp.vector_domain(dp.atom_domain(bounds=(0, 1))), space[1]))),
    )
    parts = chained([-5, 3, 1])
    assert (parts(0), parts(1)) == ([0], [1, 1])
    assert chained.map(2) == 2.0


# --- LazyFrames ------------------------------------------------------------------------------

pl = pytest.importorskip("polars")
FRAME = dp.lazyframe_domain(
    [
        dp.series_domain("region", dp.atom_domain(T=str)),
        dp.series_domain("age", dp.option_domain(dp.atom_domain(T="i64"))),
        dp.series_domain("weight", dp.atom_domain(T="f32")),
    ]
)
TABLE = {
    "region": ["n", "s", "n", "e", "s"],
    "age": [30, None, 31, 30, 0],
    "weight": [0.0, -0.0, 1.0, math.nan, 16777216.0],
}


def frame():
    return pl.LazyFrame(TABLE, schema_overrides={"weight": pl.Float32})


def frame_space():
    return FRAME, dp.symmetric_distance()


def ages():
    return user(frame_space(), float, lambda rows: rows.collect().get_column("age").to_list())


def cut_frame(partition, keys):
    parts = make_parallel_composition(*frame_space(), partition, dict.fromkeys(keys, ages()))(
        frame()
    )
    return [parts(key) for key in keys]


def test_a_frame_is_cut_by_columns():
    assert cut_frame(by_column("region"), ["s", "n", "w"]) == [[None, 0], [30, 31], []]
    assert cut_frame(by_column("age"), [30, None]) == [[30, 30], [None]]
    assert cut_frame(by_column("region", "age"), [("n", 30), ("s", None)]) == [[30], [None]]
    assert cut_frame(by_column("weight"), [0.0]) == [[30, None]]  # with -0.0


def test_a_frame_is_cut_by_groups_of_values():
    groups = by_values({"cold": ["n"], "warm": ["s", "e"], "far": ["x"]}, of="region")
    assert cut_frame(groups, ["cold", "warm"]) == [[30, 31], [None, 30, 0]]


def test_a_frame_of_categories_is_cut():
    kinds = {"cat": dp.categorical_domain(), "enum": dp.enum_domain(pl.Series(["a", "b"]))}
    for name, kind in kinds.items():
        domain = dp.lazyframe_domain([dp.series_domain("kind", kind)])
        space = domain, dp.symmetric_distance()
        dtype = pl.Categorical if name == "cat" else pl.Enum(["a", "b"])
        data = pl.LazyFrame({"kind": pl.Series(["b", "a", "b"], dtype=dtype)})
        inner = user(space, float, lambda rows: rows.collect().height)
        made = make_parallel_composition(*space, by_column("kind"), dict.fromkeys("ab", inner))
        parts = made(data)
        assert (parts("a"), parts("b")) == (1, 2)


def test_columns_and_their_order_stay():
    schema = user(frame_space(), float, lambda rows: rows.collect().schema)
    made = make_parallel_composition(*frame_space(), by_column("age"), {30: schema, 7: schema})
    parts = made(frame())
    assert parts(30) == parts(7) == frame().collect_schema()


def test_margins_but_the_greatest_length_are_left_out():
    margin = dp.polars.Margin
    with_keys = dp.with_margin(FRAME, margin(by=["region"], invariant="keys", max_groups=3))
    assert domain_of_parts(with_keys) == FRAME
    lengths = dp.with_margin(with_keys, margin(by=[], max_length=9, invariant="lengths"))
    assert domain_of_parts(lengths) == dp.with_margin(FRAME, margin(by=[], max_length=9))


def test_opendps_own_mechanisms_on_frames():
    plan = pl.LazyFrame(schema=frame().collect_schema()).select(dp.len(signed=True))
    count = dp.m.make_private_lazyframe(*frame_space(), PURE, plan, global_scale=0.01)
    made = make_parallel_composition(
        *frame_space(), by_column("region"), dict.fromkeys("ns", count)
    )
    assert made.map(1) == count.map(1)
    parts = made(frame())
    north = parts("n")
    assert parts("n") is north
    assert abs(north.collect().item() - 2) <= 1


# --- children --------------------------------------------------------------------------------


def test_children_of_parts_and_of_the_parent_are_interleaved(space):
    root = filter_(space, 1.0)([1] * 8 + [2] * 8)
    pair = oc.make_concurrent_composition(*space, PURE, 1, [0.125] * 4)
    parts = root(parallel(space, {1: pair, 2: filter_(space, 0.5), 3: laplace(space, 0.5)}))
    other = root(pair)
    assert root.privacy_loss() == 1.0
    children = [parts(1), other, parts(2)]
    for _ in range(4):
        for child in children:
            assert isinstance(child(laplace(space, 0.125)), int)
        assert isinstance(parts(3), int)
    assert root.privacy_loss() == 1.0


def test_asking_twice_gives_the_same(space):
    parts = parallel(space, {1: laplace(space, 1e-6), 2: filter_(space)})([1, 2])
    assert len({parts(1) for _ in range(20)}) == 1
    assert parts(2) is parts(2)


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


def test_parts_are_nested(space):
    digits = parallel(space, dict.fromkeys(range(3), laplace(space)), by_key(lambda row: row // 10))
    outer = parallel(space, dict.fromkeys(range(3), digits))
    assert outer.map(1) == 0.25
    assert outer.map(2) == 0.5
    parts = outer([1, 11, 21, 2])
    assert isinstance(parts(1)(2), int)
    assert isinstance(parts(2)(0), int)


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


def test_a_halted_parent_closes_the_parts(space):
    root = filter_(space, 1.0, halt=True)([1])
    parts = root(parallel(space, {1: filter_(space, 0.5), 2: queryable(space)}))
    children = parts(1), parts(2)
    with pytest.raises(OpenDPException):
        root(laplace(space, 5.0))
    for closed in (lambda: children[0](laplace(space)), lambda: children[1](1), lambda: parts(2)):
        with pytest.raises(HaltedError):
            closed()


def test_below_native_compositors_and_filters(space):
    made = parallel(space, {1: filter_(space, 0.5), 2: queryable(space), 3: laplace(space)})
    for parent in (
        dp.c.make_adaptive_composition(*space, PURE, d_in=1, d_mids=[1.0, 1.0]),
        dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*space, PURE), 1, 5.0),
    ):
        root = parent([1] * 8)
        parts, others = root(made), root(made)
        one, two, three = parts(1), parts(2), others(2)
        for _ in range(2):
            assert isinstance(one(laplace(space)), int)
            assert two("a") == "a"
            assert three("b") == "b"
        assert parts(3) == parts(3)
        assert parts(1) is one
        with pytest.raises(InvalidValueError, match=r"^the query \(9\) is the key of no part"):
            parts(9)


@pytest.mark.parametrize("kind", ["ours", "native"])
def test_parts_of_a_sequential_measure_live_together_and_are_closed_together(space, kind):
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


def test_in_an_indexed_composition_and_behind_a_cast(space):
    made = parallel(space, {1: laplace(space), 2: queryable(space)})
    cast = oc.c.cast(made, ZCDP)
    assert cast.map(1) == oc.c.cast(laplace(space), ZCDP).map(1)
    assert cast([1])(2)("q") == "q"
    both = oc.c.make_indexed_composition(*space, PURE, 1, [made, made])
    queries = both([1, 2])
    assert queries((0, 2))("q") == "q"
    assert queries((0, 1)) == queries((0, 1))


# --- cost ------------------------------------------------------------------------------------


def test_ten_thousand_parts_touch_each_record_once(space, monkeypatch):
    n = 10_000
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
    assert maps == [1, 1, 2] * 2  # once for all parts that share it, and again for each question


# --- what is not given away ------------------------------------------------------------------


def test_data_are_not_reachable_from_the_handle(space):
    parts = parallel(space, {1: filter_(space)}, by_split(lambda rows, keys: {1: rows}))([271828])
    child = parts(1)
    for handle in (parts, child):
        assert "271828" not in repr(handle)
        assert handle.__opendp_dict__ == {}
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(handle)


@pytest.mark.parametrize(
    "split",
    [
        lambda rows, keys: 1 // 0 if 271828 in rows else {1: rows},
        lambda rows, keys: {},
        lambda rows, keys: None,
        lambda rows, keys: {1: "271828"},
        lambda rows, keys: (_ for _ in ()).throw(ValueError(f"secret {rows}")),
    ],
)
def test_a_split_that_fails_tells_no_data(space, split):
    parts = parallel(space, {1: laplace(space)}, by_split(split))([271828])
    with pytest.raises(InvalidValueError, match="^partition could not cut the data") as caught:
        parts(1)
    assert "271828" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


# --- bad input -------------------------------------------------------------------------------


class Unhashable(dict):
    """A mapping that says it has a list for a key."""

    def __iter__(self):
        return iter([[1, 2]])

    def __len__(self):
        return 1


def test_bad_partitions(space):
    inner = laplace(space)
    for bad in (lambda row: row, "region", {"a": [1]}, None):
        with pytest.raises(InvalidTypeError, match="^partition must be made by"):
            make_parallel_composition(*space, bad, {1: inner})
    for make in (by_key, by_split):
        with pytest.raises(InvalidTypeError, match="^function must be callable"):
            make("region")
    with pytest.raises(InvalidTypeError, match="^of must be callable"):
        by_values({0: [1]}, of=3)
    with pytest.raises(InvalidTypeError, match="^names must be at least one"):
        by_column()
    with pytest.raises(InvalidTypeError, match="^names must be strings"):
        by_column(3)
    with pytest.raises(InvalidValueError, match=r"^names \(a, a\) must be different"):
        by_column("a", "a")
    with pytest.raises(InvalidTypeError, match=r"^partition \(by_column.*for LazyFrames"):
        parallel(space, [inner], by_column("region"))
    with pytest.raises(InvalidTypeError, match=r"^partition \(by_values.*for LazyFrames"):
        parallel(space, [inner], by_values({0: [1]}, of="region"))
    with pytest.raises(InvalidTypeError, match=r"^partition \(by_key.*for vectors"):
        make_parallel_composition(*frame_space(), by_key(len), {1: ages()})
    with pytest.raises(InvalidValueError, match="column 'sex', which input_domain does not have"):
        make_parallel_composition(*frame_space(), by_column("sex"), {1: ages()})


def test_bad_groups(space):
    with pytest.raises(InvalidValueError, match="^groups overlap: 30 is in both 'a' and 'b'"):
        by_values({"a": range(31), "b": range(30, 40)})
    with pytest.raises(InvalidValueError, match="^groups overlap: True is in both"):
        by_values({"a": [1], "b": [True]})
    with pytest.raises(InvalidTypeError, match=r"^groups\['a'\] has \[1\], which is not hashable"):
        by_values({"a": [[1]]})
    with pytest.raises(InvalidValueError, match="does not equal itself"):
        by_values({"a": [math.nan]})
    with pytest.raises(InvalidTypeError, match="^groups must be a mapping"):
        by_values([1, 2])
    for values in ("abc", 3, b"x"):
        with pytest.raises(InvalidTypeError, match=r"^groups\['a'\] must be a collection"):
            by_values({"a": values})
    with pytest.raises(InvalidValueError, match="^groups has 1200000 values"):
        by_values({"a": range(600_000), "b": range(600_000, 1_200_000)})
    with pytest.raises(InvalidValueError, match=r"^groups\['a'\] must have at most 1,000,000"):
        by_values({"a": range(3_000_000)})
    with pytest.raises(InvalidValueError, match=r"no values for measurements\['b'\]"):
        parallel(space, {"b": laplace(space)}, by_values({"a": [1]}))


def test_bad_measurements(space):
    inner = laplace(space)
    for bad in ([inner], inner, None):
        with pytest.raises(InvalidTypeError, match="^measurements must be a mapping"):
            make_parallel_composition(*space, by_key(abs), bad)
    with pytest.raises(InvalidValueError, match="^measurements must have at least one"):
        parallel(space, {})
    with pytest.raises(
        InvalidTypeError, match=r"^measurements has \[1, 2\], which is not hashable"
    ):
        parallel(space, Unhashable())
    with pytest.raises(InvalidValueError, match="^measurements has nan, which does not equal"):
        parallel(space, {math.nan: inner})
    with pytest.raises(InvalidTypeError, match=r"^measurements\['b'\] must be a measurement"):
        parallel(space, {"a": inner, "b": len})
    other = dp.vector_domain(dp.atom_domain(T=str))
    with pytest.raises(SpaceMismatchError, match=r"^measurements\['b'\].input_domain"):
        parallel(space, {"a": inner, "b": user((other, space[1]), float)})
    change = user((space[0], dp.change_one_distance()), float)
    with pytest.raises(SpaceMismatchError, match=r"^measurements\['b'\].input_metric"):
        parallel(space, {"a": inner, "b": change})
    with pytest.raises(SpaceMismatchError, match=r"^measurements\['b'\].output_measure"):
        parallel(space, {"a": inner, "b": user(space, float, measure=ZCDP)})
    with pytest.raises(UnsupportedMeasureError, match="no composition rule"):
        parallel(space, {"a": user(space, float, measure=dp.user_divergence("mine"))})


def test_bad_spaces(space):
    inner = laplace(space)
    with pytest.raises(InvalidTypeError, match="^input_domain must be a domain"):
        make_parallel_composition("data", space[1], by_key(abs), {1: inner})
    with pytest.raises(InvalidTypeError, match="^input_metric must be a metric"):
        make_parallel_composition(space[0], "metric", by_key(abs), {1: inner})
    for metric in (dp.absolute_distance(T=int), dp.user_distance("mine")):
        with pytest.raises(InvalidValueError, match="^input_metric .* does not add up over parts"):
            make_parallel_composition(space[0], metric, by_key(abs), {1: inner})
    metric = dp.symmetric_id_distance(pl.col("region"))
    with pytest.raises(InvalidValueError, match="bound their number first"):
        make_parallel_composition(FRAME, metric, by_column("region"), {1: inner})
    with pytest.raises(InvalidTypeError, match="cannot be cut into parts"):
        make_parallel_composition(dp.atom_domain(T=int), space[1], by_key(abs), {1: inner})


def test_public_values_that_are_not_of_the_columns_type():
    for partition, keys in (
        (by_column("age"), ["thirty"]),
        (by_column("age"), [1.5]),
        (by_column("age"), [2**70]),
        (by_column("region"), [1]),
    ):
        with pytest.raises(InvalidTypeError, match="^the public values must be of the type"):
            cut_frame(partition, keys)
    with pytest.raises(InvalidTypeError, match="^measurements has the key 'n', which must be"):
        cut_frame(by_column("region", "age"), ["n"])
    close = by_values({"a": [16777216.0], "b": [16777217.0]}, of="weight")
    with pytest.raises(InvalidValueError, match="^the public values overlap"):
        cut_frame(close, ["a", "b"])


def test_wrong_questions(space):
    parts = parallel(space, [laplace(space)])([1])
    with pytest.raises(
        InvalidValueError, match=r"^the query \(7\) is the key of no part; pass one of the 1 keys"
    ):
        parts(7)
    with pytest.raises(InvalidTypeError, match=r"^the query has \[\], which is not hashable"):
        parts([])


def test_features_must_be_enabled(space):
    inner = laplace(space)
    try:
        for feature in ("contrib", "honest-but-curious"):
            dp.disable_features(feature)
            with pytest.raises(OpenDPException, match=feature):
                parallel(space, [inner])
            dp.enable_features(feature)
    finally:
        dp.enable_features("contrib", "honest-but-curious")


def test_reprs(space):
    made = parallel(space, [laplace(space)] * 3)
    assert repr(made) == "ParallelComposition(MaxDivergence, by_key(...), 3 keys)"
    assert repr(made([1])) == "ParallelComposition(open)"
