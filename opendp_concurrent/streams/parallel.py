"""Parallel composition on a stream: each item goes to one part, which has its own mechanism.

Under pure DP the loss is the maximum over the parts that an event touches: all other factors of the
transcript's likelihood ratio are 1. Under measures with δ this is false. An adversary may wait
until one of many mechanisms has failed, and then send the unequal update to it, so δ grows with the
number of mechanisms [HSV25, version 4]. So other measures than pure DP are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from opendp.mod import Domain, Measurement, Metric

from .. import _opendp as _native
from .. import composition, errors, measures, queryables
from .._checks import function
from ..accounting import Lifecycle, innermost_running
from .concurrent import Branch
from .mechanism import Checked, hand_out
from .stream import items_of, require_events, whole_distance


class _Parts:
    """State machine of the parts: an item goes to its part, and None to all others."""

    def __init__(
        self,
        key: Callable[[Any], Hashable],
        branches: dict[Hashable, Branch],
        answers: dict[Hashable, Any],
    ) -> None:
        self._key, self._branches, self._answers = key, branches, answers

    def _part(self, item: errors.Item) -> Branch | None:
        """Return the part of an item; None if it has no part, or if its key raises."""
        if item is None:
            return None
        try:
            return self._branches.get(self._key(item))
        except BaseException as error:  # it would reveal this item; so it is in no part
            errors.pass_interrupt(error)
            return None

    def update(self, item: errors.Item) -> None:
        self.update_all([item])

    def update_all(self, items: errors.ItemSequence) -> None:
        plain = items.tolist() if isinstance(items, np.ndarray) else items
        parts = list(map(self._part, plain))
        for branch in self._branches.values():
            branch.receive(
                queryables.Updates(
                    [
                        item if part is branch else None
                        for item, part in zip(plain, parts, strict=True)
                    ]
                )
            )

    def ask(self, query: errors.Query) -> errors.Answer:
        try:
            return self._branches[query].asking(self._answers[query])
        except Exception:  # no such part, or not hashable
            raise errors.InvalidValueError(
                f"the part must be one of {', '.join(map(repr, self._answers))}"
            ) from None


@composition.constructor(key=function)
def make_parallel_continual(
    input_domain: Domain,
    input_metric: Metric,
    key: Callable[[Any], Hashable],
    measurements: Mapping[Hashable, Measurement],
) -> queryables.ConcurrentMeasurement:
    """Split a stream into parts with one continual mechanism each; for pure DP only.

    ``queryable[part]``, or ``queryable(part)``, returns the handle of a part, which takes queries.
    Send updates to the queryable. Each item goes to the part that ``key`` returns; the other parts
    get None at that step. An item whose key is not in ``measurements`` goes to no part.

    Guarantee: the maximum over the parts for one added or removed event. A changed event may leave
    one part and enter another, so it counts as two. Under pure DP this holds against adversaries
    who choose updates adaptively; for measures with a δ it is false. Both are in the abstract of
    [HSV25, version 4], and proven in ``docs/proofs/concurrent-continual.rst``. For Rényi
    divergences it is false, too. On data that do not change, use
    :func:`.make_parallel_composition`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a stream
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``
    :param key: function from an item to its part; the caller promises that it depends on the item
        only. An item for which it raises, or returns an unhashable value, is in no part
    :param measurements: mapping from each part to a continual measurement on this stream
    :return: a measurement on the empty stream
    :raises SpaceMismatchError: if a measurement is not on this stream
    :raises UnsupportedMeasureError: for other measures than pure DP
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = oc.integer_stream(0, 9), oc.event_presence()
    >>> counter = oc.m.make_counter(*space, dp.max_divergence(), scale=36.0)
    >>> parts = oc.c.make_parallel_continual(
    ...     *space, lambda item: item % 2, {0: counter, 1: counter}
    ... )
    >>> parts.map(1)
    0.25
    >>> queryable = parts([])
    >>> queryable.update_all([1, 2, 3])
    >>> even, odd = queryable[0].read(), queryable[1].read()
    """
    items = items_of(input_domain)
    factor = 2 if require_events(input_metric) else 1
    if not isinstance(measurements, Mapping) or not measurements:
        raise errors.InvalidTypeError(
            "measurements must be a nonempty mapping from a part's key to one"
        )
    parts = {
        part: composition.check_measurement(f"measurements[{part!r}]", one)
        for part, one in dict(measurements).items()
    }
    for part, one in parts.items():
        name = f"measurements[{part!r}]"
        composition.check_inside(
            name, composition.check_measurement_on(name, one, input_domain, input_metric)
        )
        known = measures.composition_measure(one.output_measure)
        if not known.adaptive_updates:
            raise errors.UnsupportedMeasureError(
                f"{name} is under {known.name}: with adaptive updates the loss of "
                "parts is the maximum for pure DP only [HSV25, version 4]; compose them instead"
            )
    carrier_type = input_domain.carrier_type
    measure = measures.composition_measure(next(iter(parts.values())).output_measure)
    loss = composition.ParallelLoss(measure, parts)

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        stream, branches, answers = queryables.start_of(token), {}, {}
        for part, one in parts.items():
            branches[part] = Branch(None)
            answer = queryables.run(one, branches[part].token(carrier_type))
            if not branches[part].subscribed:
                raise errors.InvalidTypeError(f"measurements[{part!r}] {queryables.NOT_CONTINUAL}")
            answers[part] = queryables.adopt(answer, Lifecycle(innermost_running()), None)
        machine = Checked(_Parts(key, branches, answers), items)
        return hand_out(machine, stream, "Parallel", queryables.PARTS)

    return composition.make_measurement(
        (input_domain, input_metric),
        measure.opendp(),
        spawn,
        lambda d_in: loss.at(factor * whole_distance(input_metric, d_in)),
        f"ParallelContinual({len(measurements)} parts)",
        takes_updates=True,
    )


then_parallel_continual = _native.to_then(make_parallel_continual)
