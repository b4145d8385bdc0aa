"""A query that an analyst offers: checked once, its price remembered."""

from __future__ import annotations

from typing import Any

from opendp.mod import Domain, Measurement, Metric, Odometer, OpenDPException

from ..accounts.price import distance_key, own_distance
from ..errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
)
from ..measures import CompositionMeasure
from .describe import describe


class MeasurementPrice:
    """The privacy map of a measurement, untrusted: every value is validated."""

    __slots__ = ("_losses", "_measure", "_mechanism", "measurement")

    def __init__(self, measurement: Measurement, measure: CompositionMeasure) -> None:
        self.measurement, self._measure = measurement, measure
        self._losses: dict[Any, Any] = {}
        self._mechanism: str | None = None

    @property
    def mechanism(self) -> str:
        """What is launched, in a few words."""
        if self._mechanism is None:
            self._mechanism = describe(self.measurement)
        return self._mechanism

    def at(self, d_in: Any) -> Any:
        """Return the validated d_mid at ``d_in``."""
        key = distance_key(d_in)
        loss = self._losses.get(key)
        if loss is None:
            loss = self._losses[key] = self._read(d_in)
        return loss

    def _read(self, d_in: Any) -> Any:
        try:
            raw = self.measurement.map(own_distance(d_in))  # it is the map's to change
        except (OpenDPException, ConcurrentError, TypeError, ValueError, ArithmeticError) as error:
            raise PrivacyMapError(d_in, str(error).strip()) from error
        try:
            return self._measure.validate("d_mid", raw)
        except (InvalidTypeError, InvalidValueError) as error:
            raise PrivacyMapError(d_in, str(error)) from error


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

    def price(self, query: Any) -> MeasurementPrice:
        """Return the price of a measurement, or raise if it does not belong here."""
        known = self._known.get(id(query))
        if known is not None and known.measurement is query:
            return known
        if not isinstance(query, Measurement):
            raise InvalidTypeError(
                f"the query must be a measurement, found {type(query).__name__}; "
                "pass what a make_ or then_ constructor of measurements returns"
            )
        self.check_space(query)
        return MeasurementPrice(query, self._measure)

    def remember(self, price: MeasurementPrice) -> None:
        """Know the measurement again; call after it was charged."""
        self._known[id(price.measurement)] = price

    def check_space(self, query: Measurement | Odometer) -> None:
        """Raise unless domain, metric and measure are the ones expected here."""
        domain, metric = self._space
        if query.input_domain != domain:
            raise SpaceMismatchError("input_domain", domain, query.input_domain)
        if query.input_metric != metric:
            raise SpaceMismatchError("input_metric", metric, query.input_metric)
        if query.output_measure != self._opendp_measure:
            raise SpaceMismatchError("output_measure", self._measure.name, query.output_measure)
