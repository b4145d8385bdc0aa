"""Who spent what: the privacy loss over time, as a whole, or by limit, label or block."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from importlib.resources import files
from math import isfinite
from string import Template
from typing import Any, NamedTuple

from .. import errors, measures
from ..accounting import Terms, Within
from ..measures import height, name
from .audit import Audited, Summary
from .encoding import Entry, empty_total, one_line

_POINTS = 1000  # of a line: there are no more pixels

Height = Callable[[errors.Loss], float]


class Line(NamedTuple):
    """What one limit, label or block has spent, or the whole budget.

    :ivar name: for people, of any characters
    :ivar entries: charges, at most about a thousand of them, with the newest one
    :ivar heights: the number that is drawn for the loss after each of these
    :ivar launches: number of charges
    """

    name: str
    entries: list[Entry]
    heights: list[float]
    launches: int


def height_of(measure: str) -> Height:
    """Return the function that gives the number which is drawn for a loss under a measure.

    :param measure: name of the measure in the terms of a ledger
    """
    known = measures.by_tag(measure)
    return lambda loss: height(loss, under=known)


def has_blocks(total: measures.AccumulatorState[Any] | errors.Loss) -> bool:
    """Whether a total, or its loss, has one for each block."""
    return hasattr(type(total), "of")


def spending(
    summary: Summary, entries: Sequence[Entry], by: str, most: int = 10
) -> tuple[list[Line], int]:
    """Return the lines with the largest losses, and how many lines there are.

    The loss of several blocks is that of the block with the largest one.

    :param by: a key of ``NAMES``; ``"time"`` is one line, of the whole budget
    :param most: number of lines to return
    """
    if summary.terms is None:
        return [], 0
    number_of = height_of(summary.terms.measure)
    keys: dict[Any, None] = {}
    if by == "block" and has_blocks(summary.spent):  # a launch has many, and few are drawn
        keys = dict.fromkeys(key for one in entries for key in one.d_mid.keys)
    top = sorted(keys, key=lambda key: number_of(summary.spent.of(key).loss), reverse=True)[:most]
    charges: dict[Any, list[tuple[Entry, Any]]] = {}
    for key, one, loss in _charges(entries, by, empty_total(summary.terms), set(top)):
        if has_blocks(loss):
            losses = [loss.of(block).loss for block in one.d_mid.keys]
            losses += [before for _, before in charges.get(key, ())[-1:]]
            loss = max(losses, key=number_of)
        charges.setdefault(key, []).append((one, loss))
    lines = []
    for key, found in charges.items():
        step = len(found) // _POINTS + 1
        drawn = found[:-1:step] + found[-1:]
        heights = [number_of(loss) for _, loss in drawn]
        lines.append(Line(NAMES[by](key), [one for one, _ in drawn], heights, len(found)))
    lines.sort(key=lambda line: line.heights[-1], reverse=True)
    return lines[:most], len(keys) or len(lines)


def _charges(
    entries: Sequence[Entry], by: str, start: measures.AccumulatorState[Any], blocks: set[Any]
) -> Iterator[tuple[Any, Entry, Any]]:
    """Yield what each charge belongs to, the charge, and the loss of that after it."""
    totals: dict[str, measures.AccumulatorState[Any]] = {}
    for one in entries:
        if by == "time":
            yield "spent", one, one.loss
        elif by == "limit":
            for depth, loss in enumerate(one.limit_losses, start=1):
                yield one.limit[:depth], one, loss
        elif by == "label":  # what its launches would cost without the others
            totals[one.label] = totals.get(one.label, start).after(one.d_mid, 1)
            yield one.label, one, totals[one.label].loss
        else:
            for key in blocks.intersection(one.d_mid.keys) if blocks else ():
                yield key, one, one.loss.of(key).loss


NAMES: dict[str, Callable[[Any], str]] = {  # of lines, by what they belong to
    "time": str,
    "limit": " > ".join,
    "label": lambda label: label or "no label",
    "block": lambda key: f"block {errors.shown(key)}",
}


# Privacy measures in words, for people who read a report or a picture of a ledger.

_WORDS = {
    measures.PURE: ("ε", "pure DP"),
    measures.APPROXIMATE: ("ε", "(ε, δ)-DP"),
    measures.ZCDP: ("ρ", "zero-concentrated DP"),
    measures.APPROXIMATE_ZCDP: ("ρ", "approximate zero-concentrated DP"),
    measures.RENYI: ("", "Rényi DP"),
    measures.FIXED: ("ε", "Rényi DP of one order"),
    measures.APPROXIMATE_FIXED: ("ε", "approximate Rényi DP of one order"),
    measures.TRUNCATED: ("ρ", "truncated concentrated DP"),
    measures.GAUSSIAN: ("μ", "Gaussian DP"),
    measures.TRADEOFF: ("", "f-DP"),
}


def in_words(terms: Terms) -> str:
    """Return the number that is shown of a privacy loss under some terms, and the measure."""
    known, loss = measures.by_tag(terms.measure), empty_total(terms).loss
    symbol, words = _WORDS.get("" if known is None else known.kind, ("", terms.measure))
    if has_blocks(loss):
        loss = loss.of(None).loss
    return f"{symbol or name(loss, under=known)}, {words}"


# The report of a budget for people: one HTML page that requests nothing from anywhere.
#
# Labels are text of analysts. All text that is not written here goes through :func:`_text`.

_ROWS = 50  # of a table
_LINES = 10  # of the picture: there are as many colors
_DAY = 86_400.0
_LAST = datetime.max.replace(tzinfo=timezone.utc, microsecond=0).timestamp()
_NONE = "–"
_Account = tuple[float, tuple[str, ...]]  # what part of its bound it has spent, and its cells


def report_of(audited: Audited, entries: Sequence[Entry], refused: Mapping[str, int]) -> str:
    """Return the page.

    :param entries: all charges
    :param refused: by name, how many requests were refused
    """
    summary, terms = audited.summary(), audited.terms
    sections, facts = [], {"created": f"{summary.created[:16].replace('T', ' ')} UTC"}
    if terms is not None:
        (budget,), limits, blocks = _accounts(audited, terms, entries)
        sections = [_tiles(budget, _text(in_words(terms))), _picture(summary, terms, entries)]
        sections += [_spent("Limits", limits), _spent("Blocks", blocks), _labels(summary, entries)]
        facts["measure"], facts["accumulator"] = in_words(terms), repr(terms.accumulator)
        facts["neighbours"] = f"{terms.metric}, d_in = {errors.shown(terms.d_in)}"
    facts["anchor"] = summary.anchor
    rows = [(_text(name), f"{n:,}") for name, n in Counter(refused).most_common(_ROWS)]
    pairs = "".join(f"<dt>{name}</dt><dd>{_text(text)}</dd>" for name, text in facts.items())
    sections += [_table("Refused requests", ("who", "requests"), rows, len(refused))]
    sections += [_charge_rows(entries), _section("About this ledger", f"<dl>{pairs}</dl>")]
    template = files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=_text(summary.dataset),
        subtitle=f"Read on {_moment(datetime.now(timezone.utc))} UTC; {len(entries):,} charges, "
        "which are consistent.",
        sections="\n".join(filter(None, sections)),
    )


def _account(
    name: str, terms: Terms, total: measures.AccumulatorState[Any], launches: int
) -> _Account:
    """Return what part of its bound an account has spent, and its cells."""
    bound, height = terms.d_out, height_of(terms.measure)
    left = None if bound is None else Within(bound).remaining(total)
    top = 0.0 if bound is None else height(bound)
    share = min(1.0, height(total.loss) / top) if top > 0.0 else float(bound is not None)
    bar = f'<div class="bar"><i style="width:{100 * share:.4g}%"></i></div>'
    losses = _loss(total.loss), _loss(bound), _loss(left)
    return share, (_text(name), bar, f"{launches:,}", *losses)


def _accounts(audited: Audited, terms: Terms, entries: Sequence[Entry]) -> list[list[_Account]]:
    """Return the budget, its limits and its blocks. Of several blocks, one that spent most."""
    newest, height = audited.newest, height_of(terms.measure)
    whole: Any = newest.accumulator
    keys: dict[tuple[str, ...], Counter[Any]] = defaultdict(Counter)
    for one in entries if has_blocks(whole) else ():
        for depth in range(len(one.limit) + 1):
            keys[one.limit[:depth]].update(one.d_mid.keys)

    def worst(path: tuple[str, ...], total: Any) -> Any:
        if not has_blocks(total):
            return total
        return max(map(total.of, keys[path] or (None,)), key=lambda one: height(one.loss))

    limits = [
        _account(" > ".join(one.path), one.terms, worst(one.path, one.accumulator), one.launches)
        for one in newest.limits.all()
    ]
    blocks = [_account(errors.shown(key), terms, whole.of(key), n) for key, n in keys[()].items()]
    return [[_account("the budget", terms, worst((), whole), newest.sequence)], limits, blocks]


def _tiles(budget: _Account, words: str) -> str:
    _, (_, bar, _, *losses) = budget
    named = zip(losses, ("spent", "cap: the dashed line", "remains"), strict=True)
    cells = "".join(f"<div><b>{loss}</b><span>{what}</span></div>" for loss, what in named)
    return _section("What remains", f'<p>{words}</p><div class="tiles">{cells}</div>{bar}')


def _spent(title: str, accounts: list[_Account]) -> str:
    """A table of accounts; those that have the least left come first."""
    accounts.sort(key=lambda one: one[0], reverse=True)
    columns = "name", "", "charges", "spent", "of", "remains"
    return _table(title, columns, [cells for _, cells in accounts[:_ROWS]], len(accounts))


def _labels(summary: Summary, entries: Sequence[Entry]) -> str:
    lines, number = spending(summary, entries, "label", _ROWS)
    rows = [
        (
            _text(one.name),
            f"{one.launches:,}",
            f"{one.heights[-1]:.6g}",
            _moment(one.entries[-1].time),
        )
        for one in lines
    ]
    return _table("Labels", ("label", "charges", "spent alone", "last charge"), rows, number)


def _charge_rows(entries: Sequence[Entry]) -> str:
    rows = []
    for one in reversed(entries[-_ROWS:]):
        told = " > ".join(one.limit) or _NONE, one.label or _NONE, one.mechanism
        price = _loss(getattr(one.d_mid, "d_mid", one.d_mid))  # of blocks, each
        rows.append((f"{one.sequence:,}", _moment(one.time), *map(_text, told), price))
    if not rows:
        return _section("Last charges", "<p>Nothing was charged yet.</p>")
    columns = "", "time (UTC)", "limit", "label", "mechanism", "price"
    return _table("Last charges", columns, rows, len(entries))


def _picture(summary: Summary, terms: Terms, entries: Sequence[Entry]) -> str:
    """The loss over whole days: that of the budget, and of its limits or blocks."""
    if not entries:
        return ""
    whole, _ = spending(summary, entries, "time")
    parts, _ = spending(summary, entries, "limit" if summary.limits else "block", _LINES)
    lines = [whole[0]._replace(name="the budget"), *parts]
    times = [one.time.timestamp() for one in entries]
    start = min(times) // _DAY * _DAY
    ends = start, min((max(times) // _DAY + 1) * _DAY, _LAST), max(times)
    bound = 0.0 if terms.d_out is None else height_of(terms.measure)(terms.d_out)
    highs = (high for line in lines for high in line.heights if isfinite(high))
    top = max(bound, *highs, 0.0) or 1.0
    paths = [_steps(line, ends, top, f"c{n}") for n, line in enumerate(lines)]
    paths.append(f'<path class="bound" d="M0 {1000 - 1000 * bound / top:.1f}H1000"/>')  # the cap
    names = "".join(
        f'<li><i style="background:var(--c{n})"></i>{_text(line.name)}</li>'
        for n, line in enumerate(lines)
    )
    dates = [datetime.fromtimestamp(end, timezone.utc).date() for end in ends[:2]]
    chart = (
        f'<div class="chart"><div class="heights"><span>{top:.3g}</span><span>0</span></div>'
        '<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img" '
        f'aria-label="privacy loss over time">{"".join(reversed(paths))}</svg>'
        f'<div class="days"><span>{dates[0]}</span><span>{dates[1]}</span></div></div>'
    )
    return _section("Over time", f'{chart}<ul class="legend">{names}</ul>')


def _steps(line: Line, ends: tuple[float, float, float], top: float, color: str) -> str:
    """A line of steps, from the start of the axis to the newest charge of all."""
    start, end, newest = ends
    at = [1000 * (one.time.timestamp() - start) / (end - start) for one in line.entries]
    highs = [max(0.0, 1000 - 1000 * high / top) for high in line.heights]
    path = "".join(f"H{x:.1f}V{y:.1f}" for x, y in zip(at, highs, strict=True))
    last = 1000 * (newest - start) / (end - start)
    return f'<path style="stroke:var(--{color})" d="M0 1000{path}H{last:.1f}"/>'


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], number: int) -> str:
    """A section with a table; nothing, if it has no rows."""
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    more = f"<p>{len(rows)} of {number:,}.</p>" if number > len(rows) else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return _section(title, f'{more}<div class="wide">{table}</div>')


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _text(text: str) -> str:
    """Return text that HTML shows as it is, on one line, whatever direction it is written in."""
    return f"<bdi>{escape(one_line(text, 120))}</bdi>"


def _loss(loss: errors.Loss | None) -> str:
    return _NONE if loss is None else escape(one_line(errors.rounded(loss), 60))


def _moment(time: datetime) -> str:
    return time.isoformat(sep=" ", timespec="minutes")[:16]
