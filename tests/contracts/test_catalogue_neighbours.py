"""Neighbours through files and through every engine: no answer moves beyond the map, and an error
counts as an answer. Whether a launch fails may not depend on the rows of one unit.
"""

import codecs
import contextlib
from fractions import Fraction
from functools import cache
from math import inf, nan

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError

from .catalogue import Built
from .tables import AGGREGATES, BOUNDED, BY, SCHEMA, people

SECRET = "secret-7261"
NO_UTF8 = b"\xff\xfe\xff\xfe"
PLACEHOLDER = "zqzq"  # in a Parquet file, it becomes what is not UTF-8
UNITS = (1, 2, 3)
ZONES = (
    "a",
    "b",
    "c",
    "",
    None,
    "A",
    "\U0001f600",
    "a,b",
    '"',
    "a\r\nb",
    "\x01",
    SECRET,
    "x" * 70_000,
)
HOURS = (0.0, -0.0, 0.5, 1.5, 5e-324, 1e-310, 1e300, inf, -inf, nan, None)
STEPS = {"truncate": (BOUNDED,), "group_truncate": (BY["by"], BY["groups"], BY["rows"])}


@cache
def asked():
    """Each aggregate of the catalogue, after each truncation, and how far a unit moves it."""
    found = {}
    for step, arguments in STEPS.items():
        truncated = people().space >> vars(oc.t)[f"then_{step}"](*arguments)
        for name, named in AGGREGATES.items():
            aggregate = Built(name, truncated.output_space)(**named)
            bound = Fraction(aggregate.map(1))
            squared = str(aggregate.output_metric).startswith("L2")
            bound = bound**2 if squared else bound
            found[f"{step} {name}"] = truncated >> aggregate, aggregate.output_metric, bound
    return found


def answer(transformation, table):
    """An exact answer; an error is an answer."""
    try:
        found = transformation(table)
    except OpenDPException:
        return "error"
    return [found] if isinstance(found, int) else found


def answers(table, names=None):
    return {name: answer(asked()[name][0], table) for name in names or asked()}


def moved(metric, one, other):
    """The distance of two answers, exactly; squared for L2."""
    by = [abs(left - right) for left, right in zip(one, other, strict=True)]
    if str(metric).startswith("L2"):
        return sum(each**2 for each in by)
    return max(by) if str(metric).startswith("LInf") else sum(by)


def neighbours_agree(one, other):
    """Answers of tables that differ by one unit."""
    for name in one:
        _, metric, bound = asked()[name]
        assert (one[name] == "error") == (other[name] == "error"), name
        if one[name] != "error":
            assert moved(metric, one[name], other[name]) <= bound, name


class Stored:
    """A table in a database, of which rows are replaced."""

    changes = "answers"  # a launch after a change is about the table as it is then

    def __init__(self, connection, execute, place):
        self._connection, self._execute, self._place = connection, execute, place
        self._execute("DROP TABLE IF EXISTS neighbours", ())
        self._execute(
            "CREATE TABLE neighbours (person BIGINT, zone TEXT, hours DOUBLE PRECISION)", ()
        )

    def replace(self, rows):
        self._execute("DELETE FROM neighbours", ())
        for row in rows:
            self._execute(f"INSERT INTO neighbours VALUES ({self._place})", row)

    def scan(self):
        return oc.tables.scan(self._connection, "neighbours", SCHEMA, "person")


class ParquetFile:
    """A file that is written anew, by a writer that leaves NaN out of its statistics."""

    changes = "error"  # in each launch, whatever the rows are

    def __init__(self, path, reader):
        self.path, self._reader = str(path), reader

    def replace(self, rows):
        arrow = pytest.importorskip("pyarrow", reason="no file with NaN outside of its statistics")
        pytest.importorskip("pyarrow.parquet")
        kinds = {"person": arrow.int64(), "zone": arrow.string(), "hours": arrow.float64()}
        columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
        made = {
            name: arrow.array(list(values), kind)
            for (name, kind), values in zip(kinds.items(), columns, strict=True)
        }
        arrow.parquet.write_table(arrow.table(made), self.path, compression="none")
        with open(self.path, "rb+") as file:
            written = file.read()
            file.seek(0)
            file.write(written.replace(PLACEHOLDER.encode(), NO_UTF8))

    def scan(self):
        return oc.tables.scan(self._reader, self.path, SCHEMA, "person")


