"""How near the errors of counters, and the map of an alarm, are to the best known values.

    python benchmarks/strategies.py [--quick] [--json] [--save]

Errors are root mean squares at ρ = 1/2 or ε = 1, computed from the strategy that is released.
"""

from __future__ import annotations

import os

os.environ["RUST_BACKTRACE"] = "0"

import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


def participations():
    """Counters of units that come back, beside jax_privacy 2.0.0; see counters_jax_privacy.py.

    Theirs is the better one of optimize_banded_toeplitz and, up to 32 bands, banded.optimize.
    """
    theirs = {
        (2048, 4, 512): 6.8846,
        (2048, 16, 128): 17.1371,
        (365, 52, 7): 40.0075,
        (365, 12, 30): 11.8939,
    }
    rows = []
    for (steps, most, apart), error in theirs.items():
        made = oc.m.make_counter(
            oc.integer_stream(0, 1), oc.user_presence(), ZCDP, 100.0,
            horizon=steps, participations=most, separation=apart,
        )  # fmt: skip
        ours = oc.m.counter_rmse(steps, participations=most, separation=apart)
        several = most * oc.m.counter_rmse(steps)
        rho = made.map(1) * 100.0**2  # at scale 1
        rows.append([steps, most, apart, rho, several, ours, error, ours / error])
    return rows


def endless() -> float:
    """The largest error of the pure counter without a horizon over the computed ones."""
    known = {10: 15.04, 14: 24.16, 20: 39.59}
    return max(
        oc.m.counter_rmse(2**exponent - 1, output_measure=PURE, endless=True) / error
        for exponent, error in known.items()
    )


def alarms() -> float:
    """The largest map of an alarm over the largest loss of all outcomes, 1/s + c/s'."""
    ratios = []
    for hits in (1, 2):
        query_scale = 3.0 * (2 * hits) ** (1 / 3)
        alarm = oc.m.make_alarm(
            oc.integer_stream(0, 1), oc.event_presence(), PURE, scale=3.0, threshold=5,
            query_scale=query_scale, max_hits=hits,
        )  # fmt: skip
        ratios.append(alarm.map(1) / (1 / 3.0 + hits / query_scale))
    return max(ratios)


def main() -> None:
    options = parser(__doc__).parse_args()
    print_machine()
    users = participations()
    print_table(
        "Counters at ρ = 1/2 for a unit with k items, b steps apart",
        ["T", "k", "b", "ρ at scale 1", "k times one item", "ours", "jax_privacy", "ratio"],
        users,
    )
    report(
        {
            "participations_over_jax_max": max(row[-1] for row in users),
            "endless_pure_over_formula": endless(),
            "alarm_map_over_exact": alarms(),
        },
        {
            "participations_over_jax_max": ("at most", 1.03),
            "endless_pure_over_formula": ("at most", 1.02),
            "alarm_map_over_exact": ("at most", 1.0 + 1e-12),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
