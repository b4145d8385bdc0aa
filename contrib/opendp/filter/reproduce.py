"""A privacy filter runs a mechanism before it refuses it, and charges nothing for an error.

The filter passes a query to the odometer, and compares the loss with the budget afterwards. So a
query that does not fit has run when it is refused, and the filter is closed for good. And the
odometer notes the privacy map of a query after its function has returned: a function that raises
is never charged, although whether it raises may depend on the data.

What to do: ``rust.patch`` notes the map before the function runs. It was applied to OpenDP's
sources of August 2026, but not compiled: where this was written, no crates could be fetched. To
refuse before the run, the filter must know the loss that is asked: the odometer could answer an
internal query (the measurement, d_in) with the loss after it. If the odometer also keeps the sum
for the d_in of the filter, a query costs O(1) instead of O(m) (opendp/opendp#2909).
"""

import sys

import opendp.prelude as dp

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def measurement(epsilon, function):
    """Return a measurement that says of itself that it costs epsilon."""
    return dp.m.make_user_measurement(
        *SPACE, dp.max_divergence(), function, lambda d_in: d_in * epsilon, TO="ExtrinsicObject"
    )


def filtered():
    """Return a filter of epsilon = 1 on three rows."""
    odometer = dp.c.make_fully_adaptive_composition(*SPACE, dp.max_divergence())
    return dp.c.make_privacy_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])


def asked(queryable, query):
    """Ask, and return nothing if it is refused or fails."""
    try:
        return queryable(query)
    except dp.OpenDPException:
        return None


ran = []
asked(filtered(), measurement(5.0, lambda rows: ran.append(len(rows))))
root = filtered()
asked(root, measurement(0.75, lambda rows: 1 // (len(rows) - 3)))  # raises for these rows only
kept = asked(root, measurement(0.75, len))
if ran or kept is not None:
    sys.exit(f"a query of 5 ran before it was refused: {bool(ran)}; 1.5 of 1 were spent: {kept}")
