"""Which datasets are streams, what one stream may feed, and how many messages a session has.

This is all that a mechanism on static data knows of streams. What passes updates on is in
``stream.py``.
"""

from __future__ import annotations

from opendp.measures import max_divergence
from opendp.mod import Domain, Measure

from ..arguments.checks import at_most
from ..native import opendp as _native

NOT_CONTINUAL = (
    "must be a continual mechanism: on a stream, what is not one would run once, on the empty "
    "stream, before any item arrives; use make_counter, make_alarm or make_continual"
)
MESSAGES = at_most(2**63 - 1, "no session has more")


class StreamItems:
    """What the items of a stream are: the descriptor of its domain."""


def is_stream(domain: Domain) -> bool:
    """Whether the datasets of a domain are streams."""
    return isinstance(_native.descriptor(domain), StreamItems)


def same_domain(one: Domain, other: Domain) -> bool:
    """Whether two domains are equal. OpenDP compares names; a stream is what its items are."""
    items, others = _native.descriptor(one), _native.descriptor(other)
    if isinstance(items, StreamItems) or isinstance(others, StreamItems):
        return bool(one == other and items == others)
    return bool(one == other)


def feeds_many(measure: Measure) -> bool:
    """Whether one stream may feed several mechanisms without a bound on messages: pure DP only."""
    return bool(measure == max_divergence())
