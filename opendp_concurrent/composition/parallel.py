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

from opendp.mod import Domain, Measurement, Metric, Odometer

from .. import _opendp as _native
from .. import data, errors, measures, queryables
from .._checks import check_key, mapping
from ..accounting import Lifecycle, innermost_running
from .guards import check_measurement_on, constructor
from .interactive import make_measurement


class ParallelLoss:
    """Losses of a parallel composition by total distance.

    Privacy maps that may change are evaluated again at each call.

    :param measurements: the measurement of each part, by its key
    """

    def __init__(
        self, measure: measures.CompositionMeasure[Any], measurements: Mapping[Any, Measurement]
    ) -> None:
        self._measure = measure
        distinct: dict[int, tuple[Any, Measurement]] = {}
        for key, one in measurements.items():
            distinct.setdefault(id(one), (key, one))
        number = Counter(map(id, measurements.values()))
        self._parts = tuple(number[one] for one in distinct)
        self._prices = [
            (key, queryables.MeasurementPrice(one, measure)) for key, one in distinct.values()
        ]
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
                    raise errors.InvalidValueError(
                        f"the privacy map of the part's measurement has changed at d_in ({d_in}) "
                        "since the composition was launched, so its part cannot be opened; launch "
                        "another composition"
                    )

        return check

    def _loss(
        self, total: int, most: int, prices: list[tuple[Any, queryables.MeasurementPrice]]
    ) -> Any:
        measure, parts = self._measure, self._parts
        differ = min(total, sum(parts))
        if total > measure.most_parallel:
            raise errors.InvalidValueError(
                f"the distances of the parts add up to {total}, which must be at most "
                f"{measure.most_parallel} "
                f"under {measure.name}; pass a smaller d_in"
            )
        # losses[j - 1] has the losses of the distinct measurements at j
        losses = [[self._read(*price, j) for price in prices] for j in range(1, most + 1)]
        if differ > 1 and any(price.excludes(j) for _, price in prices for j in range(1, most + 1)):
            raise errors.UnsupportedMeasureError(
                f"up to {differ} parts differ between neighbours, and concurrent "
                f"queries to them are not known to compose under {measure.name}: "
                f"{measure.reason}; at total distance 1 the loss is the maximum over the "
                "parts"
            )
        losses += [losses[-1]] * (total - most)
        return measure.validate("d_out", measure.join(losses, parts))

    def _read(self, key: errors.Key, price: queryables.MeasurementPrice, distance: int) -> Any:
        try:
            return price.at(distance)
        except errors.PrivacyMapError as error:
            raise errors.PrivacyMapError(
                distance, f"that of measurements[{key!r}] is needed there, and {error.reason}"
            ) from error


# Parallel composition: one mechanism for each part of the data, queried in any interleaving.
#
# The data are static: they are cut once, by public keys, and each record is in at most one part.
# The parts that differ between two neighbours are therefore fixed before the first query; the
# analyst does not choose them. The other parts have the same answers on both neighbours, so an
# analyst could simulate them: the whole view is a postprocessing of the view of the parts that
# differ.

ADAPTIVE = (
    "an adversary that chooses updates adaptively also chooses which parts differ, so the "
    "loss is not the maximum over the parts, except under pure DP [HSV25, version 4]; use "
    "make_parallel_continual, or compose the parts with make_concurrent_continual"
)


