"""What differs between kinds of data, such as lists, frames and tables: one object for each kind.

A kind converts data once, cuts them into parts by public keys, selects the parts of some keys, and
joins what arrived at different times. It is known by the domain. Each record is in at most one
part: that of its value. The value is what a function of the record alone returns, or the cells in
some columns. So the parts of the union of two datasets are the unions of their parts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opendp.extras.polars import pl

from .. import errors
from .._opendp import dp, element_domain, empty_frame, interruptible
from ..errors import shown

Cut = Callable[[Any], Mapping[Any, Any]]
Owners = Mapping[Any, Any]  # from a value to the key of its part
Of = Callable[[Any], Any] | tuple[str, ...]  # the value of a record


class Kind:
    """One kind of data. What is defined here holds for data that cannot be cut.

    :ivar by_columns: whether the value of a record is in columns
    :ivar by_function: whether the value of a record is what a function returns
    :ivar has_rows: whether data are an array with a row for each record, or can be made one
    :ivar stays: whether data of this kind do not change once they are cut
    :ivar in_engine: whether the rows stay in an engine, where more may arrive, and the distance
        counts units, which may have rows in several parts
    """

    by_columns = by_function = has_rows = in_engine = False
    stays = True

    def has(self, domain: dp.Domain) -> bool:
        """Return whether a domain is of this kind."""
        return True

    def takes(self, data: errors.Data) -> bool:
        """Return whether the domain of these data is inferred here; False if it has to be given."""
        return False

    # --- arrival -----------------------------------------------------------------------------

    def inferred(self, data: errors.Data) -> tuple[Any, dp.Domain]:
        """Return the data, and the domain of data like them. The error has no row of them."""
        try:
            return data, dp.domain_of(data, infer=True)
        except Exception:  # what it says may depend on rows
            pass
        raise errors.InvalidTypeError(
            f"data ({type(data).__name__}) must be a nonempty list, array or column of values of "
            "one type, one value, or a Polars LazyFrame; else pass domain. For a file, pass "
            "oc.tables.scan(path, schema, unit), or pl.scan_csv(path)"
        )

    def unit(
        self, data: errors.Data, metric: dp.Metric, distance: errors.Distance
    ) -> tuple[dp.Metric, Any]:
        """Return a privacy unit in terms of the metric of these data, or raise."""
        return metric, distance

    def accepted(self, data: errors.Data, domain: dp.Domain) -> Any:
        """Return data in a form that OpenDP converts, or raise; the message has no row of them."""
        return data

    def sources(self, data: errors.Data) -> tuple[str, ...]:
        """Return the files that the data will be read from, as far as is known."""
        return ()

    def rows(self, data: errors.Data, domain: dp.Domain) -> NDArray[Any]:
        """Return data as a read-only array with a row for each record, or raise."""
        raise _not_cut(domain)

    # --- parts -------------------------------------------------------------------------------

    def domain_of_parts(self, domain: dp.Domain) -> dp.Domain:
        """Return the domain of each part, or raise."""
        raise _not_cut(domain)

    def metric_of_parts(
        self, domain: dp.Domain, of: Of, metric: dp.Metric
    ) -> tuple[dp.Metric, int]:
        """Return the parts' metric and the factor on the distance, or raise."""
        return metric_of_records(metric)

    def cutter(self, domain: dp.Domain, of: Of, owners: Owners, keys: tuple[Any, ...]) -> Cut:
        """Return the function that cuts a dataset into a part for each key.

        :param of: a function or columns, as the kind has them
        """
        raise _not_cut(domain)

    def fixed(self, domain: dp.Domain, of: Of | None, data: errors.Data) -> Any:
        """Return the data, whose parts that differ between neighbours no longer change."""
        return data

    def bounds_over_time(self, domain: dp.Domain, of: Of | None) -> bool:
        """Return whether the factor on the distance also holds for data that change."""
        return True

    def values(self, domain: dp.Domain, of: Of | None, keys: Collection[Any]) -> list[Any] | None:
        """Return the values of keys in the types of the columns; None if there are no columns."""
        return None

    # --- blocks ------------------------------------------------------------------------------

    def grouped(
        self, domain: dp.Domain, of: Of | None, owners: Owners | None, data: errors.Data
    ) -> Any:
        """Return the data in a form from which the parts of any keys are selected.

        :param owners: None if each value is the key of its part
        """
        return self.fixed(domain, of, data)

    def selector(
        self, domain: dp.Domain, of: Of, owners: Owners | None, keys: Collection[Any]
    ) -> Callable[[Any], Any]:
        """Return the function from grouped data to the records in the parts of some keys."""
        wanted = set(keys)
        chosen = (
            dict.fromkeys(keys, True)
            if owners is None
            else {value: True for value, key in owners.items() if key in wanted}
        )
        cut = self.cutter(domain, of, chosen, (True,) if chosen else ())
        return lambda data: cut(data)[True]

    def joined(self, parts: list[Any]) -> Any:
        """Return the records of several datasets together; of one, if no more can arrive."""
        (records,) = parts
        return records

    def size(self, data: errors.Data) -> int:
        """Return how many records are in memory, of data or grouped data."""
        return 0


