"""CSV files: how they are written, and which value a field stands for.

DuckDB's strict reader reads the fields as texts, once, when the owner scans the file. What a text
stands for is a function of this text alone, so a row of one unit never changes the rows of others:

===== ===============================================================================
int   ``0``, or a digit from 1 to 9 and more digits, with ``-`` or without; 64 bits; also
      with ``.0``, which pandas writes where integers are missing
float an integer or decimal number, with an exponent or without; ``inf``, ``Infinity``
bool  ``true``, ``True``, ``TRUE``, ``t``; ``false``, ``False``, ``FALSE``, ``f``
date  ``YYYY-MM-DD``, a day of the calendar from year 1 on
datetime  ``YYYY-MM-DDTHH:MM``, or ``HH:MM:SS`` with up to 6 digits after the point; a blank
      in place of ``T``; ``Z`` at the end or not: ISO 8601 without a zone, or in UTC
decimal ``12.5``: a number with at most as many digits after the point as its scale
str   every text
===== ===============================================================================

The empty text is NULL, in quotation marks or not. Any other text is no value, and never rounded.
"""

import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from .. import _checks as checks
from ..errors import InvalidValueError
from .schema import Decimal, Type, column_name

LONGEST = 2**24  # bytes of a record: a quotation mark without its pair must not read a whole file
_DAMAGED = OSError, EOFError, zlib.error
_CODECS = {"utf-8": "utf-8-sig", "utf-16": "utf-16", "latin-1": "latin-1"}
_MARK = checks.one_of(".", ",")
_ENCODING = checks.one_of(*_CODECS)
_INTEGER = "-?(0|[1-9][0-9]*)({}0)?"
_NUMBER = "[+-]?([0-9]+({0}[0-9]*)?|{0}[0-9]+)([eE][+-]?[0-9]+)?"
_INFINITE = "inf|Inf|INF|infinity|Infinity|INFINITY"
_DECIMAL = "-?(0|[1-9][0-9]*)({0}[0-9]{{1,{1}}})?"
_YEAR = "([1-9][0-9]{3}|0([1-9][0-9]{2}|0([1-9][0-9]|0[1-9])))"
_DAY = _YEAR + "-[0-9]{2}-[0-9]{2}"
_MOMENT = _DAY + "[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?Z?"


@dataclass(frozen=True, slots=True)
class Csv:
    """How CSV files are written, for :func:`.scan` and :func:`.describe_schema`.

    Fields may be in quotation marks, which are doubled within them, as RFC 4180 says.

    :ivar separator: the character between two fields
    :ivar decimal: the decimal mark, ``"."`` or ``","``
    :ivar header: None if the names of the columns are in the first line; otherwise the names
    :ivar nulls: texts that stand for a missing value, besides the empty one
    :ivar encoding: ``"utf-8"``, ``"utf-16"`` or ``"latin-1"``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.tables.Csv(separator=";", decimal=",", nulls=["NA"])
    Csv(separator=';', decimal=',', header=None, nulls=('NA',), encoding='utf-8')
    """

    separator: str = ","
    decimal: str = "."
    header: Sequence[str] | None = None
    nulls: Sequence[str] = ()
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        separator = checks.text(separator=self.separator)
        if not (len(separator) == 1 and separator.isascii() and separator not in '"\r\n\0'):
            raise InvalidValueError(
                f"separator ({checks.shown(separator)}) must be one character of ASCII, such as "
                "',' or ';' or '\\t', and neither a quotation mark nor the end of a line"
            )
        nulls = checks.elements("texts", nulls=self.nulls)
        header = None if self.header is None else checks.sequence("names", header=self.header)
        given = {
            "separator": separator,
            "decimal": _MARK(decimal=self.decimal),
            "header": header and tuple(column_name(header=one) for one in header),
            "nulls": tuple(checks.text(nulls=one) for one in nulls),
            "encoding": _ENCODING(encoding=self.encoding),
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)


def names_in(written: Csv, path: str) -> list[str]:
    """Return the names of the columns of a file; ``""`` for one without a name."""
    if written.header is not None:
        return list(written.header)
    try:
        with _opened(written, path, "") as file:
            return next(csv.reader(file, delimiter=written.separator), [])
    except (csv.Error, UnicodeError, *_DAMAGED):  # it is no such file, without names
        return []


def _opened(written: Csv, path: str, newline: str) -> Any:
    """Open a file. The reader tells where what is not in the encoding is."""
    opened, codec = gzip.open if _is_packed(path) else open, _CODECS[written.encoding]
    return opened(path, "rt", encoding=codec, errors="replace", newline=newline)


