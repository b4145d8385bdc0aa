"""The largest loss each of several launches may have, and the smallest noise scale it allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from fractions import Fraction
from itertools import count
from typing import Any

from opendp.mod import Measure, Measurement, OpenDPException, assert_features

from ..arguments.checked import Probability, checked
from ..arguments.checks import at_most, function, optional, pair, positive, shown
from ..arguments.weights import weights
from ..combinators import inside, pairs
from ..combinators.accounting import accounting_for, check_budget
from ..errors import ConcurrentError, InvalidTypeError, InvalidValueError
from ..exact.rounding import largest_double
from ..exact.shortest import to_spend
from ..measures import CompositionMeasure, composition_measure
from ..progress import counted
from ..queryables.mechanism import read_map
from ..queryables.session import validate_d_in
from ..sums.accumulator import Accounting
from ..types import Distance, Loss
from .search import nearest_passing

_MOST = at_most(2**62, "no session has more")


def _launches(**argument: Any) -> Any:
    """Return a number of launches, or the weights of their losses, or raise."""
    ((_, value),) = argument.items()
    if isinstance(value, int):
        return _MOST(**argument)
    return weights(**argument)


def _bounds(**argument: Any) -> tuple[float, float]:
    """Return two scales, the smaller first, or raise."""
    ((name, _),) = argument.items()
    first, second = pair(**argument)
    lower, upper = positive(**{f"{name}[0]": first}), positive(**{f"{name}[1]": second})
    if not lower < upper:
        raise InvalidValueError(f"{name} ({lower}, {upper}) must have the smaller scale first")
    return lower, upper


@checked(launches=_launches)
def largest_share(
    privacy_loss: tuple[Measure, Any],
    launches: int | Sequence[float],
    *,
    accumulator: Accounting | None = None,
    delta: Probability = 0.0,
) -> Any:
    """Return the largest loss that each of a number of launches may have.

    A filter with the same accumulator admits one launch for each share. Shares are rounded down.
    The result does not depend on the mechanisms that are launched.

    :param privacy_loss: a measure and a bound, such as ``oc.loss_of(mu=1.0)``
    :param launches: number of launches that share the bound evenly, or the weights of their losses
    :param accumulator: as in ``make_concurrent_odometer``
    :param delta: for an (ε, δ) accumulator with a slack: the δ of each launch
    :return: a distance, or one distance for each weight
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.c.largest_share(oc.loss_of(mu=1.0), launches=4)
    0.5
    >>> budget = dp.approximate(dp.max_divergence()), (1.0, 1e-6)
    >>> oc.c.largest_share(budget, launches=64)
    (0.015625, 1.5625e-08)
    >>> oc.c.largest_share(budget, launches=100, accumulator=oc.accumulators.zcdp(delta_slack=1e-6))
    (0.0220..., 0.0)
    >>> rule = oc.accumulators.advanced(delta_slack=1e-6)
    >>> oc.c.largest_share(budget, launches=[1, 1, 2], accumulator=rule)
    [(0.0763..., 0.0), (0.0763..., 0.0), (0.152..., 0.0)]
    """
    measure, d_out = _measure_and_bound(privacy_loss)
    budget = measure.validate_budget("d_out", d_out)
    accounting = accounting_for(measure, accumulator)
    check_budget(accounting, budget)
    if isinstance(launches, int):
        counts, rest = [(Fraction(1), launches)], [Fraction(launches - 1)]
    else:
        counts, rest = [(Fraction(weight), 1) for weight in launches], []
    divide = getattr(type(accounting), "shares", None)
    if divide is None:
        shares = _searched(measure, accounting, budget, counts, delta)
    else:  # of an even division, the first share, and the others in one
        shares = divide(accounting, measure, budget, [weight for weight, _ in counts] + rest)
    return shares[0] if isinstance(launches, int) else shares


def _searched(
    measure: CompositionMeasure,
    accounting: Accounting,
    budget: Any,
    counts: list[tuple[Fraction, int]],
    delta: float,
) -> list[Any]:
    """Return the largest shares whose launches the accumulator admits."""
    near, loss = measure.line(budget, delta)
    whole = max(weight for weight, _ in counts)

    def fits(top: float) -> bool:
        total = accounting.start(measure)
        for weight, number in counts:
            total = total.after(loss(top, weight / whole), number)
        return bool(total.within(budget))

    if not fits(0.0):
        launches, least = sum(number for _, number in counts), loss(0.0, Fraction(1))
        if least == measure.zero:
            raise InvalidValueError(
                f"launches ({launches}) of loss 0 already exceed {budget} under {accounting!r}; "
                "plan fewer, or pass a larger bound"
            )
        raise InvalidValueError(
            f"delta ({delta}) of each launch is too large for {launches} launches: with the slack "
            f"of {accounting!r} they exceed {budget[1]}; pass a smaller one"
        )
    top = largest_double(fits, near=near)
    return [loss(top, weight / whole) for weight, _ in counts]


@checked(make_measurement=function, launches=_MOST, bounds=optional(_bounds))
def smallest_scale(
    make_measurement: Callable[[float], Measurement],
    d_in: Distance,
    d_out: Loss,
    launches: int = 1,
    *,
    accumulator: Accounting | None = None,
    delta: Probability = 0.0,
    bounds: tuple[float, float] | None = None,
    progress: bool = False,
) -> float:
    """Return the smallest noise scale at which ``launches`` launches stay within ``d_out``.

    The scale is the one that :func:`~opendp.mod.binary_search` would find for the share that
    :func:`.largest_share` returns. The measure is that of the measurements that
    ``make_measurement`` returns. The search makes fewer than 100 measurements.

    Required features: `contrib`, `honest-but-curious`

    :param make_measurement: makes a measurement with a noise scale
    :param d_in: distance between neighbouring inputs
    :param d_out: bound on all launches together
    :param launches: number of launches
    :param accumulator: as in ``make_concurrent_odometer``
    :param delta: for an (ε, δ) accumulator with a slack: the δ of each launch
    :param bounds: lower and upper bound of the search; found automatically if left out
    :param progress: show a bar, if tqdm is installed (extra ``progress``)
    :return: the smallest scale
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> def make(scale):
    ...     return oc.m.make_certified_gaussian(*space, scale, oc.gaussian_tradeoff())
    >>> scale = oc.c.smallest_scale(make, d_in=1.0, d_out=0.5, launches=100)
    >>> round(scale, 9)
    20.0
    """
    assert_features("contrib", "honest-but-curious")
    first = _made(make_measurement, bounds[1] if bounds else 1.0)
    d_in, measure = validate_d_in(first.input_metric, d_in), first.output_measure
    if d_in == 0:
        raise InvalidValueError(f"d_in ({d_in}) must be above 0: equal inputs need no noise")
    known = composition_measure(measure)
    d_out = to_spend(d_out)  # so that ten launches at 0.1 fit in 1.0
    share = largest_share((measure, d_out), launches, accumulator=accumulator, delta=delta)

    trials = counted(count(), progress)

    def fits(scale: float) -> bool:
        next(trials)
        try:
            loss = read_map(_made(make_measurement, scale), d_in)
        except OpenDPException as error:
            if isinstance(error, ConcurrentError):
                raise
            raise InvalidValueError(
                f"d_in ({shown(d_in)}) must have a loss at each scale: {str(error).strip()}"
            ) from error
        d_mid = known.validate("d_mid", loss)
        return known.at_most(d_mid, share)  # where OpenDP's check raises on incomparable pairs

    try:
        with closing(trials):
            scale: float = nearest_passing([fits], bounds, None if bounds else float)
    except ValueError as error:
        if isinstance(error, ConcurrentError):
            raise
        raise InvalidValueError(
            f"bounds ({bounds}) must contain the smallest scale for {shown(launches)} "
            f"launches at d_in ({shown(d_in)}) within d_out ({shown(d_out)}); it was not "
            "found there; pass wider bounds"
        ) from error
    return scale


def _made(make_measurement: Callable[[float], Measurement], scale: float) -> Measurement:
    if isinstance(make_measurement, Measurement):
        raise InvalidTypeError(
            "make_measurement must be a function of the scale, found a Measurement"
        )
    return inside.check_measurement("what make_measurement returns", make_measurement(scale))


def _measure_and_bound(privacy_loss: Any) -> tuple[Any, Any]:
    measure, bound = pairs.privacy_loss(privacy_loss=privacy_loss)
    return composition_measure(measure), bound
