"""Storage of the data, behind tokens that reveal nothing.

A handle holds a token. The converted data are in a table of this module, keyed by the token, until
the token is deleted. They cannot be reached from the token's attributes or referents. They cannot
be reached from the handle either, by OpenDP's records or by a copy.
"""

import logging
import os
from abc import abstractmethod
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from opendp.combinators import make_adaptive_composition
from opendp.extras.polars import OnceFrame

from .. import _opendp as _native
from .. import errors
from .._checks import Unrecorded
from .._opendp import dp
from ..accounting import Lifecycle, State
from ..data import Kind


class Sealed:
    """A token for converted data. Cannot be pickled, copied or printed into data.

    :ivar files: those that the data are scanned from: when the mechanism runs, or later
    :ivar given: whether the data are as somebody has passed them to a measurement of this package;
        otherwise they may be the output of a transformation, or a part of other data
    :ivar live: whether rows still arrive, so that the data are computed whenever they are needed
    """

    __slots__ = ("__weakref__", "files", "given", "live")

    def __init__(
        self,
        content: Any,
        files: tuple[str, ...] = (),
        *,
        given: bool = False,
        live: bool = False,
    ) -> None:
        self.files, self.given, self.live = files, given, live
        _CONTENTS[self] = content

    def __reduce__(self) -> Any:
        raise TypeError("sensitive data cannot be pickled or copied")

    def __repr__(self) -> str:
        return "Sealed(...)"


class SealedHandle:
    """A handle that can be neither pickled nor copied, and keeps no record of its calls."""

    @property
    def __opendp_dict__(self) -> dict[str, Any]:
        """Nothing: OpenDP would keep the arguments of its last call here, the data among them."""
        return Unrecorded()

    def __reduce__(self) -> Any:
        raise TypeError("a queryable holds sensitive data and cannot be pickled or copied")

    def _adopt_by(self, lifecycle: Lifecycle, lock: _native.Lock | None) -> None:
        """Close with ``lifecycle``, and take turns on ``lock`` if there is one."""
        raise NotImplementedError


class _Pending:
    """Data that are computed when they are first needed."""

    __slots__ = ("_compute", "_lock")

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute, self._lock = compute, _native.Lock()

    def settle(self, token: Sealed) -> Any:
        with self._lock:
            if _CONTENTS[token] is self:
                _CONTENTS[token] = self._compute()
            return _CONTENTS[token]


class _Live(_Pending):
    """Data to which rows are still added: computed whenever they are needed."""

    __slots__ = ()

    def settle(self, token: Sealed) -> Any:
        return self._compute()


_CONTENTS: WeakKeyDictionary[Sealed, Any] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    # both processes would hold the same noise, and each would charge for itself
    os.register_at_fork(after_in_child=_CONTENTS.clear)


def seal(pointer: Any, source: Sealed | None = None) -> Sealed:
    """Store converted data and return their token.

    :param source: what they were computed from, if that is still to be read from files
    """
    return Sealed(pointer, () if source is None else source.files)


def take_in(data: errors.Data, domain: dp.Domain, carrier_type: str, kind: Kind) -> Sealed:
    """Convert data that are a member of ``domain``, store them, and return their token, or raise.

    A column of pandas, Polars, NumPy or PyArrow is taken for a list, a Polars DataFrame for a
    LazyFrame.
    """
    data = kind.accepted(data, domain)
    return Sealed(_native.to_pointer(data, carrier_type), kind.sources(data), given=True)


def seal_transformed(source: Sealed, function: Callable[[Any], Any]) -> Sealed:
    """Store ``function`` of sealed data, which is computed when it is first needed.

    Whether a transformation fails can depend on the data. So it runs with the first mechanism that
    was charged.
    """
    if source.live:
        return seal_live(lambda: function(unseal(source)))
    return seal(_Pending(lambda: function(unseal(source))), source)


def seal_live(compute: Callable[[], Any]) -> Sealed:
    """Store data to which rows are still added; ``compute`` converts those that have arrived."""
    return Sealed(_Live(compute), live=True)


def seal_selected(
    source: Sealed, domain: dp.Domain, select: Callable[[], Any], failure: str
) -> Sealed:
    """Store what ``select`` returns of data in Python, converted when it is first needed.

    :param domain: of what is returned
    :param failure: the message if it fails, whatever the data are
    """
    carrier_type = domain.carrier_type

    def selected() -> Any:
        try:
            return _native.to_pointer(select(), carrier_type)
        except errors.TableError:  # the same, whatever the data are
            raise
        except BaseException as error:
            errors.pass_interrupt(error)
        # raised outside the handler: the original error and its traceback's frames may hold data
        raise errors.InvalidValueError(failure)

    return seal(_Pending(selected), source)


