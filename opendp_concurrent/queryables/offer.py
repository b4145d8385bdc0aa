"""Queries that an analyst offers: how they are checked, and how their prices are read.

A native privacy map never changes, so its values are remembered. A map that calls Python may return
another value each time. So it is read again at every launch, and the value that was read is
charged. If the loss of a launch is read at another d_in later, the map must still return the first
value at the first d_in. Maps are read through OpenDP's functions, or from the sealed parts of a
measurement of this package, never from an attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar

from opendp.mod import Domain, Measure, Measurement, Metric, Odometer, OpenDPException

from ..accounts.price import CHANGED, distance_key, is_number, own_distance
from ..errors import (
    AdvisoryError,
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
    uncharged,
)
from ..measures import CompositionMeasure
from ..native import opendp as _native
from ..types import Distance, Key, Loss, Query
from .describe import describe
from .mechanism import ConcurrentMeasurement, pinned, read_map, takes_stream
from .stream_domain import NOT_CONTINUAL, is_stream, same_domain

_READING: ContextVar[tuple[int, ...]] = ContextVar("_READING", default=())
_DEEPEST = 20  # nested maps: a map may read a loss, which reads a map


class MeasurementPrice:
    """Price of one launch of a measurement, from its untrusted privacy map, validated.

    Each value is read once, so that the value that is compared is the value that is charged.
    """

    __slots__ = (
        "_before",
        "_losses",
        "_measure",
        "_mechanism",
        "_native",
        "_read_at",
        "measurement",
        "own",
        "place",
    )

    def __init__(self, measurement: Measurement, measure: CompositionMeasure) -> None:
        self.measurement, self._measure = measurement, measure
        self.own = pinned(measurement)  # the one whose map is read, and the one that is run
        self.place = _native.address(self.own)
        self._losses: dict[Key, Loss] = {}
        self._mechanism: str | None = None
        self._native = not isinstance(measurement, ConcurrentMeasurement)
        self._before = self
        self._read_at: list[tuple[Distance, Loss]] = []  # d_in and loss

    @property
    def mechanism(self) -> str:
        """Short description of the mechanism."""
        if self._mechanism is None:
            self._mechanism = describe(self.measurement)
        return self._mechanism

    def is_of(self, query: Query) -> bool:
        """Whether this is the price of ``query``, and ``query`` still has the same pointer."""
        return self.measurement is query and self.place == _native.address(query)

    @property
    def fixed(self) -> bool:
        """Whether all values so far come from native maps, which do not change."""
        return self._native

    def again(self) -> MeasurementPrice:
        """Return the price of another launch of the measurement."""
        if self._native:
            return self
        price = MeasurementPrice(self.measurement, self._measure)
        price.own, price.place = self.own, self.place
        price._mechanism, price._before = self._mechanism, self
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

    def at(self, d_in: Distance) -> Loss:
        """Return the validated d_mid at ``d_in``."""
        key = distance_key(d_in)
        loss = self._losses.get(key)
        if loss is None:
            loss = self._read(d_in)
            # two threads may read it: the first value that is stored counts
            loss = self._losses.setdefault(key, loss)
            if not self._native:
                self._read_at.append((own_distance(d_in), loss))
        return loss

    def witness(self) -> None:
        """Read the map at 1, so that a later change can be detected."""
        try:
            self.at(1)
        except AdvisoryError:
            raise
        except PrivacyMapError:
            pass  # no loss was read there

    def later(self, d_in: Distance) -> Loss:
        """Return the d_mid at ``d_in`` after the launch, or raise if the map has changed."""
        if distance_key(d_in) not in self._losses:
            for known in self.changed():
                raise PrivacyMapError(known, CHANGED)
        return self.at(d_in)

    def changed(self) -> Iterator[Distance]:
        """Yield each d_in at which the map no longer returns what was read."""
        if not self._native:
            for known, loss in tuple(self._read_at):
                if is_number(loss) and self._read(known) != loss:
                    yield known

    def _read(self, d_in: Distance) -> Loss:
        try:
            return self._validated(d_in)
        except PrivacyMapError as error:
            _native.remember(error)  # from a map that this map reads: raised unchanged, once
            raise

    def _validated(self, d_in: Distance) -> Loss:
        reading, place = _READING.get(), id(self.measurement)
        if place in reading or len(reading) >= _DEEPEST:
            raise PrivacyMapError(d_in, "it queries a loss that depends on the map itself")
        try:
            # it is read before the charge
            raw, native = uncharged(_native.typed, self._ask, (*reading, place), own_distance(d_in))
        except PrivacyMapError:
            raise
        except (OpenDPException, ConcurrentError, TypeError, ValueError, ArithmeticError) as error:
            raise PrivacyMapError(d_in, str(error).strip()) from error
        if not native or callable(raw):  # a curve may ask Python later
            self._native = False
        try:
            return self._measure.validate("d_mid", raw)
        except (InvalidTypeError, InvalidValueError) as error:
            raise PrivacyMapError(d_in, str(error)) from error

    def _ask(self, reading: tuple[int, ...], d_in: Distance) -> tuple[Loss, bool]:
        _READING.set(reading)
        return _native.native_only(read_map, self.own, d_in)  # d_in is the map's to change


class Offers:
    """Check queries against one space and measure, and remember their prices.

    A measurement is identified by its id. It is held from the first launch on, so that no other
    object can have the same id.
    """

    __slots__ = ("_known", "_measure", "_opendp_measure", "_space")

    def __init__(self, space: tuple[Domain, Metric], measure: CompositionMeasure) -> None:
        self._space, self._measure = space, measure
        self._opendp_measure = measure.opendp()
        self._known: dict[int, MeasurementPrice] = {}

    def price(self, query: Query, name: str = "the query") -> MeasurementPrice:
        """Return the price of a measurement, or raise if it does not belong here."""
        known = self._known.get(id(query))
        if known is not None and known.is_of(query):
            return known.again()
        if isinstance(query, _native.PARTIAL_CONSTRUCTOR):
            raise InvalidTypeError(_native.unchained(name))
        if not isinstance(query, Measurement) or not query:  # or a null pointer
            raise InvalidTypeError(
                f"{name} must be a measurement, found {type(query).__name__}; "
                "pass a pipeline that ends with noise, or query.resolve() of a context's query"
            )
        return self._new(query, name)

    def _new(self, query: Measurement, name: str) -> MeasurementPrice:
        price = MeasurementPrice(query, self._measure)
        self._check(*_native.space_of(price.own))
        if is_stream(self._space[0]) and not takes_stream(query):
            raise InvalidTypeError(f"{name} {NOT_CONTINUAL}")
        return price

    def remember(self, price: MeasurementPrice) -> None:
        """Remember the price of a measurement. Call this after the charge."""
        if self._known.get(id(price.measurement)) is not price:
            self._known[id(price.measurement)] = price.settled()

    def check_space(self, odometer: Odometer) -> None:
        """Raise unless domain, metric and measure are the ones expected here."""
        self._check(odometer.input_domain, odometer.input_metric, odometer.output_measure)

    def _check(self, input_domain: Domain, input_metric: Metric, output_measure: Measure) -> None:
        domain, metric = self._space
        if not same_domain(input_domain, domain):
            raise SpaceMismatchError("input_domain", domain, input_domain)
        if input_metric != metric:
            raise SpaceMismatchError("input_metric", metric, input_metric)
        if output_measure != self._opendp_measure:
            raise SpaceMismatchError("output_measure", self._measure.name, output_measure)