def _not_cut(domain: dp.Domain) -> errors.InvalidTypeError:
    return errors.InvalidTypeError(
        f"input_domain ({domain}) cannot be split into parts; it must be made by "
        "dp.vector_domain, dp.lazyframe_domain or dp.user_domain"
    )


def metric_of_records(metric: dp.Metric) -> tuple[dp.Metric, int]:
    """Return the metric of parts, and the factor on the distance, if records are cut one by one."""
    for one, parts, factor in (
        (dp.symmetric_distance(), dp.symmetric_distance(), 1),
        (dp.insert_delete_distance(), dp.insert_delete_distance(), 1),
        (dp.change_one_distance(), dp.symmetric_distance(), 2),
        (dp.hamming_distance(), dp.insert_delete_distance(), 2),
    ):
        if metric == one:
            return parts, factor
    raise errors.InvalidValueError(
        f"input_metric ({metric}) does not add up over parts: it must be "
        "dp.symmetric_distance(), dp.insert_delete_distance(), dp.change_one_distance() or "
        "dp.hamming_distance(). Where the unit is an individual with many records, these may "
        "be in every part; bound their number first"
    )


def check_files(files: tuple[str, ...]) -> None:
    """Raise unless all files exist."""
    if not all(Path(file).exists() for file in files):
        raise errors.DataSourceError


def columns_in(of: Of | None) -> tuple[str, ...]:
    """Return the columns in which the value of a record is, for a kind that has columns."""
    assert isinstance(of, tuple)
    return of


_OTHER = Kind()
_KNOWN: list[Kind] = []  # in the order in which they are asked


def register(kind: Kind, *, last: bool = False) -> None:
    """Add a kind, whose domains and data are no longer of the kinds that were known before.

    :param last: whether it has only what no other kind has, whenever that is registered
    """
    _KNOWN.insert(len(_KNOWN) if last else 0, kind)


def kind_of(domain: dp.Domain) -> Kind:
    """Return the kind of the data that a domain is of."""
    for kind in _KNOWN:
        if kind.has(domain):
            return kind
    return _OTHER


def kind_of_data(data: errors.Data) -> Kind:
    """Return the kind that data without a domain are of."""
    return next((kind for kind in _KNOWN if kind.takes(data)), _OTHER)


# Data of a user's own kind, such as NumPy arrays and mappings, in a user's domain.

_MOST_NUMBERS = 2**32


class Own(Kind):
    """Data that this package does not look into. They may change: each launch selects anew."""

    has_rows, stays = True, False

    def has(self, domain: dp.Domain) -> bool:
        """Return whether a domain is a user's."""
        return isinstance(domain, dp.ExtrinsicDomain)

    def rows(self, data: errors.Data, domain: dp.Domain) -> NDArray[Any]:
        """Return a NumPy array, which is not copied."""
        if not isinstance(data, np.ndarray) or data.ndim == 0:
            raise errors.InvalidTypeError(
                "the data must be a NumPy array with a row for each person; "
                "map input_domain to one first"
            )
        if isinstance(data, np.ma.MaskedArray):  # asarray would read what the mask hides
            raise errors.InvalidTypeError(
                "the data must be an array without a mask, whose numbers would be counted; pass "
                "data.filled(value), with a value that does not depend on the data"
            )
        if not data.size <= _MOST_NUMBERS:
            raise errors.InvalidValueError(
                f"the data must have at most 2**32 numbers, found {data.size}"
            )
        rows = np.asarray(data).view()
        rows.setflags(write=False)
        return rows

    def domain_of_parts(self, domain: dp.Domain) -> dp.Domain:
        """Return the user's domain."""
        return domain

    def joined(self, parts: list[Any]) -> Any:
        """Return the entries of several mappings together."""
        return {key: one for part in parts for key, one in part.items()}


