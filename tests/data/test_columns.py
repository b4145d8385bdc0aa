"""Columns of pandas, Polars, NumPy and PyArrow where a list is taken."""

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.data.kind import as_rows, atom_of, is_column
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from ..build import an_odometer, costing

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

COLUMNS = {
    "pandas": pd.Series,
    "polars": pl.Series,
    "numpy": np.array,
    "pyarrow": pa.array,
    "pyarrow chunks": lambda values: pa.chunked_array([values[:1], values[1:]]),
}
SECRET = 987654


def released(data, **atom):
    """What a mechanism sees of the data."""
    space = dp.vector_domain(dp.atom_domain(**atom)), dp.symmetric_distance()
    return an_odometer(space=space)(data)(costing(0.0, list, space=space))


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(
    ("values", "T"),
    [
        ([1, -2, 3], int),
        ([1, 2**40], "i64"),
        ([1, 2, 3], float),
        ([1.5, -0.25], float),
        ([True, False], bool),
        (["a", "é", ""], str),
    ],
)
def test_a_column_is_the_list_of_its_values(column, values, T):
    found = released(COLUMNS[column](values), T=T)
    assert found == values
    assert {type(one) for one in found} == {type(T(values[0])) if callable(T) else int}


@settings(max_examples=15)
@given(values=st.lists(st.integers(-(2**31), 2**31 - 1)))
@pytest.mark.parametrize(
    "kind", [pd.Series, pl.Series, np.array], ids=["pandas", "polars", "numpy"]
)
def test_integers_of_i32_are_unchanged(kind, values):
    assert as_rows(kind(values), "i32", lambda: True) == values or not values


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (np.array([1, 2], dtype="int8"), [1, 2]),
        (np.array([1, 2], dtype=">i4"), [1, 2]),
        (pd.Series([1, 2], dtype="Int64"), [1, 2]),
        (np.array([], dtype=float), []),
        (pd.Series([], dtype=object), []),
    ],
)
def test_integers_of_other_widths_are_converted_exactly(data, values):
    assert released(data, T=int) == values


@pytest.mark.parametrize(
    "data",
    [
        np.array([1, SECRET * 10**6]),
        pl.Series([1, -SECRET * 10**6]),
        pa.array([SECRET * 10**6]),
    ],
    ids=["numpy", "polars", "pyarrow"],
)
def test_integers_outside_of_the_domain_are_refused_without_a_row(data):
    with pytest.raises(InvalidValueError, match="^data .* has integers outside of i32") as refusal:
        released(data, T=int)
    assert str(SECRET) not in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "T"),
    [
        (pd.Series([1, None]), int),
        (pd.Series([1.0, None], dtype="Float64"), float),
        (pd.Series(["a", None]), str),
        (pl.Series([1.0, None]), float),
        (pa.array([1, None]), int),
        (np.array(["a", None], dtype=object), str),
    ],
)
def test_missing_values_are_refused(data, T):
    with pytest.raises(InvalidValueError, match=r"^data .* has missing values.*fill_null"):
        released(data, T=T)


def test_what_a_mask_hides_is_no_row():
    hidden = np.ma.masked_array([1, SECRET, 3], mask=[False, True, False])
    with pytest.raises(InvalidValueError, match="missing values") as refusal:
        released(hidden, T="i64")
    assert str(SECRET) not in str(refusal.value)
    assert released(np.ma.masked_array([1, 2], mask=False), T="i64") == [1, 2]


@pytest.mark.parametrize("make", [np.array, pl.Series, pd.Series, lambda x: np.array(x, "float32")])
def test_nan_is_allowed_or_refused_as_the_domain_says(make):
    data = make([1.0, float("nan")])
    assert len(released(data, T=float)) == 2
    with pytest.raises(InvalidValueError, match="^data .* has NaN, which the domain excludes"):
        released(data, T=float, nan=False)


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"a": [SECRET]}),
        pl.DataFrame({"a": [SECRET]}),
        pa.table({"a": [SECRET]}),
        np.array([[SECRET]]),
        np.array(SECRET),
        np.int64(SECRET),
    ],
)
def test_tables_and_scalars_are_no_columns(data):
    with pytest.raises(InvalidTypeError, match="^data must be one column") as refusal:
        released(data, T=int)
    assert str(SECRET) not in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "atom"),
    [
        (np.array([1]), "i64"),
        (np.array([1], dtype="int16"), "i32"),
        (pd.Series(["a"]), "String"),
        (pl.Series([True]), "bool"),
        (pl.Series([1.0], dtype=pl.Float32), "f32"),
        (pa.array([1.0]), "f64"),
        (pa.array(["a"]), "String"),
        (np.array(["abc"]), "String"),
    ],
)
def test_the_domain_of_a_column_is_inferred_from_its_type(data, atom):
    assert is_column(data)
    assert atom_of(data) == atom
    context = oc.concurrent_context(
        data, dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0), split_evenly_over=1
    )
    assert context.accountant.input_domain == dp.vector_domain(dp.atom_domain(T=atom))
    assert isinstance(context.query().count().laplace().release(), int)


def test_a_type_without_a_domain_is_refused():
    with pytest.raises(InvalidTypeError, match=r"^data \(pandas.Series of datetime64"):
        atom_of(pd.Series(pd.to_datetime(["2020-01-01"])))
