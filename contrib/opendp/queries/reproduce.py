"""A query that is no measurement kills the process.

An odometer, a filter and a compositor take measurements. Whatever else they get is handed to native
code as a pointer to a measurement. Each case runs in a process of its own.
"""

import os
import sys

import opendp.prelude as dp

dp.enable_features("contrib")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ODOMETER = dp.c.make_fully_adaptive_composition(*SPACE, dp.max_divergence())
COUNT = SPACE >> dp.t.then_count()
ROOTS = {
    "an odometer": ODOMETER,
    "a filter": dp.c.make_privacy_filter(ODOMETER, 1, 1e10),
    "a compositor": dp.c.make_adaptive_composition(*SPACE, dp.max_divergence(), 1, [1e10]),
}
QUERIES = {"text": "text", "an odometer": ODOMETER, "a transformation": COUNT}


def refuses(root, query):
    queryable = root([1])
    try:
        queryable(query)
    except TypeError:
        return queryable(COUNT >> dp.m.then_laplace(scale=1e-9)) == 1  # it is still usable
    return False


def status(*case):
    child = os.fork()
    if not child:
        os._exit(0 if refuses(*case) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


wrong = [
    f"{query} as a query of {root}: the process ended with {code}"
    for root in ROOTS
    for query in QUERIES
    if (code := status(ROOTS[root], QUERIES[query]))
]
sys.exit("\n".join(wrong) or None)
