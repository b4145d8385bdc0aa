"""Known faults of OpenDP's maps, one program for each issue, which ``docs/advisories.rst`` shows.

A test that fails on a newer OpenDP shows that the fault is mended there, or that the constructor
has changed: change the table of the page.
"""

from math import dist, exp, log

import opendp.prelude as dp
import pytest

pl = pytest.importorskip("polars")

SYMMETRIC, ORDERED = dp.symmetric_distance(), dp.insert_delete_distance()
INTS = dp.vector_domain(dp.atom_domain(T=int))
NAN = float("nan")


def column(name, T, *, optional=False, **about):
    atom = dp.atom_domain(T=T, **about)
    return dp.series_domain(name, dp.option_domain(atom) if optional else atom)


def frames(*columns, **margin):
    return dp.with_margin(dp.lazyframe_domain([*columns]), dp.polars.Margin(**margin))


def private(domain, plan, metric=None, measure=None, scale=None):
    metric, measure = metric or dp.frame_distance(SYMMETRIC), measure or dp.max_divergence()
    return dp.m.make_private_lazyframe(domain, metric, measure, plan, scale)


def bound(rows):
    return [dp.polars.Bound(per_group=rows)]


def test_2922_a_threshold_is_released_at_equality():
    users = [str(number) for number in range(100_000)]
    counts = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), SYMMETRIC)
    release = counts >> dp.m.then_laplace_threshold(scale=1.0, threshold=5)
    assert release.map(1)[1] < 0.005
    assert len(release(users)) > 1_000  # 1,339 in the mean; below 1,000 has probability < 1e-20


def test_2923_the_mean_is_rounded():
    low, size = 2.0**50, 1024
    atom = dp.atom_domain(bounds=(low, low + 1), nan=False)
    deviations = dp.t.make_sum_of_squared_deviations(dp.vector_domain(atom, size=size), SYMMETRIC)
    rest = [low + 0.25] * (size - 1)
    change = abs(deviations([low + 0.25, *rest]) - deviations([low + 0.5, *rest]))
    assert deviations.map(2) < 41 < 63 < change


def test_2924_an_l2_distance_grows_by_more_than_the_height():
    four = dp.vector_domain(dp.atom_domain(T=int), size=4)
    tree = dp.t.make_b_ary_tree(four, dp.l2_distance(T=int), leaf_count=4, branching_factor=4)
    assert tree.map(2) == 4 < dist(tree([0] * 4), tree([1] * 4))  # these are at distance 2


def test_2925_sums_of_a_tree_wrap_around():
    two = dp.vector_domain(dp.atom_domain(T=int), size=2)
    tree = dp.t.make_b_ary_tree(two, dp.l1_distance(T=int), leaf_count=2, branching_factor=2)
    first, second = tree([2**31 - 1, 0]), tree([2**31 - 1, 1])
    assert sum(abs(a - b) for a, b in zip(first, second, strict=True)) > 2**31 > tree.map(1) == 2


def test_2926_an_ordered_distance_is_halved():
    bounded = dp.t.make_metric_bounded(dp.vector_domain(dp.atom_domain(T=int), size=3), ORDERED)
    assert (bounded.output_metric, bounded.map(2)) == (dp.hamming_distance(), 1)
    assert (bounded([0, 1, 2]), bounded([1, 2, 3])) == ([0, 1, 2], [1, 2, 3])


def test_2927_some_inputs_are_shuffled():
    resize = dp.t.make_resize(INTS, ORDERED, size=3, constant=0, MO="InsertDeleteDistance")
    assert resize.map(1) == 2
    assert {tuple(resize([0, 1, 2, 9])) for _ in range(100)} == {(0, 1, 2)}
    assert len({tuple(resize([0, 1, 2])) for _ in range(100)}) > 1


def test_2930_the_length_of_a_bit_vector_is_shown():
    domain = dp.bitvector_domain(max_weight=1)
    response = dp.m.make_randomized_response_bitvec(domain, dp.discrete_distance(), f=0.5)
    assert (len(response(b"\x01")), len(response(b"\x01\x00"))) == (1, 2)
    assert response.map(1) < 3.0