def spelled(value):
    """A value as a field of a CSV file."""
    if value is None:
        return ""
    text = str(value)
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if set(text) & set(',"\r\n') else text


class CsvFile:
    """A file that is written anew, of rows or of lines."""

    changes = "nothing"  # it is read at scan, and never again

    def __init__(self, path):
        self.path, self._connection = str(path), duckdb.connect()

    def replace(self, rows):
        self.write([",".join(map(spelled, row)).encode() for row in rows])

    def write(self, lines):
        with open(self.path, "wb") as file:
            file.write(b"".join(line + b"\n" for line in [b"person,zone,hours", *lines]))

    def scan(self):
        return oc.tables.scan(self._connection, self.path, SCHEMA, "person")


@contextlib.contextmanager
def source(name, request, folder):
    """A place of rows, for an engine that is there."""
    if name == "csv":
        yield CsvFile(folder / "neighbours.csv")
    elif name == "postgres":
        psycopg = pytest.importorskip("psycopg")
        address = request.getfixturevalue("server").url.replace("+psycopg", "")
        with psycopg.connect(address, autocommit=True) as opened:
            yield Stored(opened, opened.execute, "%s, %s, %s")
    elif name == "spark":
        yield ParquetFile(folder / "neighbours.parquet", request.getfixturevalue("spark"))
    else:
        with duckdb.connect() as opened:
            if name == "parquet":
                yield ParquetFile(folder / "neighbours.parquet", opened)
            else:
                yield Stored(opened, opened.execute, "?, ?, ?")


@pytest.fixture(scope="module", params=["duckdb", "parquet", "csv", "postgres"])
def place(request, tmp_path_factory):
    with source(request.param, request, tmp_path_factory.mktemp("files")) as found:
        yield found


@pytest.fixture
def csv_file(tmp_path):
    return CsvFile(tmp_path / "neighbours.csv")


ROWS = st.lists(
    st.tuples(
        st.sampled_from((*UNITS, None, 2**63 - 1)), st.sampled_from(ZONES), st.sampled_from(HOURS)
    ),
    max_size=14,
)


def without(rows):
    return [row for row in rows if row[0] != UNITS[0]]


def neighbours_agree_at(place, rows, names=None):
    place.replace(rows)
    table = place.scan()
    one = answers(table, names)
    place.replace(without(rows))
    other = answers(place.scan(), names)
    neighbours_agree(one, other)
    assert "error" not in one.values()


@settings(max_examples=4, deadline=None)
@given(ROWS)
def test_a_unit_moves_no_answer_further_than_the_map_says(place, rows):
    neighbours_agree_at(place, rows)


HOSTILE = [(unit, zone, hours) for unit in UNITS for zone in ZONES for hours in HOURS]


@pytest.mark.parametrize("turn", [0, pytest.param(7, marks=pytest.mark.slow)])
def test_neighbours_on_spark(request, tmp_path, turn):
    """Each aggregate after one of the truncations; on other engines, after both."""
    steps = [f"{list(STEPS)[(turn + place) % 2]} {name}" for place, name in enumerate(AGGREGATES)]
    with source("spark", request, tmp_path) as place:
        neighbours_agree_at(place, HOSTILE[turn::11], steps)


def launched(place, states):
    """Answers of launches on a table that is scanned once, and whose rows then change."""
    place.replace(states[0])
    table = place.scan()
    found = [answers(table)]
    for rows in states[1:]:
        place.replace(rows)
        found.append(answers(table))
    return found


