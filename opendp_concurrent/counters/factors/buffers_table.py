"""Parameters of buffered counters, found by ``benchmarks/design_buffers.py``; see ``buffers.json``.

For each buffer, 1 - θ and ω, in units of 2^-60. ``HORIZONS[m]`` is for up to 2^m steps, and
``ENDLESS`` for streams without a horizon. Privacy does not depend on how these were found: the
norm is computed from them, exactly, and rounded up.
"""

from __future__ import annotations

import json
from pathlib import Path

Buffers = tuple[tuple[int, int], ...]

BITS = 60
_TABLE: dict[str, Buffers] = {
    exponent: tuple((rate, weight) for rate, weight in found)
    for exponent, found in json.loads(Path(__file__).with_name("buffers.json").read_text()).items()
}
ENDLESS = _TABLE.pop("endless")
HORIZONS = {int(exponent): found for exponent, found in _TABLE.items()}
