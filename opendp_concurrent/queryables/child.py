"""What a launch of a native interactive mechanism hands out: thread-safe, and closable.

OpenDP's queryables may be used by one thread at a time and cannot tell a wrong query from a right
one. A child serialises its own queries (and those of what it hands out); children side by side
run side by side.
"""

from __future__ import annotations

from typing import Any

from opendp.mod import Measurement, OdometerQueryable, Queryable

from .. import _native
from ..accounts.lifecycle import Lifecycle
from ..errors import InvalidTypeError
from .data import SealedHandle, seal, unseal
from .turn import Turn, lock_for_turns


def _ask(child: Child, evaluate: Any, query: Any) -> Any:
    queryable = unseal(child._queryable)  # before a lock, which a thread may have held at a fork
    with _native.typed_errors():
        child._lifecycle.check()
        with Turn(child._lock):
            child._lifecycle.check()
            with child._lifecycle.running():
                answer = evaluate(queryable, query)
    return adopt(answer, child._lifecycle, child._lock)


def _require_measurement(query: Any) -> None:
    if not isinstance(query, Measurement):
        raise InvalidTypeError(
            f"the query must be a measurement, found {type(query).__name__}; "
            "this child composes measurements"
        )


class Child(SealedHandle):
    """A native queryable, which is not there after a fork, its lock, and what may close it."""

    def __init__(self, queryable: Any, lifecycle: Lifecycle, lock: Any) -> None:
        self._queryable, self._lifecycle, self._lock = seal(queryable), lifecycle, lock


class ChildQueryable(Child, Queryable):
    """A native queryable launched as a child."""

    def __init__(self, queryable: Any, query_type: Any, lifecycle: Lifecycle, lock: Any) -> None:
        super().__init__(queryable, lifecycle, lock)
        self.query_type = query_type

    def __call__(self, query: Any) -> Any:
        """Ask the child; waits while another thread asks it."""
        if str(self.query_type) == "AnyMeasurement":
            _require_measurement(query)
        return _ask(self, _native.evaluate, query)

    def __repr__(self) -> str:
        return f"ChildQueryable(Q={self.query_type}, {self._lifecycle.state.value})"


class ChildOdometerQueryable(Child, OdometerQueryable):
    """A native odometer queryable (of a native filter) launched as a child."""

    def __call__(self, query: Any) -> Any:
        """Launch on the child; waits while another thread asks it."""
        _require_measurement(query)
        return _ask(self, _native.evaluate_odometer, query)

    def invoke(self, query: Any) -> Any:
        """Launch on the child; waits while another thread asks it."""
        return self(query)

    def privacy_loss(self, d_in: Any) -> Any:
        """Loss of the child's own launches, as OpenDP accounts for it."""
        queryable = unseal(self._queryable)
        with Turn(self._lock):
            return OdometerQueryable(queryable).privacy_loss(d_in)

    def __repr__(self) -> str:
        return f"ChildOdometerQueryable({self._lifecycle.state.value})"


def adopt(answer: Any, lifecycle: Lifecycle, lock: Any) -> Any:
    """Return ``answer``; a native queryable comes back as a child."""
    kind = type(answer)
    if kind is Queryable:
        return ChildQueryable(answer.value, answer.query_type, lifecycle, lock or lock_for_turns())
    if kind is OdometerQueryable:
        return ChildOdometerQueryable(answer.value, lifecycle, lock or lock_for_turns())
    return answer
