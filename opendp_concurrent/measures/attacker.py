"""What a privacy loss means for one person: bounds on every attacker.

An attacker knows all data but those of one unit, sees everything that was released, and guesses
which of two neighbouring inputs it came from. All of his chances follow from the trade-off function
f that the loss implies, or from its privacy profile δ(ε) = 1 + f*(-e^ε) [DRS22, Proposition 2.13]:

* his advantage, the true minus the false positive rate, is at most max 1 - α - f(α) = δ(0);
* with a prior p that it was the second input, he is right with probability at most
  max p (1 - f(α)) + (1 - p) (1 - α) = 1 - p + p δ(ln((1 - p) / p));
* at a false positive rate α, his true positive rate is at most 1 - f(α).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from .._checks import checked, positive
from ..errors import Argument, D, Loss
from ..fdp import TradeoffFunction, profile_to_tradeoff
from ..numerics import double_up, lower
from . import opendp as native
from .conversion import Ends
from .measure import CompositionMeasure
from .registry import composition_measure
from .tradeoffs import TO_TRADEOFF

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
