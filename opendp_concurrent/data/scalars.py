"""Data that are one value, such as a float."""

from __future__ import annotations

from typing import Any

import numpy as np
from opendp.mod import AtomDomain, Domain, OptionDomain

from ..errors import InvalidValueError
from .kind import Kind, register


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