register(Own(), last=True)  # tables are in a user's domain, too


# Data that are one value, such as a float.


class Scalars(Kind):
    """One value is one record, which cannot be cut."""

    def has(self, domain: dp.Domain) -> bool:
        """Return whether a domain is of one value, which may be missing."""
        return isinstance(domain, dp.AtomDomain | dp.OptionDomain)

    def accepted(self, data: Any, domain: dp.Domain) -> Any:
        """Return the value, or raise if it is NaN, which the domain excludes."""
        atom = domain.element_domain if isinstance(domain, dp.OptionDomain) else domain
        nan = getattr(atom, "nan", True)  # a user's domain does not tell
        if not nan and isinstance(data, float | np.floating) and np.isnan(data):
            raise errors.InvalidValueError(
                "data is NaN, which the domain excludes; replace it by a value that does not "
                "depend on the data, or declare dp.atom_domain(T=float, nan=True)"
            )
        return data


register(Scalars())


# Columns of pandas, Polars, NumPy and PyArrow where OpenDP takes a list.
#
# None of these is imported. A column is known by its class: it has a method that makes a list. The
# list is checked before OpenDP sees it: OpenDP reads the class of the first element only, and takes
# a missing value for a number. A message never has an element.

_METHODS = ("to_list", "to_pylist", "tolist")
_ROWS = (list, tuple, range, str, bytes, bytearray, dict, set, frozenset)
_ATOMS = {  # the narrowest type of OpenDP's vectors that has all values
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), "i32"),
    **{"int64": "i64", "uint32": "u32", "uint64": "u64"},
    **{"float": "f32", "float32": "f32", "float64": "f64", "double": "f64"},
    **dict.fromkeys(("bool", "boolean"), "bool"),
    **dict.fromkeys(("str", "string", "large_string", "string_view", "object"), "String"),
}
_EQUAL = {"int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64", "bool": "bool"}
_LIMITS = {
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "usize": "uint64",
}
DTYPES = {**_LIMITS, "f32": "float32", "f64": "float64", "bool": "bool"}  # of NumPy's arrays


class _Elements(NamedTuple):
    """What the elements of one type of OpenDP are in Python."""

    classes: frozenset[type]
    words: str


_INTEGERS = _Elements(frozenset({int}), "integers")
_NUMBERS = _Elements(frozenset({int, float}), "numbers")
_ELEMENTS = {
    **dict.fromkeys(_LIMITS, _INTEGERS),
    "f32": _NUMBERS,
    "f64": _NUMBERS,
    "bool": _Elements(frozenset({bool}), "booleans"),
    "String": _Elements(frozenset({str}), "strings"),
}


def is_column(data: errors.Data) -> bool:
    """Whether the data are a column or an array: neither a list nor a table."""
    return not isinstance(data, _ROWS) and _method(data) is not None and _dimensions(data) == 1


def atom_of(column: Any) -> str:
    """Return OpenDP's type of a column's elements, from the column's own type, or raise."""
    dtype: Any = getattr(column, "dtype", getattr(column, "type", None))
    if isinstance(dtype, np.dtype) and dtype.kind == "U":
        return "String"
    atom = _ATOMS.get(str(dtype).lower())
    if atom is None:
        raise errors.InvalidTypeError(
            f"data ({_named(column)} of {dtype}) must have integers, floats, booleans or strings; "
            "convert it, and pass a list and domain=dp.vector_domain(...)"
        )
    return atom


