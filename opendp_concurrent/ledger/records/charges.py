"""Read what is written of a charge. Charges below limits are many, and few of their parts differ.

Such a record is cut where its keys stand. The parts that many records share are read once. Each
part must be what ``encoding`` writes for its value; then the whole record is, too, wherever it was
cut. A record that cannot be cut so is read as any other value.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from .encoding import canonical, decode
from .limited import LimitedCharge, Opened
from .readable import UNREADABLE, is_text

_FIRST, _SECOND, _ABOVE, _LAST = '{"limited":{"d_mid":', ',"d_mids":', '{"limit":{"above":', "}}]}}"

_PLAIN = re.compile(r'"[^"\\]*"').fullmatch


def decode_charge(text: str) -> Any:
    """Return :func:`.decode` of the record of a charge."""
    if text.startswith(_FIRST):
        try:
            return _limited(text)
        except UNREADABLE:
            pass  # the general reader says what is wrong
    return decode(text)


def _limited(text: str) -> LimitedCharge:
    losses, _, rest = text.partition(',"limit":')
    limit, _, rest = rest.partition(',"opened":[')
    opened: tuple[Opened, ...] = ()
    if rest != "]}}":
        above, _, rest = rest.partition(',"label":')
        label, _, terms = rest.partition(',"terms":')
        opened = (Opened(_above(above), _text(label), _terms(terms)),)
    d_mid, d_mids = _losses(losses)
    return LimitedCharge(d_mid, _number(limit), d_mids, opened)


@lru_cache(maxsize=256)
def _losses(written: str) -> tuple[Any, Any]:
    d_mid, d_mids = written[len(_FIRST) :].split(_SECOND)
    return decode(d_mid), decode(d_mids)


@lru_cache(maxsize=256)
def _above(written: str) -> int:
    if not written.startswith(_ABOVE):
        raise ValueError
    return _number(written[len(_ABOVE) :])


def _number(written: str) -> int:
    number = int(written)
    if str(number) != written:
        raise ValueError
    return number


def _text(written: str) -> str:
    if written.isascii() and written.isprintable() and _PLAIN(written):
        return written[1:-1]  # nothing is escaped, so it is text
    text = json.loads(written)
    if type(text) is not str or not is_text(text) or canonical(text) != written:
        raise ValueError
    return text


@lru_cache(maxsize=256)
def _terms(written: str) -> str:
    if not written.endswith(_LAST):
        raise ValueError
    return _text(written[: -len(_LAST)])