def test_2933_two_answers_are_on_one_sample():
    """Randomized response of loss 2 on the first of ten people, a sample of a hundred."""
    sample = dp.vector_domain(dp.atom_domain(T=int), size=10), SYMMETRIC
    keep = exp(2) / (1 + exp(2))
    answer = dp.m.make_user_measurement(
        *sample, dp.max_divergence(), lambda rows: rows[0], lambda d_in: 2.0 * d_in, TO=int
    )
    amplified = dp.c.make_population_amplification(answer, population_size=100)
    both = dp.c.make_composition([amplified, amplified])
    # somebody is in the sample with probability .1, and then both answers are about this person
    in_it, not_in_it = keep**2, (1 - keep) ** 2
    truth = log((0.1 * in_it + 0.9 * not_in_it) / not_in_it)
    assert both.map(1) < 0.989 < 1.849 < truth


def test_2935_nan_is_0():
    atom = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    assert abs(dp.m.make_laplace(*atom, scale=1e-3)(NAN)) < 1.0


def test_2936_fill_null_leaves_nan():
    domain = frames(column("x", float, optional=True, nan=False), max_length=100)
    total = pl.col("x").fill_null(NAN).clip(0.0, 1.0).sum().dp.noise(scale=1.0)
    made = private(domain, pl.LazyFrame(schema={"x": pl.Float64}).select(total))
    assert made.map(bound(1)) < 1.1
    assert made(pl.LazyFrame({"x": [None] + [1.0] * 99})).collect().item() < 50
    assert made(pl.LazyFrame({"x": [1.0] * 100})).collect().item() > 50


FREE = {
    2938: (pl.col("x").fill_null(0.0).cast(pl.Int64, strict=False), 15),
    2939: (pl.col("x").fill_null(0.0).cut([1.5]), 15),
    2940: (pl.col("n").fill_null(0) % pl.col("m").fill_null(0), 15),
}


@pytest.mark.parametrize("issue", FREE)
def test_2938_2939_2940_a_count_without_noise(issue):
    columns = (
        column("x", float, optional=True),
        *(column(name, "i64", optional=True) for name in "nm"),
    )
    data = pl.LazyFrame({"x": [NAN] + [1.0] * 15, "n": [*range(16)], "m": [0] + [3] * 15})
    expression, count = FREE[issue]
    plan = data.clear().select(expression.count().dp.noise())
    made = private(frames(*columns, max_length=16, invariant="lengths"), plan, scale=1.0)
    assert made.map(bound(2)) == 0.0
    assert made(data).collect().item() == count


def test_2941_the_range_of_a_float32():
    """Four are more than a Float32 holds, so the sum is its largest value, or infinite."""
    domain, big = frames(column("x", float, nan=False), max_length=11), 1e38
    column_x = pl.col("x").cast(pl.Float32).fill_nan(0.0).clip(-big, big)
    total = column_x.sum().dp.noise(scale=big / 100)
    made = private(domain, pl.LazyFrame(schema={"x": pl.Float64}).select(total))
    assert made.map(bound(1)) < 110
    rows = [big] * 4 + [-big] * 7  # their sum is -3 * big
    assert made(pl.LazyFrame({"x": rows})).collect().item() > big


def test_2944_codes_depend_on_the_order():
    domain = frames(column("x", float, nan=False), max_length=101)
    total = pl.col("x").cut([1.0]).to_physical().dp.sum((0, 1), scale=1.0)
    made = private(domain, pl.LazyFrame(schema={"x": pl.Float64}).select(total))
    assert made.map(bound(1)) == 1.0
    assert made(pl.LazyFrame({"x": [0.5] * 100})).collect().item() < 50
    assert made(pl.LazyFrame({"x": [2.0] + [0.5] * 100})).collect().item() > 50


