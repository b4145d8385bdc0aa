"""What a text of a file stands for: a value of Python, or nothing."""

from datetime import date, datetime, time
from math import inf

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opendp_concurrent.tables.texts import READ

KINDS = pytest.mark.parametrize("kind", READ, ids=lambda one: one.__name__)


@given(st.integers(-(2**63), 2**63 - 1))
def test_each_integer_has_one_text(value):
    assert READ[int](str(value)) == value


@given(st.text(max_size=8) | st.from_regex(r"[-+0-9eE. _x]{1,24}", fullmatch=True))
@example("+1")
@example("01")
@example("-0")
@example("1_0")
def test_a_text_that_is_an_integer_is_the_one_that_python_writes(text):
    found = READ[int](text)
    assert found is None or str(found) == text


@given(st.floats(allow_nan=False))
def test_each_double_is_read_from_the_text_that_python_writes(value):
    assert READ[float](repr(value)) == value


@given(st.dates())
def test_each_day_has_one_text(value):
    assert READ[date](value.isoformat()) == value


@given(st.datetimes())
def test_each_timestamp_is_read_from_the_text_that_python_writes(value):
    assert READ[datetime](value.isoformat()) == READ[datetime](str(value)) == value
    minute = datetime.combine(value.date(), time(value.hour, value.minute))
    assert READ[datetime](minute.isoformat(" ", "minutes")) == minute


@pytest.mark.parametrize("text", ["2024-01-01", "2024-01-01 5:00", "2024-01-01 24:00", "5:00"])
def test_half_a_timestamp_is_missing(text):
    assert READ[datetime](text) is None


@given(st.text(max_size=12))
def test_a_text_is_itself_and_the_empty_one_is_missing(text):
    assert READ[str](text) == (text or None)


@KINDS
def test_an_empty_field_is_missing(kind):
    assert READ[kind]("") is None


@pytest.mark.parametrize(("text", "value"), [("-inf", -inf), ("+Infinity", inf), ("1e999", None)])
def test_what_is_beyond_all_doubles_is_missing_unless_it_is_called_infinite(text, value):
    assert READ[float](text) == value
