"""The table of privacy measures: the class of each kind, and the object for OpenDP's measure.

Everything that differs between measures is asked of the measure object: see
:class:`.CompositionMeasure`. To add a measure, write its class in a file of this package, and add a
line to the table; one of another package is added by :func:`register`.
"""

from functools import lru_cache
from inspect import isabstract
from typing import Any, TypeVar

from .. import errors
from .approximate import ApproximateMaxDivergence, SmoothedMaxDivergence
from .gaussian import GaussianTradeoff
from .max_divergence import MaxDivergence
from .measure import CompositionMeasure, Convertible
from .opendp import is_extrinsic, is_measure
from .renyi import ApproximateRenyiDivergence, FixedRenyiDivergence, RenyiDivergence
from .tradeoffs import TradeoffDivergence
from .truncated import TruncatedConcentratedDivergence
from .zero_concentrated import ApproximateZeroConcentratedDivergence, ZeroConcentratedDivergence

C = TypeVar("C", bound=type[CompositionMeasure[Any]])
_NEEDED = ("kind", "zero", "total", "reason", "distance_form")

_KNOWN: dict[str, type[CompositionMeasure[Any]]] = {  # those with a descriptor are found at once
    one.kind: one
    for one in (
        TradeoffDivergence,
        GaussianTradeoff,
        TruncatedConcentratedDivergence,
        FixedRenyiDivergence,
        ApproximateRenyiDivergence,
        MaxDivergence,
        ApproximateMaxDivergence,
        ZeroConcentratedDivergence,
        ApproximateZeroConcentratedDivergence,
        RenyiDivergence,
    )
}


def registered() -> tuple[type[CompositionMeasure[Any]], ...]:
    """Return the classes of all measures, also those of other packages."""
    return tuple(_KNOWN.values())


def register(measure: C) -> C:
    """Register a measure, see ``oc.extend.register``."""
    if not isinstance(measure, type) or not issubclass(measure, CompositionMeasure):
        raise errors.InvalidTypeError(
            f"measure must be a subclass of CompositionMeasure, found {errors.shown(measure)}"
        )
    missing = [name for name in _NEEDED if not hasattr(measure, name)]
    if isabstract(measure) or missing:
        lacking = ", ".join([*missing, *sorted(measure.__abstractmethods__)])
        raise errors.InvalidTypeError(f"measure ({measure.__name__}) must define {lacking}")
    kind, tag = measure.kind, measure.tag
    known = convertible_kinds().get(kind)
    names = (measure.__module__, measure.__qualname__)
    if known is not None and (known.__module__, known.__qualname__) != names:
        raise errors.InvalidValueError(
            f"measure.kind ({kind!r}) is already the kind of "
            f"{known.__module__}.{known.__qualname__}; choose another"
        )
    for other in _KNOWN.values():
        if tag and other.tag == tag and other is not known:
            raise errors.InvalidValueError(
                f"measure.tag ({tag!r}) is already the tag of {other.kind}; choose another"
            )
    _KNOWN[kind] = measure  # a class that was defined anew takes the older one's place
    _kept.cache_clear()
    return measure


def _search(output_measure: errors.Argument) -> CompositionMeasure[Any] | None:
    return next(filter(None, (one.find(output_measure) for one in _KNOWN.values())), None)


_kept = lru_cache(maxsize=16)(_search)  # OpenDP compares measures of its own by all that they are


def composition_measure(output_measure: errors.Argument) -> CompositionMeasure[Any]:
    """Return the measure object, with everything that is known about OpenDP's.

    :param output_measure: OpenDP's
    :raises UnsupportedMeasureError: with the list of those that are known

    :example:

    >>> oc.extend.composition_measure(dp.zero_concentrated_divergence()).distance_form
    'rho'
    """
    if not is_measure(output_measure):
        raise errors.InvalidTypeError(
            f"output_measure must be a measure, found {type(output_measure).__name__}; "
            "pass for example dp.max_divergence()"
        )
    found = (_search if is_extrinsic(output_measure) else _kept)(output_measure)
    if found is not None:
        return found
    raise errors.UnsupportedMeasureError(
        f"output_measure ({output_measure}) has no composition rule here; known are: "
        f"{', '.join(sorted(_KNOWN))}; a measure of your own is registered by "
        "oc.extend.register"
    )


def convertible_measure(measure: errors.Argument) -> Convertible[Any]:
    """Return the measure object, also for privacy profiles, which are not composed.

    :raises UnsupportedMeasureError: with the list of those that are composed
    """
    profile: Convertible[Any] | None = None
    if is_measure(measure):
        profile = SmoothedMaxDivergence.find(measure)
    return composition_measure(measure) if profile is None else profile


def convertible_kinds() -> dict[str, type[Convertible[Any]]]:
    """Return the classes of all measures by kind, privacy profiles too."""
    return {**_KNOWN, SmoothedMaxDivergence.kind: SmoothedMaxDivergence}


def by_tag(tag: str) -> CompositionMeasure[Any] | None:
    """Return the measure that a ledger recorded by name; None if none is registered."""
    return next(filter(None, (one.from_tag(tag) for one in _KNOWN.values())), None)


# The number that is drawn for a privacy loss; the measure chooses it.

Under = CompositionMeasure[Any] | type[CompositionMeasure[Any]] | None


def height(
    loss: errors.Loss, order: float | None = None, *, of: str = "losses", under: Under = None
) -> float:
    """Return the number that is drawn for a loss, or raise.

    It is the ε of a pair (ε, δ), the ρ of truncated concentrated DP, the ε of a trade-off function
    at δ = 1e-6, and the value of a Rényi curve at ``order``, or at the smallest order of its grid.

    :param of: name of the argument, for the message
    :param under: the measure, if it is known
    """
    measure = under or _measure_of(loss)
    if measure is None:
        raise errors.InvalidTypeError(f"{of} must be privacy losses, found {errors.shown(loss)}")
    return measure.height(loss, order, of)


def name(loss: errors.Loss | None, order: float | None = None, *, under: Under = None) -> str:
    """Return the name of the number that :func:`height` returns for a loss."""
    measure = under or _measure_of(loss)
    return "loss" if measure is None else measure.symbol(loss, order)


def _measure_of(loss: errors.Loss | None) -> type[CompositionMeasure[Any]] | None:
    """Return a measure under which the value would be a loss; those of this package come first."""
    for one in registered():
        try:
            if one.is_loss(loss):
                return one
        except Exception:  # of a class of another package
            continue
    return None
