"""What records: innermost mechanisms that know what reached them, and machines that look on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import opendp.prelude as dp

import opendp_concurrent as oc

CANARY = 739391  # a value in the data, to be found nowhere else
PONG = 17  # what a probe answers, whatever the data


@dataclass
class Seen:
    """What happened in one case, by who saw it.

    :ivar probes: innermost continual mechanisms, in the order in which they were started
    :ivar ran: the loss of each run of an innermost measurement, as it was when it ran
    :ivar spied: what machines on the analyst's side were shown
    :ivar refused: losses of a combinator before and after it refused a child
    :ivar launchers: handles of combinators on the way, and how to launch there
    """

    probes: list[Probe] = field(default_factory=list)
    ran: list[Any] = field(default_factory=list)
    spied: list[str] = field(default_factory=list)
    refused: list[tuple[Any, Any]] = field(default_factory=list)
    launchers: list[tuple[Any, Callable[[Any], Any]]] = field(default_factory=list)

    @property
    def arrived(self) -> list[Any]:
        """The items of the innermost mechanism; all of them, by mechanism, if several differ.

        One that got nothing may have been started to look at it.
        """
        items = [one.items for one in self.probes if one.items]
        return items[0] if items and all(one == items[0] for one in items) else items


class Probe:
    """A continual mechanism that keeps all that it gets. ``"sum"`` is its exact sum."""

    def __init__(self, seen: Seen) -> None:
        self.items: list[Any] = []
        self.asked: list[Any] = []
        seen.probes.append(self)

    def update(self, item: Any) -> None:
        self.items.append(item)

    def update_all(self, items: Any) -> None:
        self.items += [None if one is None else int(one) for one in items]

    def ask(self, query: Any) -> Any:
        self.asked.append(query)
        return sum(one or 0 for one in self.items) if query == "sum" else PONG

    def to_record(self) -> Any:
        return self.items

    def restore(self, record: Any) -> None:
        self.items = list(record)


def probe_on(
    space: Any, measure: Any, loss: Callable[[int], Any], seen: Seen, **options: Any
) -> Any:
    """A continual measurement whose mechanism is a probe."""
    return oc.m.make_continual(
        *space, measure, lambda: Probe(seen), lambda d_in: loss(int(d_in)), **options
    )


# --- machines on the analyst's side ----------------------------------------------------------


def looking_on(seen: Seen) -> Callable[..., Any]:
    """A postprocessor that hands messages on, and keeps them."""

    def postprocessor(state: Any, tag: Any, message: Any) -> Any:
        seen.spied.append(f"{tag} {message!r}")
        return state, tag, message

    return postprocessor


def remembering(seen: Seen) -> Callable[..., Any]:
    """A postprocessor that answers an equal message as it did before, without asking."""

    def postprocessor(state: Any, tag: Any, message: Any) -> Any:
        known, last = state
        seen.spied.append(f"{tag} {message!r}")
        if tag is oc.c.ANSWER:
            return ({**known, last: message}, None), oc.c.ANSWER, message
        text = repr(message)
        if text in known:
            return (known, None), oc.c.ANSWER, known[text]
        return (known, text), oc.c.QUERY, message

    return postprocessor


def counting(seen: Seen) -> Callable[..., Any]:
    """A postprocessor that knows how many messages there were."""

    def postprocessor(count: int, tag: Any, message: Any) -> Any:
        seen.spied.append(f"{count} {tag} {type(message).__name__}")
        return count + 1, tag, message

    return postprocessor


# --- innermost measurements ------------------------------------------------------------------


def release_on(space: Any, measure: Any, loss: Callable[[int], Any], seen: Seen) -> Any:
    """A noninteractive measurement that answers the number of rows, without noise."""

    def function(rows: Any) -> int:
        seen.ran.append(loss)
        return len(rows)

    return dp.m.make_user_measurement(*space, measure, function, loss, TO="i32")


def native_queryable(answer: Callable[[Any], Any]) -> Any:
    """One of OpenDP's own queryables, around a function."""
    return dp.new_queryable(answer, Q="ExtrinsicObject", A="ExtrinsicObject")
