"""What the benchmarks share: options, tables, targets, and the JSON line. Asserts nothing."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from math import isnan
from typing import Any


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="under 50 s; estimates are labelled")
    made.add_argument("--json", action="store_true", help="last line: the figures as JSON")
    return made


def print_machine() -> None:
    """Print what the figures depend on."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
        model = names[0] if names else model
    print(
        f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"OpenDP {version('opendp')}, RUST_BACKTRACE={os.environ.get('RUST_BACKTRACE')}"
    )


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print ``rows``: text to the left, numbers to the right, None as a dash."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [all(not isinstance(row[i], str) for row in rows) for i in range(len(header))]
    print(f"\n{title}")
    for line in [list(header), ["-" * width for width in widths], *cells]:
        aligned = zip(line, widths, right, strict=True)
        print("  " + "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in aligned).rstrip())


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.2f}" if abs(cell) < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def report(
    figures: Mapping[str, float],
    targets: Mapping[str, tuple[str, float]],
    estimated: Mapping[str, str],
    options: argparse.Namespace,
) -> None:
    """Print the figures beside what is aimed at, then, if asked for, as one line of JSON.

    :param figures: NaN where there was nothing to measure with
    :param targets: ``"at most"``, ``"at least"``, ``"below"``, ``"within 2% of"`` or
        ``"within 3% of"``, and the number; figures without one are printed only
    :param estimated: figures that were not measured as the target says, and how they were found
    """
    reached: dict[str, Callable[[float, float], bool]] = {
        "at most": lambda figure, target: figure <= target,
        "at least": lambda figure, target: figure >= target,
        "below": lambda figure, target: figure < target,
        "within 2% of": lambda figure, target: abs(figure - target) <= 0.02 * target,
        "within 3% of": lambda figure, target: abs(figure - target) <= 0.03 * target,
    }
    rows = []
    for name, figure in figures.items():
        aim, verdict = None, None
        if name in targets:
            words, target = targets[name]
            aim = f"{words} {target:g}"
            verdict = "reached" if reached[words](figure, target) else "MISSED"
        value = f"{figure:,.3f}" if abs(figure) >= 0.01 else f"{figure:.3g}"
        if isnan(figure):
            value, verdict = None, "not measured"
        rows.append([name, value, aim, verdict, estimated.get(name)])
    print_table("Figures", ["figure", "value", "target", "", "note"], rows)
    if options.json:
        rounded = {name: _rounded(figure) for name, figure in figures.items()}
        print(json.dumps({**rounded, "quick": options.quick, "estimated": dict(estimated)}))


def _rounded(figure: float) -> float | None:
    """Four digits, or all of an integer; JSON has no NaN."""
    if isinstance(figure, int):
        return figure
    return None if isnan(figure) else float(f"{figure:.4g}")
