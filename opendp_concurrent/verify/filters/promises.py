"""Every (measure, rule) that the package offers, with its promise, to be held against analysts.

``promises()`` lists them; each takes the ε of a menu of randomized responses and how many launches
of each its budget is made for, and tells what the worst analyst reaches and what was promised. The
accumulators and rules are those of production. ``promise.py`` says what budgets are.
"""

from __future__ import annotations

from ...accumulators.basic import basic
from ...checks import checked, positive
from .promise import Promise
from .promised_approximate import PARTS, RHO_PARTS, RULES, approximate, approximate_zcdp
from .promised_sums import (
    fixed_renyi,
    pure,
    pure_compositor,
    pure_from_rule,
    renyi_curve,
    truncated_sum,
    zcdp_sum,
)
from .promised_tradeoffs import compositor, residues, rungs, slots, squares

EPSILON, MU, FUNCTION = ("epsilon",), ("mu",), ("function",)


@checked(loosened=positive)
def promises(loosened: float = 1.0) -> list[Promise]:
    """All measures and rules of the package.

    :param loosened: the factor by which the rules are given a larger budget than is promised; above
        1 the promises can be broken, which shows that the check can fail

    :example:

    >>> from opendp_concurrent import verify
    >>> for promise in verify.promises()[:2]:
    ...     outcomes = promise.check([0.5, 1.0], counts=[2, 1])
    ...     print(promise.name, all(outcome.excess <= 1e-12 for outcome in outcomes))
    MaxDivergence, sum True
    MaxDivergence, compositor True
    """
    all_of_them = {
        "MaxDivergence, sum": (EPSILON, pure(basic())),
        "MaxDivergence, compositor": (EPSILON, pure_compositor),
        "MaxDivergence, from_rule": (EPSILON, pure_from_rule()),
        **{
            f"Approximate(MaxDivergence), {name}": (PARTS, approximate(rule))
            for name, rule in RULES.items()
        },
        "ZeroConcentratedDivergence, sum": (("rho",), zcdp_sum),
        "Approximate(ZeroConcentratedDivergence), sum, sequential": (RHO_PARTS, approximate_zcdp),
        "RenyiDivergence, orders": (("curve",), renyi_curve),
        "FixedRenyiDivergence, sum": (("divergence",), fixed_renyi),
        "TruncatedConcentratedDivergence, sum": (("rho", "omega"), truncated_sum),
        "GaussianTradeoff, squares": (MU, squares),
        "Tradeoff, compositor": (FUNCTION, compositor),
        "Tradeoff, slots": (FUNCTION, slots),
        "Tradeoff, ladder": (FUNCTION, rungs),
        "Tradeoff, residue": (MU, residues),
    }
    return [Promise(name, *parts, loosened) for name, parts in all_of_them.items()]