@constructor(partition=data.partitioned)
def make_parallel_composition(
    input_domain: Domain,
    input_metric: Metric,
    partition: data.Partition,
    measurements: Mapping[Any, Measurement],
) -> queryables.ConcurrentMeasurement:
    """Compose mechanisms, interactive or not, each on its own part of the data.

    The returned measurement spawns a queryable that takes a key, runs the measurement of this key
    on its part, and returns the release or the child, the same one each time. ``parts[key]`` is
    the same query as ``parts(key)``. Parts may be opened in any order. Their children may be
    queried in any interleaving, with each other and with the parent's other children. Children of
    different parts run in parallel, except below a native parent, which only one thread at a time
    may use.

    A record is in no part if its key has no measurement. The parts' domain is ``input_domain``
    without a size. For LazyFrames it also has no margins, except the maximum length of the whole
    dataset. The data are cut when the first part is opened. If a partition function raises on the
    whole dataset, the mechanism fails, and the error shows only the name of the exception.

    Guarantee: let e_b(j) be the loss of part b at distance j, and k the total distance of the
    parts: d_in under symmetric and insert-delete distance, 2 d_in under change-one distance (where
    parts are under symmetric distance) and Hamming distance (where they are under insert-delete
    distance). For tables in an engine k is d_in times the groups of a unit, and no part is further
    than d_in apart. For k = 1 the loss is the largest e_b(1), under every measure, since all but
    one part are equal [HSTVVXZ23, Theorem 2.17]. For k > 1 it is the maximum over all
    k_1 + k_2 + ... = k of
    the composition of e_1(k_1), e_2(k_2), ..., one term for each part that differs: by [VW21,
    Theorem 1.5] for pure DP; [LW22, Theorem 1] and [VZ23] for (ε, δ)-DP, Gaussian DP and f-DP,
    under finite communication; [LW22, Theorem 2 and Corollary 1] for Rényi DP, zCDP and tCDP.
    Under approximate zCDP it is the sum of both parameters, and k > 1 needs parts that answer once,
    or have no δ, or are compositions of this package. The data must be static: if an
    analyst chooses updates, the maximum is not valid for (ε, δ)-DP [HSV25, version 4]. Streams, and
    measurements that take updates, are therefore refused.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a domain of vectors of records, of LazyFrames or of tables in an engine, or
        a user's domain
    :param input_metric: symmetric, insert-delete, change-one or Hamming distance; for
        :func:`.by_split` also a user's metric
    :param partition: made by :func:`.by_key`, :func:`.by_column`, :func:`.by_values` or
        :func:`.by_split`
    :param measurements: a mapping from public keys to measurements on the parts' domain and metric,
        under one measure. A measurement that several keys share is checked once
    :return: a measurement that spawns a queryable, whose messages are keys
    :raises InvalidTypeError: for a stream, or a measurement that takes updates; from the queryable,
        if opening a part shows that the function of a user's measurement returns a child that takes
        updates. The composition stays charged
    :raises SpaceMismatchError: if a measurement is not on the parts' space, or the measures differ
    :raises UnsupportedMeasureError: if no rule is known for the measure; from ``map``, for
        approximate zCDP at k > 1 with parts that are approximate only as a whole
    :raises InvalidTypeError, InvalidValueError: naming the argument; from ``map``, if k is above
        256, or 64 for Rényi curves, or 4 for trade-off functions

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> pair = oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [0.25, 0.25])
    >>> by_age = oc.c.by_values({"young": range(0, 30), "old": range(30, 120)})
    >>> parallel = oc.c.make_parallel_composition(*space, by_age, {"young": pair, "old": pair})
    >>> parallel.map(1)
    0.5

    Interleave the queries to the children of two parts:

    >>> parts = parallel([20, 25, 40, 130])
    >>> young, old = parts["young"], parts["old"]
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    >>> answers = [young(count), old(count), young(count), old(count)]
    """
    check_no_updates(input_domain)
    metric, factor = partition.metric_of_parts(input_metric, input_domain)
    kind = data.kind_of(input_domain)
    domain = kind.domain_of_parts(input_domain)
    by_key, measure = _by_key(measurements, domain, metric)
    cut = partition.cutter(input_domain, tuple(by_key))
    loss = ParallelLoss(measure, by_key)

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        parts = queryables.seal_transformed(
            token,
            lambda pointer: dict(
                cut(kind.fixed(input_domain, partition.of, _native.to_python(pointer)))
            ),
        )
        machine = _Parts(by_key, parts, domain, loss)
        queryable = queryables.answering(queryables.MachineQueryable, queryables.PARTS)
        return queryable(machine, "ParallelComposition", interruptible=True)

    def privacy_map(d_in: errors.Distance) -> Any:
        if not isinstance(d_in, int):
            raise errors.InvalidTypeError(
                f"d_in ({d_in!r}) must be an integer, to be divided over parts"
            )
        # a unit of a table has rows in several parts, which then differ by this unit only
        return loss.at(factor * d_in, d_in if kind.in_engine else None)

    return make_measurement(
        (input_domain, input_metric),
        measure.opendp(),
        spawn,
        privacy_map,
        f"ParallelComposition({measure.name}, {partition}, {len(by_key)} keys)",
        free=all(map(queryables.is_free, by_key.values())),
    )