def check_process(token: Sealed) -> None:
    """Raise :class:`ForkedError` if this process was forked from the one that sealed the data."""
    if token not in _CONTENTS:
        raise errors.ForkedError


def unseal(token: Sealed) -> Any:
    """Return the converted data, to run a mechanism after its charge."""
    content = _CONTENTS.get(token)
    if content is None:
        raise errors.ForkedError
    return content.settle(token) if isinstance(content, _Pending) else content


def run(measurement: dp.Measurement, token: Sealed) -> Any:
    """Run a measurement on sealed data, after its charge.

    Rows that arrive later reach only what is proven for them; all else runs on the rows so far.
    """
    ours = vars(measurement).get("inside")
    if ours is not None:
        return ours.spawn(seal(unseal(token)) if token.live and not ours.live else token)
    return _native.invoke(measurement, unseal(token))


def in_python(token: Sealed) -> Any:
    """Return the data as values of Python, to cut them after a charge."""
    return _native.to_python(unseal(token))


# What can stand for a transformation where one is asked: a query of a context.


class AsTransformation:
    """A query that is a transformation so far."""

    @abstractmethod
    def as_transformation(self) -> dp.Transformation:
        """Return the transformation, or raise if it is a measurement already."""


# Turns, and launches in sequence.
#
# OpenDP's queryables may be used by one thread at a time. A queryable that was made inside
# another's call asks it for permission later. So a turn is a lock that queryables inherit if they
# are made while it is held. It is inherited in a context that ends with the turn.
#
# A child that excludes all others must not answer once anything else of its tree was launched or
# has answered, wherever its queryable is: in a dictionary, in a grandchild, put aside. Only the
# native sequential compositor of OpenDP reaches all of these. So its launch runs on such a
# compositor, as a zero-loss measurement over a trivial space. Accounts count the losses.

# the lock of the turn that is taken here
HELD: ContextVar[Any] = ContextVar("HELD", default=None)


def lock_for_turns() -> Any:
    """Return the inherited lock, or a new one."""
    return HELD.get() or _native.Lock()


