"""A session and its handle: one invocation's account and sealed data, and the steps of a launch.

A handle sends a query to its session. The steps of a launch are: check, price, charge, run, return
(:meth:`Session.launch`). They never change order. At top level a handle calls its session directly.
A handle that is made within a native call uses a native queryable, so that the wrappers of OpenDP's
own compositors apply to it.

A native privacy map never changes, so its values are remembered. A map that calls Python may return
another value each time. So it is read again at every launch, and the value that was read is
charged. If the loss of a launch is read at another d_in later, the map is read there then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

from opendp.mod import Domain, Measurement, Metric, Odometer, OpenDPException

from .. import _checks as checks
from .. import _opendp as _native
from .. import accounting, errors
from ..data import check_files
from ..measures import Composability, CompositionMeasure
from . import data, mechanism
from .child import PLAIN, MachineQueryable, adopt
from .stream import NOT_CONTINUAL, counts_messages, is_stream, same_domain

if TYPE_CHECKING:
    from typing_extensions import Self

CONCURRENT, UNIFORM = Composability.CONCURRENT, Composability.UNIFORM
# what the map of a measurement or of a transformation can raise
MAP_FAILED = OpenDPException, errors.ConcurrentError, TypeError, ValueError, ArithmeticError
# a message that is no launch
_NO_LAUNCH = errors.InvalidTypeError, errors.InvalidValueError, errors.PrivacyMapError


class Handle(data.SealedHandle):
    """A handle that launches queries.

    :param launch: launches a query on the session
    """

    def __init__(
        self,
        session: Session,
        launch: Callable[[errors.Query], errors.Answer],
        description: str = "",
    ) -> None:
        self._session, self._launch, self._description = session, launch, description
        self._transport = _native.python_queryable(launch) if session.native else None

    def __call__(self, query: errors.Query) -> errors.Answer:
        """Launch a measurement, interactive or not: charge it, then return its answer or a child.

        :param query: a measurement on the same domain, metric and measure; or an odometer of this
            package, whose launches are then charged here as well
        :raises BudgetExceededError: a bound refused; nothing was charged. The error has the account
            that refused, and what was spent, asked and remains
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used
        """
        session = self._session
        data.check_process(session.token)  # before a lock, which a thread may have held at a fork
        try:
            if session.lock is None:
                return _native.call_native(self._launch, query)
            # launches run in the order in which they are charged
            launch = self._launch if self._transport is None else self._by_transport
            return _native.call_native(data.launch_in_turn, session.lock, launch, query)
        except _NO_LAUNCH as error:
            if error.charged is False:
                session.account.refused(error)
            raise

    def _by_transport(self, query: errors.Query) -> errors.Answer:
        lifecycle = self._session.account.lifecycle
        # OpenDP's queryable cannot be queried in a query
        errors.uncharged(lifecycle.check_not_running)
        lifecycle.check()
        answer = _native.evaluate(self._transport, query)
        _native.tell_launched(not isinstance(query, Odometer))
        return answer

    def _adopt_by(self, lifecycle: accounting.Lifecycle, lock: _native.Lock | None) -> None:
        self._session.account.lifecycle.adopt_by(lifecycle)
        self._session.lock = self._session.lock or lock

    def invoke(self, query: errors.Query) -> errors.Answer:
        """Launch; the same as calling the handle."""
        return self(query)

    def close(self) -> None:
        """Close the handle, and what was launched on it, for good; :class:`.EndedError` from then.

        What was spent stays spent, and can still be read. A ``with`` block does the same at its
        end. A limit that is closed stays closed, whoever opens it again in this process.
        """
        self._session.account.lifecycle.end(
            "close() was called, or its with block has ended; make another one from the data"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _launches(self) -> str:
        launches = self._session.account.launches
        return f"{launches} launch" if launches == 1 else f"{launches} launches"


class Session:
    """The state behind a handle of an odometer, filter or compositor.

    A measurement is identified by its id. Its price is remembered from its first charge on, and
    holds it, so that no other object can have the same id.

    :param account: decides on launches and records their charges
    :param space: domain and metric of the queries
    :param metric: metric that the account's d_in is a distance of
    :param token: the sealed data, as a member of the queries' domain
    :param postprocessors: functions that are applied to every answer
    :param path: labels of the limits from the outermost one to this one
    :ivar shared: what the shared releases that were opened here have in common
    :ivar native: whether it was made within a native call
    :ivar lock: launches take turns on it; None if they need not
    """

    _asked = "the query"  # what messages call it
    _static = ""  # why what takes updates is refused, once it has run; empty if it is not

    def __init__(
        self,
        account: accounting.Account,
        space: tuple[Domain, Metric],
        metric: Metric,
        measure: CompositionMeasure[Any],
        token: data.Sealed,
        postprocessors: tuple[Callable[[Any], Any], ...] = (),
        path: tuple[str, ...] = (),
    ) -> None:
        self.account, self.measure = account, measure
        self.token = token
        self._space, self._metric = space, metric
        self._postprocessors = postprocessors
        self._prices: dict[int, MeasurementPrice] = {}
        self._children = count(1)
        self.path = path
        self.shared: dict[str, Any] = {}
        self._limits: dict[str, tuple[mechanism.ConcurrentOdometer, Any]] = {}
        self.native = _native.inside_native_call()
        # there, launches take turns
        self.lock = data.lock_for_turns() if self.native else data.HELD.get()

    def launch(
        self,
        query: errors.Query,
        charge: Callable[[MeasurementPrice], accounting.Lifecycle] | None = None,
        token: data.Sealed | None = None,
    ) -> errors.Answer:
        """Launch a measurement, or open a child odometer, which is not charged yet.

        :param charge: charges the launch and returns the lifecycle of the child, if that is not
            the account's own launch
        :param token: a part of the data, if it is not all of them
        """
        if isinstance(query, Odometer):
            _native.tell_launched(False)
            return errors.uncharged(self._open, query)
        charged: bool | None = False  # None while it is being charged
        try:
            price = self.price(query)
            if token is None:
                token = self.token
            if token.files:
                check_files(token.files)
            charged = None
            permit = (charge or self.account.launch)(price)
            charged = True
            if permit.parents or (permit.turn and permit.turn.ended):
                permit.sweep()
            if self._prices.get(id(query)) is not price:
                self._prices[id(query)] = price.settled()
            running: tuple[Any, ...] = data.run, query, token
            lock = self.lock
            if permit.excludes:
                enclosure = data.Enclosure(permit)
                running, lock = (enclosure.run, *running), enclosure.lock
            if isinstance(query, mechanism.ConcurrentMeasurement):
                running = self._numbered, permit, *running
            answer = data.hidden(permit.run, *running) if permit.opaque else permit.run(*running)
            if type(answer) not in PLAIN:  # it may be a queryable, or contain one
                answer = data.hide_errors(permit, adopt, answer, permit, lock)
            if self._postprocessors or self._static:
                answer = self._postprocess(answer)
            return answer
        except BaseException as error:
            if charged is None:  # what reads a price, or refuses, has told it
                charged = errors.charged(error)
            errors.tell_charged(error, charged)
            raise
        finally:
            _native.tell_launched(charged)

    def _numbered(
        self, parent: accounting.Lifecycle, function: Callable[..., Any], *arguments: Any
    ) -> Any:
        """Give a number to accounts that ``function`` opens. A refusal shows it."""
        with accounting.as_child(parent.named, next(self._children)):
            return function(*arguments)

    def _check_odometer(self, odometer: Odometer) -> None:
        if not isinstance(odometer, mechanism.ConcurrentOdometer) or not hasattr(odometer, "spawn"):
            raise errors.InvalidTypeError(
                f"{self._asked} is a native odometer, or null, which says what a launch costs only "
                "after it has run, too late to charge it; pass one made by make_concurrent_odometer"
            )
        check_space(self._space, self.measure, odometer)

    def price(self, query: errors.Query, name: str = "") -> MeasurementPrice:
        """Return the price of a measurement, or raise if it does not belong here."""
        known = self._prices.get(id(query))
        if known is not None and known.measurement is query:
            return known if known.fixed else known.again()
        name = name or self._asked
        if isinstance(query, _native.PARTIAL_CONSTRUCTOR):
            raise errors.InvalidTypeError(_native.unchained(name))
        if not isinstance(query, Measurement) or not query:  # or a null pointer
            raise errors.InvalidTypeError(
                f"{name} must be a measurement, found {type(query).__name__}; "
                "pass a pipeline that ends with noise, or query.resolve() of a context's query"
            )
        price = MeasurementPrice(query, self.measure)
        check_space(self._space, self.measure, query)
        if is_stream(self._space[0]):
            if not mechanism.takes_stream(query):
                raise errors.InvalidTypeError(f"{name} {NOT_CONTINUAL}")
            price.unbounded = not mechanism.is_bounded(query) and not counts_messages(self.token)
        return price

    def _open(self, odometer: Odometer) -> Any:
        self._check_odometer(odometer)
        self.account.lifecycle.check_not_running()
        self.account.lifecycle.check()
        handle = self._numbered(self.account.lifecycle, odometer.spawn, odometer, self.token, self)
        return self._postprocess(handle)

    def open_once(
        self, odometer: mechanism.ConcurrentOdometer, make: Callable[[accounting.Limit], Any]
    ) -> Any:
        """Return the handle of a limit: the one that it was first opened with, or a new one.

        A label names one limit, which several threads may open at once.

        :raises LimitMismatchError: if it was opened with other terms
        :raises InvalidValueError: if it was opened with another transformation or postprocessor
        """
        limit = odometer.limit
        assert limit is not None
        known = self._limits.get(limit.label)
        if known is None:  # if another thread stores one first, this one was never used
            known = self._limits.setdefault(limit.label, (odometer, make(limit)))
        before, handle = known
        if before is odometer:
            return handle
        assert before.limit is not None
        accounting.require_same_terms((*self.path, limit.label), before.limit.terms, limit.terms)
        for name in ("transformation", "postprocessors", "opaque"):
            if getattr(before, name) != getattr(odometer, name):
                raise errors.InvalidValueError(
                    f"odometer has another {name} than the limit {checks.shown(limit.label)} had "
                    "when it was opened; keep the handle, or open a limit with another label"
                )
        return handle

    def _postprocess(self, answer: errors.Answer) -> Any:
        for postprocessor in self._postprocessors:
            answer = _native.interruptible(postprocessor, answer)
        if self._static and isinstance(answer, MachineQueryable) and answer.takes_updates:
            raise errors.InvalidTypeError(self._static)
        return answer

    def privacy_loss(self, d_in: errors.Distance) -> Any:
        """Return the loss so far at ``d_in``."""
        self._check_d_in(d_in)
        return self.account.privacy_loss(d_in)

    @_native.uninterruptible
    def loss_after(self, queries: Iterable[Any], d_in: errors.Distance) -> Any:
        """Return the loss at ``d_in`` if the measurements ``queries`` were launched now."""
        planned = checks.read("measurements", queries=queries)
        self._check_d_in(d_in)
        prices = [self.price(query, f"queries[{index}]") for index, query in enumerate(planned)]
        return self.account.loss_after(d_in, prices)

    def describe(self, query: errors.Query, d_in: errors.Distance) -> mechanism.Description:
        """Describe a launch of ``query`` without charging or running it."""
        self._check_d_in(d_in)
        d_in = accounting.own_distance(d_in)
        if isinstance(query, Odometer):
            self._check_odometer(query)
            return mechanism.Description("odometer", True, d_in, None, None)
        price = self.price(query)
        loss = self.account.price_at(d_in, price)
        refusal = self.account.refusal(price)
        return mechanism.Description(
            price.mechanism, mechanism.interactive(price.measurement), d_in, loss, refusal
        )

    def refusal(self, query: errors.Query) -> errors.RefusalError | None:
        """Return why a launch of ``query`` would be refused now; None if it would be admitted."""
        return self.account.refusal(self.price(query))

    def _check_d_in(self, d_in: errors.Distance) -> None:
        # anything but a plain number is validated first: its key may be infinite
        if type(d_in) not in (int, float) or not self.account.knows(d_in):
            validate_d_in(self._metric, d_in)


def check_space(
    space: tuple[Domain, Metric], measure: CompositionMeasure[Any], query: Measurement | Odometer
) -> None:
    """Raise unless a query has this domain, metric and measure."""
    if isinstance(query, Measurement):
        input_domain, input_metric, output_measure = _native.space_of(query)
    else:
        input_domain, input_metric = query.input_domain, query.input_metric
        output_measure = query.output_measure
    domain, metric = space
    if not same_domain(input_domain, domain):
        raise errors.SpaceMismatchError("input_domain", domain, input_domain)
    if input_metric != metric:
        raise errors.SpaceMismatchError("input_metric", metric, input_metric)
    if output_measure != measure.opendp():
        raise errors.SpaceMismatchError("output_measure", measure.name, output_measure)


_PLAIN_DISTANCES: dict[str, type] = {"u32": int, "f64": float}


def validate_d_in(metric: Metric, d_in: errors.Distance, distance_type: str = "") -> Any:
    """Return a copy of ``d_in`` if it is a distance of ``metric``, or raise.

    :param distance_type: OpenDP's type of the distances, if it is known already
    """
    number = type(d_in) in (int, float) and type(d_in) is _PLAIN_DISTANCES.get(distance_type)
    if number and 0 <= d_in < 2**32:
        return d_in + 0  # not -0.0, which is another distance
    d_in = checks.plain(d_in)
    if isinstance(d_in, bool):
        raise errors.InvalidTypeError(f"d_in ({d_in}) must be a distance of {metric}, found bool")
    if isinstance(d_in, (int, float)):
        checks.non_negative(d_in=d_in)
        if d_in == 0:
            d_in = type(d_in)()  # not -0.0, which is another distance
    _native.check_distance(metric, "d_in", d_in)
    try:
        return accounting.own_distance(d_in)
    except (RecursionError, MemoryError) as error:
        raise errors.InvalidValueError(
            f"d_in ({checks.shown(d_in)}) must be a distance that can be copied"
        ) from error


class MeasurementPrice:
    """Price of one launch of a measurement, from its untrusted privacy map, validated.

    Each value is read once, so that the value that is compared is the value that is charged.

    :ivar fixed: whether all values so far come from native maps, which do not change
    :ivar free: whether it does not exclude others, whatever it costs
    :ivar unbounded: whether it may answer any number of messages, which some theorems do not allow
    """

    __slots__ = (
        "_before",
        "_losses",
        "_measure",
        "_mechanism",
        "fixed",
        "free",
        "measurement",
        "unbounded",
    )

    def __init__(self, measurement: Measurement, measure: CompositionMeasure[Any]) -> None:
        self.measurement, self._measure = measurement, measure
        self._losses: dict[errors.Key, errors.Loss] = {}
        self._mechanism: str | None = None
        self.fixed = not isinstance(measurement, mechanism.ConcurrentMeasurement)
        kind = measure.composability
        self.free = kind is CONCURRENT or (kind is UNIFORM and mechanism.is_free(measurement))
        self.unbounded = False
        self._before = self

    @property
    def mechanism(self) -> str:
        """Short description of the mechanism."""
        if self._mechanism is None:
            self._mechanism = mechanism.describe(self.measurement)
        return self._mechanism

    def again(self) -> MeasurementPrice:
        """Return the price of another launch of the measurement, whose map is read anew."""
        price = MeasurementPrice(self.measurement, self._measure)
        price._mechanism, price._before, price.unbounded = self._mechanism, self, self.unbounded
        return price

    def settled(self) -> MeasurementPrice:
        """Return the previous launch's price if both are equal, so that they are one object.

        Call this after the charge.
        """
        before = self._before
        if before is not self and any(
            before._losses.get(key) != loss for key, loss in self._losses.items()
        ):
            before = self._before = self
        return before

    def at(self, d_in: errors.Distance, key: errors.Key = None) -> Any:
        """Return the validated d_mid at ``d_in``."""
        key = accounting.distance_key(d_in) if key is None else key
        loss = self._losses.get(key)
        if loss is None:
            loss = self._read(d_in)
            # two threads may read it: the first value that is stored counts
            loss = self._losses.setdefault(key, loss)
        return loss

    def excludes(self, d_in: errors.Distance, key: errors.Key = None) -> bool:
        """Whether what is launched excludes all others at ``d_in``."""
        return not self.free and self._measure.excludes(lambda: self.at(d_in, key))

    def _read(self, d_in: errors.Distance) -> Any:
        try:
            return self._validated(d_in)
        except errors.PrivacyMapError as error:
            _native.remember(error)  # from a map that this map reads: raised unchanged, once
            raise

    def _validated(self, d_in: errors.Distance) -> Any:
        try:
            # it is read before the charge
            raw, native = errors.uncharged(
                _native.call_native, self._ask, accounting.own_distance(d_in)
            )
        except errors.PrivacyMapError:
            raise
        except MAP_FAILED as error:
            raise errors.PrivacyMapError(d_in, str(error).strip()) from error
        if not native or callable(raw):  # a curve may ask Python later
            self.fixed = False
        try:
            loss: errors.Loss = self._measure.validate("d_mid", raw)
        except (errors.InvalidTypeError, errors.InvalidValueError) as error:
            raise errors.PrivacyMapError(d_in, str(error)) from error
        if self.unbounded and self._measure.needs_bound(loss):
            raise errors.FiniteCommunicationError(d_in, loss)
        return loss

    def _ask(self, d_in: errors.Distance) -> tuple[errors.Loss, bool]:
        # d_in is the map's to change
        return _native.native_only(mechanism.read_map, self.measurement, d_in)
