"""Children: thread-safe handles of native interactive mechanisms, which can be closed.

OpenDP's queryables may be used by one thread at a time, and do not check the type of a query. A
child serialises its own queries and those of the queryables that it returns. Different children run
in parallel.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import CellType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, Protocol, TypeVar

import numpy as np
from opendp.extras.polars import OnceFrame
from opendp.mod import Measurement, OdometerQueryable, Queryable

from .. import _opendp as _native
from .. import errors
from ..accounting import Event, Lifecycle, innermost_running
from . import data

PLAIN = frozenset({int, float, bool, str, bytes, complex, type(None)})
_OF_COMPOSITIONS = frozenset({OnceFrame, list})  # OpenDP's make_composition lists its answers


def _require_measurement(query: errors.Query) -> None:
    if not isinstance(query, Measurement) or not query:
        raise errors.InvalidTypeError(
            f"the query must be a measurement, found {type(query).__name__}; "
            "this child composes measurements"
        )
    _native.refuse(query)  # OpenDP reads its map there


class Child(data.SealedHandle):
    """A native queryable, its lock and its lifecycle. It cannot be used after a fork."""

    def __init__(self, queryable: Queryable, lifecycle: Lifecycle, lock: _native.Lock) -> None:
        self._queryable, self._lifecycle, self._lock = data.seal(queryable), lifecycle, lock

    def _ask(self, *asking: Any) -> errors.Answer:
        queryable = data.unseal(
            self._queryable
        )  # before a lock, which a thread may have held at a fork
        answer = _native.call_native(self._take_turn, queryable, *asking)
        return adopt(answer, self._lifecycle, self._lock)

    def _take_turn(self, *asking: Any) -> errors.Answer:
        self._lifecycle.check()
        return data.in_turn(self._lock, self._evaluate, *asking)

    def _evaluate(self, queryable: Queryable, evaluate: Any, query: errors.Query) -> errors.Answer:
        lifecycle = self._lifecycle
        lifecycle.enter()
        return data.hide_errors(lifecycle, lifecycle.run, evaluate, queryable, query)

    def _adopt_by(self, lifecycle: Lifecycle, lock: _native.Lock | None) -> None:
        self._lifecycle.adopt_by(lifecycle)
        self._lock = lock or self._lock


class ChildQueryable(Child, Queryable):
    """A native queryable launched as a child."""

    def __init__(
        self, queryable: Queryable, query_type: Any, lifecycle: Lifecycle, lock: _native.Lock
    ) -> None:
        super().__init__(queryable, lifecycle, lock)
        self.query_type = query_type

    def __call__(self, query: errors.Query) -> errors.Answer:
        """Query the child. Wait while another thread queries it."""
        if str(self.query_type) == "AnyMeasurement":
            _require_measurement(query)
        return self._ask(_native.evaluate, query)

    def __repr__(self) -> str:
        return f"ChildQueryable(Q={self.query_type}, {self._lifecycle.state.value})"


class ChildOdometerQueryable(Child, OdometerQueryable):
    """A native odometer queryable (of a native filter) launched as a child."""

    def __call__(self, query: errors.Query) -> errors.Answer:
        """Launch on the child. Wait while another thread queries it."""
        _require_measurement(query)
        return self._ask(_native.evaluate_odometer, query)

    def invoke(self, query: errors.Query) -> errors.Answer:
        """Launch on the child. Wait while another thread queries it."""
        return self(query)

    def privacy_loss(self, d_in: errors.Distance) -> Any:
        """Return the loss of the child's own launches, from OpenDP."""
        queryable = data.unseal(self._queryable)
        try:
            return data.in_turn(self._lock, OdometerQueryable(queryable).privacy_loss, d_in)
        except Exception as error:
            if isinstance(error, errors.ConcurrentError):
                raise
            raise errors.InvalidTypeError(
                f"d_in ({errors.shown(d_in)}) cannot be used by the native child: "
                f"{str(error).strip()}"
            ) from error

    def __repr__(self) -> str:
        return f"ChildOdometerQueryable({self._lifecycle.state.value})"


def adopt(answer: errors.Answer, lifecycle: Lifecycle, lock: _native.Lock | None) -> Any:
    """Return ``answer``. A native queryable is returned as a child.

    A handle that is made while a mechanism runs belongs to its launch. If the launch can be closed,
    or hides errors, then its answer is searched for others: those of OpenDP, which may be in a
    container, an object or a function, and those that a thread of the mechanism made.
    """
    kind = type(answer)
    if kind in PLAIN:
        return answer
    if kind is Queryable:
        return ChildQueryable(
            answer.value, answer.query_type, lifecycle, lock or data.lock_for_turns()
        )
    if kind is OdometerQueryable:
        return ChildOdometerQueryable(answer.value, lifecycle, lock or data.lock_for_turns())
    if kind is OnceFrame:
        return data.ReleasedFrame(answer, lifecycle, lock or data.lock_for_turns())
    if kind is list and not _OF_COMPOSITIONS.isdisjoint(map(type, answer)):
        return [adopt(one, lifecycle, lock) for one in answer]
    if lifecycle.matters:
        _adopt_all(answer, lifecycle, lock)
    return answer


