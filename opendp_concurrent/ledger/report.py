"""The report of a budget for people: one HTML page that requests nothing from anywhere.

Labels are text of analysts. All text that is not written here goes through :func:`_text`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from html import escape
from importlib.resources import files
from math import isfinite
from string import Template
from typing import Any, NamedTuple

from ..accounts.charge import Terms
from ..accounts.rule import Within
from ..arguments.checks import shown
from ..errors import BudgetExceededError
from ..shown import rounded
from ..sums.accumulator import Accumulator
from ..types import Loss
from .audit import Audited, Summary
from .records.entries import Entry
from .spending import Line, has_blocks, height_of, spending
from .words import in_words, one_line

_ROWS = 50  # of a table
_LINES = 10  # of the picture: there are as many colors
_TYPICAL = 100  # charges, whose median is the typical price
_DAY = timedelta(days=1)
_LAST = datetime.max.replace(tzinfo=timezone.utc, microsecond=0).timestamp()
_NONE = "–"
_Path = tuple[str, ...]
_Cell = tuple[str, str]  # its class, and HTML


def report_of(audited: Audited, entries: Sequence[Entry], refused: Mapping[str, int]) -> str:
    """Return the page.

    :param entries: all charges
    :param refused: by name, how many requests were refused
    """
    summary, terms = audited.summary(), audited.terms
    sections, facts = [], {"created": f"{summary.created[:16].replace('T', ' ')} UTC"}
    if terms is not None:
        budget = _Budget(audited, terms, entries)
        tiles, *tables = budget.sections()
        picture = _picture(summary, terms, entries)
        sections = [tiles, picture, *tables, _labels(summary, entries)]
        facts["measure"] = in_words(terms)
        facts["accumulator"] = repr(terms.accumulator)
        facts["neighbours"] = f"{terms.metric}, d_in = {shown(terms.d_in)}"
    facts["anchor"] = summary.anchor
    most = sorted(refused.items(), key=lambda one: one[1], reverse=True)[:_ROWS]
    counts = [(_text(name), _number(f"{count:,}")) for name, count in most]
    sections.append(_table("Refused requests", ("who", "requests"), counts, len(refused)))
    sections.append(_charges(entries))
    pairs = "".join(f"<dt>{name}</dt><dd>{_escaped(text)}</dd>" for name, text in facts.items())
    sections.append(_section("About this ledger", f"<dl>{pairs}</dl>"))
    template = files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=_escaped(summary.dataset),
        subtitle=f"Read on {_moment(datetime.now(timezone.utc))} UTC; {len(entries):,} charges, "
        "which are consistent.",
        sections="\n".join(filter(None, sections)),
    )


class _Account(NamedTuple):
    """The budget, a limit or a block.

    :ivar total: the sum of its charges; if it has blocks, that of the block with the largest loss
    :ivar left: what its own bound admits
    :ivar share: what part of its bound it has spent, from 0 to 1
    """

    name: str
    terms: Terms
    total: Accumulator
    launches: int
    last: datetime | None
    left: Loss
    share: float

    @property
    def bar(self) -> str:
        return f'<div class="bar"><i style="width:{100 * self.share:.4g}%"></i></div>'


class _Budget:
    """The accounts of a budget, and what a launch of typical price would leave in each."""

    def __init__(self, audited: Audited, terms: Terms, entries: Sequence[Entry]) -> None:
        self._terms, self._height = terms, height_of(terms.measure)
        losses = [_price(one) for one in entries[-_TYPICAL:]]
        losses.sort(key=self._height)
        self._typical: Loss = losses[len(losses) // 2] if losses else None
        whole, self._blocks = audited.newest.accumulator, has_blocks(audited.newest.accumulator)
        last: dict[_Path, datetime] = {}
        keys: dict[_Path, dict[Any, list[datetime]]] = {}  # when each block was charged
        for one in entries:
            for depth in range(len(one.limit) + 1):
                last[one.limit[:depth]] = one.time
                for key in one.d_mid.keys if self._blocks else ():
                    keys.setdefault(one.limit[:depth], {}).setdefault(key, []).append(one.time)

        def account(path: _Path, total: Any, terms: Terms, launches: int) -> _Account:
            if self._blocks:
                parts = map(total.of, keys.get(path) or (None,))
                total = max(parts, key=lambda one: self._height(one.loss))
            name = " > ".join(path) or "the budget"
            return self._account(name, terms, total, launches, last.get(path))

        self._accounts = {
            one.path: account(one.path, one.accumulator, one.terms, one.launches)
            for one in audited.newest.limits.all()
        }
        self._cap = account((), whole, terms, len(entries))
        self._of_blocks = [
            self._account(shown(key), terms, whole.of(key), len(times), times[-1])  # type: ignore[attr-defined]
            for key, times in keys.get((), {}).items()
        ]

    def _account(
        self, name: str, terms: Terms, total: Accumulator, launches: int, last: datetime | None
    ) -> _Account:
        if terms.d_out is None:
            return _Account(name, terms, total, launches, last, None, 0.0)
        spent, bound = self._height(total.loss), self._height(terms.d_out)
        share = min(1.0, spent / bound) if bound > 0.0 else 1.0
        left = Within(terms.d_out).remaining(total)
        return _Account(name, terms, total, launches, last, left, share)

    def _after(self, *accounts: _Account) -> str:
        """What remains of the last account after a launch that all of them are charged for."""
        left = _NONE
        for one in accounts:
            same = (one.terms.d_in, one.terms.metric) == (self._terms.d_in, self._terms.metric)
            if self._typical is None or not same or one.terms.d_out is None:
                return _NONE  # the price at its d_in is not known
            rule = Within(one.terms.d_out)
            verdict = rule.admits(one.total, self._typical)
            if isinstance(verdict, BudgetExceededError):
                return f'<span class="refused">refused by {_escaped(one.name)}</span>'
            left = _loss(rule.remaining(verdict))
        return left

    def sections(self) -> Iterator[str]:
        """The tiles, the limits and the blocks; those that have the least left come first."""
        cap, of = self._cap, " of the block that spent most" if self._blocks else ""
        told = [(_loss(cap.total.loss), f"spent{of}, {in_words(cap.terms)}")]
        if cap.terms.d_out is not None:
            told += [(_loss(cap.terms.d_out), f"cap{of}"), (_loss(cap.left), f"remains{of}")]
        if self._typical is not None:
            told += [(_loss(self._typical), "typical price: the median of the last 100 charges")]
            told += [(self._after(cap), "left after a launch of that price")]
        cells = "".join(
            f"<div><b>{one}</b><span>{_escaped(what)}</span></div>" for one, what in told
        )
        yield _section("What remains", f'<div class="tiles">{cells}</div><br>{cap.bar}')
        limits = [
            (cap, *(self._accounts[path[: depth + 1]] for depth in range(len(path))))
            for path in self._accounts
        ]
        yield self._table("Limits", limits)
        yield self._table("Blocks", [(one,) for one in self._of_blocks])

    def _table(self, title: str, chains: Sequence[tuple[_Account, ...]]) -> str:
        """A table of accounts, each after those that it is below."""
        rows = []
        for chain in sorted(chains, key=lambda chain: chain[-1].share, reverse=True)[:_ROWS]:
            one = chain[-1]
            losses = map(_loss, (one.total.loss, one.terms.d_out, one.left))
            cells = f"{one.launches:,}", *losses, self._after(*chain), _moment(one.last)
            rows.append([_text(one.name), ("bars", one.bar), *map(_number, cells)])
        return _table(title, _COLUMNS, rows, len(chains))


_COLUMNS = (
    *("name", "", "charges", "spent", "of", "remains"),
    *("after a launch of typical price", "last charge"),
)


# --- other sections ------------------------------------------------------------------------------


def _labels(summary: Summary, entries: Sequence[Entry]) -> str:
    lines, number = spending(summary, entries, "label", _LINES)
    rows = [
        (
            _text(line.name),
            *map(_number, (f"{line.launches:,}", f"{line.heights[-1]:.6g}")),
            _number(_moment(line.entries[-1].time)),
        )
        for line in lines
    ]
    return _table("Labels", ("label", "charges", "spent alone", "last charge"), rows, number)


def _charges(entries: Sequence[Entry]) -> str:
    rows = [
        (
            *map(_number, (f"{one.sequence:,}", _moment(one.time))),
            *map(_text, (" > ".join(one.limit) or _NONE, one.label or _NONE, one.mechanism)),
            _number(_loss(_price(one))),
        )
        for one in reversed(entries[-_ROWS:])
    ]
    columns = "", "time (UTC)", "limit", "label", "mechanism", "price"
    return _table("Last charges", columns, rows, len(entries)) or _section(
        "Last charges", "<p>Nothing was charged yet.</p>"
    )


def _picture(summary: Summary, terms: Terms, entries: Sequence[Entry]) -> str:
    """The loss over whole days: that of the budget, and of its limits or blocks."""
    if not entries:
        return ""
    whole, _ = spending(summary, entries, "time")
    by = "limit" if summary.limits else "block"
    parts, number = spending(summary, entries, by, _LINES)
    lines = [Line("the budget", *whole[0][1:]), *parts]
    times = [one.time.timestamp() for one in entries]
    day = _DAY.total_seconds()
    start, end = min(times) // day * day, min((max(times) // day + 1) * day, _LAST)
    bound = 0.0 if terms.d_out is None else height_of(terms.measure)(terms.d_out)
    top = max(bound, *(high for line in lines for high in line.heights if isfinite(high)), 0.0)
    top = top or 1.0
    ends = start, end, max(times)
    paths = [_steps(line, ends, top, f"c{n}") for n, line in enumerate(lines)]
    if bound:
        paths.append(f'<path class="bound" d="M0 {1000 - 1000 * bound / top:.1f}H1000"/>')
    names = [
        f'<li><i style="background:var(--c{n})"></i>{_escaped(line.name)}</li>'
        for n, line in enumerate(lines)
    ]
    if number > len(parts):
        names.append(f"<li>{len(parts)} of {number:,} {by}s, the largest losses</li>")
    parts_of_axis = _PARTS if (end - start) / day % 2 == 0 else _PARTS[::2]
    dates = [_day(start + part * (end - start)) for part in parts_of_axis]
    heights = "".join(f"<span>{top * part:.3g}</span>" for part in reversed(_PARTS))
    chart = (
        f'<div class="chart"><div class="heights">{heights}</div>'
        '<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img" '
        f'aria-label="privacy loss over time">{"".join(reversed(paths))}</svg>'
        f'<div class="days">{"".join(dates)}</div></div>'
    )
    told = f"{in_words(terms)}; the dashed line is the cap" if bound else in_words(terms)
    return _section("Over time", f'<p>{told}</p>{chart}<ul class="legend">{"".join(names)}</ul>')


_PARTS = 0.0, 0.5, 1.0  # of an axis, where it has numbers


def _steps(line: Line, ends: tuple[float, float, float], top: float, color: str) -> str:
    """A line of steps, from the start of the axis to the newest charge of all."""
    start, end, newest = ends
    path = ["M0 1000"]
    for one, high in zip(line.entries, line.heights, strict=True):
        x = 1000 * (one.time.timestamp() - start) / (end - start)
        path.append(f"H{x:.1f}V{max(0.0, 1000 - 1000 * high / top):.1f}")
    path.append(f"H{1000 * (newest - start) / (end - start):.1f}")
    return f'<path style="stroke:var(--{color})" d="{"".join(path)}"/>'


def _day(seconds: float) -> str:
    return f"<span>{datetime.fromtimestamp(seconds, timezone.utc).date()}</span>"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[_Cell]], number: int) -> str:
    """A section with a table; nothing, if it has no rows. Each cell knows its column on a phone."""
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in columns)
    names = {index: f' data-name="{name}"' for index, name in enumerate(columns)}
    body = ""
    for cells in rows:
        made = [f'<td class="{kind}"{names[n]}>{one}</td>' for n, (kind, one) in enumerate(cells)]
        body += f"<tr>{''.join(made)}</tr>"
    more = f"<p>{len(rows)} of {number:,}.</p>" if number > len(rows) else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return _section(title, f'{more}<div class="wide">{table}</div>')


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _escaped(text: str) -> str:
    """Return text that HTML shows as it is, on one line."""
    return escape(one_line(text, 120))


def _text(text: str) -> _Cell:
    return "text", f"<bdi>{_escaped(text)}</bdi>"


def _number(text: str) -> _Cell:
    """A cell of a number, or of HTML that was made here."""
    return "number", text


def _loss(loss: Loss) -> str:
    return _NONE if loss is None else escape(one_line(rounded(loss), 60))


def _price(one: Entry) -> Loss:
    """What a charge cost; of blocks, each."""
    return getattr(one.d_mid, "d_mid", one.d_mid)


def _moment(time: datetime | None) -> str:
    return _NONE if time is None else time.isoformat(sep=" ", timespec="minutes")[:16]
