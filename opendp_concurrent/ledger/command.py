"""``opendp-concurrent ledger``: show, verify and report on a ledger."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

from .._checks import make_private
from ..errors import ConcurrentError, InvalidValueError, Json, rounded
from ..measures import by_tag, risk_of
from .audit import LimitSummary, Summary
from .encoding import Entry, one_line
from .ledger import SqlLedger, datasets, open_ledger
from .report import has_blocks

_SHOWN = 40  # widest text of a column


def main(arguments: list[str]) -> int:
    """Run the command. Return 0, or 1 if the ledger is inconsistent or cannot be read."""
    options = _parser().parse_args(arguments)
    try:
        path, anchor = options.ledger, options.anchor
        with open_ledger(path, _dataset(options), anchor=anchor, read_only=True) as ledger:
            {"show": _show, "verify": _verify, "report": _report}[options.action](ledger, options)
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
        ("show", "print the charges, the privacy loss and the remaining budget"),
        ("verify", "check that the charges are consistent"),
        ("report", "write a page for people: what is spent, by whom, and what remains"),
    ):
        action = actions.add_parser(name, help=what, description=what)
        action.add_argument("ledger", metavar="PATH_OR_URL")
        action.add_argument("--dataset", help="name of the dataset, if the ledger has several")
        action.add_argument(
            "--anchor", help="anchor of an earlier summary: the ledger must contain its charge"
        )
        if name == "report":
            action.add_argument("-o", "--output", default="report.html", help="path of the page")
        else:
            action.add_argument("--json", action="store_true", help="print one JSON object")
        if name == "verify":
            action.add_argument(
                "--progress", action="store_true", help="show a bar, if tqdm is installed"
            )
    return parser


def _dataset(options: argparse.Namespace) -> str:
    if options.dataset is not None:
        return str(options.dataset)
    found = datasets(options.ledger)
    if len(found) == 1:
        return found[0]
    names = ", ".join(map(repr, found)) or "none"
    raise InvalidValueError(f"--dataset must be given: the ledger has {names}")


def _show(ledger: SqlLedger, options: argparse.Namespace) -> None:
    summary, entries = ledger.read(options.anchor)
    if options.json:
        print(_json(_facts(summary))[:-1], end=', "charges": [')
        for entry in entries:  # a ledger may have millions
            print(", " * (entry.sequence > 1), _json(_charge(entry)), end="")
        print("]}")
        return
    columns = "", "time (UTC)", "label", "mechanism", "d_mid", "loss"
    _print_table(columns, lambda: map(_row, entries))
    print()
    facts = _facts(summary)
    limits = facts.pop("limits", ())
    for name, value in facts.items():
        print(f"{name + ':':<13}{_text(value)}")
    if limits:
        print()
        names = "launches", "spent", "remaining", "d_out"
        rows = [(" > ".join(one["path"]), *(_text(one[name]) for name in names)) for one in limits]
        _print_table(("limit", *names), lambda: rows)


def _row(entry: Entry) -> Sequence[str]:
    time = entry.time.isoformat(sep=" ", timespec="seconds")[:19]
    losses = _text(entry.d_mid), _text(entry.loss)
    return str(entry.sequence), time, entry.label, entry.mechanism, *losses


def _verify(ledger: SqlLedger, options: argparse.Namespace) -> None:
    summary = ledger.summary(options.anchor, progress=options.progress)
    if options.json:
        print(_json({"fits": True, **_facts(summary)}))
    else:
        print(f"{summary.launches} charges are consistent; anchor {summary.anchor}")


def _report(ledger: SqlLedger, options: argparse.Namespace) -> None:
    path = options.output
    if not path.endswith((".html", ".htm")):  # it could be the ledger, or a file beside it
        raise InvalidValueError(f"--output ({path}) must end with .html")
    page = ledger.report()
    make_private(path)
    Path(path).write_text(page, encoding="utf-8")
    print(path)


def _facts(summary: Summary) -> dict[str, Any]:
    terms = summary.terms
    facts = {"dataset": summary.dataset, "created": summary.created}
    if terms is not None:
        facts |= {"measure": terms.measure, "metric": terms.metric}
    facts |= {**_state(summary), "anchor": summary.anchor}
    under = None if terms is None else by_tag(terms.measure)
    if under is not None and not has_blocks(summary.spent):
        facts["risk"] = str(risk_of(under, summary.spent, 0.5))
    limits = [{"path": list(one.path), **_state(one)} for one in summary.limits]
    return {**facts, "limits": limits} if limits else facts


def _state(of: Summary | LimitSummary) -> dict[str, Any]:
    terms, known = of.terms, {}
    if terms is not None:
        known = {"accumulator": repr(terms.accumulator), "d_in": terms.d_in, "d_out": terms.d_out}
    known |= {"launches": of.launches, "spent": of.spent, "remaining": of.remaining}
    return known


def _charge(entry: Entry) -> dict[str, Any]:
    return {
        **{name: getattr(entry, name) for name in ("sequence", "label", "mechanism", "hash")},
        "time": entry.time.isoformat(),
        "d_mid": entry.d_mid,
        "loss": entry.loss,
        **({"limit": list(entry.limit)} if entry.limit else {}),
    }


def _json(facts: dict[str, Any]) -> str:
    """Return facts as JSON. A value that JSON does not have is text."""
    return json.dumps(_plain(facts), allow_nan=False)


def _plain(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    number = isinstance(value, float) and isfinite(value)
    return value if value is None or number or isinstance(value, (int, str)) else str(value)


def _text(value: Json) -> str:
    """Return a value for people: numbers have six digits, and ``--json`` has all of them."""
    return value or "-" if value is None or isinstance(value, str) else rounded(value)


def _print_table(names: Sequence[str], rows: Callable[[], Iterable[Sequence[str]]]) -> None:
    """Print a table. The rows are asked for twice, so that millions of them take no memory."""
    widths = [0] * len(names)
    for row in chain((names,), rows()):
        sizes = [len(one_line(text, _SHOWN)) for text in row]
        widths = list(map(max, widths, sizes))
    for row in chain((names,), rows()):
        cells = map(str.ljust, [one_line(text, _SHOWN) for text in row], widths)
        print("  ".join(cells).rstrip())
