"""Batches of rows, drawn with OpenDP's samplers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import bitvector_domain
from opendp.measurements import make_randomized_response_bitvec
from opendp.metrics import discrete_distance

from ..native import opendp as _native

_SPARE = 64  # coins at the end that are not used
_TRIES = 256

Rows = NDArray[np.intp]


def _coins(count: int, rate: float) -> NDArray[np.bool_]:
    """Return independent coins, each true with probability ``rate``, at most 1/2, exactly.

    OpenDP flips each bit of a vector of zeros with probability f/2, and halving is exact.
    """
    space = bitvector_domain(max_weight=1), discrete_distance()
    flip = make_randomized_response_bitvec(*space, f=2 * rate)
    zeros: Any = _native.to_pointer(bytes((count + _SPARE + 7) // 8), flip.input_carrier_type)
    bits = np.frombuffer(_native.invoke(flip, zeros), dtype=np.uint8)
    return np.unpackbits(bits)[:count].astype(bool)


def poisson(rows: int, rate: float) -> Rows:
    """Return the rows of a batch: each takes part with probability ``rate``, independently.

    For a rate above 1/2, the coins say who is left out, with probability 1 - rate, which is exact.
    """
    if rate == 1.0:
        return np.arange(rows)
    coins = _coins(rows, min(rate, 1.0 - rate))
    return np.flatnonzero(coins if rate <= 0.5 else ~coins)


def allocation(rows: int, batches: int) -> list[Rows]:
    """Return the rows of each batch of an epoch: each row is in one, uniformly, independently.

    A number of fair bits is drawn until it is below ``batches``. A row whose numbers never are,
    which has a probability of less than 2^-256, is in no batch: it then loses nothing.
    """
    digits = max(1, (batches - 1).bit_length())
    batch, waiting = np.full(rows, batches), np.arange(rows)
    for _ in range(_TRIES):
        bits = _coins(len(waiting) * digits, 0.5).reshape(len(waiting), digits)
        drawn = bits @ (1 << np.arange(digits))
        batch[waiting] = np.minimum(drawn, batches)
        waiting = waiting[drawn >= batches]
        if not waiting.size:
            break
    order = np.argsort(batch, kind="stable")
    ends = np.searchsorted(batch[order], np.arange(batches + 1))
    return [order[first:last] for first, last in pairwise(ends)]