def as_rows(data: errors.Data, atom: str, allows_nan: Callable[[], bool]) -> Any:
    """Return a column as a list of Python's values for vectors of ``atom``, or raise.

    An array whose type is the domain's is returned as it is, and anything else that is no column.

    :param allows_nan: whether the domain has NaN; asked for columns of floats only
    """
    kind = _ELEMENTS.get(atom)
    if kind is _NUMBERS and isinstance(data, (list, tuple)) and _has_nan(data):
        _check_nan(data, allows_nan)  # OpenDP reads NaN as 0 before it adds noise (opendp#2935)
    if kind is None or isinstance(data, _ROWS):
        return data
    dimensions = _dimensions(data)
    if dimensions != 1:
        raise errors.InvalidTypeError(
            f"data must be one column, found {_named(data)} of {dimensions} dimensions; "
            "pass one column of it, such as data['age'].to_list(), or array[:, 0]"
        )
    method = _method(data)
    if method is None:
        return data
    masked = isinstance(data, np.ma.MaskedArray)  # OpenDP would read what the mask hides
    if isinstance(data, np.ndarray) and not masked and _atom_of_array(data) == atom:
        if data.dtype.kind == "f" and np.isnan(data).any():
            _check_nan(data, allows_nan)
        return data
    rows = getattr(data, method)()
    _check(data, rows, atom, kind, allows_nan)
    return rows


def _check(
    data: errors.Data, rows: list[Any], atom: str, kind: _Elements, allows_nan: Callable[[], bool]
) -> None:
    found = set(map(type, rows))
    if not found <= kind.classes:
        others = sorted(one.__name__ for one in found - kind.classes)
        if any(name in ("NoneType", "NAType", "NaTType") for name in others) or (
            float in found and _has_nan(rows)
        ):
            raise errors.InvalidValueError(
                f"data ({_named(data)}) has missing values, which vectors of {atom} do not have; "
                "fill them with a value that does not depend on the data, such as "
                "data.fill_null(0) in Polars or data.fillna(0) in pandas"
            )
        raise errors.InvalidTypeError(
            f"data ({_named(data)}) must be {kind.words} for vectors of {atom}, found "
            f"{', '.join(others)}; convert the column, or declare another domain"
        )
    if kind is _INTEGERS and rows:
        limits = np.iinfo(_LIMITS[atom])
        if not limits.min <= min(rows) <= max(rows) <= limits.max:
            raise errors.InvalidValueError(
                f"data ({_named(data)}) has integers outside of {atom}; declare a wider domain, "
                'such as dp.vector_domain(dp.atom_domain(T="i64"))'
            )
    if float in found and _has_nan(rows):
        _check_nan(data, allows_nan)


def _check_nan(data: errors.Data, allows_nan: Callable[[], bool]) -> None:
    if not allows_nan():
        raise errors.InvalidValueError(
            f"data ({_named(data)}) has NaN, which the domain excludes; fill it with a value that "
            "does not depend on the data, or declare dp.atom_domain(T=float, nan=True)"
        )


def _has_nan(rows: Iterable[Any]) -> bool:
    return any(one != one for one in rows if type(one) is float)


def _atom_of_array(array: NDArray[Any]) -> str:
    if array.dtype.kind == "U":
        return "String"
    return _EQUAL.get(str(array.dtype), "")


def _method(data: errors.Data) -> str | None:
    """Return the method of the data's class that makes a list."""
    kind = type(data)
    return next((name for name in _METHODS if callable(getattr(kind, name, None))), None)


def _dimensions(data: errors.Data) -> int:
    kind = type(data)
    if any(hasattr(kind, name) for name in ("ndim", "shape")):
        shape = getattr(data, "shape", ())
        return len(shape) if isinstance(shape, tuple) else 1
    return 2 if hasattr(kind, "column_names") else 1


def _named(data: errors.Data) -> str:
    kind = type(data)
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


# The files that a Polars LazyFrame is scanned from, and tables that become LazyFrames.
#
# Polars is not imported here: without it nobody has a LazyFrame. Polars has no public list of a
# plan's files. Its printed plan shows the first of each scan.

_REFUSED = {"pandas": "from_pandas", "pyarrow": "from_arrow"}  # and how they are converted
_SCANNED = re.compile(r" SCAN \[(.*?)(?:, \.\.\. \d+ other sources?)?\]$", re.MULTILINE)

LOGGER = logging.getLogger("opendp_concurrent.data")


class Uncollected:
    """A LazyFrame whose plan runs at each launch. Make it by :func:`.uncollected`.

    :ivar frame: the LazyFrame
    """

    def __init__(self, frame: pl.LazyFrame) -> None:
        self.frame = frame


