"""Vectors of records: lists, and columns of pandas, Polars, NumPy and PyArrow in place of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.mod import Domain

from ..failures import pass_interrupt
from ..interrupts import let_in
from ..native import opendp as _native
from ..types import Data
from .columns import DTYPES, as_rows, atom_of, is_column
from .kind import Cut, Kind, Of, Owners, register


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
        return let_in(_parts, data, of, owners)

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
