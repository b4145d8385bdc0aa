"""Parallel composition: one mechanism for each part of the data, queried in any interleaving.

The data are static: they are cut once, by public keys, and each record is in at most one part.
The parts that differ between two neighbours are therefore fixed before the first query; the analyst
does not choose them. The other parts have the same answers on both neighbours, so an analyst could
simulate them: the whole view is a postprocessing of the view of the parts that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opendp.mod import Domain, Measurement, Metric

from ..accounts.lifecycle import Lifecycle, innermost_running
from ..arguments.checks import shown
from ..arguments.keys import check_key
from ..combinators.constructor import constructor
from ..combinators.inside import check_measurement, check_measurement_on
from ..combinators.interactive_measurement import make_measurement
from ..data.kind import kind_of
from ..errors import InvalidTypeError, InvalidValueError, RefusalError, SpaceMismatchError
from ..measures import CompositionMeasure, composition_measure
from ..native import opendp as _native
from ..queryables.child import adopt
from ..queryables.data import Sealed, run, seal_selected, seal_transformed, unseal
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.named_queries import PARTS, answering
from ..queryables.session import validate_d_in
from ..queryables.stream_domain import is_stream
from ..types import Answer, Distance, Key
from .parallel_loss import ParallelLoss
from .partition import Partition, partitioned

ADAPTIVE = (
    "an adversary that chooses updates adaptively also chooses which parts differ, so the "
    "loss is not the maximum over the parts, except under pure DP [HSV25, version 4]; use "
    "make_parallel_continual, or compose the parts with make_concurrent_continual"
)


@constructor(partition=partitioned)
def make_parallel_composition(
    input_domain: Domain,
    input_metric: Metric,
    partition: Partition,
    measurements: Mapping[Any, Measurement],
) -> ConcurrentMeasurement:
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
    Approximate zCDP has no such theorem, so it allows k = 1 only. The data must be static: if an
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
        approximate zCDP at k > 1
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
    by_key = _by_key(measurements)
    metric, factor = partition.metric_of_parts(input_metric, input_domain)
    kind = kind_of(input_domain)
    domain = kind.domain_of_parts(input_domain)
    measure = _check_measurements(by_key, domain, metric)
    cut = partition.cutter(input_domain, tuple(by_key))
    loss = ParallelLoss(measure, by_key)

    def spawn(token: Sealed) -> MachineQueryable:
        parts = seal_transformed(
            token,
            lambda pointer: dict(
                cut(kind.fixed(input_domain, partition.of, _native.to_python(pointer)))
            ),
        )
        machine = _Parts(by_key, parts, domain, loss)
        queryable = answering(MachineQueryable, PARTS)
        return queryable(machine, "ParallelComposition", interruptible=True)

    def privacy_map(d_in: Distance) -> Any:
        d_in = validate_d_in(input_metric, d_in)
        if not isinstance(d_in, int):
            raise InvalidTypeError(f"d_in ({d_in!r}) must be an integer, to be divided over parts")
        # a unit of a table has rows in several parts, which then differ by this unit only
        return loss.at(factor * d_in, d_in if kind.in_engine else None)

    return make_measurement(
        (input_domain, input_metric),
        measure.opendp(),
        spawn,
        privacy_map,
        f"ParallelComposition({measure.name}, {partition}, {len(by_key)} keys)",
    )


def check_no_updates(input_domain: Domain) -> None:
    """Raise for a stream or vectors of streams, for every partition."""
    elements = _native.element_domain(input_domain)
    if is_stream(input_domain) or (elements is not None and is_stream(elements)):
        raise InvalidTypeError(f"input_domain ({input_domain}) is a stream: {ADAPTIVE}")


class _Parts:
    """Opens each part once. The queryable around it calls it, one query at a time.

    An interrupt while a part is opened leaves that part failed, and the others as they were.
    """

    def __init__(
        self,
        measurements: Mapping[Any, Measurement],
        parts: Sealed,
        domain: Domain,
        loss: ParallelLoss,
    ) -> None:
        self._measurements, self._parts, self._domain = measurements, parts, domain
        self._check_price = loss.held()
        self._opened: dict[Any, Any] = {}

    def check(self, key: Key) -> Measurement:
        """Return the measurement of a key, or raise."""
        check_key("the query", key)
        measurement = self._measurements.get(key)
        if measurement is None:
            raise InvalidValueError(
                f"the query ({shown(key)}) must be a key of measurements; pass one of its "
                f"{len(self._measurements)} keys"
            )
        return measurement

    def __call__(self, key: Key) -> Answer:
        measurement = self.check(key)
        if key not in self._opened:
            self._opened[key] = _FAILED  # until it answers: each part is charged once
            self._opened[key] = self._open(key, measurement)
        if self._opened[key] is _FAILED:
            raise RefusalError(
                f"the measurement of the key {key} has failed, and each measurement runs "
                "only once; launch another composition"
            )
        return self._opened[key]

    def _open(self, key: Key, measurement: Measurement) -> Any:
        self._check_price(measurement)
        part = Lifecycle(innermost_running(), static=True, name=f"part {shown(key)}")
        answer = part.run(run, measurement, self._take(key))
        if isinstance(answer, MachineQueryable) and answer.takes_updates:
            raise InvalidTypeError(f"measurements[{shown(key)}] takes updates: {ADAPTIVE}")
        return adopt(answer, part, None)

    def _take(self, key: Key) -> Sealed:
        """Return the part's data, converted; no other object holds them."""
        token = seal_selected(
            self._parts,
            self._domain,
            lambda: unseal(self._parts).pop(key),
            "partition failed to split the data; for each key it must return a "
            "part in the domain of the parts, whatever the data",
        )
        unseal(token)  # a part is cut when it is opened, whatever is launched on it
        return token


_FAILED = object()


def _by_key(measurements: Any) -> dict[Any, Measurement]:
    if not isinstance(measurements, Mapping):
        raise InvalidTypeError(
            f"measurements must be a mapping from keys to measurements, "
            f"found {type(measurements).__name__}"
        )
    if not measurements:
        raise InvalidValueError("measurements must have at least one key")
    by_key: dict[Any, Measurement] = {}
    for key in measurements:
        check_key("measurements", key)
        if key in by_key:
            raise InvalidValueError(f"measurements has the key {shown(key)} twice")
        by_key[key] = check_measurement(f"measurements[{shown(key)}]", measurements[key])
    return by_key


def _check_measurements(
    measurements: Mapping[Any, Measurement], domain: Domain, metric: Metric
) -> CompositionMeasure:
    """Return the measure that all measurements share, or raise; each object is checked once."""
    checked: set[int] = set()
    measure: Any = None
    for key, one in measurements.items():
        if id(one) in checked:
            continue
        name = f"measurements[{shown(key)}]"
        check_measurement_on(name, one, domain, metric)
        if isinstance(one, ConcurrentMeasurement) and one.takes_updates:
            raise InvalidTypeError(f"{name} takes updates: {ADAPTIVE}")
        if measure is None:
            measure = one.output_measure
        elif one.output_measure != measure:
            raise SpaceMismatchError(f"{name}.output_measure", measure, one.output_measure)
        checked.add(id(one))
    return composition_measure(measure)


then_parallel_composition = _native.to_then(make_parallel_composition)
