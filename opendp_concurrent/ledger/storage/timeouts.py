"""PostgreSQL connections with a time limit on each answer, whatever the server does.

The server's own timeouts (of statements and locks) have no effect if the server is stopped, or if
the network loses messages. So the client has a time limit as well. A connection that exceeds it is
closed, because the state of its transaction is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any


def connect_within(limit: float) -> Callable[..., Any]:
    """Return a variant of ``psycopg.connect`` whose connections wait at most ``limit`` seconds."""
    import psycopg

    class Limited(psycopg.Connection[Any]):
        def wait(self, gen: Any, *options: Any, **more: Any) -> Any:
            limited = _until(monotonic() + limit, gen, self._give_up)
            return super().wait(limited, *options, **more)

        def _give_up(self) -> Exception:
            self.pgconn.finish()
            return NoAnswer(f"the server has not answered for {limit:g} s")

    class NoAnswer(psycopg.OperationalError):
        stalled = True  # do not try another connection: it would wait as long again

    return Limited.connect


def _until(
    deadline: float, waiting: Any, give_up: Callable[[], Exception]
) -> Generator[Any, Any, Any]:
    """Run the generator ``waiting`` of psycopg, which yields events and is sent the ready ones."""
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            if monotonic() >= deadline:
                raise give_up()
            if ready:  # otherwise psycopg's interval ended without an event
                wanted = waiting.send(ready)
    except StopIteration as done:
        return done.value
