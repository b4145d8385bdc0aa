"""What differs between kinds of data, such as lists, frames and tables: one object for each kind.

A kind converts data once, cuts them into parts by public keys, selects the parts of some keys, and
joins what arrived at different times. It is known by the domain. Each record is in at most one
part: that of its value. The value is what a function of the record alone returns, or the cells in
some columns. So the parts of the union of two datasets are the unions of their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.context import domain_of
from opendp.metrics import (
    change_one_distance,
    hamming_distance,
    insert_delete_distance,
    symmetric_distance,
)
from opendp.mod import AtomDomain, Domain, ExtrinsicDomain, Metric, OptionDomain

from ..errors import Data, DataSourceError, Distance, InvalidTypeError, InvalidValueError

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

    def has(self, domain: Domain) -> bool:
        """Return whether a domain is of this kind."""
        return True

    def takes(self, data: Data) -> bool:
        """Return whether the domain of these data can be inferred here."""
        return True

    # --- arrival -----------------------------------------------------------------------------

    def inferred(self, data: Data) -> tuple[Any, Domain]:
        """Return the data, and the domain of data like them. The error has no row of them."""
        try:
            return data, domain_of(data, infer=True)
        except Exception:  # what it says may depend on rows
            pass
        raise InvalidTypeError(
            f"data ({type(data).__name__}) must be a nonempty list, array or column of values of "
            "one type, one value, or a Polars LazyFrame; else pass domain. For a file, pass "
            "oc.tables.scan(path, schema, unit), or pl.scan_csv(path)"
        )

    def unit(self, data: Data, metric: Metric, distance: Distance) -> tuple[Metric, Any]:
        """Return a privacy unit in terms of the metric of these data, or raise."""
        return metric, distance

    def accepted(self, data: Data, domain: Domain) -> Any:
        """Return data in a form that OpenDP converts, or raise; the message has no row of them."""
        return data

    def sources(self, data: Data) -> tuple[str, ...]:
        """Return the files that the data will be read from, as far as is known."""
        return ()

    def rows(self, data: Data, domain: Domain) -> NDArray[Any]:
        """Return data as a read-only array with a row for each record, or raise."""
        raise _not_cut(domain)

    # --- parts -------------------------------------------------------------------------------

    def domain_of_parts(self, domain: Domain) -> Domain:
        """Return the domain of each part, or raise."""
        raise _not_cut(domain)

    def metric_of_parts(self, domain: Domain, of: Of, metric: Metric) -> tuple[Metric, int]:
        """Return the parts' metric and the factor on the distance, or raise."""
        return metric_of_records(metric)

    def cutter(self, domain: Domain, of: Of, owners: Owners, keys: tuple[Any, ...]) -> Cut:
        """Return the function that cuts a dataset into a part for each key.

        :param of: a function or columns, as the kind has them
        """
        raise _not_cut(domain)

    def fixed(self, domain: Domain, of: Of | None, data: Data) -> Any:
        """Return the data, whose parts that differ between neighbours no longer change."""
        return data

    def bounds_over_time(self, domain: Domain, of: Of | None) -> bool:
        """Return whether the factor on the distance also holds for data that change."""
        return True

    def values(self, domain: Domain, of: Of | None, keys: Collection[Any]) -> list[Any] | None:
        """Return the values of keys in the types of the columns; None if there are no columns."""
        return None

    # --- blocks ------------------------------------------------------------------------------

    def grouped(self, domain: Domain, of: Of | None, owners: Owners | None, data: Data) -> Any:
        """Return the data in a form from which the parts of any keys are selected.

        :param owners: None if each value is the key of its part
        """
        return self.fixed(domain, of, data)

    def selector(
        self, domain: Domain, of: Of, owners: Owners | None, keys: Collection[Any]
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

    def size(self, data: Data) -> int:
        """Return how many records are in memory, of data or grouped data."""
        return 0


def _not_cut(domain: Domain) -> InvalidTypeError:
    return InvalidTypeError(
        f"input_domain ({domain}) cannot be split into parts; it must be made by "
        "dp.vector_domain, dp.lazyframe_domain or dp.user_domain"
    )


def metric_of_records(metric: Metric) -> tuple[Metric, int]:
    """Return the metric of parts, and the factor on the distance, if records are cut one by one."""
    for one, parts, factor in (
        (symmetric_distance(), symmetric_distance(), 1),
        (insert_delete_distance(), insert_delete_distance(), 1),
        (change_one_distance(), symmetric_distance(), 2),
        (hamming_distance(), insert_delete_distance(), 2),
    ):
        if metric == one:
            return parts, factor
    raise InvalidValueError(
        f"input_metric ({metric}) does not add up over parts: it must be "
        "dp.symmetric_distance(), dp.insert_delete_distance(), dp.change_one_distance() or "
        "dp.hamming_distance(). Where the unit is an individual with many records, these may "
        "be in every part; bound their number first"
    )


def check_files(files: tuple[str, ...]) -> None:
    """Raise unless all files exist."""
    if not all(Path(file).exists() for file in files):
        raise DataSourceError


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


def kind_of(domain: Domain) -> Kind:
    """Return the kind of the data that a domain is of."""
    for kind in _KNOWN:
        if kind.has(domain):
            return kind
    return _OTHER


def kind_of_data(data: Data) -> Kind:
    """Return the kind that data without a domain are of."""
    return next((kind for kind in _KNOWN if kind.takes(data)), _OTHER)


# Data of a user's own kind, such as NumPy arrays and mappings, in a user's domain.

_MOST_NUMBERS = 2**32


class Own(Kind):
    """Data that this package does not look into. They may change: each launch selects anew."""

    has_rows, stays = True, False

    def has(self, domain: Domain) -> bool:
        """Return whether a domain is a user's."""
        return isinstance(domain, ExtrinsicDomain)

    def takes(self, data: Data) -> bool:
        """Return False: the domain has to be given."""
        return False

    def rows(self, data: Data, domain: Domain) -> NDArray[Any]:
        """Return a NumPy array, which is not copied."""
        if not isinstance(data, np.ndarray) or data.ndim == 0:
            raise InvalidTypeError(
                "the data must be a NumPy array with a row for each person; "
                "map input_domain to one first"
            )
        if isinstance(data, np.ma.MaskedArray):  # asarray would read what the mask hides
            raise InvalidTypeError(
                "the data must be an array without a mask, whose numbers would be counted; pass "
                "data.filled(value), with a value that does not depend on the data"
            )
        check_small(data.size)
        rows = np.asarray(data).view()
        rows.setflags(write=False)
        return rows

    def domain_of_parts(self, domain: Domain) -> Domain:
        """Return the user's domain."""
        return domain

    def joined(self, parts: list[Any]) -> Any:
        """Return the entries of several mappings together."""
        return {key: one for part in parts for key, one in part.items()}


def check_small(numbers: int) -> None:
    """Raise if the data have more than 2^32 numbers."""
    if not numbers <= _MOST_NUMBERS:
        raise InvalidValueError(f"the data must have at most 2**32 numbers, found {numbers}")


register(Own(), last=True)  # tables are in a user's domain, too


# Data that are one value, such as a float.


class Scalars(Kind):
    """One value is one record, which cannot be cut."""

    def has(self, domain: Domain) -> bool:
        """Return whether a domain is of one value, which may be missing."""
        return isinstance(domain, AtomDomain | OptionDomain)

    def takes(self, data: Any) -> bool:
        """Return False: a domain of one value is inferred as any other."""
        return False

    def accepted(self, data: Any, domain: Domain) -> Any:
        """Return the value, or raise if it is NaN, which the domain excludes."""
        atom = domain.element_domain if isinstance(domain, OptionDomain) else domain
        nan = getattr(atom, "nan", True)  # a user's domain does not tell
        if not nan and isinstance(data, float | np.floating) and np.isnan(data):
            raise InvalidValueError(
                "data is NaN, which the domain excludes; replace it by a value that does not "
                "depend on the data, or declare dp.atom_domain(T=float, nan=True)"
            )
        return data


register(Scalars())
