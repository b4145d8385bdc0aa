"""LazyFrames of Polars, and DataFrames in place of them.

A LazyFrame is collected once, when it arrives: a row that makes its plan fail is then an error to
the owner of the data. At a launch it would be an answer, which tells the row from its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, lazyframe_domain, vector_domain, with_margin
from opendp.extras.polars import pl
from opendp.mod import Domain, LazyFrameDomain, OpenDPException, SeriesDomain

from .. import _opendp as _native
from .._opendp import interruptible
from ..errors import Data, InvalidTypeError, InvalidValueError, pass_interrupt, shown
from .columns import (
    DTYPES,
    as_lazyframe,
    as_rows,
    atom_of,
    collected,
    files_of,
    is_column,
    is_frame,
    plan_of,
)
from .kind import Cut, Kind, Of, Owners, columns_in, register


class Frames(Kind):
    """A record is a row, and its value is what it has in some columns."""

    by_columns = True

    def has(self, domain: Domain) -> bool:
        """Return whether a domain is of LazyFrames."""
        return isinstance(domain, LazyFrameDomain)

    def takes(self, data: Data) -> bool:
        """Return whether data are a frame, of Polars or of a library whose frames are refused."""
        return is_frame(data)

    def inferred(self, data: Data) -> tuple[Any, Domain]:
        """Return a LazyFrame and its domain, or raise."""
        frame = as_lazyframe(plan_of(data))
        files_of(frame)  # raises if one is missing, as the types are read from it
        return data, super().inferred(frame)[1]

    def accepted(self, data: Data, domain: Domain) -> Any:
        """Return a LazyFrame of rows in memory, or raise; a plan if the owner has asked for it."""
        plan = plan_of(data)
        if plan is not data:
            return plan
        frame = as_lazyframe(data)
        if pl is None or not isinstance(frame, pl.LazyFrame):
            return frame  # OpenDP refuses it
        rows = collected(frame)
        _check_values(rows, domain)
        return rows.lazy()

    def sources(self, data: Data) -> tuple[str, ...]:
        """Return the local files that the LazyFrame is scanned from, as far as its plan shows."""
        return files_of(data)

    def domain_of_parts(self, domain: Domain) -> Domain:
        """Return the domain of frames with these columns, and at most as many rows."""
        columns = [domain.get_series_domain(name) for name in domain.columns]
        margin, parts = domain.get_margin([]), lazyframe_domain(columns)
        if margin.max_length is None:
            return parts
        return with_margin(parts, replace(margin, max_groups=None, invariant=None))

    def cutter(self, domain: Domain, of: Of, owners: Owners, keys: tuple[Any, ...]) -> Cut:
        """Return the function that joins the rows with the public values."""
        names, columns = domain.columns, columns_in(of)
        for column in columns:
            if column not in names:
                raise InvalidValueError(
                    f"partition names the column {column!r}, which input_domain does not have; "
                    f"its columns are: {', '.join(names)}"
                )
        place = "part"
        while place in names:
            place += "_"
        numbers = {key: number for number, key in enumerate(keys)}
        table = _public(columns, _native.empty_frame(domain), list(owners))
        part_numbers = [numbers[key] for key in owners.values()]
        table = table.with_columns(pl.Series(place, part_numbers))

        def cut(frame: Any) -> dict[Any, Any]:
            rows = frame.collect()
            placed = rows.join(
                table, on=list(columns), how="inner", nulls_equal=True, maintain_order="left"
            )
            found = placed.partition_by(place, as_dict=True, include_key=False)
            nothing = rows.clear()
            return {key: found.get((number,), nothing).lazy() for key, number in numbers.items()}

        return cut

    def fixed(self, domain: Domain, of: Of | None, data: Data) -> Any:
        """Return the rows in memory: a plan may read files, and sample."""
        return data.collect().lazy()

    def values(self, domain: Domain, of: Of | None, keys: Collection[Any]) -> list[Any] | None:
        """Return the rows of public values, in the types of the columns."""
        found: list[Any] = _public(columns_in(of), _native.empty_frame(domain), list(keys)).rows()
        return found

    def joined(self, parts: list[Any]) -> Any:
        """Return one frame."""
        return pl.concat(parts, how="vertical")

    def size(self, data: Data) -> int:
        """Return the number of rows."""
        rows: int = data.select(pl.len()).collect().item()
        return rows


def _check_values(rows: Any, domain: Domain) -> None:
    """Raise if a column has NaN or missing values that its domain excludes."""
    for name in set(domain.columns).intersection(rows.columns):
        column, series = rows.get_column(name), domain.get_series_domain(name)
        if not series.nullable and column.null_count():
            raise InvalidValueError(
                f"data has missing values in the column {name!r}, which the domain excludes; fill "
                "them with a value that does not depend on the data, or declare "
                f"dp.series_domain({name!r}, dp.option_domain(...))"
            )
        if column.dtype.is_float() and not _has_nan(series) and column.is_nan().any():
            raise InvalidValueError(
                f"data has NaN in the column {name!r}, which the domain excludes; fill it with a "
                "value that does not depend on the data, or declare "
                "dp.atom_domain(T=float, nan=True)"
            )


def _has_nan(series: SeriesDomain) -> bool:
    """Return whether a column of a domain may have NaN, as far as the domain tells."""
    try:
        return bool(getattr(series.element_domain, "nan", True))
    except OpenDPException:  # OpenDP does not tell the domain of categories
        return True


def _public(columns: tuple[str, ...], empty: Any, values: list[Any]) -> Any:
    """Return the public values as a frame in the columns' types; raise if two become equal."""
    rows = values if len(columns) > 1 else [(value,) for value in values]
    for row in rows:
        if not isinstance(row, tuple) or len(row) != len(columns):
            raise InvalidTypeError(
                f"measurements has the key {shown(row)}, which must be a tuple of {len(columns)} "
                f"values, one for each of {', '.join(columns)}"
            )
    series = []
    for index, column in enumerate(columns):
        kind = empty.get_column(column)
        try:
            cells = [row[index] for row in rows]
            series.append(pl.Series(column, cells, dtype=kind.dtype, strict=True))
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise InvalidTypeError(
                f"the public values must be of the type of the column {column!r}, {kind.dtype}: "
                f"{reason}"
            ) from None
    table = pl.DataFrame(series)
    if table.is_duplicated().any():
        raise InvalidValueError(
            f"the public values overlap: two of them are equal in the types of {', '.join(columns)}"
        )
    return table


