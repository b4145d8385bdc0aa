"""Gaussian noise, sampled by OpenDP, certified under more measures.

OpenDP samples discrete Gaussians: N_Z(0, s²) on a grid, s the scale in steps. For a shift of d
steps it is d²/(2 s²)-zCDP [CKS20, Theorem 14]. In one dimension, for s >= 1/2, it is also
(d+1)/s-Gaussian DP. Proof: the trade-off function is linear between the points (P(X >= j),
P(X < j - d)), and G_μ is convex, so it is enough that z(j) - z(j-d) <= μ for all j, with z(j) the
normal quantile of P(X >= j) = 1 - Φ(z). For j >= 1, with g(x) = exp(-x²/(2 s²)) and
Z = sum of g(i) = s sqrt(2π) (1 + 2 sum of exp(-2 π² s² k²)) (Poisson):

* sum over i >= j of g(i) <= integral of g from j - 1, and Z >= s sqrt(2π): z(j) >= (j-1)/s;
* integral of g from i to i+1 <= g(i) (1 - e^(-y))/y, y = i/s², and y/(1 - e^(-y)) >= 1 + y/2, so
  the sum is at least 1 + 1/(2 s²) times the integral from j, which is more than Z exceeds
  s sqrt(2π) by: z(j) <= j/s.

For j <= 0 both follow from z(j) = -z(1-j). Hence z(j) - z(j-d) <= (j - (j-d-1))/s = (d+1)/s.

Coordinates compose to the root of the sum of squares: n of them, each (d_i + 1)/s, give at most
(|d|_2 + sqrt(n))/s. On the fine grid of floats the term sqrt(n)/s is negligible. For vectors of
integers it is not, and no certificate is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from typing import Any

from .. import _opendp as _native
from .. import composition, errors, fdp, measures, queryables
from .._checks import Finite, Probability, elements, guard, integer, optional, pair
from .._opendp import dp
from ..numerics import upper
from . import noise

LISTED = 4096.0  # scale up to which the outcomes of a discrete Gaussian are listed
MOST_COORDINATES = 2.0**62  # more than a machine's memory holds


@composition.constructor
def make_certified_gaussian(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    scale: Finite,
    output_measure: dp.Measure,
    k: noise.Exponent | None = None,
) -> queryables.ConcurrentMeasurement:
    """Add Gaussian noise, certified under ``output_measure``.

    :func:`~opendp.measurements.make_gaussian` samples the noise.

    * zCDP and tCDP: ρ. Rényi DP, of one order or as a curve: ρ α [CKS20, Theorem 14].
    * Gaussian DP: for floats, sensitivity / ``scale`` plus a term for the grid, which rounding
      absorbs unless ``k`` is coarse; for one integer, (sensitivity + 1) / ``scale``. The proof is
      in ``mechanisms/certified.py``.
    * f-DP: exact for one integer and a scale up to 4096; through Gaussian DP for floats; through
      zCDP for vectors of integers.
    * Other measures: the loss that zCDP implies, by :func:`.cast`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: numbers or vectors of numbers, as in OpenDP
    :param input_metric: absolute or L2 distance
    :param scale: standard deviation of the noise, finite, at least 0
    :param output_measure: how privacy is measured
    :param k: use the grid of multiples of 2^k, for floats only; the finest grid if left out
    :return: a measurement
    :raises UnsupportedMeasureError: if zCDP does not convert to ``output_measure``; for Gaussian DP
        of vectors of integers
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> oc.m.make_certified_gaussian(*space, 2.0, oc.gaussian_tradeoff()).map(1.0)
    0.5000000000000001
    >>> oc.m.make_certified_gaussian(*space, 2.0, oc.fixed_renyi_divergence(alpha=8.0)).map(1.0)
    1.0
    """
    zcdp = noise.built(
        dp.m.make_gaussian,
        input_domain=input_domain,
        input_metric=input_metric,
        scale=scale,
        k=k,
    )
    many, whole = noise.is_vector(input_domain), noise.atom_type(input_domain) not in noise.FINEST

    def gaussian() -> noise.Reading:
        if whole and many:
            raise errors.UnsupportedMeasureError(
                "output_measure (GaussianTradeoff) is not offered for vectors of integers: "
                "OpenDP's discrete Gaussian has no Gaussian DP certificate there; use zCDP, or "
                "floats"
            )
        step = noise.grid_step(input_domain, scale, k)
        if not step <= 2.0:
            raise errors.UnsupportedMeasureError(
                f"scale ({scale}) must be at least half a step of the grid for Gaussian DP"
            )
        coordinates = MOST_COORDINATES if many else 1.0
        extra = upper(lambda real: real(step) * real(coordinates).sqrt())
        return lambda rho: measures.zcdp_to_gaussian(rho, extra)

    def tradeoff() -> noise.Reading:
        if whole and scale <= LISTED:
            return lambda rho: _on_integers(rho, scale)
        mu = gaussian()
        return lambda rho: fdp.TradeoffFunction.gaussian(mu(rho))

    losses: dict[measures.CompositionMeasure[Any], Callable[[], noise.Reading]] = {
        measures.GAUSSIAN_TRADEOFF: gaussian
    }
    if not (whole and many):
        losses[measures.TRADEOFF_DIVERGENCE] = tradeoff
    return noise.certify(
        zcdp, output_measure, losses, noise.gaussian_accuracy(input_domain, scale, k)
    )


def _on_integers(rho: float, scale: float) -> fdp.TradeoffFunction:
    """Trade-off function of the discrete Gaussian for the shift with ρ = shift² / (2 scale²)."""
    if rho == 0.0 or scale == 0.0:
        return fdp.TradeoffFunction.worst() if rho else fdp.TradeoffFunction.identity()
    nearest = scale * sqrt(2 * rho)
    if not nearest <= LISTED:
        return fdp.TradeoffFunction.worst()
    shift = max(1, round(nearest))
    return fdp.TradeoffFunction.discrete_gaussian(scale, shift)


then_certified_gaussian = _native.to_then(make_certified_gaussian)


# Laplace noise, sampled by OpenDP, certified more tightly than by its pure DP guarantee.


@composition.constructor
def make_certified_laplace(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    scale: Finite,
    output_measure: dp.Measure,
    k: noise.Exponent | None = None,
) -> queryables.ConcurrentMeasurement:
    """Add Laplace noise, certified under ``output_measure``.

    :func:`~opendp.measurements.make_laplace` samples the noise, on a grid: the integers, or
    multiples of 2^k. The guarantee holds for the noise on this grid. On a fine grid it is the
    guarantee of the Laplace distribution. For a sensitivity of one step it is the guarantee of
    randomized response.

    * zCDP and tCDP: the Kullback-Leibler divergence, ε + e^(-ε) - 1 for a fine grid [HM25];
    * Rényi DP, of one order or as a curve: exact; [Mir17, Table II] for a fine grid;
    * f-DP: the exact trade-off function of the noise on its grid;
    * other measures: the loss that ε-DP implies, by :func:`.cast`.

    ``measures/conversion.py`` and ``measures/tradeoffs.py`` have formulas and proofs.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: numbers or vectors of numbers, as in OpenDP
    :param input_metric: absolute or L1 distance
    :param scale: scale of the noise, finite, at least 0
    :param output_measure: how privacy is measured
    :param k: use the grid of multiples of 2^k, for floats only; the finest grid if left out
    :return: a measurement
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> oc.m.make_certified_laplace(*space, 1.0, dp.zero_concentrated_divergence()).map(1.0)
    0.36787944117144233
    >>> whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> oc.m.make_certified_laplace(*whole, 1.0, dp.zero_concentrated_divergence()).map(1)
    0.4621171572600098
    """
    pure = noise.built(
        dp.m.make_laplace,
        input_domain=input_domain,
        input_metric=input_metric,
        scale=scale,
        k=k,
    )
    step = noise.grid_step(input_domain, scale, k)
    accuracy = noise.laplace_accuracy(input_domain, scale, k)
    return noise.certify(pure, output_measure, laplace_losses(step), accuracy)


def laplace_losses(step: float) -> noise.Losses:
    """Return the readings of ε of Laplace noise on a grid, for each measure that has one.

    :param step: step of the grid over the scale of the noise
    """
    return {
        measures.ZERO_CONCENTRATED_DIVERGENCE: lambda: lambda e: measures.laplace_to_zcdp(e, step),
        measures.RENYI_DIVERGENCE: lambda: (
            lambda e: lambda alpha: measures.laplace_to_renyi(e, alpha, step)
        ),
        measures.TRADEOFF_DIVERGENCE: lambda: lambda e: measures.laplace_to_tradeoff(e, step),
    }


then_certified_laplace = _native.to_then(make_certified_laplace)


# Two-sided geometric noise, sampled by OpenDP, certified under more measures.


@guard("bounds", None, 1, (1,), (1, 2, 3), (1.0, 2.0), [1, 2])
def _bounds(name: str, value: errors.Argument) -> tuple[int, int]:
    """Return a pair of integers, or raise."""
    lower, upper = pair.check(name, value)
    return integer.check(f"{name}[0]", lower), integer.check(f"{name}[1]", upper)


@composition.constructor(bounds=optional(_bounds))
def make_certified_geometric(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    scale: Finite,
    output_measure: dp.Measure,
    bounds: tuple[int, int] | None = None,
) -> queryables.ConcurrentMeasurement:
    """Add two-sided geometric noise to integers, certified under ``output_measure``.

    :func:`~opendp.measurements.make_geometric` samples the noise. Without ``bounds`` it is Laplace
    noise on the integers, and :func:`.make_certified_laplace` certifies it: exactly for f-DP.
    With ``bounds`` the loss is the one that ε-DP implies, by :func:`.cast`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: integers or vectors of integers, as in OpenDP
    :param input_metric: absolute or L1 distance
    :param scale: scale of the noise, finite, at least 0
    :param output_measure: how privacy is measured
    :param bounds: bounds of the output, for sampling in nearly constant time
    :return: a measurement
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> oc.m.make_certified_geometric(*space, 1.0, oc.tradeoff()).map(1)
    TradeoffFunction(pure(epsilon=1.0))
    """
    geometric = noise.built(
        dp.m.make_geometric,
        input_domain=input_domain,
        input_metric=input_metric,
        scale=scale,
        bounds=bounds,
    )
    if bounds is not None:
        accuracy = noise.laplace_accuracy(input_domain, scale, None)  # the bounds cut noise off
        return noise.certify(geometric, output_measure, {}, accuracy)
    return make_certified_laplace(input_domain, input_metric, scale, output_measure)


then_certified_geometric = _native.to_then(make_certified_geometric)


# Losses of a mechanism's parts, and their composition under one measure.


def composed(measure: dp.Measure, parts: Iterable[tuple[Any, int]]) -> Any:
    """Return the loss of parts that run concurrently. Each is a loss and its number of uses."""
    known = measures.composition_measure(measure)
    total = known.fixed_sum().start(known)
    for loss, count in parts:
        total = total.after(known.validate("d_mid", loss), count)
    return total.loss


def from_pure(epsilon: float, measure: dp.Measure) -> Any:
    """Return the loss under ``measure`` of an ε-DP mechanism."""
    return composition.conversion(dp.max_divergence(), measure)(epsilon)


def laplace_loss(scale: float, shift: int, measure: dp.Measure) -> Any:
    """Return the loss of Laplace noise on the integers."""
    space = dp.atom_domain(T=noise.ATOM), dp.absolute_distance(T=noise.ATOM)
    return make_certified_laplace(*space, scale, measure).map(shift)


# Randomized response, sampled by OpenDP, with its exact Rényi divergence.


@guard("sequence", None, "ab", [], ["a"], ["a", "a"], [[], []])
def _categories(name: str, value: errors.Argument) -> list[Any]:
    """Return distinct values that can be looked up, or raise."""
    found = list(elements("categories", **{name: value}))
    try:
        distinct = len(set(found)) == len(found) and all(one == one for one in found)
    except Exception:
        raise errors.InvalidTypeError(
            f"{name} ({errors.shown(found)}) must have hashable values"
        ) from None
    if not distinct or len(found) < 2:
        raise errors.InvalidValueError(
            f"{name} ({errors.shown(found)}) must have at least two distinct values"
        )
    return found


@composition.constructor
def make_certified_randomized_response_bool(
    prob: Probability, output_measure: dp.Measure, constant_time: bool = False
) -> queryables.ConcurrentMeasurement:
    """Randomized response on one bit, certified under ``output_measure``.

    :func:`~opendp.measurements.make_randomized_response_bool` samples. Rényi DP, of one order or as
    a curve, is exact [Mir17, Table II]. Other measures get the loss that ε-DP implies, by
    :func:`.cast`. It is exact too, because randomized response is the worst case of ε-DP.

    Required features: `contrib`, `honest-but-curious`

    :param prob: probability of the truth, in [1/2, 1)
    :param output_measure: how privacy is measured
    :param constant_time: as in OpenDP
    :return: a measurement on booleans under the discrete distance
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> measure = oc.fixed_renyi_divergence(alpha=2.0)
    >>> oc.m.make_certified_randomized_response_bool(0.75, measure).map(1)
    0.8472978603872037
    """
    pure = noise.built(dp.m.make_randomized_response_bool, prob=prob, constant_time=constant_time)
    return _certify(pure, prob, 2, output_measure)


@composition.constructor(categories=_categories)
def make_certified_randomized_response(
    categories: Sequence[Any],
    prob: Probability,
    output_measure: dp.Measure,
    T: Any = None,  # noqa: N803
) -> queryables.ConcurrentMeasurement:
    """Randomized response over ``categories``, certified under ``output_measure``.

    :func:`~opendp.measurements.make_randomized_response` samples. Rényi DP, of one order or as a
    curve, and f-DP are exact. Other measures get the loss that ε-DP implies, by :func:`.cast`.

    Required features: `contrib`, `honest-but-curious`

    :param categories: at least two, distinct
    :param prob: probability of the truth, in [1/len(categories), 1)
    :param output_measure: how privacy is measured
    :param T: type of a category; inferred if left out
    :return: a measurement on categories under the discrete distance
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> measure = oc.fixed_renyi_divergence(alpha=2.0)
    >>> oc.m.make_certified_randomized_response(["a", "b", "c"], 0.75, measure).map(1)
    1.535970760552228
    """
    pure = noise.built(dp.m.make_randomized_response, categories=categories, prob=prob, T=T)
    return _certify(pure, prob, len(set(categories)), output_measure)


def _certify(
    pure: dp.Measurement, prob: float, categories: int, output_measure: dp.Measure
) -> queryables.ConcurrentMeasurement:
    def function(epsilon: float) -> fdp.TradeoffFunction:
        if epsilon > 0.0:
            return fdp.TradeoffFunction.randomized_response(prob, categories)
        return fdp.TradeoffFunction.identity()

    def divergence(epsilon: float) -> Callable[[float], float]:
        return lambda alpha: (
            measures.response_to_renyi(prob, categories, alpha) if epsilon > 0.0 else 0.0
        )

    losses: noise.Losses = {
        measures.RENYI_DIVERGENCE: lambda: divergence,
        measures.TRADEOFF_DIVERGENCE: lambda: function,
    }

    def wrong(beta: float, answers: int) -> float:
        return 0.0 if 1.0 - prob**answers <= beta else 1.0

    return noise.certify(
        pure, output_measure, losses, queryables.Accuracy("randomized response", prob, wrong, 1)
    )
