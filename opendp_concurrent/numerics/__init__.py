"""Numbers that are safe to compare with a budget: rounded outward, or summed exactly.

* ``bracket.py``: :class:`.Bracket`, lower <= exact <= upper; sums, products and decimals that are
  rounded once, upward or downward;
* ``normal.py``: brackets of the normal distribution, and of the conversion of zCDP to (ε, δ).

Nothing here knows privacy, data or OpenDP.
"""

from .bracket import (
    SMALLEST,
    Bracket,
    Digits,
    cap_and_shown,
    double_up,
    down,
    evaluate,
    from_units_down,
    from_units_up,
    halfway,
    is_nonnegative,
    largest_double,
    least_double,
    lower,
    reciprocal_down,
    split,
    split_squares,
    sqrt_down,
    sqrt_up,
    to_enforce,
    to_spend,
    to_units,
    typed,
    upper,
)
from .normal import (
    density,
    largest_rho,
    mills,
    pi,
    rho_near,
    twice_quantile,
    zcdp_to_delta,
    zcdp_to_epsilon,
)
