"""Running launches one after the other, so that OpenDP closes what came before.

Under a measure that is not known to compose concurrently, an older child must not answer once a
newer launch has begun, wherever its queryable hides: in a Polars frame, in a dictionary, in a
grandchild. Only OpenDP's native sequential compositor reaches all of those. So each launch runs as
a zero-loss measurement on one over a trivial space; the losses themselves are accounted elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendp.combinators import make_adaptive_composition
from opendp.domains import atom_domain
from opendp.measurements import make_user_measurement
from opendp.measures import approximate, zero_concentrated_divergence
from opendp.metrics import discrete_distance
from opendp.mod import Measurement

from .turn import Turn, lock_for_turns

_SLOTS = 64  # launches per native compositor; one more is kept to close the last child


class SequentialRunner:
    """Runs tasks; queryables that a task made natively are closed by the next task.

    OpenDP's queryables are not thread-safe and older children ask the compositor, so everything
    that touches it, queries of the children too, takes turns on ``lock``.
    """

    __slots__ = ("_compositor", "_left", "_task", "_visit", "lock")

    def __init__(self) -> None:
        self.lock = lock_for_turns()
        self._task: list[Callable[[], Any]] = []
        self._visit = _make_visit(self._task)
        self._compositor: Any = None
        self._left = 0
        self._renew()

    def _renew(self) -> None:
        if self._compositor is not None:
            self._run(lambda: None)
        self._compositor = _make_compositor()(True)
        self._left = _SLOTS

    def _run(self, task: Callable[[], Any]) -> Any:
        failure: list[Exception] = []

        def attempt() -> Any:
            try:
                return task()
            except Exception as error:
                failure.append(error)  # raised below: a launch that raises closes no older child
                return None

        self._task.append(attempt)
        try:
            answer = self._compositor(self._visit)
        finally:
            self._task.pop()
        if failure:
            raise failure[0]
        return answer

    def run(self, task: Callable[[], Any]) -> Any:
        """Close what earlier tasks made, run ``task`` and return what it returns."""
        with Turn(self.lock):
            if self._left == 0:
                self._renew()
            self._left -= 1
            return self._run(task)


def _make_compositor() -> Measurement:
    return make_adaptive_composition(
        atom_domain(T=bool),
        discrete_distance(),
        approximate(zero_concentrated_divergence()),
        d_in=1,
        d_mids=[(0.0, 0.0)] * (_SLOTS + 1),
    )


def _make_visit(task: list[Callable[[], Any]]) -> Measurement:
    return make_user_measurement(
        atom_domain(T=bool),
        discrete_distance(),
        approximate(zero_concentrated_divergence()),
        function=lambda _: task[-1](),
        privacy_map=lambda _: (0.0, 0.0),
        TO="ExtrinsicObject",
    )
