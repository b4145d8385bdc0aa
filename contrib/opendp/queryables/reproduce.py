"""A queryable that a Python function got as its argument is used after native code has freed it.

A postprocessor of a compositor gets a queryable. Native code owns it, and frees it when the
function returns. A function that keeps or returns the queryable leaves a pointer to freed memory.
Each case runs in a process of its own.
"""

import os
import sys

import opendp.prelude as dp

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
COUNT = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)


def compositor():
    return dp.c.make_adaptive_composition(*SPACE, dp.max_divergence(), 1, [0.25] * 2)


def kept():
    found = []
    (compositor() >> (lambda queryable: found.append(queryable) or 1))([1])
    return found[0]


def returned():
    return (compositor() >> (lambda queryable: queryable))([1])


def raises(queryable):
    try:
        queryable(COUNT)
    except Exception:
        # within the function, a queryable works as ever
        return isinstance((compositor() >> (lambda one: one(COUNT)))([1]), int)
    return False


def status(make):
    child = os.fork()
    if not child:
        os._exit(0 if raises(make()) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


wrong = [
    f"a queryable that was {make.__name__}: the process ended with {code}"
    for make in (kept, returned)
    if (code := status(make))
]
sys.exit("\n".join(wrong) or None)
