"""The privacy loss of a parallel composition, from the total distance of the parts.

Let neighbours have parts at distances k_1, k_2, ... that add up to at most k, and let e_b(j) be the
loss of part b at distance j. The parts at distance 0 have the same answers. Only the others
compose, and the loss is at most

    F(k) = join of the compositions of e_b(k_b) over the parts b with k_b > 0, over all sums
           k_1 + k_2 + ... = k.

A loss at j bounds all distances up to j, so sums below k need no separate terms. If no part is
further than m apart, e_b(j) is e_b(m) for j above m: then each k_b stands for min(k_b, m). F(1) is
the maximum over the parts, and needs no composition theorem.

The join of numbers and pairs is by component, of Rényi curves by order, of (ρ, ω) with the least ω.
The join of trade-off functions is the one below all others, if there is one. Otherwise it has the
larger δ at each ε: it is the convex envelope of their minimum, with chords between points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from opendp.mod import Measurement

from ..errors import InvalidValueError, PrivacyMapError, UnsupportedMeasureError
from ..measures import CompositionMeasure
from ..queryables.session import MeasurementPrice
from ..types import Key, Loss


class ParallelLoss:
    """Losses of a parallel composition by total distance.

    Privacy maps that may change are evaluated again at each call.

    :param measurements: the measurement of each part, by its key
    """

    def __init__(
        self, measure: CompositionMeasure, measurements: Mapping[Any, Measurement]
    ) -> None:
        self._measure = measure
        distinct: dict[int, tuple[Any, Measurement]] = {}
        for key, one in measurements.items():
            distinct.setdefault(id(one), (key, one))
        number = Counter(map(id, measurements.values()))
        self._parts = tuple(number[one] for one in distinct)
        self._prices = [(key, MeasurementPrice(one, measure)) for key, one in distinct.values()]
        self._seen: dict[tuple[int, int], Any] = {}
        self._newest = {id(price.measurement): (price, 0) for _, price in self._prices}

    def at(self, total: int, largest: int | None = None) -> Any:
        """Return the loss for parts whose distances add up to ``total``.

        :param largest: distance of each part at most; ``total`` if left out
        """
        most = total if largest is None else min(largest, total)
        known = self._seen.get((total, most))
        if known is not None:
            return known
        prices = [(key, price.again()) for key, price in self._prices]
        self._newest = {id(price.measurement): (price, most) for _, price in prices}
        loss = self._loss(total, most, prices) if total else self._measure.zero
        if all(price.fixed for _, price in prices):
            self._seen[total, most] = loss
        return loss

    def held(self) -> Callable[[Measurement], None]:
        """Return a check that a measurement still costs what was read last.

        A part is opened later than the composition is charged. The check raises
        :class:`.InvalidValueError` if the map of its measurement returns another loss then.
        """
        newest = self._newest

        def check(measurement: Measurement) -> None:
            price, most = newest[id(measurement)]
            again = price.again()
            for d_in in range(1, most + 1):
                if again.at(d_in) != price.at(d_in):
                    raise InvalidValueError(
                        f"the privacy map of the part's measurement has changed at d_in ({d_in}) "
                        "since the composition was launched, so its part cannot be opened; launch "
                        "another composition"
                    )

        return check

    def _loss(self, total: int, most: int, prices: list[tuple[Any, MeasurementPrice]]) -> Loss:
        measure, parts = self._measure, self._parts
        differ = min(total, sum(parts))
        if measure.sequential_reason and differ > 1:
            raise UnsupportedMeasureError(
                f"up to {differ} parts differ between neighbours, and concurrent "
                f"queries to them are not known to compose under {measure.name}: "
                f"{measure.reason}; at total distance 1 the loss is the maximum over the "
                "parts"
            )
        if total > measure.most_parallel:
            raise InvalidValueError(
                f"the distances of the parts add up to {total}, which must be at most "
                f"{measure.most_parallel} "
                f"under {measure.name}; pass a smaller d_in"
            )
        # losses[j - 1] has the losses of the distinct measurements at j
        losses = [[self._read(*price, j) for price in prices] for j in range(1, most + 1)]
        losses += [losses[-1]] * (total - most)
        return measure.validate("d_out", measure.join(losses, parts))

    def _read(self, key: Key, price: MeasurementPrice, distance: int) -> Any:
        try:
            return price.at(distance)
        except PrivacyMapError as error:
            raise PrivacyMapError(
                distance, f"that of measurements[{key!r}] is needed there, and {error.reason}"
            ) from error