def in_turn(lock: _native.Lock, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``, called while ``lock`` is held and inherited."""
    with lock:
        return copy_context().run(_holding, lock, function, arguments)


def launch_in_turn(lock: _native.Lock, launch: Callable[..., Any], query: Any) -> Any:
    """Return ``launch(query)``, in a turn. What interrupts the wait for it has charged nothing."""
    errors.uncharged(lock.__enter__)
    try:
        return copy_context().run(_holding, lock, launch, (query,))
    finally:
        lock.__exit__()


def _holding(lock: _native.Lock, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    HELD.set(lock)
    return function(*arguments)


def attempt(function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """Return what ``function(*arguments)`` returns, or what it raises.

    The caller raises another error instead, out of the handler, so that it has no context.
    """
    try:
        return function(*arguments), None
    except BaseException as error:
        return None, error


_TASK: ContextVar[Callable[[], Any]] = ContextVar("_TASK")


class Enclosure:
    """Run the launch of a child that excludes all others. Its native queryables can be closed.

    OpenDP's queryables are not thread-safe, and these query the compositor. So all calls of it, and
    queries of its queryables, take turns on ``lock``.

    :param lifecycle: of the child
    """

    __slots__ = ("_compositor", "_lifecycle", "_running", "lock")

    def __init__(self, lifecycle: Lifecycle) -> None:
        self.lock, self._lifecycle, self._running = lock_for_turns(), lifecycle, False
        self._compositor: Any = _make_compositor()(True)
        lifecycle.at_end = self.close

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(*arguments)``. What it raises is raised after the native call."""
        return in_turn(self.lock, self._in_turn, function, arguments)

    def _in_turn(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        self._running = True
        try:
            answer, error = self._visit(function, *arguments)
        finally:
            self._running = False
        if self._lifecycle.state is not State.OPEN or error is not None:
            self.close()
        if error is None:
            return answer
        try:
            raise error
        finally:
            del error  # its trace has this frame

    def _visit(
        self, function: Callable[..., Any], *arguments: Any
    ) -> tuple[Any, BaseException | None]:
        outcomes: list[tuple[Any, BaseException | None]] = []

        def task() -> Any:
            outcomes.append(attempt(function, *arguments))
            return outcomes[0][0]

        answer = copy_context().run(self._ask, task)
        return answer, outcomes.pop()[1]

    def _ask(self, task: Callable[[], Any]) -> errors.Answer:
        _TASK.set(task)
        return self._compositor(_make_visit())

    def close(self) -> None:
        """Close the native queryables that the launch has made; while it runs, at its end."""
        if not self._running:
            in_turn(self.lock, self._visit, tuple)


@cache  # a millisecond
def _make_compositor() -> dp.Measurement:
    return make_adaptive_composition(
        dp.atom_domain(T=bool),
        dp.discrete_distance(),
        dp.approximate(dp.zero_concentrated_divergence()),
        d_in=1,
        d_mids=[(0.0, 0.0)] * 4,  # a launch, and what closes its queryables
    )


@cache
def _make_visit() -> dp.Measurement:
    return _native.make_user_measurement(
        dp.atom_domain(T=bool),
        dp.discrete_distance(),
        dp.approximate(dp.zero_concentrated_divergence()),
        function=lambda _: _TASK.get()(),
        privacy_map=lambda _: (0.0, 0.0),
        TO="ExtrinsicObject",
    )


# Hiding errors of mechanisms from the analyst, because they may contain rows of the data.

LOGGER = logging.getLogger("opendp_concurrent.measurements")


def hide_errors(lifecycle: Lifecycle, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``. Below an opaque account, what it raises is hidden."""
    if lifecycle.opaque:
        return hidden(function, *arguments)
    return function(*arguments)


def hidden(
    function: Callable[..., Any], *arguments: Any, what: str = "a mechanism has failed"
) -> Any:
    """Return ``function(*arguments)``. What it raises is logged and replaced, whatever its class.

    An interrupt is raised without its text and its frames.

    :param what: has failed, for the log
    """
    answer, error = attempt(_native.call_native, function, *arguments)  # what callbacks kept, too
    if error is None:
        return answer
    interrupted = isinstance(error, KeyboardInterrupt)
    if not interrupted and type(error) is not errors.MechanismError:
        errors.log(LOGGER, f"{what}; the reason was hidden from the analyst", error)
    del error  # a traceback keeps this frame
    if interrupted:
        raise KeyboardInterrupt
    raise errors.MechanismError  # raised outside the handler, so it has no context


# Frames that a query on a LazyFrame releases, whose errors have no row of the data.
#
# OpenDP charges a frame when it is launched and reads the data when the frame is collected. Polars
# then reports rows in its errors: a CSV file with a word in a column of numbers shows the word.
#
# The plan behind a frame draws its noise whenever it runs. So only the collected rows are handed
# out.


class ReleasedFrame(SealedHandle, OnceFrame):
    """A LazyFrame that was paid for and can be collected once."""

    def __init__(self, frame: OnceFrame, lifecycle: Lifecycle, lock: _native.Lock) -> None:
        self._frame, self._lock, self._collected = seal(frame), lock, False
        self._lifecycle = lifecycle

    def _adopt_by(self, lifecycle: Lifecycle, lock: _native.Lock | None) -> None:
        self._lock = lock or self._lock
        self._lifecycle.adopt_by(lifecycle)

    def collect(self) -> errors.Answer:
        """Return the DataFrame. This can be done once.

        :raises CollectedError: if it was collected before
        :raises ForkedError: in a process that was forked after the launch
        :raises MechanismError: if the data could not be read. The launch stays charged; the logger
            ``opendp_concurrent.measurements`` logs the original error
        """
        check_process(self._frame)  # before a lock, which a thread may have held at a fork
        return in_turn(self._lock, self._once)

    def lazy(self) -> errors.Answer:
        """Return the collected rows as a LazyFrame. This can be done once, as ``collect``.

        The LazyFrame has the answer, not the plan that draws it: whenever you collect it, you get
        the same answer.
        """
        return self.collect().lazy()

    def _once(self) -> errors.Answer:
        if self._collected:
            raise errors.CollectedError
        self._lifecycle.enter()
        self._collected = True
        try:
            frame = hidden(
                unseal(self._frame).collect, what="a released frame could not be collected"
            )
        except errors.MechanismError as error:
            error.charged = True  # when the frame was launched
            raise
        vars(frame).pop("__opendp_dict__", None)  # OpenDP keeps the plan there
        return frame