def _adopt_all(answer: errors.Answer, lifecycle: Lifecycle, lock: _native.Lock | None) -> None:
    seen, left = {}, [answer]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, data.SealedHandle):
            one._adopt_by(lifecycle, lock)
        elif type(one) in (Queryable, OdometerQueryable):
            _become_child(one, lifecycle, lock)
        else:
            left += [part for part in _parts(one) if type(part) not in PLAIN]


def _parts(one: Any) -> list[Any]:
    """Return what a container, an object or a function has, where an answer may have a handle."""
    if isinstance(one, dict):
        return [*one, *one.values()]
    if isinstance(one, (list, tuple, set, frozenset)):
        return [*one]
    if isinstance(one, FunctionType):
        held = map(_content, one.__closure__ or ())
        return [*held, *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
    if isinstance(one, np.ndarray):
        return one.ravel().tolist() if one.dtype.hasobject else []
    if isinstance(one, MethodType):
        return [one.__self__]
    if isinstance(one, partial):
        return [one.func, *one.args, *one.keywords.values()]
    if isinstance(one, (type, ModuleType)):
        return []
    if isinstance(one, GeneratorType):
        return [] if one.gi_frame is None else [*one.gi_frame.f_locals.values()]
    slotted = [vars(base).get("__slots__", ()) for base in type(one).__mro__]
    names = [name for some in slotted for name in ([some] if isinstance(some, str) else some)]
    names = [one for one in names if one not in ("__dict__", "__weakref__")]  # JAX's raise
    names += [field.name for field in fields(one)] if is_dataclass(one) else []
    slots = [getattr(one, name, None) for name in names]
    return [*slots, *getattr(one, "__dict__", {}).values()]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # of a variable that was deleted
        return None


def _become_child(queryable: Queryable, lifecycle: Lifecycle, lock: _native.Lock | None) -> None:
    """Turn a native queryable into a child, in place."""
    child = adopt(queryable, lifecycle, lock)
    queryable.__dict__.clear()
    queryable.__class__ = type(child)
    queryable.__dict__.update(vars(child))


# Handles of this package's interactive mechanisms: queryables around a state machine.
#
# The machine holds data and secret noise, so it is sealed like data. Queries take turns. A closed
# parent closes the handle.


def forget_frames(error: BaseException) -> None:
    """Remove frames from an exception, its causes and contexts: frames hold data and noise."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            left += [one.__cause__, one.__context__]


def without_frames(
    function: Callable[..., errors.Answer], *arguments: errors.Query
) -> errors.Answer:
    """Return ``function(*arguments)``. The frames of what it raises are removed: they have data."""
    try:
        return function(*arguments)
    except BaseException as error:
        forget_frames(error)
        raise error from error.__cause__


def check_message(machine: Callable[[errors.Query], errors.Answer], message: errors.Query) -> None:
    """Let a machine refuse a message for reasons that are public, before it uses the data.

    Such an error is not hidden: a machine has a method ``check`` if it refuses messages.
    """
    check = getattr(type(machine), "check", None)
    if check is not None:
        check(machine, message)


class MachineQueryable(data.SealedHandle, Queryable):
    """A handle of an interactive mechanism.

    :param machine: answers a query; may change its own state
    :param description: what ``repr`` says
    :param interruptible: whether the machine can go on after an interrupt in a query, such as one
        that looks a handle up; else the next query closes it, because its state is unknown
    """

    query_type = "ExtrinsicObject"
    passes_on = False  # whether all it does is to pass messages on to another mechanism

    @property
    def takes_updates(self) -> bool:
        """Whether data may arrive by ``update`` and ``update_all`` of this handle."""
        return False

    def __init__(
        self,
        machine: Callable[[errors.Query], errors.Answer],
        description: str,
        *,
        interruptible: bool = False,
    ) -> None:
        self._machine, self._description = data.seal(machine), description
        self._lifecycle, self._running = Lifecycle(innermost_running()), False
        self._interruptible = interruptible
        native, inherited = _native.inside_native_call(), data.HELD.get()
        # boxed, because OpenDP sets an attribute on an answer, and some answers do not allow this
        self._transport = _native.python_queryable(lambda q: (machine(q),)) if native else None
        # native queryables ask it for permission later, so they all share one lock
        self._shared = native or inherited is not None
        self._lock: _native.Lock = data.lock_for_turns() if self._shared else _native.Lock()

    def __call__(self, query: errors.Query) -> errors.Answer:
        """Query the mechanism. Wait while another thread queries it."""
        data.check_process(self._machine)  # before a lock, which a thread may have held at a fork
        return without_frames(_native.call_native, self._take_turn, query)

    def _take_turn(self, query: errors.Query) -> errors.Answer:
        if self._shared:
            answer = data.in_turn(self._lock, self._enter, query)
        else:
            with self._lock:
                answer = self._enter(query)
        return adopt(answer, self._lifecycle, self._lock if self._shared else None)

    def _enter(self, query: errors.Query) -> errors.Answer:
        self._lifecycle.enter()
        if self._running:  # the machine queries itself, perhaps indirectly
            raise errors.ReentrantLaunchError
        self._running = True
        try:
            lifecycle = self._lifecycle
            # a handle that passes messages on has no errors of the data: what is inside hides them
            opaque = lifecycle.opaque and not self.passes_on
            if opaque:
                lifecycle.run(check_message, data.unseal(self._machine), query)
                return data.hidden(lifecycle.run, self._answer, query)
            return lifecycle.run(self._answer, query)
        except Exception:
            raise
        except BaseException:  # let in while a user's function ran, or raised by it
            if not self._interruptible:
                self._lifecycle.happen(Event.INTERRUPTED)
            raise
        finally:
            self._running = False

    def _adopt_by(self, lifecycle: Lifecycle, lock: _native.Lock | None) -> None:
        self._lifecycle.adopt_by(lifecycle)
        if lock is not None and not self._shared:
            self._lock, self._shared = lock, True

    def _answer(self, query: errors.Query) -> errors.Answer:
        machine = data.unseal(self._machine)
        if self._transport is None:
            return machine(query)
        (answer,) = _native.evaluate(self._transport, query)
        return answer

    def __repr__(self) -> str:
        return f"{self._description}({self._lifecycle.state.value})"


class WrappedOdometerQueryable(MachineQueryable, OdometerQueryable):
    """A handle of an odometer behind a machine, such as a postprocessor. It tells the true loss.

    :param odometer: the handle that the machine launches on
    """

    passes_on = True  # what it launches on hides errors

    def __init__(
        self,
        machine: Callable[[errors.Query], errors.Answer],
        description: str,
        odometer: OdometerQueryable,
    ) -> None:
        super().__init__(machine, description)
        self._odometer = data.seal(odometer)

    def invoke(self, query: errors.Query) -> errors.Answer:
        """Send a message; the same as calling the handle."""
        return self(query)

    def privacy_loss(self, d_in: errors.Distance) -> Any:
        """Return the privacy loss of the launches so far, whatever was answered; changes nothing.

        :param d_in: distance between neighbouring inputs, in units of the odometer's input metric
        """
        return data.unseal(self._odometer).privacy_loss(d_in)


# Named queries: methods of a handle that send a fixed message.
#
# A method sends its message as ``handle(message)`` does, so it is the same query: it takes its
# turn, counts towards a limit on messages, and is refused in the same cases. A handle has the
# methods of the queries that its mechanism answers. A wrapper that passes messages on unchanged has
# the methods too. A wrapper with another protocol, such as a postprocessor, has none. A native
# queryable, from ``dp.new_queryable``, has no methods: send it the message.

SYNTHETIC = "synthetic"  # the message that requests the histogram from which answers are computed
Handle = TypeVar("Handle", bound=MachineQueryable)


class _Asked(Protocol):
    """A handle, which the classes below are mixed into."""

    def __call__(self, query: errors.Query) -> errors.Answer: ...


class Readable:
    """A handle that can be read: of a counter, an alarm, or a release."""

    def read(self: _Asked) -> Any:
        """Return the answer to ``handle(None)``: the mechanism's current output."""
        return self(None)


class WithSynthetic:
    """A handle of a mechanism that answers from a synthetic histogram."""

    def synthetic(self: _Asked) -> Any:
        """Return the answer to ``handle("synthetic")``: the synthetic histogram, at no charge."""
        return self(SYNTHETIC)


class WithParts:
    """A handle of several mechanisms, one for each key: parts of the data, or analysts."""

    __iter__ = None  # the handle does not list its keys

    def __getitem__(self: _Asked, key: errors.Key) -> Any:
        """Return the answer to ``handle(key)``: the handle, or the release, of one key."""
        return self(key)


KINDS: tuple[type[Any], ...] = (Readable, WithSynthetic, WithParts)
Queries = frozenset[type[Any]]
NONE: Queries = frozenset()
READ: Queries = frozenset({Readable})
SYNTHESISE: Queries = frozenset({WithSynthetic})
PARTS: Queries = frozenset({WithParts})


def answering(kind: type[Handle], queries: Queries) -> type[Handle]:
    """Return the class of handle ``kind``, with the methods of these queries added."""
    unchecked: Any = kind
    made: type[Handle] = _mixed(unchecked, queries)
    return made


@cache
def _mixed(kind: type[Any], queries: Queries) -> type[Any]:
    added = tuple(one for one in KINDS if one in queries)
    if not added:
        return kind
    return type(
        kind.__name__, (*added, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__}
    )


def queries_of(answer: errors.Answer) -> Queries:
    """Return the named queries of an answer; none if it is not a handle of this package."""
    return frozenset(one for one in KINDS if isinstance(answer, one))
