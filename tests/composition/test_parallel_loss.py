"""The distances of parts, and the loss of all together."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.data.partition import by_key
from opendp_concurrent.errors import (
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures import shapes, tradeoffs
from opendp_concurrent.measures.shapes import join_numbers
from opendp_concurrent.measures.tradeoffs import join

from ..build import APPROXIMATE, APPROXIMATE_ZCDP, PURE, RENYI, SPACE, ZCDP, a_filter, costing
from .test_parallel import parallel

F, TRADEOFF = oc.TradeoffFunction, oc.tradeoff()


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


SYMMETRIC = dp.symmetric_distance(), symmetric
ORDERED = dp.insert_delete_distance(), insert_delete
METRICS = {
    "symmetric": (*SYMMETRIC, *SYMMETRIC, 1),
    "insert-delete": (*ORDERED, *ORDERED, 1),
    "change-one": (dp.change_one_distance(), change_one, *SYMMETRIC, 2),
    "hamming": (dp.hamming_distance(), hamming, *ORDERED, 2),
}
DATASETS = [list(rows) for size in range(4) for rows in product(range(4), repeat=size)]


@pytest.mark.parametrize("name", METRICS)
def test_distances_of_parts_add_up_to_at_most_the_factor_which_is_attained(name):
    metric, distance, metric_of_parts, distance_of_parts, factor = METRICS[name]
    partition = by_key(lambda row: row % 3)  # 2 is in no part
    assert partition.metric_of_parts(metric, SPACE[0]) == (metric_of_parts, factor)
    cut = partition.cutter(SPACE[0], (0, 1))
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
    inner = costing(0.25, space=(SPACE[0], metric_of_parts))
    made = parallel([inner] * 2, by_key(abs), (SPACE[0], metric))
    assert [made.map(d_in) for d_in in range(4)] == [0.25 * factor * d_in for d_in in range(4)]
    assert made.check(1, 0.25 * factor)
    assert not made.check(1, 0.24 * factor)


def test_a_size_does_not_belong_to_the_parts():
    sized = dp.vector_domain(dp.atom_domain(T=int), size=4)
    made = parallel({1: costing(float)}, by_key(abs), (sized, dp.change_one_distance()))
    assert made([1, 2, 1, 1])(1) == 3
    space = sized, SPACE[1]
    with pytest.raises(SpaceMismatchError, match=r"^measurements\[1\].input_domain"):
        parallel({1: costing(float, space=space)}, by_key(abs), space)


# --- the loss --------------------------------------------------------------------------------


def assigned(tables, k):
    """Largest sum of the losses of different parts; each unit of distance has a part."""
    found = {tuple(Counter(one).items()) for one in product(range(len(tables)), repeat=k)}
    return max(sum(tables[part][j - 1] for part, j in one) for one in found)


def test_each_part_has_one_loss():
    """Filters of 10 and 0.1 for a distance of 2, under change-one distance: 10.1, and not 20."""
    space = SPACE[0], dp.change_one_distance()
    made = parallel([a_filter(10.0, d_in=2), a_filter(0.1, d_in=2)], by_key(abs), space)
    assert made.map(1) == math.nextafter(10.1, 11.0)  # the exact sum, rounded up
    for measure, squares in ((ZCDP, False), (oc.gaussian_tradeoff(), True)):
        one, other = (costing(lambda d, e=e: e, measure=measure) for e in (3.0, 4.0))
        assert parallel([one, other]).map(2) == (5.0 if squares else 7.0)
        assert parallel([one, other, other]).map(2) == (32**0.5 if squares else 8.0)
    function = [costing(lambda d, e=e: F.pure(e), measure=TRADEOFF) for e in (1, 2)]
    assert parallel(function).map(2) == F.pure(1).compose(F.pure(2))


rising = st.lists(st.integers(0, 12), min_size=4, max_size=4).map(sorted)


@given(st.lists(st.tuples(rising, st.integers(1, 3)), min_size=1, max_size=4))
def test_the_knapsack_is_the_maximum_over_assignments(kinds):
    tables = [table for table, count in kinds for _ in range(count)]
    for k in (1, 2, 3, 4):
        rows = [[float(table[j]) for table, _ in kinds] for j in range(k)]
        assert join_numbers(rows, [count for _, count in kinds]) == assigned(tables, k)


def test_a_large_knapsack_is_an_upper_bound(monkeypatch):
    kinds = [[float(i + j % (i + 2)) for j in range(6)] for i in range(5)]
    rows = [[max(kind[: j + 1]) for kind in kinds] for j in range(6)]
    exact = join_numbers(rows, [1] * 5)
    monkeypatch.setattr(shapes, "_MOST_STEPS", 10)
    bound = join_numbers(rows, [1] * 5)
    assert exact < bound == assigned([[max(row) for row in rows]] * 5, 6)
    monkeypatch.setattr(tradeoffs, "_MOST_PRODUCTS", 2)
    functions = [[F.pure(1.0), F.pure(2.0)]] * 2
    assert tradeoffs.join_tradeoffs(functions, [1, 1]) == F.pure(2.0).power(2)


def test_many_parts_that_all_differ_take_no_long_time():
    """Those that count are at most as many as the distance, if one order holds at all distances."""
    made = parallel([costing(lambda d_in, e=e: e / 1000 * d_in**0.5) for e in range(1, 101)])
    assert made.map(24) == pytest.approx(sum(e / 1000 for e in range(77, 101)), rel=1e-12)


def test_pairs_are_joined_by_component():
    tables = ((1.0, 1e-7), (2.0, 1e-3)), ((0.5, 1e-6), (1.0, 2e-6))
    made = parallel([costing(lambda d, t=t: t[d - 1], measure=APPROXIMATE) for t in tables])
    assert [made.map(k) for k in range(3)] == [(0.0, 0.0), (1.0, 1e-6), (2.0, 1e-3)]


def test_truncated_concentrated_dp_takes_the_least_omega():
    measure, T = oc.truncated_concentrated_divergence(omega=2.0), oc.TruncatedConcentrated
    one = costing(lambda d_in: T(0.1 * d_in**2, 24.0 / d_in), measure=measure)
    other = costing(lambda d_in: T(0.2 * d_in**2, 36.0 / d_in), measure=measure)
    made = parallel([one, other])
    assert [made.map(k) for k in (1, 2, 3)] == [T(0.2, 24.0), T(0.2 * 4, 12.0), T(0.2 * 9, 8.0)]


def test_renyi_curves_are_joined_by_order():
    one = costing(lambda d_in: lambda alpha: alpha * d_in**2 / 8, measure=RENYI)
    other = costing(lambda d_in: lambda alpha: min(alpha / 2, 1.0), measure=RENYI)
    made = parallel([one, other])
    assert made.map(0)(2.0) == 0.0
    for alpha in (1.5, 2.0, 8.0, 20.0):
        tables = [[alpha * j**2 / 8 for j in (1, 2, 3)], [min(alpha / 2, 1.0)] * 3]
        for k in (1, 2, 3):
            assert made.map(k)(alpha) == pytest.approx(assigned(tables, k), rel=1e-15)
    with pytest.raises(InvalidValueError, match="^alpha"):
        made.map(1)(1.0)


def test_tradeoff_functions_of_one_family_are_exact():
    gauss = parallel([costing(lambda d: F.gaussian(0.5 * d), measure=TRADEOFF)] * 3)
    assert [gauss.map(k) for k in (1, 2)] == [F.gaussian(0.5), F.gaussian(1.0)]
    assert gauss.map(3).mu == 1.5
    flat = costing(lambda d: F.gaussian(0.5), measure=TRADEOFF)
    assert parallel([flat] * 3).map(3) == F.gaussian(0.5).power(3)
    assert parallel([flat]).map(3) == F.gaussian(0.5)
    assert parallel([flat]).map(0) == F.identity()


GRID = [0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0, 1.3, 2.0, 4.0]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_tradeoff_functions_that_cross_are_joined_below_all(k):
    kinds = [lambda d: F.gaussian(0.7 * d), lambda d: F.approximate(0.4 * d, 1e-3 * d)]
    kinds.append(kinds[0])
    made = parallel([costing(one, measure=TRADEOFF) for one in kinds]).map(k)
    for epsilon in GRID:
        joined = max(one(k).delta(epsilon) for one in kinds)
        assert made.delta(epsilon) >= joined
        if k == 1:
            assert made.delta(epsilon) <= joined * 1.02 + 1e-9
        for owners in product(range(3), repeat=k):  # any product of what the parts may lose
            first, *more = [kinds[part](j) for part, j in Counter(owners).items()]
            assert made.delta(epsilon) >= first.compose(*more).delta_bounds(epsilon).lower


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


def test_approximate_zcdp_is_the_maximum_at_distance_one_and_a_sum_above_unless_as_a_whole():
    def parts(to):
        return [
            dp.m.make_user_measurement(
                *SPACE, APPROXIMATE_ZCDP, len, lambda d, rho=rho: (rho * d, 2.0**-30), TO=to
            )
            for rho in (0.25, 0.3)
        ]

    assert parallel(parts("i32")).map(1) == (0.3, 2.0**-30)
    assert parallel(parts("i32")).map(2) == (0.6, 2.0**-29)
    assert parallel([parts("i32")[0]] * 3).map(3) == (0.75, 3 * 2.0**-30)
    whole = parts("ExtrinsicObject")
    made = parallel(whole)
    assert made.map(1) == (0.3, 2.0**-30)
    change = parallel(whole, space=(SPACE[0], dp.change_one_distance()))
    for one, d_in, words in ((made, 2, "only as a whole"), (change, 1, "at total distance 1")):
        with pytest.raises(UnsupportedMeasureError, match=words):
            one.map(d_in)
    assert parallel(whole[1:]).map(2) == (0.6, 2.0**-30)  # one part: nothing composes


@given(
    st.lists(
        st.lists(st.floats(0.0, 10.0), min_size=6, max_size=6).map(sorted), min_size=1, max_size=3
    ),
    st.integers(1, 4),
)
def test_the_loss_is_monotone_and_the_maximum_at_one(maps, copies):
    made = parallel([costing(lambda d, one=one: one[d - 1]) for one in maps] * copies)
    losses = [made.map(k) for k in range(6)]
    assert losses == sorted(losses)
    assert losses[1] == max(one[0] for one in maps)
    tables = [[Fraction(loss) for loss in one] for one in maps * copies]
    for k in (2, 3):
        exact = assigned(tables, k)
        assert Fraction(losses[k]) >= exact
        assert losses[k] == 0.0 or Fraction(math.nextafter(losses[k], 0.0)) < exact


def test_limits_of_the_distance_are_said():
    inner = costing(lambda d_in: 0.001)
    made = parallel(dict.fromkeys(range(300), inner))
    assert Fraction(made.map(256)) >= 256 * Fraction(0.001)
    assert parallel([inner] * 5).map(256) == pytest.approx(0.005, rel=1e-15)
    curve = costing(lambda d_in: lambda alpha: alpha, measure=RENYI)
    function = costing(lambda d_in: F.pure(0.1), measure=TRADEOFF)
    assert parallel([function] * 5).map(4) == F.pure(0.1).power(4)
    for one, d_in in ((made, 257), (parallel([curve]), 65), (parallel([function]), 5)):
        with pytest.raises(InvalidValueError, match=f"at most {d_in - 1}"):
            one.map(d_in)


def test_maps_are_not_trusted():
    for value in (-1.0, math.nan, "much"):
        bad = parallel({"good": costing(float), "bad": costing(lambda d, v=value: v)})
        with pytest.raises((PrivacyMapError, OpenDPException), match=r"measurements\['bad'\]"):
            bad.map(1)
    bounded = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5])
    made = parallel({"a": costing(float), "b": bounded})
    assert made.map(1) == 1.0
    with pytest.raises(PrivacyMapError, match=r"d_in \(2\).*measurements\['b'\].*at most 1"):
        made.map(2)


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


def test_randomized_responses_in_parallel_lose_exactly_what_is_claimed():
    truth, epsilon = Fraction(3, 4), math.log(3)
    partition = by_key(lambda row: row)
    cut = partition.cutter(SPACE[0], (0, 1, 2))
    laws = [(rows, views(cut, rows, truth)) for rows in DATASETS if len(set(rows)) == len(rows)]
    most, profile = Counter(), Counter()
    for one, p in laws:
        for other, q in laws:
            k = symmetric(one, other)
            most[k] = max(most[k], *(p[view] / q[view] for view in p))
            for at in GRID:
                excess = sum(max(0.0, float(p[view]) - math.exp(at) * float(q[view])) for view in p)
                profile[k, at] = max(profile[k, at], excess)
    function = costing(lambda d_in: F.pure(epsilon), measure=TRADEOFF)
    for k in (1, 2, 3):
        assert max(most[j] for j in range(k + 1)) == 3**k
        claimed = parallel([costing(lambda d_in: epsilon)] * 3, partition).map(k)
        assert claimed == pytest.approx(k * epsilon, rel=1e-12)
        curve = parallel([function] * 3, partition).map(k)
        for at in GRID:
            exact = max(profile[j, at] for j in range(k + 1))
            assert curve.delta(at) == pytest.approx(exact, rel=1e-9, abs=1e-12)
