"""``opendp-concurrent ledger``: what a ledger says, for people and programs; and copies of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from .errors import ConcurrentError, InvalidValueError

if TYPE_CHECKING:
    from .ledger import Entry, SqlLedger, Summary

_SHOWN = 40  # widest text of a column


def main(arguments: list[str]) -> int:
    """Run the command; return 0, or 1 if the ledger does not fit together or cannot be read."""
    options = _parser().parse_args(arguments)
    try:
        if options.action == "restore":
            _restore(options)
            return 0
        with _open(options) as ledger:
            run = {"show": _show, "verify": _verify, "plot": _plot, "backup": _backup}
            run[options.action](ledger, options)
    except (ConcurrentError, ImportError, OSError) as error:
        if getattr(options, "json", False):
            print(json.dumps({"fits": False, "error": str(error)}))
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="opendp-concurrent ledger", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for name, what in (
        ("show", "print the charges, what is spent and what remains"),
        ("verify", "check that all of it fits together"),
        ("plot", "draw the loss over the launches (extra 'plot')"),
        ("backup", "copy an SQLite ledger, all budgets of it, also while it is in use"),
        ("restore", "make a copy of an SQLite ledger the ledger that is launched on"),
    ):
        action = actions.add_parser(name, help=what, description=what)
        action.add_argument("ledger", metavar="PATH_OR_URL")
        if name == "backup":
            action.add_argument("target", metavar="TARGET", help="a file that is not there yet")
        action.add_argument("--dataset", help="whose budget, if the ledger has several")
        known = action.add_mutually_exclusive_group(required=name == "restore")
        known.add_argument("--anchor", help="of an earlier time: the ledger must go on from there")
        if name == "restore":
            known.add_argument(
                "--without-anchor",
                action="store_true",
                help="no anchor was kept: you answer for it that the copy has all charges",
            )
        elif name == "plot":
            action.add_argument("--output", default="ledger.svg", help="the file to draw to")
        elif name != "backup":
            action.add_argument("--json", action="store_true", help="one object for programs")
    return parser


def _open(options: argparse.Namespace) -> SqlLedger:
    from .ledger import open_ledger

    return open_ledger(options.ledger, _dataset(options), anchor=options.anchor, read_only=True)


def _dataset(options: argparse.Namespace) -> str:
    from .ledger import datasets

    if options.dataset is not None:
        return str(options.dataset)
    found = datasets(options.ledger)
    if len(found) == 1 or (found and options.action == "backup"):  # which copies all of them
        return found[0]
    names = ", ".join(map(repr, found)) or "none"
    raise InvalidValueError(f"--dataset must be given: the ledger has {names}")


def _show(ledger: SqlLedger, options: argparse.Namespace) -> None:
    summary, entries = ledger.read(options.anchor)
    if options.json:
        charges = [_charge(entry) for entry in entries]
        print(json.dumps({**_facts(summary), "charges": charges}, allow_nan=False))
        return
    rows = [
        (
            str(entry.sequence),
            entry.time.isoformat(sep=" ", timespec="seconds")[:19],
            entry.label,
            entry.mechanism,
            _text(entry.d_mid),
            _text(entry.loss),
        )
        for entry in entries
    ]
    for line in _table(("", "time (UTC)", "label", "mechanism", "d_mid", "loss"), rows):
        print(line)
    print()
    for name, value in _facts(summary).items():
        print(f"{name + ':':<13}{_text(value)}")


def _verify(ledger: SqlLedger, options: argparse.Namespace) -> None:
    summary = ledger.summary(options.anchor)
    if options.json:
        print(json.dumps({"fits": True, **_facts(summary)}, allow_nan=False))
    else:
        print(f"{summary.launches} charges fit together; anchor {summary.anchor}")


def _plot(ledger: SqlLedger, options: argparse.Namespace) -> None:
    from .plot import plot_ledger

    figure: Any = plot_ledger(ledger).figure
    figure.savefig(options.output, bbox_inches="tight")
    print(options.output)


def _backup(ledger: SqlLedger, options: argparse.Namespace) -> None:
    summary = ledger.backup(options.target)
    what = f"{summary.launches} charges of {summary.dataset!r}"
    print(f"{options.target} has {what}; anchor {summary.anchor}")


def _restore(options: argparse.Namespace) -> None:
    from .ledger import restore_ledger

    summary = restore_ledger(options.ledger, _dataset(options), anchor=options.anchor)
    what = f"{summary.launches} charges of {summary.dataset!r}"
    print(f"{options.ledger} is the ledger, with {what}; anchor {summary.anchor}")


def _facts(summary: Summary) -> dict[str, Any]:
    terms = summary.terms
    facts = {"dataset": summary.dataset, "created": summary.created}
    if terms is not None:
        facts |= {
            "measure": terms.measure,
            "accumulator": repr(terms.accounting),
            "metric": terms.metric,
            "d_in": _plain(terms.d_in),
            "d_out": _plain(terms.d_out),
        }
    return facts | {
        "launches": summary.launches,
        "spent": _plain(summary.spent),
        "remaining": _plain(summary.remaining),
        "anchor": summary.anchor,
    }


def _charge(entry: Entry) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "time": entry.time.isoformat(),
        "label": entry.label,
        "mechanism": entry.mechanism,
        "d_mid": _plain(entry.d_mid),
        "loss": _plain(entry.loss),
        "hash": entry.hash,
    }


def _plain(value: Any) -> Any:
    """As JSON has it; what it cannot say as text."""
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    number = isinstance(value, float) and isfinite(value)
    return value if value is None or number or isinstance(value, (int, str)) else str(value)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_text, value))})"
    return str(value)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cut = [tuple(_cut(text) for text in row) for row in (names, *rows)]
    widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cut
    ]


def _cut(text: str) -> str:
    """One line of a table, whatever a label holds: nothing that moves the cursor."""
    line = "".join(one if one.isprintable() else " " for one in text)
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."
