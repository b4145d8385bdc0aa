"""What the benchmarks share: options, tables, targets, and files of results. Asserts nothing."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "opendp",
    "numpy",
    "scipy",
    "polars",
    "duckdb",
    "pyspark",
    "dp-accounting",
    "jax-privacy",
)
_tables: list[dict[str, Any]] = []  # what this process has printed


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="under 50 s; estimates are labelled")
    made.add_argument("--json", action="store_true", help="last line: the figures as JSON")
    made.add_argument("--save", action="store_true", help=f"write {RESULTS.name}/<benchmark>.json")
    return made


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load_average": round(os.getloadavg()[0], 1),  # other work makes times longer
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name)) is not None},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def print_machine() -> None:
    """Print what the figures depend on."""
    found = machine()
    print(
        f"{found['processor']}, {found['cores']} cores; Python {found['python']}, "
        f"OpenDP {_version('opendp')}, RUST_BACKTRACE={os.environ.get('RUST_BACKTRACE')}"
    )


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print ``rows``: text to the left, numbers to the right, None as a dash."""
    cells = [[_text(cell) for cell in row] for row in rows]
    _tables.append({"title": title, "header": list(header), "rows": cells})
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
    """Print the figures beside what is aimed at; if asked for, also as JSON, and to a file.

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
    found: dict[str, dict[str, Any]] = {}
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
        said = {"target": aim, "verdict": verdict, "note": estimated.get(name)}
        found[name] = {"value": _rounded(figure), **{k: v for k, v in said.items() if v}}
    saved = list(_tables)
    print_table("Figures", ["figure", "value", "target", "", "note"], rows)
    if options.json:
        rounded = {name: one["value"] for name, one in found.items()}
        print(json.dumps({**rounded, "quick": options.quick, "estimated": dict(estimated)}))
    if options.save:
        _save(found, saved, quick=options.quick)


def _save(figures: Mapping[str, Any], tables: Sequence[Any], *, quick: bool) -> None:
    """Write the file of results that is named as the script; the docs make their tables from it."""
    name = Path(sys.argv[0]).stem
    content = {
        "benchmark": name,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": _commit(),
        "quick": quick,
        "machine": machine(),
        "figures": figures,
        "tables": tables,
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _commit() -> str | None:
    """Return the commit, marked if other files than results are changed; None without git."""
    git = ["git", "-C", str(RESULTS.parents[1])]
    head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    if head.returncode:
        return None
    others = [*git, "diff", "--quiet", "HEAD", "--", ".", f":!{RESULTS}"]
    return head.stdout.strip() + "-dirty" * bool(subprocess.run(others, check=False).returncode)


def _rounded(figure: float) -> float | None:
    """Four digits, or all of an integer; JSON has no NaN."""
    if isinstance(figure, int):
        return figure
    return None if isnan(figure) else float(f"{figure:.4g}")