def test_2945_twice_as_many_rows_can_change():
    """Three rows of 10 leave and three of -10 come: the sum changes by 60, and the scale is 30."""
    schema = {"A": pl.String, "B": pl.Int32}
    plan = pl.LazyFrame(schema=schema).group_by("A").agg(pl.col("B").dp.sum((-10, 10), scale=30.0))
    columns = column("A", str), column("B", int)
    by = frames(*columns, by=["A"], max_length=3, max_groups=1, invariant="keys")
    assert private(by, plan, SYMMETRIC).map(6) == 1.0


def test_2945_twice_as_many_groups_can_change():
    """Not in the issue: one row of A leaves and one of B comes, so two counts change by 1."""
    domain = frames(column("A", str), by=["A"], max_groups=1)
    counts = pl.LazyFrame(schema={"A": pl.String}).group_by("A").agg(dp.len(1.0, signed=True))
    measure = dp.approximate(dp.max_divergence())
    metric, plan = dp.frame_distance(SYMMETRIC), (counts, None, 20)
    made = dp.m.make_private_lazyframe(domain, metric, measure, *plan)
    assert made.map([dp.polars.Bound(by=["A"], per_group=1, num_groups=2)])[0] == 1.0


def redefined(expression):
    rows = pl.LazyFrame(schema={"id": pl.Int64, "g": pl.Int64})
    each = rows.filter(pl.int_range(pl.len()).over("id", "g") < 1)
    truncated = each.filter(pl.struct("g").rank("dense").over("id") < 101)
    grouped = truncated.with_columns(g=expression).group_by("g").agg(dp.len(1.0, signed=True))
    keys = pl.LazyFrame({"g": [0]}).join(grouped, on="g", how="left")
    domain = dp.lazyframe_domain([column("id", "i64"), column("g", "i64")])
    unit = dp.symmetric_id_distance(pl.col("id"))
    return private(domain, keys, unit, dp.zero_concentrated_divergence())


def test_2949_a_grouping_column_is_redefined():
    made = redefined(pl.lit(0, dtype=pl.Int64))
    assert made.map(1) == 0.5
    one = pl.LazyFrame({"id": [0] * 100, "g": [*range(100)]})
    assert made(one).collect()["len"].item() > 50  # 100, and 0 without the one person
    assert made(one.clear()).collect()["len"].item() < 50


def test_2949_a_margin_by_an_expression_outlives_its_column():
    """Not in the issue: OpenDP drops the margins by columns that are redefined, but not these."""
    rows = pl.LazyFrame(schema={"g": pl.Int64, "h": pl.Int64}).with_columns(g=pl.col("h"))
    plan = rows.group_by(pl.col("g") % 2).agg(dp.len(1.0, signed=True))
    columns = column("g", "i64"), column("h", "i64")
    domain = frames(*columns, by=[pl.col("g") % 2], max_groups=2, invariant="keys")
    made = private(domain, plan, SYMMETRIC)
    assert made.map(1) == 1.0
    assert made(pl.LazyFrame({"g": [0, 0], "h": [0, 0]})).collect()["g"].to_list() == [0]
    found = made(pl.LazyFrame({"g": [0, 0, 0], "h": [0, 0, 1]})).collect()["g"].to_list()
    assert sorted(found) == [0, 1]  # the keys are data


def test_a_strict_conversion_in_a_key_tells_of_one_row():
    rows = pl.LazyFrame(schema={"zip": pl.String})
    grouped = rows.group_by(pl.col("zip").cast(pl.Int32)).agg(dp.len(1.0, signed=True))
    keys = pl.LazyFrame({"zip": [1, 2]}, schema={"zip": pl.Int32})
    plan = keys.join(grouped, on="zip", how="left")
    made = private(dp.lazyframe_domain([column("zip", str)]), plan, SYMMETRIC)
    assert made.map(1) == 1.0
    assert made(pl.LazyFrame({"zip": ["1", "2", "2"]})).collect().height == 2
    with pytest.raises(dp.OpenDPException, match="conversion from `str` to `i32` failed"):
        made(pl.LazyFrame({"zip": ["1", "2", "x"]})).collect()
