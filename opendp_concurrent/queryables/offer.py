"""Queries that an analyst offers: how they are checked, and how their prices are read.

A native privacy map never changes, so its values are remembered. A map that calls Python may return
another value each time. So it is read again at every launch, and the value that was read is
charged. If the loss of a launch is read at another d_in later, the map is read there then.
"""

from __future__ import annotations

from opendp.mod import Domain, Measure, Measurement, Metric, Odometer, OpenDPException

from ..accounts.price import distance_key, own_distance
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
from .mechanism import ConcurrentMeasurement, read_map, takes_stream
from .stream_domain import NOT_CONTINUAL, is_stream, same_domain


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
        "measurement",
    )

    def __init__(self, measurement: Measurement, measure: CompositionMeasure) -> None:
        self.measurement, self._measure = measurement, measure
        self._losses: dict[Key, Loss] = {}
        self._mechanism: str | None = None
        self._native = not isinstance(measurement, ConcurrentMeasurement)
        self._before = self

    @property
    def mechanism(self) -> str:
        """Short description of the mechanism."""
        if self._mechanism is None:
            self._mechanism = describe(self.measurement)
        return self._mechanism

    @property
    def fixed(self) -> bool:
        """Whether all values so far come from native maps, which do not change."""
        return self._native

    def again(self) -> MeasurementPrice:
        """Return the price of another launch of the measurement."""
        if self._native:
            return self
        price = MeasurementPrice(self.measurement, self._measure)
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
        return loss

    def read_at_1(self) -> None:
        """Read the map at 1, where the loss of most odometers is read after their launches."""
        try:
            self.at(1)
        except AdvisoryError:
            raise
        except PrivacyMapError:
            pass  # the loss may be read elsewhere

    def _read(self, d_in: Distance) -> Loss:
        try:
            return self._validated(d_in)
        except PrivacyMapError as error:
            _native.remember(error)  # from a map that this map reads: raised unchanged, once
            raise

    def _validated(self, d_in: Distance) -> Loss:
        try:
            # it is read before the charge
            raw, native = uncharged(_native.typed, self._ask, own_distance(d_in))
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

    def _ask(self, d_in: Distance) -> tuple[Loss, bool]:
        return _native.native_only(read_map, self.measurement, d_in)  # d_in is the map's to change


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
        if known is not None and known.measurement is query:
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
        self._check(*_native.space_of(query))
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