def check_no_updates(input_domain: Domain) -> None:
    """Raise for a stream or vectors of streams, for every partition."""
    elements = _native.element_domain(input_domain)
    if queryables.is_stream(input_domain) or (
        elements is not None and queryables.is_stream(elements)
    ):
        raise errors.InvalidTypeError(f"input_domain ({input_domain}) is a stream: {ADAPTIVE}")


class _Parts:
    """Opens each part once. The queryable around it calls it, one query at a time.

    An interrupt while a part is opened leaves that part failed, and the others as they were.
    """

    def __init__(
        self,
        measurements: Mapping[Any, Measurement],
        parts: queryables.Sealed,
        domain: Domain,
        loss: ParallelLoss,
    ) -> None:
        self._measurements, self._parts, self._domain = measurements, parts, domain
        self._check_price = loss.held()
        self._opened: dict[Any, Any] = {}

    def check(self, key: errors.Key) -> Measurement:
        """Return the measurement of a key, or raise."""
        check_key("the query", key)
        measurement = self._measurements.get(key)
        if measurement is None:
            raise errors.InvalidValueError(
                f"the query ({errors.shown(key)}) must be a key of measurements; pass one of its "
                f"{len(self._measurements)} keys"
            )
        return measurement

    def __call__(self, key: errors.Key) -> errors.Answer:
        measurement = self.check(key)
        if key not in self._opened:
            self._opened[key] = _FAILED  # until it answers: each part is charged once
            self._opened[key] = self._open(key, measurement)
        if self._opened[key] is _FAILED:
            raise errors.RefusalError(
                f"the measurement of the key {key} has failed, and each measurement runs "
                "only once; launch another composition"
            )
        return self._opened[key]

    def _open(self, key: errors.Key, measurement: Measurement) -> Any:
        self._check_price(measurement)
        part = Lifecycle(innermost_running(), static=True, name=f"part {errors.shown(key)}")
        answer = part.run(queryables.run, measurement, self._take(key))
        if isinstance(answer, queryables.MachineQueryable) and answer.takes_updates:
            raise errors.InvalidTypeError(
                f"measurements[{errors.shown(key)}] takes updates: {ADAPTIVE}"
            )
        return queryables.adopt(answer, part, None)

    def _take(self, key: errors.Key) -> queryables.Sealed:
        """Return the part's data, converted; no other object holds them."""
        token = queryables.seal_selected(
            self._parts,
            self._domain,
            lambda: queryables.unseal(self._parts).pop(key),
            "partition failed to split the data; for each key it must return a "
            "part in the domain of the parts, whatever the data",
        )
        queryables.unseal(token)  # a part is cut when it is opened, whatever is launched on it
        return token


_FAILED = object()


def _by_key(
    measurements: Mapping[Any, Measurement], domain: Domain, metric: Metric
) -> tuple[dict[Any, Measurement], measures.CompositionMeasure[Any]]:
    """Return the measurements, and the measure that all share, or raise; each is checked once."""
    by_key = mapping("keys to measurements", measurements=measurements)
    if not by_key:
        raise errors.InvalidValueError("measurements must have at least one key")
    checked: set[int] = set()
    measure: Any = None
    for key, one in by_key.items():
        check_key("measurements", key)
        if id(one) in checked:
            continue
        name = f"measurements[{errors.shown(key)}]"
        if isinstance(one, Odometer):
            raise errors.InvalidTypeError(
                f"{name} is an odometer, whose loss is not known when the composition is launched; "
                "pass a filter, or launch the odometer on a block: root([key], odometer) on the "
                "handle of make_block_filter"
            )
        check_measurement_on(name, one, domain, metric)
        if isinstance(one, queryables.ConcurrentMeasurement) and one.takes_updates:
            raise errors.InvalidTypeError(f"{name} takes updates: {ADAPTIVE}")
        if measure is None:
            measure = one.output_measure
        elif one.output_measure != measure:
            raise errors.SpaceMismatchError(f"{name}.output_measure", measure, one.output_measure)
        checked.add(id(one))
    return by_key, measures.composition_measure(measure)


then_parallel_composition = _native.to_then(make_parallel_composition)
