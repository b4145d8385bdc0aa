"""The table of privacy measures; and what is asked of any: its object, a number to draw, the risk.

Everything that differs between measures is asked of the measure object: see
:class:`.CompositionMeasure`. To add a measure, write its class in a file of this package, and add a
line to the table; one of another package is added by :func:`register`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from inspect import isabstract
from math import ceil
from typing import Any, TypeVar

from .._checks import checked, positive
from ..errors import (
    Argument,
    D,
    InvalidTypeError,
    InvalidValueError,
    Loss,
    UnsupportedMeasureError,
    shown,
)
from ..fdp import TradeoffFunction, profile_to_tradeoff
from ..numerics import double_up, lower
from . import divergences
from . import opendp as native
from .conversion import Ends
from .measure import CompositionMeasure, Convertible
from .opendp import is_extrinsic, is_measure
from .renyi import ApproximateRenyiDivergence, FixedRenyiDivergence, RenyiDivergence
from .tradeoffs import TO_TRADEOFF, GaussianTradeoff, TradeoffDivergence
from .truncated import TruncatedConcentratedDivergence

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
        divergences.MaxDivergence,
        divergences.ApproximateMaxDivergence,
        divergences.ZeroConcentratedDivergence,
        divergences.ApproximateZeroConcentratedDivergence,
        RenyiDivergence,
    )
}


def registered() -> tuple[type[CompositionMeasure[Any]], ...]:
    """Return the classes of all measures, also those of other packages."""
    return tuple(_KNOWN.values())


def register(measure: C) -> C:
    """Register a measure, see ``oc.extend.register``."""
    if not isinstance(measure, type) or not issubclass(measure, CompositionMeasure):
        raise InvalidTypeError(
            f"measure must be a subclass of CompositionMeasure, found {shown(measure)}"
        )
    missing = [name for name in _NEEDED if not hasattr(measure, name)]
    if isabstract(measure) or missing:
        lacking = ", ".join([*missing, *sorted(measure.__abstractmethods__)])
        raise InvalidTypeError(f"measure ({measure.__name__}) must define {lacking}")
    kind, tag = measure.kind, measure.tag
    known = convertible_kinds().get(kind)
    names = (measure.__module__, measure.__qualname__)
    if known is not None and (known.__module__, known.__qualname__) != names:
        raise InvalidValueError(
            f"measure.kind ({kind!r}) is already the kind of "
            f"{known.__module__}.{known.__qualname__}; choose another"
        )
    for other in _KNOWN.values():
        if tag and other.tag == tag and other is not known:
            raise InvalidValueError(
                f"measure.tag ({tag!r}) is already the tag of {other.kind}; choose another"
            )
    _KNOWN[kind] = measure  # a class that was defined anew takes the older one's place
    _kept.cache_clear()
    return measure


def _search(output_measure: Argument) -> CompositionMeasure[Any] | None:
    return next(filter(None, (one.find(output_measure) for one in _KNOWN.values())), None)


_kept = lru_cache(maxsize=16)(_search)  # OpenDP compares measures of its own by all that they are


def composition_measure(output_measure: Argument) -> CompositionMeasure[Any]:
    """Return the measure object, with everything that is known about OpenDP's.

    :param output_measure: OpenDP's
    :raises UnsupportedMeasureError: with the list of those that are known

    :example:

    >>> oc.extend.composition_measure(dp.zero_concentrated_divergence()).distance_form
    'rho'
    """
    if not is_measure(output_measure):
        raise InvalidTypeError(
            f"output_measure must be a measure, found {type(output_measure).__name__}; "
            "pass for example dp.max_divergence()"
        )
    found = (_search if is_extrinsic(output_measure) else _kept)(output_measure)
    if found is not None:
        return found
    raise UnsupportedMeasureError(
        f"output_measure ({output_measure}) has no composition rule here; known are: "
        f"{', '.join(sorted(_KNOWN))}; a measure of your own is registered by "
        "oc.extend.register"
    )


def convertible_measure(measure: Argument) -> Convertible[Any]:
    """Return the measure object, also for privacy profiles, which are not composed.

    :raises UnsupportedMeasureError: with the list of those that are composed
    """
    profile: Convertible[Any] | None = None
    if is_measure(measure):
        profile = divergences.SmoothedMaxDivergence.find(measure)
    return composition_measure(measure) if profile is None else profile


def convertible_kinds() -> dict[str, type[Convertible[Any]]]:
    """Return the classes of all measures by kind, privacy profiles too."""
    return {**_KNOWN, divergences.SmoothedMaxDivergence.kind: divergences.SmoothedMaxDivergence}


def by_tag(tag: str) -> CompositionMeasure[Any] | None:
    """Return the measure that a ledger recorded by name; None if none is registered."""
    return next(filter(None, (one.from_tag(tag) for one in _KNOWN.values())), None)


# The number that is drawn for a privacy loss; the measure chooses it.

Under = CompositionMeasure[Any] | type[CompositionMeasure[Any]] | None


def height(
    loss: Loss, order: float | None = None, *, of: str = "losses", under: Under = None
) -> float:
    """Return the number that is drawn for a loss, or raise.

    It is the ε of a pair (ε, δ), the ρ of truncated concentrated DP, the ε of a trade-off function
    at δ = 1e-6, and the value of a Rényi curve at ``order``, or at the smallest order of its grid.

    :param of: name of the argument, for the message
    :param under: the measure, if it is known
    """
    measure = under or _measure_of(loss)
    if measure is None:
        raise InvalidTypeError(f"{of} must be privacy losses, found {shown(loss)}")
    return measure.height(loss, order, of)


def name(loss: Loss | None, order: float | None = None, *, under: Under = None) -> str:
    """Return the name of the number that :func:`height` returns for a loss."""
    measure = under or _measure_of(loss)
    return "loss" if measure is None else measure.symbol(loss, order)


def _measure_of(loss: Loss | None) -> type[CompositionMeasure[Any]] | None:
    """Return a measure under which the value would be a loss; those of this package come first."""
    for one in registered():
        try:
            if one.is_loss(loss):
                return one
        except Exception:  # of a class of another package
            continue
    return None


# What a privacy loss means for one person: bounds on every attacker.
#
# An attacker knows all data but those of one unit, sees everything that was released, and guesses
# which of two neighbouring inputs it came from. All of his chances follow from the trade-off
# function f that the loss implies, or from its privacy profile δ(ε) = 1 + f*(-e^ε) [DRS22,
# Proposition 2.13]:
#
# * his advantage, the true minus the false positive rate, is at most max 1 - α - f(α) = δ(0);
# * with a prior p that it was the second input, he is right with probability at most
#   max p (1 - f(α)) + (1 - p) (1 - α) = 1 - p + p δ(ln((1 - p) / p));
# * at a false positive rate α, his true positive rate is at most 1 - f(α).

FALSE_POSITIVES = 0.05
_ORDERS = (1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 64.0)  # at which a Rényi curve is read


@dataclass(frozen=True, slots=True)
class Risk:
    """What an attacker can do at most, rounded up.

    :ivar prior: probability, before he saw anything, that the person is in the data
    :ivar success: probability that his best guess is right
    :ivar advantage: true positive rate minus false positive rate
    :ivar true_positives: true positive rate at 5 % false positives
    :ivar tradeoff: the trade-off function from which they follow, to draw it
        (:func:`.plot_tradeoff`)
    """

    prior: float
    success: float
    advantage: float
    true_positives: float
    tradeoff: TradeoffFunction

    def __str__(self) -> str:
        before = max(self.prior, 1 - self.prior)
        return (
            f"a guess is right with probability at most {rounded_up(self.success)} (before: "
            f"{before:.4g}), the advantage at most {rounded_up(self.advantage)}, true positives at "
            f"most {rounded_up(self.true_positives)} at 5 % false positives"
        )


def rounded_up(bound: float) -> str:
    """Return a bound with four digits, rounded up: not for what double arithmetic has added."""
    return f"{ceil(1e4 * bound - 1e-6) / 1e4:g}"


PRIOR = positive.narrowed(lambda one: one < 1.0, "be below 1: it is a probability", 1.0)


@checked(prior=PRIOR)
def risk(output_measure: Argument, d_out: Loss, *, prior: float = 0.5) -> Risk:
    """Return what an attacker can do at most who sees all that was released at a loss.

    He knows the data of everybody else, and any facts about the person. For a group of k people,
    pass the loss at the distance of k. These are upper bounds; most attackers do worse.

    :param output_measure: how privacy is measured
    :param d_out: the loss, such as ``privacy_loss()`` of a handle
    :param prior: probability, before he saw anything, that the person is in the data; in (0, 1)
    :return: ``success``, ``advantage``, ``true_positives`` (at 5 % false positives), ``prior``, and
        the ``tradeoff`` function from which they follow
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if no conversion from the measure to f-DP is known

    :example:

    >>> found = oc.measures.risk(*dp.loss_of(epsilon=1.0), prior=0.5)
    >>> round(found.advantage, 4), round(found.success, 4), round(found.true_positives, 4)
    (0.4621, 0.7311, 0.1359)
    """
    measure = composition_measure(output_measure)
    return risk_of(measure, measure.validate("d_out", d_out), prior)


def risk_of(measure: CompositionMeasure[D], loss: D, prior: float) -> Risk:
    """Return :func:`risk` of a valid loss."""
    f = _tradeoff(measure, loss)
    odds = 0.0 if prior == 0.5 else lower(lambda real: ((1 - real(prior)) / real(prior)).ln())
    known = Fraction(prior)
    success = 1 - known + known * Fraction(f.delta(odds))
    found = 1 - Fraction(f.beta(FALSE_POSITIVES))
    return Risk(prior, double_up(success), f.delta(0.0), double_up(found), f)


def _tradeoff(measure: CompositionMeasure[D], loss: D) -> TradeoffFunction:
    if isinstance(loss, TradeoffFunction):
        return loss
    if measure.kind in (native.APPROXIMATE_ZCDP, native.APPROXIMATE_FIXED):
        profile = measure.conversions_to[native.PROFILE].convert(loss, Ends(measure, None))
        return profile_to_tradeoff(profile)
    step = TO_TRADEOFF.get(measure.kind) or measure.conversions_to[native.TRADEOFF]
    made: TradeoffFunction = step.convert(loss, Ends(measure, None, orders=_ORDERS))
    return made
