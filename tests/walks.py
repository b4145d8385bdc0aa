"""Rooms of the package that a walk goes through: ``python tests/walks.py``.

A walk is one call that an analyst makes, such as a launch, asked a second time. Each function of
the package that it calls is in a room. A walk enters some rooms, and changes its room whenever the
next function that is called is in another one. What every room uses, such as errors, is no room.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import opendp.prelude as dp

import opendp_concurrent as oc

Walk = Callable[[], Any]
PACKAGE = f"{Path(oc.__file__).parent}/"
EVERYWHERE = {"errors", "failures", "files", "interrupts", "shown"}
# what a walk may be, in rooms entered and room changes: lower these when it is shorter
LAWS = {
    "launch": (4, 17),
    "query to a child": (5, 21),
    "counter update": (5, 11),
    "launch on blocks": (5, 28),
    "limit on blocks with a ledger": (7, 58),
    "table query": (6, 38),
}


def rooms(walk: Walk) -> list[str]:
    """The rooms of a walk in order, each differing from the one before."""
    found: list[str] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE):
            room = path[len(PACKAGE) :].partition("/")[0].removesuffix(".py")
            if room not in EVERYWHERE:
                found.append(room)

    sys.setprofile(look)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return [room for room, _ in groupby(found)]


def measured(walk: Walk) -> tuple[int, int]:
    """How many rooms a walk enters, and how often it changes its room, after the first time.

    Of three times, since a finalizer may run during one.
    """
    walk()
    found = min((rooms(walk) for _ in range(3)), key=len)
    return len(set(found)), len(found) - 1


def _pure() -> tuple[Any, Any]:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    return space, oc.make_concurrent_odometer(*space, dp.max_divergence())


def _count(space: Any) -> Any:
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=8.0)


def _launch() -> Walk:
    space, odometer = _pure()
    root = oc.make_concurrent_filter(odometer, 1, 100.0)([1, 2, 3])
    count = _count(space)
    return lambda: root(count)


def _child() -> Walk:
    space, odometer = _pure()
    pair = oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [1.0] * 9)
    child = oc.make_concurrent_filter(odometer, 1, 100.0)([1, 2, 3])(pair)
    count = _count(space)
    return lambda: child(count)


def _update() -> Walk:
    space = oc.integer_stream(0, 1), oc.event_presence()
    handle = oc.m.make_counter(*space, dp.max_divergence(), scale=20.0, horizon=1000)([])
    return lambda: handle.update(1)


def _blocks(ledger: Any = None) -> tuple[Any, Any, Any]:
    space, odometer = _pure()
    tens = oc.c.by_key(lambda record: record // 10)
    made = oc.c.make_block_filter(odometer, 1, 100.0, blocks=tens, keys=range(3), ledger=ledger)
    return made([1, 11, 21]), _count(space), odometer


def _on_blocks() -> Walk:
    root, count, _ = _blocks()
    return lambda: root([1, 2], count)


def _limit_in_ledger() -> Walk:
    store = Path(tempfile.mkdtemp()) / "walks.ledger"
    root, count, odometer = _blocks(oc.ledger.create_ledger(store, dataset="walks"))
    limit = root(oc.c.make_limited(odometer, 1, 50.0, label="alice"))
    return lambda: limit([1, 2], count)


def _table() -> Walk:
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT range % 10 AS person, range % 3 AS k FROM range(30)"
    )
    people = oc.tables.scan(connection, "t", {"person": int, "k": int}, "person")
    odometer = oc.make_concurrent_odometer(*people.space, dp.max_divergence())
    root = oc.make_concurrent_filter(odometer, 1, 100.0)(people)
    count = (
        people.space
        >> oc.t.then_truncate(3)
        >> oc.t.then_table_counts(["k"], [0, 1, 2])
        >> dp.m.then_laplace(scale=3.0)
    )
    return lambda: root(count)


WALKS: dict[str, Callable[[], Walk]] = {
    "launch": _launch,
    "query to a child": _child,
    "counter update": _update,
    "launch on blocks": _on_blocks,
    "limit on blocks with a ledger": _limit_in_ledger,
    "table query": _table,
}


def main() -> None:
    dp.enable_features("contrib", "honest-but-curious")
    for name, make in WALKS.items():
        entered, changes = measured(make())
        print(f"{name}: {entered} rooms, {changes} changes, at most {LAWS[name]}")


if __name__ == "__main__":
    main()
