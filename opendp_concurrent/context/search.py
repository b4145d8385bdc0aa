"""The smallest noise for a privacy loss, and the largest loss: found by a search.

The loss of noise is close to a power of its scale. So a secant on the logarithms of both comes to
within some doubles of the scale, and a search from there takes 3 to 16 trials in all. A number is
returned only if the condition holds at it, and does not at the next double.

Where that fails, the search takes fewer than 100 trials.
OpenDP's ``binary_search`` halves an interval that may reach down to 0. This takes more than 1,000
trials if the condition raises at 0, as it does for many noise scales. The search here first finds
two powers of 2 around the number, then halves the doubles between them. The result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from fractions import Fraction
from functools import cache
from itertools import count
from math import exp, isfinite, log, sqrt
from sys import float_info
from typing import Any

from .. import _checks as checks
from .. import composition, queryables
from .._opendp import dp
from ..errors import ConcurrentError, Distance, InvalidTypeError, InvalidValueError, Loss, shown
from ..measures import Accumulator, CompositionMeasure, TruncatedConcentrated, composition_measure
from ..numerics import halfway, largest_double, least_double, rho_near, to_spend

Condition = Callable[[Any], bool]  # of an int or a float

_FLOAT_EXPONENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
_INT_EXPONENTS = (1, 2, 4, 8, 16, 30, 62)
_SECANTS = 10  # steps; noise that OpenDP has takes at most 6
_CLOSE, _NEAR = 1e-15, 1e-9  # of a logarithm: stop here, and go on from there; doubles: 2e-16


def nearest_passing(
    conditions: Sequence[Condition],
    bounds: tuple[float | None, float | None] | None = None,
    T: type | str | None = None,  # noqa: N803 - OpenDP's name
    share: Callable[[float], float] | None = None,
) -> Any:
    """Return the number nearest to where a condition changes, on the side where it is true.

    If no condition changes between positive numbers, or one bound is left open, OpenDP's search
    finds the number, or raises.

    :param conditions: each is true on one side of some number and false on the other; the first
        condition that changes decides
    :param bounds: lower and upper bound, as for :func:`opendp.mod.binary_search`
    :param T: ``float`` or ``int``; inferred if left out
    :param share: about 1 where the first condition changes, such as a loss over its bound. The
        search is faster with it, and does not rely on it
    :raises InvalidValueError: if a bound is not finite; OpenDP's search would not end
    """
    lower, upper = _pair(bounds)
    if share is not None and lower is None and upper is None and T in (None, float):
        found = _from_secant(conditions[0], share)
        if found is not None:
            return found
    for condition in conditions:
        if lower is None and upper is None:
            bracket = _bracket(condition, T)
        else:
            bracket = _given(condition, lower, upper) if T is None else None
        if bracket is not None:
            return _halved(condition, *bracket)
    return dp.binary_search(conditions[0], bounds=bounds, T=T)


def _from_secant(condition: Condition, share: Callable[[float], float]) -> float | None:
    """Return the double next to where a condition changes, found from near it; None if it is not.

    The search stops at two neighbouring doubles, after it has tried the condition at both.
    """
    try:
        number, away, slope = 1.0, log(share(1.0)), -1.0  # of noise: twice the scale, half the loss
        for _ in range(_SECANTS):
            after = number * exp(-away / slope)
            if abs(away) <= _CLOSE or after == number:
                break
            before, away = away, log(share(after))
            if abs(before) > _NEAR:  # else rounding has a part in the slope
                slope = (away - before) / log(after / number)
            number = after
        if not abs(away) <= _NEAR:  # the share was no power, or NaN
            return None
        found = (least_double if slope < 0 else largest_double)(condition, number)
    except Exception:  # raised again by the search that follows, if it meets the same
        return None
    return found if 0 < found < float_info.max else None  # or the condition did not change


def share_of(loss: Any, bound: Any) -> float:
    """Return how much of a bound a loss takes; of pairs (ε, δ), how much of ε.

    With a δ, it is how much of the root of ρ, which is a power of the scale of Gaussian noise.
    """
    if isinstance(loss, TruncatedConcentrated):
        return sqrt(loss.rho / bound.rho)
    if not isinstance(loss, tuple):
        return float(loss / bound)
    (epsilon, delta), (most, _) = loss, bound
    if 0 < delta < 1:
        return sqrt(rho_near(epsilon, delta) / rho_near(most, delta))
    return float(epsilon / most)


def _tried(condition: Condition, number: float) -> bool | None:
    """Return whether the condition is true, or None if it raises."""
    try:
        return bool(condition(number))
    except Exception:  # raised again by OpenDP's search, if no other number helps
        return None


def failure_at_one(condition: Condition, kind: type | str | None = None) -> Exception | None:
    """Return what the condition raises at 1, if anything: OpenDP's search reports 0 or a bound.

    :param kind: ``float`` or ``int``; inferred if left out
    """
    kind = _inferred(condition) if kind is None else kind
    try:
        condition(1 if kind is int else 1.0)
    except Exception as error:
        return error
    return None


def _pair(bounds: Sequence[float | None] | None) -> tuple[Any, Any]:
    given = tuple(bounds) if isinstance(bounds, list) else bounds  # OpenDP takes both
    lower, upper = (None, None) if given is None else checks.pair(bounds=given)
    for bound in (lower, upper):
        if isinstance(bound, (int, float)) and not isfinite(bound):
            raise InvalidValueError(f"bounds ({shown(bounds)}) must be finite; leave out an end")
    return lower, upper


def _given(condition: Condition, lower: Any, upper: Any) -> tuple[Any, Any] | None:
    """Return the bounds, the passing one first, if the condition changes between them."""
    if not type(lower) is type(upper) in (float, int):
        return None
    match _tried(condition, lower), _tried(condition, upper):
        case True, False:
            return lower, upper
        case False, True:
            return upper, lower
    return None


def _bracket(condition: Condition, kind: type | str | None) -> tuple[Any, Any] | None:
    """Return two powers of 2 between which the condition changes, the passing one first."""
    kind = _inferred(condition) if kind is None else kind
    if kind is float:
        rising = [2.0**exponent for exponent in _FLOAT_EXPONENTS]
        falling = [1 / power for power in rising]
    elif kind is int:
        rising, falling = [2**exponent for exponent in _INT_EXPONENTS], [0]
    else:
        return None  # a Rust type
    first = kind(1)
    start = _tried(condition, first)
    for ladder in (falling, rising) if start else (rising, falling):  # more noise is more private
        last, was = first, start
        for number in ladder:
            now = _tried(condition, number)
            if now is None and was is not None:
                break
            if was is not None and now is not was:
                return (last, number) if was else (number, last)
            last, was = number, now
    return None


def _inferred(condition: Condition) -> type:
    """Return ``int`` if the condition needs it; like OpenDP, try the condition at 1."""
    try:
        condition(1.0)
    except TypeError:
        return int
    except dp.OpenDPException as error:
        return int if error.variant == "Type" else float
    except Exception:
        return float
    return float


def _halved(condition: Condition, passing: float, failing: float) -> float:
    """Return the last number that passes between ``passing`` and ``failing``."""
    whole = type(passing) is int
    while True:
        low, high = sorted((passing, failing))
        middle = (low + high) // 2 if whole else halfway(low, high)
        if middle == low:  # no number lies between them
            return passing
        if condition(middle):
            passing = middle
        else:
            failing = middle


# The largest loss each of several launches may have, and the smallest noise scale it allows.

_MOST = checks.at_most(2**62, "no session has more")


def _launches(**argument: Any) -> Any:
    """Return a number of launches, or the weights of their losses, or raise."""
    ((_, value),) = argument.items()
    if isinstance(checks.plain(value), int):
        return _MOST(**argument)
    return checks.weights(**argument)


def _bounds(**argument: Any) -> tuple[float, float]:
    """Return two scales, the smaller first, or raise."""
    ((name, _),) = argument.items()
    first, second = checks.pair(**argument)
    lower = checks.positive(**{f"{name}[0]": first})
    upper = checks.positive(**{f"{name}[1]": second})
    if not lower < upper:
        raise InvalidValueError(f"{name} ({lower}, {upper}) must have the smaller scale first")
    return lower, upper


@checks.checked(launches=_launches)
def largest_share(
    privacy_loss: tuple[dp.Measure, Any],
    launches: int | Sequence[float],
    *,
    accumulator: Accumulator | None = None,
    delta: checks.Probability = 0.0,
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
    output_measure, d_out = composition.privacy_loss(privacy_loss=privacy_loss)
    measure: CompositionMeasure[Any] = composition_measure(output_measure)
    budget = measure.validate_budget("d_out", d_out)
    accounting = composition.accumulator_for(measure, accumulator)
    composition.check_budget(accounting, budget)
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
    measure: CompositionMeasure[Any],
    accounting: Accumulator,
    budget: Any,
    counts: list[tuple[Fraction, int]],
    delta: float,
) -> list[Any]:
    """Return the largest shares whose launches the accumulator admits."""
    near, loss = measure.search_family(budget, delta)
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


@checks.checked(make_measurement=checks.function, launches=_MOST, bounds=checks.optional(_bounds))
def smallest_scale(
    make_measurement: Callable[[float], dp.Measurement],
    d_in: Distance,
    d_out: Loss,
    launches: int = 1,
    *,
    accumulator: Accumulator | None = None,
    delta: checks.Probability = 0.0,
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
    dp.assert_features("contrib", "honest-but-curious")
    first = _made(make_measurement, bounds[1] if bounds else 1.0)
    d_in, measure = queryables.validate_d_in(first.input_metric, d_in), first.output_measure
    if d_in == 0:
        raise InvalidValueError(f"d_in ({d_in}) must be above 0: equal inputs need no noise")
    known = composition_measure(measure)
    d_out = to_spend(d_out)  # so that ten launches at 0.1 fit in 1.0
    share = largest_share((measure, d_out), launches, accumulator=accumulator, delta=delta)

    trials = checks.counted(count(), progress)

    @cache
    def lost(scale: float) -> Any:
        next(trials)
        try:
            loss = queryables.read_map(_made(make_measurement, scale), d_in)
        except dp.OpenDPException as error:
            if isinstance(error, ConcurrentError):
                raise
            raise InvalidValueError(
                f"d_in ({shown(d_in)}) must have a loss at each scale: {str(error).strip()}"
            ) from error
        return known.validate("d_mid", loss)

    def fits(scale: float) -> bool:
        return known.at_most(lost(scale), share)  # where OpenDP's check raises on incomparable ones

    try:
        with closing(trials):
            scale: float = nearest_passing(
                [fits], bounds, None if bounds else float, lambda one: share_of(lost(one), share)
            )
    except ValueError as error:
        if isinstance(error, ConcurrentError):
            raise
        raise InvalidValueError(
            f"bounds ({bounds}) must contain the smallest scale for {shown(launches)} "
            f"launches at d_in ({shown(d_in)}) within d_out ({shown(d_out)}); it was not "
            "found there; pass wider bounds"
        ) from error
    return scale


def _made(make_measurement: Callable[[float], dp.Measurement], scale: float) -> dp.Measurement:
    if isinstance(make_measurement, dp.Measurement):
        raise InvalidTypeError(
            "make_measurement must be a function of the scale, found a Measurement"
        )
    return composition.check_measurement("what make_measurement returns", make_measurement(scale))


# The search for a query's missing parameter, given the privacy loss of the query.


def fitted(
    make: Callable[[Any], dp.Measurement],
    output_measure: dp.Measure,
    d_in: Distance,
    d_out: Any,
    bounds: tuple[float | None, float | None] | None = None,
    T: type | str | None = None,  # noqa: N803 - OpenDP's name
) -> dp.Measurement:
    """Return the measurement with the largest loss that is at most ``d_out``.

    The measurement's ``param`` is the number that was found. For pairs (ε, δ) the search uses ε
    alone, as OpenDP's does, because a cast fixes δ, or δ grows while ε falls. If ε is the same for
    all numbers, as for a threshold on keys, the search uses δ too.

    :param make: makes a measurement under ``output_measure`` from a number
    :param bounds: lower and upper bound of the search
    :param T: ``float`` or ``int``; inferred if left out
    :raises InvalidTypeError: if ``d_out`` is None
    :raises InvalidValueError: if the loss is above ``d_out`` for all numbers, or below for all
    """
    if d_out is None:
        raise neither_loss_nor_scale()
    known: CompositionMeasure[Any] = composition_measure(output_measure)
    made = cache(make)  # returns the same measurement that passed the check
    lost = cache(lambda number: queryables.read_map(made(number), d_in))
    answers = set()

    def noted(answer: bool) -> bool:
        answers.add(answer)
        return answer

    def within(number: float) -> bool:
        return noted(known.at_most(known.validate("d_mid", lost(number)), d_out))

    def epsilon_within(number: float) -> bool:
        return noted(bool(lost(number)[0] <= d_out[0]))

    pairs = isinstance(output_measure, dp.ApproximateDivergence)
    try:
        conditions = [epsilon_within, within] if pairs else [within]
        number = nearest_passing(conditions, bounds, T, lambda one: share_of(lost(one), d_out))
    except Exception as error:
        if not answers:  # no measurement could be made; at 0 only the scale would be blamed
            raise (failure_at_one(within, T) or error) from None
        if len(answers) != 1:
            raise  # a loss is unknown
        side, remedy = (
            ("below", "pass the parameter, or other bounds")
            if True in answers
            else ("above", "pass a larger privacy loss (epsilon, rho), or other bounds")
        )
        raise InvalidValueError(
            f"the loss at d_in ({shown(d_in)}) is {side} d_out ({shown(d_out)}) for every value of "
            f"the missing parameter that was tried; {remedy}"
        ) from error
    measurement = made(number)
    measurement.param = number
    return measurement


def neither_loss_nor_scale() -> InvalidTypeError:
    """Return the error for a query that has neither a privacy loss nor the parameter."""
    return InvalidTypeError(
        "the query has neither a privacy loss nor a scale: pass one, such as "
        "context.query(epsilon=0.5) or laplace(scale=2.0)"
    )
