"""Data of a user's own kind, such as NumPy arrays and mappings, in a user's domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.mod import Domain, ExtrinsicDomain

from ..errors import InvalidTypeError, InvalidValueError
from ..types import Data
from .kind import Kind, register

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
