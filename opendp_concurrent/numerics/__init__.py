"""Numbers that are safe to compare with a budget: rounded outward, or summed exactly.

``bracket.py`` has :class:`.Bracket`, lower <= exact <= upper; sums, products and decimals that are
rounded once, upward or downward; and brackets of the normal distribution, and of the conversion of
zCDP to (ε, δ).

Nothing here knows privacy, data or OpenDP.
"""

from .bracket import (
    SMALLEST,
    Bracket,
    Digits,
    cap_and_shown,
    density,
    double_up,
    down,
    evaluate,
    from_units_down,
    from_units_up,
    halfway,
    is_nonnegative,
    largest_double,
    largest_rho,
    least_double,
    lower,
    mills,
    pi,
    reciprocal_down,
    rho_near,
    split,
    split_squares,
    sqrt_down,
    sqrt_up,
    to_enforce,
    to_spend,
    to_units,
    twice_quantile,
    typed,
    upper,
    zcdp_to_delta,
    zcdp_to_epsilon,
)
