"""Hash chain: the hash of an entry covers the hash before it, so an edit changes all later ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
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


@lru_cache(maxsize=256, typed=True)  # also of what others wrote
def hasher(dataset: Any, label: Any, mechanism: Any) -> Callable[[str, int, int, str], str]:
    """Return :func:`next_hash` for charges of one dataset, label and mechanism.

    It maps the hash before, the sequence, the time and the JSON of the d_mid to the hash. The
    numbers must be of the class int itself: then their text is their JSON.
    """
    first, last = canonical(dataset), f"{canonical(label)},{canonical(mechanism)}"

    def after(before: str, sequence: int, time: int, d_mid: str) -> str:
        text = f'["{before}",{first},{sequence},{time},{last},{d_mid}]'
        return sha256(text.encode()).hexdigest()

    return after


def _hash(parts: tuple[Any, ...]) -> str:
    return sha256(canonical(parts).encode()).hexdigest()
