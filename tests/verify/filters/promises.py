"""The promises of all measures and accumulators of the package, to test against all analysts.

:func:`promises` lists them. ``Promise.check`` takes the ε of a menu of randomized responses and the
number of launches that pay for the budget. It compares the loss of the worst analyst with the
promised loss. The accumulators and rules are those of the package itself.
"""

from __future__ import annotations

from functools import partial

from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.rule import from_rule

from . import promised_sums as sums
from .promise import Check, Promise
from .promised_approximate import (
    ORDER_PARTS,
    PARTS,
    RHO_PARTS,
    RULES,
    approximate,
    approximate_fixed,
    approximate_zcdp,
    ladder_at_delta,
)

EPSILON, MU, FUNCTION = ("epsilon",), ("mu",), ("function",)


def promises(loosened: float = 1.0) -> list[Promise]:
    """List the promises of all measures and accumulators of the package.

    :param loosened: the budget of each filter divided by the promised loss. Above 1 the promises
        can be broken, which shows that the check can fail
    """
    all_of_them: dict[str, tuple[tuple[str, ...], Check]] = {
        "MaxDivergence, sum": (EPSILON, partial(sums.pure, basic())),
        "MaxDivergence, compositor": (EPSILON, sums.pure_compositor),
        "MaxDivergence, from_rule": (EPSILON, partial(sums.pure, from_rule(sums.ExactSum()))),
        **{
            f"Approximate(MaxDivergence), {name}": (PARTS, partial(approximate, name))
            for name in RULES
        },
        "Approximate(MaxDivergence), ladder": (EPSILON, ladder_at_delta),
        "ZeroConcentratedDivergence, sum": (("rho",), sums.zcdp_sum),
        "Approximate(ZeroConcentratedDivergence), sum": (RHO_PARTS, approximate_zcdp),
        "ApproximateRenyiDivergence, sum": (ORDER_PARTS, approximate_fixed),
        "RenyiDivergence, orders": (("curve",), sums.renyi_curve),
        "FixedRenyiDivergence, sum": (("divergence",), sums.fixed_renyi),
        "TruncatedConcentratedDivergence, sum": (("rho", "omega"), sums.truncated_sum),
        "GaussianTradeoff, squares": (MU, sums.squares),
        "Tradeoff, compositor": (FUNCTION, sums.compositor),
        "Tradeoff, slots": (FUNCTION, sums.slots),
        "Tradeoff, ladder": (FUNCTION, sums.ladder_units),
        "Tradeoff, residue": (MU, sums.gaussian_residue),
    }
    return [Promise(name, *parts, loosened) for name, parts in all_of_them.items()]