def uncollected(frame: pl.LazyFrame) -> Uncollected:
    """Run the plan of a LazyFrame again at each launch, for frames that do not fit in memory.

    Without this, a LazyFrame is collected once, when it is passed to a measurement or a context.

    .. warning::

        A plan can fail on one row: a word in a column of numbers, invalid UTF-8, NaN that the
        domain excludes, a cast of your own. Each launch that reads the row then fails, and no
        launch fails without it. So an error is an answer that tells the row. A Python function in
        the plan that raises even ends the process. The caller promises that the plan fails on no
        row, and that its files do not change.

    :param frame: a Polars LazyFrame
    :return: data, in place of the frame
    :raises InvalidTypeError: if it is no LazyFrame

    :example:

    >>> import polars as pl
    >>> visits = pl.LazyFrame({"age": [30, 40]})  # pl.scan_parquet(...)
    >>> context = oc.concurrent_context(
    ...     data=oc.uncollected(visits),
    ...     privacy_unit=dp.unit_of(contributions=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0),
    ... )
    """
    if pl is None or not isinstance(frame, pl.LazyFrame):
        raise errors.InvalidTypeError(
            f"frame must be a Polars LazyFrame, found {type(frame).__name__}"
        )
    return Uncollected(frame)


def plan_of(data: Any) -> Any:
    """Return the LazyFrame of :func:`uncollected`, and other data unchanged."""
    return data.frame if isinstance(data, Uncollected) else data


def collected(frame: pl.LazyFrame) -> pl.DataFrame:
    """Return the rows of a LazyFrame as a DataFrame. What is in memory already is not copied.

    :raises DataSourceError: if a file is missing
    :raises InvalidValueError: if the plan fails; the log of the owner has the reason
    """
    return readable(frame, frame.collect)


def readable(data: errors.Data, function: Callable[[], Any]) -> Any:
    """Return what a function reads of a LazyFrame, or of its rows; or raise without a row."""
    try:
        files_of(data)
        return interruptible(function)
    except errors.DataSourceError:
        raise
    except BaseException as error:  # its text, and the frames of its traceback, may have rows
        errors.pass_interrupt(error)
        errors.log(LOGGER, "a LazyFrame cannot be read", error)
    raise errors.InvalidValueError(
        "data (LazyFrame) must be readable: its plan has failed; the logger "
        "'opendp_concurrent.data' has the reason, which may contain rows"
    )


def files_of(data: errors.Data) -> tuple[str, ...]:
    """Return the local files that a LazyFrame is scanned from, as far as its plan shows them.

    :raises DataSourceError: if one is missing already
    """
    if pl is None or not isinstance(data, pl.LazyFrame):
        return ()
    try:
        plan: str = data.explain(optimized=False)
    except FileNotFoundError:
        raise errors.DataSourceError from None
    printed = _SCANNED.findall(plan)  # a name may be cut wrongly, and is then no file
    return tuple(sorted({path for path in printed if Path(path).exists()}))


def is_frame(data: errors.Data) -> bool:
    """Whether the data are a table of Polars, pandas or PyArrow, and not a column."""
    if pl is not None and isinstance(data, (pl.LazyFrame, pl.DataFrame, Uncollected)):
        return True
    return _package(data) in _REFUSED and not is_column(data)


def as_lazyframe(data: errors.Data, name: str = "data") -> Any:
    """Return a LazyFrame for a Polars DataFrame, and other data unchanged; refuse other tables."""
    if pl is not None and isinstance(data, pl.DataFrame):
        return data.lazy()
    package = _package(data)
    if package in _REFUSED:
        convert = _REFUSED[package]
        raise errors.InvalidTypeError(
            f"{name} ({type(data).__name__} of {package}) must be a Polars LazyFrame; "
            f"pass pl.{convert}(frame).lazy()"
        )
    return data


def _package(data: errors.Data) -> str:
    return type(data).__module__.partition(".")[0]


# LazyFrames of Polars, and DataFrames in place of them.
#
# A LazyFrame is collected once, when it arrives: a row that makes its plan fail is then an error to
# the owner of the data. At a launch it would be an answer, which tells the row from its neighbours.


