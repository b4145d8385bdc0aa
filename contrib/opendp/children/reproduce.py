"""Under approximate zCDP, a child of a fully adaptive odometer answers nothing.

A child asks its odometer for permission before it answers, where children must be used one after
the other. The odometer's answer is ``()``, but one ``?`` too many in the closure asks for a
``Result``, so the conversion of the answer fails (``FailedCast``), and with it each query.

What to do: ``rust.patch`` removes the ``?``. It was applied to OpenDP's sources of August 2026, but
not compiled: where this was written, no crates could be fetched.
"""

import sys

import opendp.prelude as dp

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
MEASURE = dp.approximate(dp.zero_concentrated_divergence())
count = dp.c.make_approximate(SPACE >> dp.t.then_count() >> dp.m.then_gaussian(scale=4.0))
odometer = dp.c.make_fully_adaptive_composition(*SPACE, MEASURE)([1, 2, 3])
child = odometer(dp.c.make_adaptive_composition(*SPACE, MEASURE, d_in=1, d_mids=[(0.5, 0.0)]))
try:
    child(count)
except dp.OpenDPException as error:
    sys.exit(f"a child answers nothing: {str(error).strip().splitlines()[0]}")
