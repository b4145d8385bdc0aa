"""CSV files by a strict grammar, that of RFC 4180: what is no record is an error.

::

    file   = [BOM] record *(EOL record) [EOL]      in UTF-8, without NUL
    record = field *("," field)                    as many fields as in the first record, the header
    field  = *(any character but `,` `"` CR LF)    or `"` *(any character but `"`, or `""`) `"`
    EOL    = LF or CR LF

Nothing is skipped, repaired or guessed: a reader that does so lets a row of one unit change how
the rows of others are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from functools import lru_cache, partial
from itertools import islice
from operator import itemgetter
from typing import BinaryIO

from .schema import Scales, Schema
from .texts import READ, Value, decimal

Chunk = list[list[Value]]  # values of each column
LONGEST = 2**24  # bytes of a record: a quotation mark without its pair must not read a whole file
ROWS = 10_000  # of a chunk
_NONE: Scales = {}
_BOM = b"\xef\xbb\xbf"
_FIELD = re.compile(r'"([^"]*(?:""[^"]*)*)"|([^",\r\n]*)')


class NoCsvError(Exception):
    """The first line that does not follow the grammar, and why. No text of the file is in it."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line} {reason}")


def columns_of(file: BinaryIO, schema: Schema, scales: Scales = _NONE) -> Iterator[Chunk]:
    """Yield the columns of a schema, chunk by chunk, in their types.

    :raises NoCsvError: for a file or a header that is not as it must be
    """
    rows = records(file)
    header = next(rows, [])
    for name in schema.names:
        if [one for one in header if one.casefold() == name.casefold()] != [name]:
            # the header is not shown: in a file without one, it is a row
            raise NoCsvError(1, f"must be the header and have {name!r} once, in this spelling")
    places = [header.index(name) for name in schema.names]
    chosen = itemgetter(*places, places[0])  # of one column, too, it returns a tuple
    readers = [
        partial(decimal, scale=scales[name]) if name in scales else READ[kind]
        for name, kind in schema.columns
    ]
    known = [lru_cache(maxsize=ROWS)(read) for read in readers]
    while chunk := list(map(chosen, islice(rows, ROWS))):
        read = zip(known, zip(*chunk, strict=True), strict=False)
        yield [list(map(value, texts)) for value, texts in read]


def kinds_of(file: BinaryIO) -> dict[str, type]:
    """Return the columns of a file, each with the first type that all of its texts have.

    :raises NoCsvError: as :func:`records`
    """
    rows = records(file)
    header = next(rows, [])
    left = [[int, float, bool, date, datetime, str] for _ in header]
    for row in rows:
        for kinds, text in zip(left, row, strict=True):
            while text and READ[kinds[0]](text) is None:
                del kinds[0]
    return {name: kinds[0] for name, kinds in zip(header, left, strict=True)}


def records(file: BinaryIO) -> Iterator[list[str]]:
    """Yield the fields of each record.

    :raises NoCsvError: at the first record that does not follow the grammar
    """
    line, width = 0, 0
    while record := file.readline(LONGEST + 1):
        line, first, quotes = line + 1, line + 1, record.count(b'"')
        if quotes % 2:  # a quoted field goes on in the next line
            pieces, size = [record], len(record)
            while quotes % 2 and size <= LONGEST:
                piece = file.readline(LONGEST + 1)
                if not piece:
                    raise NoCsvError(first, "has a quotation mark without its pair")
                pieces.append(piece)
                line, size, quotes = line + 1, size + len(piece), quotes + piece.count(b'"')
            record = b"".join(pieces)
        if len(record) > LONGEST:
            raise NoCsvError(first, f"begins a record of more than {LONGEST} bytes")
        fields = _fields(_text(record, first), first, quoted=quotes > 0)
        if first == 1:
            width = len(fields)
        elif len(fields) != width:
            raise NoCsvError(first, f"must have {width} fields, as the header has")
        yield fields


def _text(record: bytes, line: int) -> str:
    """Return the text of a record, without a mark of the order of bytes and the end of the line."""
    if line == 1:
        record = record.removeprefix(_BOM)
    if record.endswith(b"\n"):
        record = record[: -2 if record.endswith(b"\r\n") else -1]
    if b"\0" in record:
        raise NoCsvError(line, "has NUL, which no text has")
    try:
        return record.decode()
    except UnicodeDecodeError:
        pass
    raise NoCsvError(line, "must be in UTF-8")  # out here: that error holds the row


def _fields(text: str, line: int, *, quoted: bool) -> list[str]:
    """Return the fields of a record."""
    if not quoted:
        if "\r" in text:
            raise NoCsvError(line, "has a carriage return that ends no line")
        return text.split(",")
    fields, at = list[str](), 0
    while True:
        found = _FIELD.match(text, at)
        assert found is not None  # a field may be empty
        inner, plain = found.groups()
        fields.append(plain if inner is None else inner.replace('""', '"'))
        at = found.end()
        if at == len(text):
            return fields
        if text[at] != ",":
            raise NoCsvError(
                line, "has a quotation mark or a carriage return in a field without quotation marks"
            )
        at += 1
