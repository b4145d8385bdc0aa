"""A Python function that raises ``KeyboardInterrupt`` or ``SystemExit`` aborts the process.

OpenDP's callbacks catch ``Exception`` only. Anything else leaves the callback, which then returns
nothing, and native code reads a null pointer. Ctrl-C in a function that takes long does the same.
Each case runs in a process of its own.
"""

import os
import sys

import opendp.prelude as dp

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def user(function, privacy_map=lambda d_in: 0.0):
    return dp.m.make_user_measurement(*SPACE, dp.max_divergence(), function, privacy_map)


CALLS = {
    "a function": lambda fail: user(fail)([1]),
    "a privacy map": lambda fail: user(len, fail).map(1),
    "a transition": lambda fail: dp.new_queryable(fail)(1),
    "a function in a function": lambda fail: user(user(fail))([1]),
}


def passes(kind, call):
    """Whether an exception of a Python function comes out as it is, and a later one as ever."""
    raised = kind("from the function")

    def fail(argument):
        raise raised

    try:
        call(fail)
    except kind as error:
        if error is not raised:
            return False
    try:
        user(lambda rows: 1 / 0)([1])
    except dp.OpenDPException:
        return True
    return False


def status(*case):
    child = os.fork()
    if not child:
        os._exit(0 if passes(*case) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


wrong = [
    f"{kind.__name__} in {name}: the process ended with {code}"
    for kind in (KeyboardInterrupt, SystemExit)
    for name, call in CALLS.items()
    if (code := status(kind, call))
]
sys.exit("\n".join(wrong) or None)
