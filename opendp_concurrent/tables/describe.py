"""A schema that is proposed from what is stored, for its owner to check and keep as code."""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from typing import Any

from opendp.mod import assert_features

from .csv_file import Csv
from .engines.engine import DECIMAL, DIGITS_READ, Engine
from .engines.known import engine_of, own_engine
from .frame import plan_given, stored_types
from .scan import Names, csv_given, source_of

_SPELLED: dict[type, str] = {date: "datetime.date", datetime: "datetime.datetime"}


def describe_schema(connection: Any, table: Names | None = None, *, csv: Csv | None = None) -> str:
    """Return a schema for :func:`.scan` as code, from the stored types of a table or file.

    It is for the owner of the data: check it, and keep it in the program. A schema is public, and
    should not be made anew from the data in each run. The types of a CSV file are those that all of
    its texts have, so they tell of its rows. Codes are texts: digits with a 0 in front, as postal
    codes have, or integers beyond 2^53.

    Required features: `honest-but-curious`

    :param connection: as for :func:`.scan`; or paths or a LazyFrame, if ``table`` is left out
    :param table: as for :func:`.scan`
    :param csv: as for :func:`.scan`
    :return: lines of code; columns that cannot be read are comments, so are those without a name,
        or with the name of another column
    :raises InvalidTypeError, InvalidValueError: as :func:`.scan`

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE TABLE bills (person INT, eur DECIMAL(9, 2), paid TIMESTAMP)")
    >>> print(oc.tables.describe_schema(connection, "bills"))
    schema = {
        "person": int,
        "eur": oc.tables.Decimal(2),
        "paid": datetime.datetime,
    }
    """
    assert_features("honest-but-curious")
    frame = plan_given(connection)
    if frame is not None:
        engine: Engine = own_engine()
        types = list(stored_types(frame).items())
    else:
        opened, names = source_of(connection, table)
        engine, written = engine_of(opened), csv_given(names, csv)
        types = engine.proposal(names) if written is None else engine.csv_proposal(names, written)
    lines, folded = [], [name.casefold() for name, _ in types]
    for name, stored in types:
        kind, decimal = engine.kind_of(stored), DECIMAL.fullmatch(stored)
        if not name:
            line = "# a column without a name, which is not read"
        elif folded.count(name.casefold()) > 1:
            line = f"# {json.dumps(name)}: columns of this name, of which none is read"
        elif decimal is not None and int(decimal[1]) <= DIGITS_READ:
            line = f"{json.dumps(name)}: oc.tables.Decimal({decimal[2]}),"
        elif kind is None:
            line = f"# {json.dumps(name)}: {re.sub('[^ -~]', '?', stored)}, which is not read"
        else:
            line = f"{json.dumps(name)}: {_SPELLED.get(kind, kind.__name__)},"
        lines.append(f"    {line}")
    return "\n".join(["schema = {", *lines, "}"])