class Frames(Kind):
    """A record is a row, and its value is what it has in some columns."""

    by_columns = True

    def has(self, domain: dp.Domain) -> bool:
        """Return whether a domain is of LazyFrames."""
        return isinstance(domain, dp.LazyFrameDomain)

    def takes(self, data: errors.Data) -> bool:
        """Return whether data are a frame, of Polars or of a library whose frames are refused."""
        return is_frame(data)

    def inferred(self, data: errors.Data) -> tuple[Any, dp.Domain]:
        """Return a LazyFrame and its domain, or raise."""
        frame = as_lazyframe(plan_of(data))
        files_of(frame)  # raises if one is missing, as the types are read from it
        with suppress(errors.InvalidTypeError):
            return data, super().inferred(frame)[1]
        unknown = list[str]()
        for place, (name, kind) in enumerate(readable(frame, frame.collect_schema).items()):
            try:
                super().inferred(frame.select(pl.nth(place)))
            except errors.InvalidTypeError:
                unknown.append(f"{name} ({kind})")
        raise errors.InvalidTypeError(
            "data (LazyFrame) must have columns of types that OpenDP reads; cast or leave out: "
            f"{', '.join(unknown)}"
        )

    def accepted(self, data: errors.Data, domain: dp.Domain) -> Any:
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

    def sources(self, data: errors.Data) -> tuple[str, ...]:
        """Return the local files that the LazyFrame is scanned from, as far as its plan shows."""
        return files_of(data)

    def domain_of_parts(self, domain: dp.Domain) -> dp.Domain:
        """Return the domain of frames with these columns, and at most as many rows."""
        columns = [domain.get_series_domain(name) for name in domain.columns]
        margin, parts = domain.get_margin([]), dp.lazyframe_domain(columns)
        if margin.max_length is None:
            return parts
        return dp.with_margin(parts, replace(margin, max_groups=None, invariant=None))

    def cutter(self, domain: dp.Domain, of: Of, owners: Owners, keys: tuple[Any, ...]) -> Cut:
        """Return the function that joins the rows with the public values."""
        names, columns = domain.columns, columns_in(of)
        for column in columns:
            if column not in names:
                raise errors.InvalidValueError(
                    f"partition names the column {column!r}, which input_domain does not have; "
                    f"its columns are: {', '.join(names)}"
                )
        place = "part"
        while place in names:
            place += "_"
        numbers = {key: number for number, key in enumerate(keys)}
        table = _public(columns, empty_frame(domain), list(owners))
        part_numbers = [numbers[key] for key in owners.values()]
        table = table.with_columns(pl.Series(place, part_numbers))

        def cut(frame: pl.LazyFrame) -> dict[Any, pl.LazyFrame]:
            rows = frame.collect()
            placed = rows.join(
                table, on=list(columns), how="inner", nulls_equal=True, maintain_order="left"
            )
            found = placed.partition_by(place, as_dict=True, include_key=False)
            nothing = rows.clear()
            return {key: found.get((number,), nothing).lazy() for key, number in numbers.items()}

        return cut

    def fixed(self, domain: dp.Domain, of: Of | None, data: pl.LazyFrame) -> pl.LazyFrame:
        """Return the rows in memory: a plan may read files, and sample."""
        return data.collect().lazy()

    def values(self, domain: dp.Domain, of: Of | None, keys: Collection[Any]) -> list[Any] | None:
        """Return the rows of public values, in the types of the columns."""
        found: list[Any] = _public(columns_in(of), empty_frame(domain), list(keys)).rows()
        return found

    def joined(self, parts: list[pl.DataFrame | pl.LazyFrame]) -> Any:
        """Return one frame."""
        return pl.concat(parts, how="vertical")

    def size(self, data: pl.LazyFrame) -> int:
        """Return the number of rows."""
        rows: int = data.select(pl.len()).collect().item()
        return rows


def _check_values(rows: pl.DataFrame, domain: dp.Domain) -> None:
    """Raise if a column has NaN or missing values that its domain excludes."""
    for name in set(domain.columns).intersection(rows.columns):
        column, series = rows.get_column(name), domain.get_series_domain(name)
        if not series.nullable and column.null_count():
            raise errors.InvalidValueError(
                f"data has missing values in the column {name!r}, which the domain excludes; fill "
                "them with a value that does not depend on the data, or declare "
                f"dp.series_domain({name!r}, dp.option_domain(...))"
            )
        if column.dtype.is_float() and not _column_may_have_nan(series) and column.is_nan().any():
            raise errors.InvalidValueError(
                f"data has NaN in the column {name!r}, which the domain excludes; fill it with a "
                "value that does not depend on the data, or declare "
                "dp.atom_domain(T=float, nan=True)"
            )


def _column_may_have_nan(series: dp.SeriesDomain) -> bool:
    """Return whether a column of a domain may have NaN, as far as the domain tells."""
    try:
        return bool(getattr(series.element_domain, "nan", True))
    except dp.OpenDPException:  # OpenDP does not tell the domain of categories
        return True


