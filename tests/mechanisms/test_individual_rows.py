"""What people's rows are, and what a function of rows may return."""

import numpy as np
import opendp.prelude as dp
import pytest

from opendp_concurrent.data.kind import Own, kind_of
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.mechanisms.individual import check_people, values_of

SYMMETRIC = dp.symmetric_distance()


def as_rows(data, domain):
    return kind_of(domain).rows(data, domain)


def array2(**more):
    return dp.numpy.array2_domain(T=float, num_columns=2, **more)


def test_added_and_removed_people_only():
    for metric in (SYMMETRIC, dp.insert_delete_distance()):
        check_people(array2(), metric)
        check_people(dp.vector_domain(dp.atom_domain(T=str)), metric)
    for metric in (dp.change_one_distance(), dp.hamming_distance()):
        with pytest.raises(InvalidValueError, match="what a person loses depends on both"):
            check_people(array2(), metric)
    with pytest.raises(InvalidValueError, match="^input_metric .* must be the symmetric"):
        check_people(array2(), dp.l2_distance(T=float))
    with pytest.raises(InvalidTypeError, match="^input_domain .* must be of vectors"):
        check_people(dp.atom_domain(T=int), SYMMETRIC)


def test_arrays_are_not_copied_and_cannot_be_written_to():
    assert type(kind_of(array2())) is Own
    data = np.arange(6.0).reshape(3, 2)
    rows = as_rows(data, array2())
    assert np.shares_memory(rows, data)
    assert data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        rows[0, 0] = 1.0
    domain = dp.user_domain("ages", lambda data: isinstance(data, np.ndarray))
    structured = np.array([(1, 2.0)], dtype=[("age", int), ("weight", float)])
    assert as_rows(structured, domain)["age"].tolist() == [1]


@pytest.mark.parametrize("data", [[1.0], {"rows": 1}, 5, np.array(5.0), None], ids=repr)
def test_other_data_are_refused_without_saying_them(data):
    with pytest.raises(InvalidTypeError) as caught:
        as_rows(data, dp.user_domain("anything", lambda _: True))
    assert str(caught.value) == (
        "the data must be a NumPy array with a row for each person; map input_domain to one first"
    )


@pytest.mark.parametrize(
    "per_row",
    [
        lambda rows: rows,
        lambda rows: rows[:-1, 0],
        lambda rows: rows[:, :1],
        lambda rows: rows[:, 0].sum(),
        lambda rows: rows[:, 0].tolist(),
        lambda rows: rows[:, 0].astype(complex),
        lambda rows: rows[:, 0].astype(object),
        lambda rows: rows[:, 0].astype(str),
        lambda rows: rows[:, 0].astype("m8[s]"),
        lambda rows: None,
        lambda rows: 1,
    ],
)
def test_one_number_for_each_row_or_one_message(per_row):
    messages = set()
    for people in (2, 3, 1000):
        with pytest.raises(InvalidTypeError, match="^per_row must return a NumPy array") as caught:
            values_of(np.ones((people, 2)), per_row)(slice(0, people))
        messages.add(str(caught.value))
        assert str(people) not in str(caught.value)
    assert len(messages) == 1


@pytest.mark.parametrize("mask", [False, [[True, False], [False, False]]])
def test_what_a_mask_hides_is_not_counted(mask):
    hidden = np.ma.masked_array([[918273.0, 2.0], [3.0, 4.0]], mask=mask)
    with pytest.raises(InvalidTypeError, match="data must be an array without a mask") as caught:
        as_rows(hidden, array2())
    assert "918273" not in str(caught.value)
    values = values_of(as_rows(hidden.filled(0.0), array2()), lambda rows: np.ma.array(rows[:, 0]))
    with pytest.raises(InvalidTypeError, match=r"without a mask.*nothing was charged"):
        values(slice(0, 2))
