"""PostgreSQL connections that wait for an answer for a limited time, whatever the server does.

The limits that a server keeps (of statements and of locks) do not hold if it is stopped, or if the
network loses what it sends. So a connection also counts for itself; one that waited in vain is
closed, as nobody knows what it is in the middle of.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any


def patient(limit: float) -> Callable[..., Any]:
    """Return what connects as ``psycopg.connect`` does, and waits at most ``limit`` seconds."""
    import psycopg

    class Patient(psycopg.Connection[Any]):
        def wait(self, gen: Any, *options: Any, **more: Any) -> Any:
            limited = _until(monotonic() + limit, gen, self._give_up)
            return super().wait(limited, *options, **more)

        def _give_up(self) -> Exception:
            self.pgconn.finish()
            return NoAnswer(f"the server has not answered for {limit:g} s")

    class NoAnswer(psycopg.OperationalError):
        stalled = True  # to try another connection would take as long again

    return Patient.connect


def _until(
    deadline: float, waiting: Any, give_up: Callable[[], Exception]
) -> Generator[Any, Any, Any]:
    """Run ``waiting``, a generator that yields what it waits for and is sent what is ready."""
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            if monotonic() >= deadline:
                raise give_up()
            if ready:  # else nothing was, for a while
                wanted = waiting.send(ready)
    except StopIteration as done:
        return done.value
