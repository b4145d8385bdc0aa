"""The report of a budget for people: one HTML page that requests nothing from anywhere.

Labels are text of analysts. All text that is not written here goes through :func:`_text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        sections = [budget.tiles(), _picture(summary, terms, entries), budget.limits()]
        sections += [budget.blocks(), _labels(summary, entries)]
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
    """

    name: str
    total: Accumulator
    terms: Terms
    launches: int


class _Budget:
    """The accounts of a budget, and what a launch of typical price would leave in each."""

    def __init__(self, audited: Audited, terms: Terms, entries: Sequence[Entry]) -> None:
        self._terms, self._entries = terms, entries
        self._height = height_of(terms.measure)
        losses = [getattr(one.d_mid, "d_mid", one.d_mid) for one in entries[-_TYPICAL:]]
        losses.sort(key=self._height)
        self._price: Loss = losses[len(losses) // 2] if losses else None
        self._whole = audited.newest.accumulator
        self._keys: dict[_Path, dict[Any, int]] = {(): {}}  # of blocks, with their launches
        self._last: dict[_Path, datetime] = {}
        for one in entries:
            for n in range(len(one.limit) + 1):
                path = one.limit[:n]
                self._last[path] = one.time
                counts = self._keys.setdefault(path, {})
                for key in one.d_mid.keys if has_blocks(self._whole) else ():
                    counts[key] = counts.get(key, 0) + 1
        self._accounts: dict[_Path, _Account] = {}
        self._accounts[()] = self._account((), self._whole, terms, len(entries))
        for limit in audited.newest.limits.all():
            self._accounts[limit.path] = self._account(
                limit.path, limit.accumulator, limit.terms, limit.launches
            )

    def _account(self, path: _Path, total: Any, terms: Terms, launches: int) -> _Account:
        if has_blocks(total):
            parts = map(total.of, self._keys.get(path) or (None,))
            total = max(parts, key=lambda one: self._height(one.loss))
        return _Account(" > ".join(path) or "the budget", total, terms, launches)

    def _after(self, *accounts: _Account) -> str:
        """What remains of the last account after a launch that all of them are charged for."""
        left = _NONE
        for one in accounts:
            terms = one.terms
            if self._price is None or (terms.d_in, terms.metric) != self._asked:
                return _NONE  # the price at its d_in is not known
            if terms.d_out is not None:
                rule = Within(terms.d_out)
                verdict = rule.admits(one.total, self._price)
                if isinstance(verdict, BudgetExceededError):
                    return f'<span class="refused">refused by {_escaped(one.name)}</span>'
                left = _loss(rule.remaining(verdict))
        return left

    @property
    def _asked(self) -> tuple[Any, str]:
        return self._terms.d_in, self._terms.metric

    def _share(self, one: _Account) -> float:
        """What part of its bound an account has spent, from 0 to 1."""
        bound = 0.0 if one.terms.d_out is None else self._height(one.terms.d_out)
        spent = self._height(one.total.loss)
        return min(1.0, spent / bound) if 0.0 < bound and isfinite(spent) else float(spent > 0.0)

    def _cells(self, one: _Account, after: str) -> Iterable[_Cell]:
        bar = f'<div class="bar"><i style="width:{100 * self._share(one):.4g}%"></i></div>'
        bound = one.terms.d_out
        left = None if bound is None else Within(bound).remaining(one.total)
        yield _text(one.name)
        yield from map(_number, (f"{one.launches:,}", _loss(one.total.loss), _loss(bound)))
        yield "bars", bar
        yield from map(_number, (_loss(left), after))

    def tiles(self) -> str:
        """What is spent, what remains, and what a typical launch would leave."""
        cap = self._accounts[()]
        bound = cap.terms.d_out
        left = None if bound is None else Within(bound).remaining(cap.total)
        of = " of the block that spent most" if has_blocks(self._whole) else ""
        told = [(_loss(cap.total.loss), f"spent{of}, {in_words(cap.terms)}")]
        if bound is not None:
            told += [(_loss(bound), f"cap{of}"), (_loss(left), f"remains{of}")]
        if self._price is not None:
            told.append((_loss(self._price), "typical price: the median of the last 100 charges"))
            told.append((self._after(cap), "after a launch of that price"))
        cells = "".join(
            f"<div><b>{value}</b><span>{_escaped(of)}</span></div>" for value, of in told
        )
        bar = f'<div class="bar"><i style="width:{100 * self._share(cap):.4g}%"></i></div>'
        return _section("What remains", f'<div class="tiles">{cells}</div><br>{bar}')

    def limits(self) -> str:
        """Each limit; those that have the least left come first."""
        paths = sorted(filter(None, self._accounts), key=self._first)
        rows = []
        for path in paths[:_ROWS]:
            above = [self._accounts[path[:n]] for n in range(len(path) + 1)]
            moment = _number(_moment(self._last[path]))
            rows.append((*self._cells(above[-1], self._after(*above)), moment))
        return _table("Limits", (*_COLUMNS, "last charge"), rows, len(paths))

    def _first(self, path: _Path) -> float:
        return -self._share(self._accounts[path])

    def blocks(self) -> str:
        """The blocks that have the least left."""
        if not has_blocks(self._whole):
            return ""
        accounts = [
            _Account(shown(key), self._whole.of(key), self._terms, count)  # type: ignore[attr-defined]
            for key, count in self._keys[()].items()
        ]
        first = sorted(accounts, key=self._share, reverse=True)[:_ROWS]
        rows = [tuple(self._cells(one, self._after(one))) for one in first]
        return _table("Blocks", _COLUMNS, rows, len(accounts))


_COLUMNS = "name", "charges", "spent", "of", "", "remains", "after a launch of typical price"


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
            _number(_loss(getattr(one.d_mid, "d_mid", one.d_mid))),
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
    by = "limit" if summary.limits else "block" if has_blocks(summary.spent) else "time"
    parts, number = ([], 0) if by == "time" else spending(summary, entries, by, _LINES)
    lines = [whole[0]._replace(name="the budget"), *parts]
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


def _table(title: str, columns: Sequence[str], rows: Sequence[Iterable[_Cell]], number: int) -> str:
    """A section with a table; nothing, if it has no rows. Each cell knows its column on a phone."""
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}" data-name="{name}">{content}</td>'
            for name, (kind, content) in zip(columns, cells, strict=True)
        )
        + "</tr>"
        for cells in rows
    )
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


def _moment(time: datetime) -> str:
    return time.isoformat(sep=" ", timespec="minutes")[:16]
