"""CSV files: every table that a writer writes is read as it was, and nothing is repaired."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.tables import csv_file
from opendp_concurrent.tables.csv_file import LONGEST, NoCsvError, columns_of, records
from opendp_concurrent.tables.schema import schema_of

FIELDS = st.text(
    st.sampled_from('ab,"\r\n \t;é\u2028\x85\x0b\x1c😀')
    | st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
    max_size=6,
)


def read(content):
    return list(records(io.BytesIO(content)))


@given(
    st.integers(2, 4).flatmap(
        lambda width: st.lists(st.lists(FIELDS, min_size=width, max_size=width), min_size=1)
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.booleans(),
)
def test_what_pythons_writer_writes_is_read_as_it_was(rows, end, quoting, marked):
    if any("\r" in one for row in rows for one in row):
        quoting = csv.QUOTE_ALL  # before Python 3.13, a lone carriage return is not quoted
    written = io.StringIO()
    csv.writer(written, lineterminator=end, quoting=quoting).writerows(rows)
    assert read(b"\xef\xbb\xbf" * marked + written.getvalue().encode()) == rows


@given(st.lists(st.sampled_from([b"a", b",", b'"', b"\r", b"\n", b"\0", b"\xff", b"\xc3\xa9"])))
def test_what_is_read_has_one_meaning(pieces):
    """The records of any bytes are refused, or are those of which a writer makes the same."""
    content = b"".join(pieces)
    try:
        rows = read(content)
    except NoCsvError:
        return
    again = "".join(
        ",".join('"' + one.replace('"', '""') + '"' for one in row) + "\n" for row in rows
    )
    assert read(again.encode()) == rows
    assert b"\0" not in content
    assert content.decode().count('"') % 2 == 0


@pytest.mark.parametrize("more", [0, 1])
def test_a_record_has_a_longest_length(monkeypatch, more):
    monkeypatch.setattr(csv_file, "LONGEST", 100)
    for line in (b"a" * (99 + more) + b"\n", b'"' + b"\n" * (97 + more) + b'"\n'):
        if more:
            with pytest.raises(NoCsvError, match="line 2 begins a record of more than 100 bytes"):
                read(b"h\n" + line)
        else:
            assert len(read(b"h\n" + line)) == 2
    assert LONGEST == 2**24


@pytest.mark.parametrize("content", [b"secret\xff", b'"secret"x', b"secret\0", b'"secret\n'])
def test_an_error_holds_no_text_of_the_file(content):
    with pytest.raises(NoCsvError) as caught:
        read(content)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_lines_are_counted_within_quoted_fields():
    with pytest.raises(NoCsvError, match="line 5 must have 2 fields"):
        read(b'a,b\n"x\ny\n",1\n2\n')


def test_columns_come_in_chunks_in_the_order_of_the_schema(monkeypatch):
    monkeypatch.setattr(csv_file, "ROWS", 2)
    schema = schema_of({"b": float, "a": int}, "a")
    file = io.BytesIO(b"a,x,b\n1,,0.5\n2,,\n3,,2\n")
    assert list(columns_of(file, schema)) == [[[0.5, None], [1, 2]], [[2.0], [3]]]
    assert list(columns_of(io.BytesIO(b"a,b"), schema)) == []
    one = schema_of({"a": str}, "a")
    assert list(columns_of(io.BytesIO(b"a\nx\n\ny"), one)) == [[["x", None]], [["y"]]]