def _public(columns: tuple[str, ...], empty: pl.DataFrame, values: list[Any]) -> pl.DataFrame:
    """Return the public values as a frame in the columns' types; raise if two become equal."""
    rows = values if len(columns) > 1 else [(value,) for value in values]
    for row in rows:
        if not isinstance(row, tuple) or len(row) != len(columns):
            raise errors.InvalidTypeError(
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
            raise errors.InvalidTypeError(
                f"the public values must be of the type of the column {column!r}, {kind.dtype}: "
                f"{reason}"
            ) from None
    table = pl.DataFrame(series)
    if table.is_duplicated().any():
        raise errors.InvalidValueError(
            f"the public values overlap: two of them are equal in the types of {', '.join(columns)}"
        )
    return table


register(Frames())


# Vectors of records: lists, and columns of pandas, Polars, NumPy and PyArrow in place of them.


class Vectors(Kind):
    """A record is an element, and its value is what a function of the element returns."""

    by_function = has_rows = True

    def has(self, domain: dp.Domain) -> bool:
        """Return whether a domain is of vectors."""
        return str(domain.carrier_type).startswith("Vec<")

    def takes(self, data: errors.Data) -> bool:
        """Return whether data are a column, whose type tells the domain."""
        return is_column(data)

    def inferred(self, data: errors.Data) -> tuple[Any, dp.Domain]:
        """Return a column, and the domain of columns like it."""
        return data, dp.vector_domain(dp.atom_domain(T=atom_of(data)))

    def accepted(self, data: errors.Data, domain: dp.Domain) -> Any:
        """Return a list of Python's values, or raise."""
        atom = str(domain.carrier_type)[4:-1]
        return as_rows(data, atom, lambda: getattr(element_domain(domain), "nan", True))

    def rows(self, data: Sequence[Any], domain: dp.Domain) -> NDArray[Any]:
        """Return the elements as an array."""
        rows: NDArray[Any]
        dtype = DTYPES.get(str(domain.carrier_type)[4:-1])
        if dtype is not None:
            rows = np.asarray(data, dtype=dtype)
        else:
            rows = np.fromiter(data, dtype=object, count=len(data))
        rows.setflags(write=False)
        return rows

    def domain_of_parts(self, domain: dp.Domain) -> dp.Domain:
        """Return the domain of vectors of any size."""
        elements = element_domain(domain)
        return super().domain_of_parts(domain) if elements is None else dp.vector_domain(elements)

    def cutter(self, domain: dp.Domain, of: Of, owners: Owners, keys: tuple[Any, ...]) -> Cut:
        """Return the function that reads each record once."""

        def cut(records: Iterable[Any]) -> dict[Any, list[Any]]:
            parts = _parts(records, of, owners)
            return {key: parts.get(key, []) for key in keys}

        return cut

    def grouped(
        self, domain: dp.Domain, of: Of | None, owners: Owners | None, data: Iterable[Any]
    ) -> Any:
        """Return the records of each key, with those of keys that nobody has named yet."""
        return interruptible(_parts, data, of, owners)

    def selector(
        self, domain: dp.Domain, of: Of, owners: Owners | None, keys: Collection[Any]
    ) -> Callable[[Any], Any]:
        """Return the function that puts the records of some keys together."""
        return lambda parts: list(chain.from_iterable(parts.get(key, ()) for key in keys))

    def joined(self, parts: list[Any]) -> Any:
        """Return one list."""
        return list(chain.from_iterable(parts))

    def size(self, data: Collection[Any]) -> int:
        """Return the number of records."""
        return sum(map(len, data.values())) if isinstance(data, dict) else len(data)


def _parts(records: Iterable[Any], of: Any, owners: Owners | None) -> dict[Any, list[Any]]:
    """Return the records of each key."""
    parts: dict[Any, list[Any]] = {}
    for record in records:
        try:
            value = of(record)
            key = value if owners is None else owners.get(value, _NOWHERE)
            part = parts.get(key)
        except BaseException as error:  # it would reveal the record, which is in no part
            errors.pass_interrupt(error)
            continue
        if part is None:
            parts[key] = [record]
        else:
            part.append(record)
    return parts


_NOWHERE = object()


register(Vectors())