def open_line(written: Csv, path: str) -> int | None:
    """Return the line of a quotation mark without its pair, where DuckDB ends without a word.

    Its reader of several threads raises there, but guesses where records begin.

    :raises OSError, EOFError, zlib.error: if a packed file is damaged
    """
    began: int | None = None
    with _opened(written, path, "\n") as file:
        for number, line in enumerate(file, 1):
            begins = True  # whether a mark does: in front of a line, and right behind a closing one
            for piece in line.split('"')[:-1]:
                if began is not None:
                    began, begins = None, True
                elif piece.endswith(written.separator) or (begins and not piece):
                    began = number
                else:
                    begins = False
    return began


def reader_of(written: Csv, path: str, fields: int) -> str:
    """Return the table of the fields of a file in DuckDB: texts ``c0``, ``c1`` and so on."""
    options = {
        "columns": "{" + ", ".join(f"'c{at}': 'VARCHAR'" for at in range(fields)) + "}",
        "auto_detect": "false",
        "header": str(written.header is None).lower(),
        "delim": literal(written.separator),
        "quote": "'\"'",
        "escape": "'\"'",
        "nullstr": f"[{', '.join(map(literal, ('', *written.nulls)))}]",
        "encoding": literal(written.encoding),
        "compression": "'gzip'" if _is_packed(path) else "'none'",
        "strict_mode": "true",
        "ignore_errors": "false",
        "null_padding": "false",
        "parallel": "false",
        "max_line_size": str(LONGEST),
    }
    given = ", ".join(f"{name} = {value}" for name, value in options.items())
    return f"read_csv({literal(path)}, {given})"


def value_of(written: Csv, text: str, kind: Type) -> str:
    """Return what a text stands for in DuckDB; NULL if it is no value of the type.

    :param text: an expression of SQL
    :param kind: a decimal number is read as a multiple of 10^-scale
    """
    if kind is str:
        return text
    point = f"[{written.decimal}]"
    plain = text if written.decimal == "." else f"replace({text}, ',', '.')"
    if isinstance(kind, Decimal):
        scale = kind.scale
        ones, parts = (f"regexp_extract({plain}, '{part}', 1)" for part in ("^([^.]*)", "[.](.*)$"))
        form = _DECIMAL.format(point, scale) if scale else "-?(0|[1-9][0-9]*)"
        cases = {form: f"TRY_CAST({ones} || rpad({parts}, {scale}, '0') AS BIGINT)"}
    else:
        double = f"TRY_CAST({plain} AS DOUBLE)"
        cases = {
            int: {
                _INTEGER.format(point): f"TRY_CAST(regexp_replace({plain}, '[.]0$', '') AS BIGINT)"
            },
            float: {
                f"-({_INFINITE})": "'-inf'::DOUBLE",
                f"[+]?({_INFINITE})": "'inf'::DOUBLE",
                _NUMBER.format(point): f"CASE WHEN NOT isinf({double}) THEN {double} END",
            },
            bool: {"true|True|TRUE|t": "true", "false|False|FALSE|f": "false"},
            date: {_DAY: f"TRY_CAST({text} AS DATE)"},
            datetime: {_MOMENT: f"TRY_CAST(rtrim({text}, 'Z') AS TIMESTAMP)"},
        }[kind]
    found = " ".join(f"WHEN {_is(text, form)} THEN {value}" for form, value in cases.items())
    return f"CASE {found} END"


def is_code(written: Csv, text: str) -> str:
    """Return whether a text of digits is rather a name than a number, in DuckDB.

    It begins with 0, as a postal code does, or is an integer that a double does not hold.
    """
    whole = f"[+]?(-?[0-9]+)([{written.decimal}]0)?"
    number = f"TRY_CAST(regexp_extract({text}, '{whole}', 1) AS HUGEINT)"
    within = f"coalesce({number} BETWEEN -{2**53} AND {2**53}, false)"
    return f"({_is(text, '[+-]?0[0-9].*')} OR ({_is(text, whole)} AND NOT {within}))"


def is_csv(path: str) -> bool:
    """Return whether a path is that of a CSV file."""
    return path.lower().endswith((".csv", ".csv.gz"))


def literal(text: str) -> str:
    """Return a text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _is(text: str, form: str) -> str:
    return f"regexp_full_match({text}, '{form}')"


def _is_packed(path: str) -> bool:
    return path.lower().endswith(".gz")
