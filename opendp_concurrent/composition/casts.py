"""A measurement with the same function and a converted guarantee."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

from opendp.measures import (
    approximate,
    max_divergence,
    renyi_divergence,
    smoothed_max_divergence,
    zero_concentrated_divergence,
)
from opendp.mod import Measure, Measurement

from .. import _checks as checks
from .. import _opendp as _native
from .. import queryables
from ..errors import Distance, InvalidTypeError, Loss, UnsupportedMeasureError
from ..measures import (
    APPROXIMATE,
    FIXED,
    GAUSSIAN,
    PROFILE,
    PURE,
    RENYI,
    TRADEOFF,
    TRUNCATED,
    ZCDP,
    Conversion,
    Ends,
    Profile,
    convertible_kinds,
    convertible_measure,
    fixed_renyi_divergence,
    gaussian_tradeoff,
    tradeoff,
    truncated_concentrated_divergence,
)
from .guards import check_measurement, constructor
from .interactive import make_measurement


def recertify(
    measurement: Measurement,
    to_measure: Measure,
    convert: Callable[[Any], Any],
    accuracy: queryables.Accuracy | None = None,
) -> queryables.ConcurrentMeasurement:
    """Return ``measurement`` under ``to_measure``, with ``convert`` applied to its privacy map.

    :param convert: from a distance of the measurement's measure to one of ``to_measure``, or to a
        :class:`Profile`
    :param accuracy: the error of its answers; that of ``measurement`` if left out
    """
    validate = convertible_measure(measurement.output_measure).validate

    def privacy_map(d_in: Distance) -> Loss:
        distance = convert(validate("d_mid", queryables.read_map(measurement, d_in)))
        return _native.new_privacy_profile(distance) if isinstance(distance, Profile) else distance

    summary = f"Measurement({measurement.output_measure} as {to_measure})"
    return make_measurement(
        measurement.input_space,
        to_measure,
        lambda token: queryables.run(measurement, token),
        privacy_map,
        summary,
        around=measurement,
        accuracy=accuracy or queryables.known_accuracy(measurement),
        releases=True,
        free=_stays_free(measurement, to_measure),
    )


def _stays_free(measurement: Measurement, to_measure: Measure) -> bool:
    """Whether a launch of a cast excludes no other, whatever it costs.

    An (ε, δ) mechanism is a postprocessing of a randomized response that answers once [LW22].
    """
    source = convertible_measure(measurement.output_measure).kind
    if queryables.interactive(measurement) is False or source == APPROXIMATE:
        return True
    return source == convertible_measure(to_measure).kind and queryables.is_free(measurement)


# Convert a measurement's guarantee from one measure to another.
#
# Each measure lists its own conversions with their theorems. This file searches them.


@constructor(orders=checks.optional(checks.orders))
def cast(
    measurement: Measurement,
    to_measure: Measure,
    *,
    delta: checks.Probability | None = None,
    orders: Sequence[float] | None = None,
) -> queryables.ConcurrentMeasurement:
    """Convert the guarantee of a measurement to another measure.

    The cast uses the tightest conversion that is known, or raises if none is known:

    * pure DP to zCDP (ε tanh(ε/2) [Ste24], where OpenDP has ε²/2), to Rényi DP and one of its
      orders (randomized response [BS16]), to tCDP, to Gaussian DP, to (ε, δ) [KOV15];
    * zCDP to Rényi DP, to one order, to tCDP, to (ε, δ) [CKS20, Proposition 12];
    * Gaussian DP to zCDP, and exactly to (ε, δ) [DRS22, Corollary 1];
    * Rényi DP to one of its orders, to (ε, δ) by the best of ``orders``;
    * one order, and tCDP, to (ε, δ) [CKS20, Proposition 12]; one order to a lower one; tCDP to a
      smaller ω, and to one order below ω;
    * (ε, δ) to itself with a larger δ [KOV15]; zCDP and (ε, δ) to approximate zCDP, the latter as
      (ε tanh(ε/2), δ), under finite communication; approximate zCDP to (ε, δ);
    * all of these, and privacy profiles (``dp.smoothed_max_divergence()``), to f-DP: exactly for
      pure, (ε, δ) and Gaussian DP; otherwise by the chords of a profile at about 300 points;
    * f-DP to (ε, δ), exactly or by certified bounds; to Gaussian DP, if the loss is bounded.

    A cast to ``dp.smoothed_max_divergence()`` gives a privacy profile. Apply OpenDP's
    :func:`~opendp.combinators.make_fix_delta` to it. A cast before composing is valid, but the
    total may be larger: compose under the tighter measure, then cast the compositor.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: any measurement, interactive or not
    :param to_measure: the target measure
    :param delta: the δ, if the target is (ε, δ)
    :param orders: for a Rényi curve: the orders at which the curve is evaluated
    :return: a measurement with the same function
    :raises UnsupportedMeasureError: if no conversion is known, with the reason
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    >>> oc.c.cast(count, dp.zero_concentrated_divergence()).map(1)
    0.4621171572600098
    >>> dp.c.make_pureDP_to_zCDP(count).map(1)
    0.5
    >>> oc.c.cast(count, oc.fixed_renyi_divergence(alpha=4.0)).map(1)
    0.8958832596451839
    """
    convert = conversion(measurement.output_measure, to_measure, delta=delta, orders=orders)
    return recertify(measurement, to_measure, convert)


def conversion(
    source: Measure,
    target: Measure,
    *,
    delta: float | None = None,
    orders: Sequence[float] | None = None,
) -> Callable[[Any], Any]:
    """Return the tightest known conversion of distances. Parameters: see :func:`.cast`."""
    grid = None if orders is None else checks.orders(orders=orders)
    at_delta = None if delta is None else checks.probability(delta=delta)
    one, other = convertible_measure(source), convertible_measure(target)
    steps = _path(one.kind, other.kind)
    if at_delta is not None and not other.takes_delta:
        raise InvalidTypeError(
            f"delta must be left out for a cast to {target}; it is for a cast to (epsilon, delta)"
        )
    ends = Ends(one, other, at_delta, grid)
    for step in steps:
        step.require(ends)

    def convert(distance: Distance) -> Any:
        for step in steps:
            distance = step.convert(distance, ends)
        return distance

    return convert


def conversions() -> dict[tuple[str, str], Conversion]:
    """Return all one-step conversions, keyed by the kinds of source and target."""
    kinds = convertible_kinds()
    known = {
        (one, other): step
        for one, cls in kinds.items()
        for other, step in cls.conversions_to.items()
    }
    for other, cls in kinds.items():
        for one, step in cls.conversions_from.items():
            known.setdefault((one, other), step)
    return known


def _path(source: str, target: str) -> list[Conversion]:
    """Return one conversion if there is one, otherwise two by way of zCDP, or raise."""
    known = conversions()
    if (source, target) in known:
        return [known[source, target]]
    if source == target:
        return []
    if (source, ZCDP) in known and (ZCDP, target) in known:
        return [known[source, ZCDP], known[ZCDP, target]]
    steps = {source, ZCDP} if (source, ZCDP) in known else {source}
    reached = sorted({other for one, other in known if one in steps} - {source})
    raise UnsupportedMeasureError(
        f"there is no conversion from {source} to {target}: {convertible_kinds()[source].why_not}"
        + (f"; measures that can be reached from {source}: {', '.join(reached)}" if reached else "")
    )


# The named casts. Each is one step of :func:`.cast`, with a name spelled as in OpenDP.

_SOURCES = {  # name of a source measure, and a measurement under it for the example
    PURE: ("ε-DP", "dp.m.make_laplace(*space, scale=1.0)"),
    ZCDP: ("ρ-zCDP", "dp.m.make_gaussian(*space, scale=1.0)"),
    GAUSSIAN: (
        "μ-Gaussian DP",
        "oc.m.make_certified_gaussian(*space, 1.0, oc.gaussian_tradeoff())",
    ),
    RENYI: ("Rényi DP", "oc.m.make_certified_gaussian(*space, 1.0, dp.renyi_divergence())"),
    FIXED: (
        "Rényi DP of one order",
        "oc.m.make_certified_gaussian(*space, 1.0, oc.fixed_renyi_divergence(10.0))",
    ),
    TRUNCATED: (
        "tCDP",
        "oc.m.make_certified_gaussian(*space, 1.0, oc.truncated_concentrated_divergence(20.0))",
    ),
    APPROXIMATE: ("(ε, δ)-DP", "dp.c.make_approximate(dp.m.make_laplace(*space, scale=1.0))"),
    TRADEOFF: ("f-DP", "oc.m.make_certified_laplace(*space, 1.0, oc.tradeoff())"),
    PROFILE: (
        "``dp.smoothed_max_divergence()``",
        "dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1.0))",
    ),
}
_PARAMETERS: dict[str, tuple[Any, str, str]] = {  # type, meaning, value in the example
    "alpha": (float, "order, finite and above 1", "4.0"),
    "omega": (float, "end of the orders, above 1", "16.0"),
    "orders": (Sequence[float], "at which the curve is evaluated", "[2, 4, 8, 16]"),
    "delta": (float, "at least the measurement's δ, at most 1", "1e-3"),
}
_OF_THE_CAST = ("delta", "orders")  # the others describe the target
_BEST = """Convert Rényi DP to a privacy profile, by the best of ``orders``.

