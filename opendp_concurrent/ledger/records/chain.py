"""The hash of an entry contains that of the one before: an edit shows in all that follow."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from .encoding import canonical

SCHEMA_VERSION = 1  # the first hash contains it


def first_hash(dataset: str, terms: str | None) -> str:
    """The hash that the first charge follows: of what the budget is about."""
    return _hash(("opendp_concurrent", SCHEMA_VERSION, dataset, terms))


def next_hash(before: str, charge: tuple[Any, ...]) -> str:
    """The hash of a charge that follows ``before``.

    :param charge: dataset, sequence, time, label, mechanism, d_mid
    """
    return _hash((before, *charge))


def _hash(parts: tuple[Any, ...]) -> str:
    return sha256(canonical(parts).encode()).hexdigest()
