"""Shared release: one query, answered at many levels of noise, which cost what the finest costs."""

from __future__ import annotations

from dataclasses import dataclass

from opendp.measurements import make_laplace
from opendp.measures import max_divergence
from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Positive
from ..arguments.checks import optional, positive, shown
from ..combinators.constructor import constructor
from ..combinators.interactive_measurement import make_measurement
from ..errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from ..exact.bracket import upper
from ..measurements.certify import built, certify
from ..measurements.gaussian import make_certified_gaussian
from ..measurements.grid import FINEST, atom_type
from ..measurements.laplace import laplace_losses
from ..measurements.noise_accuracy import laplace_accuracy
from ..measures import Composability, composition_measure
from ..measures.kinds import TRADEOFF
from ..native import opendp as _native
from ..queryables.data import Sealed, in_python
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer
from ..sums.basic import Basic
from ..types import Answer, Argument, Loss
from .chain import Chain, GeometricDraws, level_of, units_of
from .levels import STEPPED
from .queryable import spawn_shared


@dataclass(frozen=True, slots=True)
class _Steps(Basic):
    """The sum of a shared release, which has no bound of its own."""

    def check_budget(self, d_out: Loss) -> None:
        """Raise: a filter over the odometer would launch, and not answer levels."""
        raise InvalidTypeError(
            f"odometer is a shared release, which has no bound ({shown(d_out)}) of its own; launch "
            "it on the handle of a filter or limit, or pass ceiling to it"
        )


class _Below:
    """The levels of a release up to its ceiling, which was paid."""

    def __init__(self, chain: Chain, ceiling: int) -> None:
        self._chain, self._ceiling = chain, ceiling

    def check(self, message: Argument) -> int:
        """Return a level in units, or raise."""
        level = units_of(positive(level=message))
        if level > self._ceiling:
            raise InvalidValueError(
                f"level ({shown(message)}) must be at most {level_of(self._ceiling)}, the ceiling "
                "that was paid; launch a release with a higher one"
            )
        self._chain.check(level)
        return level

    def __call__(self, message: Argument) -> Answer:
        return self._chain.at(self.check(message))


@constructor(ceiling=optional(positive))
def make_shared_release(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    ceiling: Positive | None = None,
) -> ConcurrentOdometer | ConcurrentMeasurement:
    """Answer one query at many levels of noise, which together cost what the finest one costs.

    Several analysts ask for the same count, or one analyst asks again with less noise. Chain this
    to the query, launch it on a handle, and ask what is returned for levels: ``release(0.1)``. No
    level need be planned. A level is the privacy loss per unit of sensitivity, ε, under pure and
    (ε, δ)-DP; under the other measures it is ρ, per square of the sensitivity.

    * Without ``ceiling``, this is an odometer. To launch it costs nothing. A level that is finer
      than all before is charged for the difference. All other levels are free. A level that a bound
      refuses is not charged, and the coarser ones stay available. To launch an equal release on the
      same handle returns the release that was opened before, by any message that it was written in
      (:func:`.serialize`); one with Python functions is never equal to another.
    * With ``ceiling``, this is a measurement that is charged for this level at its launch. All
      levels up to it are free. Its ``accuracy`` is that of the answer at the ceiling.

    The noise at each level is discrete Laplace noise, of scale 1/level, and levels are drawn such
    that the finest one tells all about the data that the others tell (derived; levels in any order
    after [ARNP25]). Under zCDP, Rényi DP, tCDP and Gaussian DP without ``ceiling`` an answer is the
    mean of independent discrete Gaussian releases, weighted by their precision. Its variance is at
    most 1/(2 level).

    Guarantee: all answers at all levels, to all analysts, are D e-DP for the finest level e that
    was answered and the sensitivity D. Levels may be chosen adaptively, and other mechanisms of the
    same handle run concurrently. Charging differences is valid for plain sums of ε (and δ) only:
    other accumulators are refused without ``ceiling``, because it is false there. The exact answer
    is computed once, and kept in this process: a record of it would be refined twice.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: integers or vectors of integers: the output domain of the query
    :param input_metric: absolute or L1 distance; L2 for vectors with Gaussian noise
    :param output_measure: how privacy is measured
    :param ceiling: the finest level, from 2^-30 to 2^20, rounded down to a multiple of 2^-30; none
        if left out
    :return: without ``ceiling``, an odometer that is launched on a handle, and gives a
        :class:`.SharedReleaseQueryable`; else a measurement whose queryable takes levels
    :raises UnsupportedMeasureError: for approximate zCDP, and for measures without a conversion;
        without ``ceiling``, for f-DP, and for vectors under Gaussian DP
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's noise is not for this domain and metric

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    >>> shared = space >> dp.t.then_count() >> oc.m.then_shared_release(dp.max_divergence())
    >>> release = root(shared)
    >>> coarse, fine, same = release(0.25), release(0.5), release(0.25)
    >>> coarse == same, root.privacy_loss()
    (True, 0.5)
    >>> root(shared) is release
    True
    >>> release(2.0)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.BudgetExceededError: the filter refuses: spent 0.5 of 1, asked 1.5, ...
    """
    measure, space = composition_measure(output_measure), (input_domain, input_metric)
    if measure.composability is Composability.SEQUENTIAL:
        raise UnsupportedMeasureError(
            f"output_measure ({measure.name}) composes sequentially, and a shared release stays "
            "open beside other launches; use zCDP"
        )
    if ceiling is None and measure.kind == TRADEOFF:
        raise UnsupportedMeasureError(
            "ceiling must be given under f-DP, where the losses of steps have no sum; or use "
            "zCDP, or Gaussian DP"
        )
    if ceiling is not None or measure.kind in STEPPED:
        built(make_laplace, input_domain=input_domain, input_metric=input_metric, scale=1.0)
    else:
        make_certified_gaussian(input_domain, input_metric, 1.0, output_measure)
    if atom_type(input_domain) in FINEST:
        raise InvalidTypeError(
            f"input_domain ({input_domain}) must be of integers; count, or sum integers, such as "
            "values in cents"
        )
    if ceiling is None:
        return ConcurrentOdometer(space, measure, _Steps(), spawn_shared)
    paid = units_of(ceiling, "ceiling")
    level = level_of(paid)

    def spawn(data: Sealed) -> MachineQueryable:
        return MachineQueryable(_Below(Chain(in_python(data), GeometricDraws()), paid), "Shared")

    pure = make_measurement(
        space,
        max_divergence(),
        spawn,
        lambda d_in: upper(lambda real: real(d_in) * real(level)),
        f"shared_release(ceiling={level})",
    )
    accuracy = laplace_accuracy(input_domain, 1 / level, None)
    return certify(pure, output_measure, laplace_losses(level), accuracy)


then_shared_release = _native.to_then(make_shared_release)