@settings(max_examples=2, deadline=None)
@given(ROWS, ROWS)
def test_rows_of_others_that_change_between_launches_show_no_unit(place, rows, later):
    own = [row for row in rows if row[0] == UNITS[0]]
    states = [rows, own + without(later), own + without(rows)[::-1]]
    one = launched(place, states)
    other = launched(place, [without(state) for state in states])
    for left, right in zip(one, other, strict=True):
        neighbours_agree(left, right)
    if place.changes == "nothing":
        assert one[1] == one[0]
    else:
        assert ("error" in one[1].values()) == (place.changes == "error")


# --- lines of a CSV file, of which some are no records ------------------------------------------

LINES = st.sampled_from(
    [
        *(b"%d,a,0.5", b'%d,"b",1', b'%d,"a,""b",9', b"%d,,", b"%d,c,nan", b"%d,c,1e999"),
        *(b"", b'%d,"a\r\nb",1', b"%d.4,a,1", b"0%d,a,1", b" %d,a,1", b"+%d,a,1", b"%d,a,1,"),
        *(b'%d,b"x,1', b"%d,a\0,1", b"%d.0,a,1", b'"%d",a,"1" '),
        *(b"%d,a,0x1F", b"%d,a,1_0", b"%d,%%s,", b"%d,\xef\xbb\xbf,1"),
        *(b"%d," + b"x" * 300_000 + b",1",),
    ]
)
BROKEN = st.sampled_from(
    [
        *(b"%d,secret-7261,0.5,1", b"%d,secret-7261", b"%d", b"%d,a,0.5\r", b'%d,"a"b,1'),
        *(b'%d,"secret-7261', b"%d,secret-7261\r,1", b"%d,secret-7261\xff,1"),
        *(b"%d,\xed\xa0\x80,1", b'%d,"a,1', b"%d;a;1", b"%d,\xe9,1"),
        *([b"\r"] if duckdb.__version__ >= "2" else []),  # an empty line before
    ]
)


OF_EACH_COLUMN = (
    *("truncate distinct_values", "truncate table_answers", "group_truncate table_sum"),
    *("group_truncate table_histogram", "truncate distinct_units"),
)


def chain_of(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(UNITS), LINES), max_size=8),
    st.lists(st.tuples(st.sampled_from(UNITS), BROKEN), max_size=1),
    st.randoms(use_true_random=False),
)
def test_a_line_of_a_file_is_read_or_refused_at_scan(csv_file_of_module, lines, broken, shuffled):
    own = [*lines, *broken]
    shuffled.shuffle(own)
    found = []
    for kept in (own, [one for one in own if one[0] != UNITS[0]]):
        csv_file_of_module.write([line.replace(b"%d", b"%d" % unit) for unit, line in kept])
        try:
            table = csv_file_of_module.scan()
        except InvalidValueError as error:
            assert any(one in broken for one in kept)
            for linked in chain_of(error):
                assert SECRET not in repr(linked)
                assert not hasattr(linked, "object")
            return
        assert not any(one in broken for one in kept)
        found.append(answers(table, OF_EACH_COLUMN))
    neighbours_agree(*found)
    assert "error" not in found[0].values()


@pytest.fixture(scope="module")
def csv_file_of_module(tmp_path_factory):
    return CsvFile(tmp_path_factory.mktemp("files") / "lines.csv")


def test_what_is_not_utf8_in_a_parquet_file_is_refused_at_scan(tmp_path, request):
    with source("parquet", request, tmp_path) as place:
        place.replace([(1, "a", 0.5), (2, f"{PLACEHOLDER} {SECRET}", 1.0)])
        with pytest.raises(InvalidValueError, match="UTF-8") as caught:
            place.scan()
        for linked in chain_of(caught.value):
            assert SECRET not in repr(linked)
            assert PLACEHOLDER not in repr(linked)


def test_a_mark_of_the_order_of_bytes_is_read(csv_file):
    csv_file.write([b"1,a,0.5", b"2,b,1"])
    with open(csv_file.path, "rb+") as file:
        written = file.read()
        file.seek(0)
        file.write(codecs.BOM_UTF8 + written)
    table = csv_file.scan()
    assert (table.space >> oc.t.then_distinct_units())(table) == 2
