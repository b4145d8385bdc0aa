"""Some of many cases in CI, the others with the slow tests."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow(cases: Iterable[Any]) -> list[Any]:
    """Return values of one parameter that are left to the slow tests."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in cases
    ]


def some(cases: Iterable[tuple[Any, ...]], step: int) -> list[Any]:
    """Return all cases; all but each ``step``-th are slow, and CI has each value of a parameter."""
    cases = list(cases)
    for values in zip(*cases, strict=True):
        assert {*values[::step]} == {*values}, f"CI would not have each of {values}"
    return [
        pytest.param(*case, marks=[pytest.mark.slow] * (index % step != 0))
        for index, case in enumerate(cases)
    ]