Each order uses [CKS20, Proposition 12]. Apply ``make_fix_delta`` to the result."""
_UP_TO_OMEGA = """Convert (ρ, ω)-tCDP to a privacy profile, by the best of the orders up to ω.

Each order uses [CKS20, Proposition 12]. Apply ``make_fix_delta`` to the result."""
_DOC = """\
{sentence}

Required features: `contrib`, `honest-but-curious`

:param measurement: under {under}{parameter}
:return: a measurement with the same function
:raises InvalidTypeError, InvalidValueError, UnsupportedMeasureError: naming the argument

:example:

>>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
>>> mechanism = {mechanism}
>>> oc.c.{name}(mechanism{argument}).map(1.0){reading}
{shown}
"""
Cast = Callable[..., queryables.ConcurrentMeasurement]


def _named(
    name: str,
    source: str,
    target: Callable[..., Measure],
    sentence: str,
    example: str,
    parameter: str = "",
) -> Cast:
    """Build a cast with a signature and a docstring.

    :param source: kind of the measurement's measure
    :param target: makes the target measure
    :param sentence: what the cast does, with its theorem
    :param example: how the example evaluates the loss, `` -> `` and the loss
    :param parameter: name of the cast's one parameter, if it has one
    """
    kind, meaning, value = _PARAMETERS.get(parameter, (None, "", ""))
    either = Parameter.POSITIONAL_OR_KEYWORD
    taken = [Parameter("measurement", either, annotation=Measurement)]
    if parameter:
        taken.append(Parameter(parameter, either, annotation=kind))
    signature = Signature(taken, return_annotation=queryables.ConcurrentMeasurement)

    def make(*args: Any, **kwargs: Any) -> queryables.ConcurrentMeasurement:
        given = signature.bind(*args, **kwargs).arguments
        measurement = check_measurement("measurement", given.pop("measurement"))
        found = convertible_measure(measurement.output_measure).kind
        if found != source:
            raise UnsupportedMeasureError(f"measurement must be under {source}, found {found}")
        if "delta" in given:
            given["delta"] = checks.probability(delta=given["delta"])
        options = {key: given.pop(key) for key in _OF_THE_CAST if key in given}
        converted: queryables.ConcurrentMeasurement = cast(measurement, target(**given), **options)
        return converted

    under, mechanism = _SOURCES[source]
    reading, shown = example.rsplit(" -> ", 1)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = _DOC.format(
        sentence=sentence,
        under=under,
        parameter=f"\n:param {parameter}: {meaning}" if parameter else "",
        mechanism=mechanism,
        name=name,
        argument=f", {parameter}={value}" if parameter else "",
        reading=reading,
        shown=shown,
    )
    make.__annotations__ = {one.name: one.annotation for one in taken} | {
        "return": queryables.ConcurrentMeasurement
    }
    vars(make)["__signature__"] = signature
    return make


def _approximate() -> Measure:
    return approximate(max_divergence())


# fmt: off
make_pureDP_to_zCDP = _named("make_pureDP_to_zCDP", PURE, zero_concentrated_divergence,
    "Convert ε-DP to ε tanh(ε/2)-zCDP [Ste24]; OpenDP's cast of this name uses ε²/2.",
    " -> 0.4621171572600098")
make_pureDP_to_RDP = _named("make_pureDP_to_RDP", PURE, renyi_divergence,
    "Convert ε-DP to Rényi DP, with the curve of randomized response [BS16, Lemma 1.4].",
    "(4.0) -> 0.8958832596451839")
make_pureDP_to_fixedRDP = _named("make_pureDP_to_fixedRDP", PURE, fixed_renyi_divergence,
    "Convert ε-DP to Rényi DP of order ``alpha``, as for randomized response [BS16, Lemma 1.4].",
    " -> 0.8958832596451839", "alpha")
make_pureDP_to_tCDP = _named("make_pureDP_to_tCDP", PURE, truncated_concentrated_divergence,
    "Convert ε-DP to (ε tanh(ε/2), ω)-tCDP, for every ω [Ste24].",
    " -> TruncatedConcentrated(rho=0.4621171572600098, omega=16.0)", "omega")
make_pureDP_to_GDP = _named("make_pureDP_to_GDP", PURE, gaussian_tradeoff,
    "Convert ε-DP to Gaussian DP with Φ(μ/2) = e^ε / (1 + e^ε), as for randomized response.",
    " -> 1.232035385344901")
make_zCDP_to_RDP = _named("make_zCDP_to_RDP", ZCDP, renyi_divergence,
    "Convert ρ-zCDP to Rényi DP with the curve ρ α [BS16, Definition 1.1].", "(4.0) -> 2.0")
make_zCDP_to_fixedRDP = _named("make_zCDP_to_fixedRDP", ZCDP, fixed_renyi_divergence,
    "Convert ρ-zCDP to Rényi DP of order ``alpha``, ρ α [BS16, Def. 1.1].", " -> 2.0", "alpha")
make_zCDP_to_tCDP = _named("make_zCDP_to_tCDP", ZCDP, truncated_concentrated_divergence,
    "Convert ρ-zCDP to (ρ, ω)-tCDP, for every ω [BDRS18].",
    " -> TruncatedConcentrated(rho=0.5, omega=16.0)", "omega")
make_GDP_to_zCDP = _named("make_GDP_to_zCDP", GAUSSIAN, zero_concentrated_divergence,
    "Convert μ-Gaussian DP to μ²/2-zCDP [BS16, Proposition 1.6].", " -> 0.5000000000000003")
make_GDP_to_approxDP = _named("make_GDP_to_approxDP", GAUSSIAN, smoothed_max_divergence,
    "Convert μ-Gaussian DP exactly to a profile [DRS22, Corollary 1]; then ``make_fix_delta``.",
    ".delta(4.0) -> 4.7122412007931394e-05")
make_RDP_to_fixedRDP = _named("make_RDP_to_fixedRDP", RENYI, fixed_renyi_divergence,
    "Convert Rényi DP to Rényi DP of order ``alpha``.", " -> 2.0", "alpha")
make_RDP_to_approxDP = _named("make_RDP_to_approxDP", RENYI, smoothed_max_divergence,
    _BEST, ".delta(4.0) -> 0.00026143089363278", "orders")
make_fixedRDP_to_approxDP = _named("make_fixedRDP_to_approxDP", FIXED, smoothed_max_divergence,
    "Convert Rényi DP of one order to a profile [CKS20, Proposition 12]; then ``make_fix_delta``.",
    ".delta(4.0) -> 1.0")
make_tCDP_to_approxDP = _named("make_tCDP_to_approxDP", TRUNCATED, smoothed_max_divergence,
    _UP_TO_OMEGA, ".delta(4.0) -> 0.00019579541695772162")
make_larger_delta = _named("make_larger_delta", APPROXIMATE, _approximate,
    "Convert (ε, δ)-DP to a larger δ, and so to a smaller ε [KOV15, Theorem 3.3].",
    " -> (0.9986311841577259, 0.001)", "delta")
make_pureDP_to_fDP = _named("make_pureDP_to_fDP", PURE, tradeoff,
    "Convert ε-DP to f-DP, as for randomized response [KOV15, Theorem 3.3].",
    " -> TradeoffFunction(pure(epsilon=1.0))")
make_approxDP_to_fDP = _named("make_approxDP_to_fDP", APPROXIMATE, tradeoff,
    "Convert (ε, δ)-DP to f-DP [DRS22, Prop. 2.5].", " -> TradeoffFunction(pure(epsilon=1.0))")
make_GDP_to_fDP = _named("make_GDP_to_fDP", GAUSSIAN, tradeoff,
    "Convert μ-Gaussian DP to f-DP.", " -> TradeoffFunction(gaussian(mu=1.0000000000000002))")
make_zCDP_to_fDP = _named("make_zCDP_to_fDP", ZCDP, tradeoff,
    "Convert ρ-zCDP to f-DP, by chords of its privacy profile [CKS20, Proposition 12].",
    ".delta(4.0) -> 0.00019683...")
make_fDP_to_approxDP = _named("make_fDP_to_approxDP", TRADEOFF, smoothed_max_divergence,
    "Convert f-DP to a privacy profile; then ``make_fix_delta``.", ".delta(0.5) -> 0.22119921...")
make_fDP_to_GDP = _named("make_fDP_to_GDP", TRADEOFF, gaussian_tradeoff,
    "Convert f-DP with a bounded loss to Gaussian DP, by certified comparisons.", " -> 1.03006...")
make_profile_to_fDP = _named("make_profile_to_fDP", PROFILE, tradeoff,
    "Convert a privacy profile to f-DP, by chords at about 300 points [DRS22, Proposition 2.12].",
    ".delta(4.0) -> 0.00019683...")
# fmt: on