register(Frames())


# Vectors of records: lists, and columns of pandas, Polars, NumPy and PyArrow in place of them.


class Vectors(Kind):
    """A record is an element, and its value is what a function of the element returns."""

    by_function = has_rows = True

    def has(self, domain: Domain) -> bool:
        """Return whether a domain is of vectors."""
        return str(domain.carrier_type).startswith("Vec<")

    def takes(self, data: Data) -> bool:
        """Return whether data are a column, whose type tells the domain."""
        return is_column(data)

    def inferred(self, data: Data) -> tuple[Any, Domain]:
        """Return a column, and the domain of columns like it."""
        return data, vector_domain(atom_domain(T=atom_of(data)))

    def accepted(self, data: Data, domain: Domain) -> Any:
        """Return a list of Python's values, or raise."""
        return as_rows(data, _atom(domain), lambda: _allows_nan(domain))

    def rows(self, data: Data, domain: Domain) -> NDArray[Any]:
        """Return the elements as an array."""
        rows: NDArray[Any]
        dtype = DTYPES.get(_atom(domain))
        if dtype is not None:
            rows = np.asarray(data, dtype=dtype)
        else:
            rows = np.fromiter(data, dtype=object, count=len(data))
        rows.setflags(write=False)
        return rows

    def domain_of_parts(self, domain: Domain) -> Domain:
        """Return the domain of vectors of any size."""
        elements = _native.element_domain(domain)
        return super().domain_of_parts(domain) if elements is None else vector_domain(elements)

    def cutter(self, domain: Domain, of: Of, owners: Owners, keys: tuple[Any, ...]) -> Cut:
        """Return the function that reads each record once."""

        def cut(records: Any) -> dict[Any, list[Any]]:
            parts = _parts(records, of, owners)
            return {key: parts.get(key, []) for key in keys}

        return cut

    def grouped(self, domain: Domain, of: Of | None, owners: Owners | None, data: Data) -> Any:
        """Return the records of each key, with those of keys that nobody has named yet."""
        return interruptible(_parts, data, of, owners)

    def selector(
        self, domain: Domain, of: Of, owners: Owners | None, keys: Collection[Any]
    ) -> Callable[[Any], Any]:
        """Return the function that puts the records of some keys together."""
        return lambda parts: list(chain.from_iterable(parts.get(key, ()) for key in keys))

    def joined(self, parts: list[Any]) -> Any:
        """Return one list."""
        return list(chain.from_iterable(parts))

    def size(self, data: Data) -> int:
        """Return the number of records."""
        return sum(map(len, data.values())) if isinstance(data, dict) else len(data)


def _parts(records: Any, of: Any, owners: Owners | None) -> dict[Any, list[Any]]:
    """Return the records of each key."""
    parts: dict[Any, list[Any]] = {}
    for record in records:
        try:
            value = of(record)
            key = value if owners is None else owners.get(value, _NOWHERE)
            part = parts.get(key)
        except BaseException as error:  # it would reveal the record, which is in no part
            pass_interrupt(error)
            continue
        if part is None:
            parts[key] = [record]
        else:
            part.append(record)
    return parts


_NOWHERE = object()


def _atom(domain: Domain) -> str:
    return str(domain.carrier_type)[4:-1]


def _allows_nan(domain: Domain) -> bool:
    return bool(getattr(_native.element_domain(domain), "nan", True))


register(Vectors())
