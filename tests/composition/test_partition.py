"""Cutting a dataset into parts: by a key, by groups of values, by a user's function, by columns."""

import math

import opendp.prelude as dp
import pytest

from opendp_concurrent.composition.parallel import make_parallel_composition
from opendp_concurrent.data.kind import Frames, kind_of
from opendp_concurrent.data.partition import by_column, by_key, by_split, by_values
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from .parts import laplace, parallel, user

PURE = dp.max_divergence()


def domain_of_parts(domain):
    return kind_of(domain).domain_of_parts(domain)


# --- cutting ---------------------------------------------------------------------------------


def rows_of(space):
    return user(space, float, list)


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
    assert type(kind_of(FRAME)) is Frames
    assert cut_frame(by_column("region"), ["s", "n", "w"]) == [[None, 0], [30, 31], []]
    assert cut_frame(by_column("age"), [30, None]) == [[30, 30], [None]]
    assert cut_frame(by_column("region", "age"), [("n", 30), ("s", None)]) == [[30], [None]]
    assert cut_frame(by_column("weight"), [0.0]) == [[30, None]]  # with -0.0


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


def test_margins_but_the_greatest_length_are_left_out():
    margin = dp.polars.Margin
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
        lambda rows, keys: (_ for _ in ()).throw(ValueError(f"secret {rows}")),
    ],
)
def test_a_split_that_fails_tells_no_data(space, split):
    parts = parallel(space, {1: laplace(space)}, by_split(split))([271828])
    with pytest.raises(InvalidValueError, match="^partition failed to split the data") as caught:
        parts(1)
    assert "271828" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


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


def test_groups_that_overlap_or_are_missing_are_refused(space):
    with pytest.raises(InvalidValueError, match="^groups overlap: 30 is in both 'a' and 'b'"):
        by_values({"a": range(31), "b": range(30, 40)})
    with pytest.raises(InvalidValueError, match="^groups overlap: True is in both"):
        by_values({"a": [1], "b": [True]})
    with pytest.raises(InvalidValueError, match=r"no values for measurements\['b'\]"):
        parallel(space, {"b": laplace(space)}, by_values({"a": [1]}))
