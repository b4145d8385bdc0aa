"""Losses that rooms above this one know: each registers what it reads when it is imported."""

from __future__ import annotations

from collections.abc import Callable

from .function import TradeoffFunction
from .session import Session

# of the best of several runs: from the losses of a run, the mean number of runs, and its shape
SELECTIONS: list[Callable[[Session, float, float], TradeoffFunction]] = []
