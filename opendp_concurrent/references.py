"""The papers, by the keys that OpenDP's documentation uses for them."""

from __future__ import annotations

REFERENCES = {
    "BS16": (
        "Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds",
        "https://arxiv.org/abs/1605.02065",
    ),
    "HSTVVXZ23": (
        "Concurrent Composition for Interactive Differential Privacy "
        "with Adaptive Privacy-Loss Parameters",
        "https://arxiv.org/abs/2309.05901",
    ),
    "LW22": (
        "Composition Theorems for Interactive Differential Privacy",
        "https://arxiv.org/abs/2207.09397",
    ),
    "RRUV21": (
        "Privacy Odometers and Filters: Pay-as-you-Go Composition",
        "https://arxiv.org/abs/1605.08294",
    ),
    "VW21": (
        "Concurrent Composition of Differential Privacy",
        "https://arxiv.org/abs/2105.14427",
    ),
    "VZ23": (
        "Concurrent Composition Theorems for Differential Privacy",
        "https://arxiv.org/abs/2207.08335",
    ),
    "WRRW23": (
        "Fully Adaptive Composition in Differential Privacy",
        "https://arxiv.org/abs/2203.05481",
    ),
}


def cite(key: str, where: str = "") -> str:
    """Render a citation such as ``[VW21, Theorem 1.5] https://...``."""
    _, link = REFERENCES[key]
    return f"[{key}, {where}] {link}" if where else f"[{key}] {link}"
