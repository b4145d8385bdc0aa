"""A query that an analyst offers: checked, and its price read when it is paid.

A privacy map of OpenDP's own is a function of numbers that do not change, so its values are
remembered. A map that asks Python may answer differently each time: it is read again at every
launch, and what was read is what is charged. Where a launch is read at another d_in later, the map
must still say at the first one what it said then. Maps are asked of OpenDP's functions, and of what
was sealed when a measurement of ours was made, never of an attribute.
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from opendp.mod import Domain, Measurement, Metric, Odometer, OpenDPException

from ..accounts.price import CHANGED, distance_key, is_number, own_distance
from ..checks import is_a
from ..errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
)
from ..measures import CompositionMeasure
from ..native import opendp as _native
from .describe import describe
from .mechanism import ConcurrentMeasurement, pinned, read_map

_READING: ContextVar[tuple[int, ...]] = ContextVar("_READING", default=())
_DEEPEST = 50  # maps that ask for losses, which ask maps


class MeasurementPrice:
    """What one launch of a measurement costs: its privacy map, untrusted and validated.

    Each value is read once, so that what is compared is what is charged.
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
        self.own = pinned(measurement)  # of which the map is asked, and which is run
        self.place = _native.address(self.own)
        self._losses: dict[Any, Any] = {}
        self._mechanism: str | None = None
        self._native = not isinstance(measurement, ConcurrentMeasurement)
        self._before = self
        self._read_at: list[tuple[Any, Any]] = []  # d_in and loss

    @property
    def mechanism(self) -> str:
        """What is launched, in a few words."""
        if self._mechanism is None:
            self._mechanism = describe(self.measurement)
        return self._mechanism

    def is_of(self, query: Any) -> bool:
        """Whether it is the price of ``query``, which still points to the same measurement."""
        return self.measurement is query and self.place == _native.address(query)

    @property
    def fixed(self) -> bool:
        """Whether all that was read so far is of OpenDP's own code, and does not change."""
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
        """Return the price of the launch before if nothing tells them apart, so that both are one.

        Call after it was charged.
        """
        before = self._before
        if before is not self and any(
            before._losses.get(key) != loss for key, loss in self._losses.items()
        ):
            before = self._before = self
        return before

    def at(self, d_in: Any) -> Any:
        """Return the validated d_mid at ``d_in``."""
        key = distance_key(d_in)
        loss = self._losses.get(key)
        if loss is None:
            loss = self._read(d_in)
            # it may be read in two threads: the first one to be kept counts
            loss = self._losses.setdefault(key, loss)
            if not self._native:
                self._read_at.append((own_distance(d_in), loss))
        return loss

    def witness(self) -> None:
        """Read the map at 1, so that it is known later whether it has changed."""
        with suppress(PrivacyMapError):  # nobody has asked for a loss there
            self.at(1)

    def later(self, d_in: Any) -> Any:
        """Return the d_mid at ``d_in`` of what was launched, if the map is still the same."""
        if distance_key(d_in) not in self._losses and not self._native:
            for known, loss in tuple(self._read_at):
                if is_number(loss) and self._read(known) != loss:
                    raise PrivacyMapError(known, CHANGED)
        return self.at(d_in)

    def _read(self, d_in: Any) -> Any:
        try:
            return self._validated(d_in)
        except PrivacyMapError as error:
            _native.remember(error)  # of a map that this one asks: told as it is, once
            raise

    def _validated(self, d_in: Any) -> Any:
        reading, place = _READING.get(), id(self.measurement)
        if place in reading or len(reading) >= _DEEPEST:
            raise PrivacyMapError(d_in, "it asks for a loss that depends on itself")
        try:
            raw, native = _native.typed(self._ask, (*reading, place), own_distance(d_in))
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

    def _ask(self, reading: tuple[int, ...], d_in: Any) -> tuple[Any, bool]:
        _READING.set(reading)
        return _native.native_only(read_map, self.own, d_in)  # d_in is the map's to change


class Offers:
    """Queries that are offered: checked against one space and measure, and known again.

    A measurement is known by identity. It is held from the first launch on, so that its identity
    cannot be taken over.
    """

    __slots__ = ("_known", "_measure", "_opendp_measure", "_space")

    def __init__(self, space: tuple[Domain, Metric], measure: CompositionMeasure) -> None:
        self._space, self._measure = space, measure
        self._opendp_measure = measure.opendp()
        self._known: dict[int, MeasurementPrice] = {}

    def price(self, query: Any, name: str = "the query") -> MeasurementPrice:
        """Return the price of a measurement, or raise if it does not belong here."""
        known = self._known.get(id(query))
        if known is not None and known.is_of(query):
            return known.again()
        if is_a(query, _native.PARTIAL_CONSTRUCTOR):
            raise InvalidTypeError(_native.unchained(name))
        if not is_a(query, Measurement) or not query:  # or a null pointer
            raise InvalidTypeError(
                f"{name} must be a measurement, found {type(query).__name__}; "
                "pass what a make_ or then_ constructor of measurements returns"
            )
        return self._new(query)

    def _new(self, query: Measurement) -> MeasurementPrice:
        price = MeasurementPrice(query, self._measure)
        self._check(*_native.space_of(price.own))
        return price

    def remember(self, price: MeasurementPrice) -> None:
        """Know the measurement again; call after it was charged."""
        if self._known.get(id(price.measurement)) is not price:
            self._known[id(price.measurement)] = price.settled()

    def check_space(self, odometer: Odometer) -> None:
        """Raise unless domain, metric and measure are the ones expected here."""
        self._check(odometer.input_domain, odometer.input_metric, odometer.output_measure)

    def _check(self, input_domain: Domain, input_metric: Metric, output_measure: Any) -> None:
        domain, metric = self._space
        if input_domain != domain:
            raise SpaceMismatchError("input_domain", domain, input_domain)
        if input_metric != metric:
            raise SpaceMismatchError("input_metric", metric, input_metric)
        if output_measure != self._opendp_measure:
            raise SpaceMismatchError("output_measure", self._measure.name, output_measure)
