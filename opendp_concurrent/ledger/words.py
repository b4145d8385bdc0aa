"""Privacy measures in words, for people who read a report or a picture of a ledger."""

from __future__ import annotations

from ..accounts.store import Terms
from ..measures import by_tag, kinds
from ..measures.heights import name
from .records.measures import empty_total
from .spending import has_blocks

_WORDS = {
    kinds.PURE: ("ε", "pure DP"),
    kinds.APPROXIMATE: ("ε", "(ε, δ)-DP"),
    kinds.ZCDP: ("ρ", "zero-concentrated DP"),
    kinds.APPROXIMATE_ZCDP: ("ρ", "approximate zero-concentrated DP"),
    kinds.RENYI: ("", "Rényi DP"),
    kinds.FIXED: ("ε", "Rényi DP of one order"),
    kinds.TRUNCATED: ("ρ", "truncated concentrated DP"),
    kinds.GAUSSIAN: ("μ", "Gaussian DP"),
    kinds.TRADEOFF: ("", "f-DP"),
}


def in_words(terms: Terms) -> str:
    """Return the number that is shown of a privacy loss under some terms, and the measure."""
    known, loss = by_tag(terms.measure), empty_total(terms).loss
    symbol, words = _WORDS.get("" if known is None else known.kind, ("", terms.measure))
    if has_blocks(loss):
        loss = loss.of(None).loss
    return f"{symbol or name(loss, under=known)}, {words}"


def one_line(text: str, most: int) -> str:
    """Return at most so many characters of a text on one line, without control characters."""
    line = "".join(one if one.isprintable() else " " for one in text)
    return line if len(line) <= most else f"{line[: most - 3]}..."
