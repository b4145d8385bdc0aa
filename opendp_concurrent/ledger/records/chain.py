"""Hash chain: the hash of an entry covers the hash before it, so an edit changes all later ones."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from .encoding import canonical

SCHEMA_VERSION = 1  # the first hash contains it


def first_hash(dataset: str, terms: str | None) -> str:
    """Return the hash before the first charge. It covers the dataset and the terms."""
    return _hash(("opendp_concurrent", SCHEMA_VERSION, dataset, terms))


def next_hash(before: str, charge: tuple[Any, ...]) -> str:
    """Return the hash of a charge that follows the hash ``before``.

    :param charge: dataset, sequence, time, label, mechanism, d_mid
    """
    return _hash((before, *charge))


def _hash(parts: tuple[Any, ...]) -> str:
    return sha256(canonical(parts).encode()).hexdigest()
