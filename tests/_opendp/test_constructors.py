"""An interrupt while OpenDP counts a reference to a Python object crashed the process later."""

import pytest

from ..forks import ran_in_forks

CASES = """
import gc, os, signal, sys
import opendp._lib
from opendp_concurrent.measures.opendp import user_divergence
import opendp_concurrent._opendp as native
from opendp_concurrent.tables.domain import Tables, table_domain, units
from opendp_concurrent.tables.schema import schema_of
counting = opendp._lib._ref_count.__code__
stream = oc.integer_stream(0, 1), oc.event_presence()
other = native.user_domain("x", lambda data: True, {}), native.user_distance("y")
tables = table_domain(Tables(schema_of({"person": int}, "person"))), units()
steps = native.make_user_transformation(*other, *space, list, lambda d_in: d_in)

def interrupted(moment):
    seen = [0]
    def trace(frame, event, argument):
        if frame.f_code is counting and event == "call" and frame.f_locals["increment"]:
            seen[0] += 1
            if seen[0] == moment:
                sys.settrace(None)
                os.kill(os.getpid(), signal.SIGINT)
    sys.settrace(trace)
    try:
        kept.append(make())
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return seen[0] >= moment

lost = []
sys.unraisablehook = lost.append

def run(name, made):
    global make, kept
    make, kept, moment = eval(f"lambda: {made}"), [], 1
    while interrupted(moment):
        moment += 1
        if lost:
            sys.exit("a reference is not counted")
    for _ in range(20):
        kept.append(make())
    kept.clear()
    gc.collect()
    print("survived", moment - 1)
"""
OURS = "native.make_user_measurement(*space, PURE, lambda rows: 1, lambda d_in: d_in, TO=int)"
MADE = {
    "chain": f"native.make_chain_mt({OURS}, steps)",
    "counter": "oc.m.make_counter(*stream, PURE, scale=20.0, horizon=9)",
    "divergence": "user_divergence('c', d=1.0)",
    "profile": "native.new_privacy_profile(lambda epsilon: 0.0)",
    "queryable": "native.python_queryable(lambda query: query)",
    "shifted": f"steps >> {OURS}",
    "sparse_vector": "oc.m.make_sparse_vector(*space, PURE, 1, 16.0, threshold=0, max_hits=3)",
    "table": "oc.t.make_truncate(*tables, 3)",
    "user_distance": "native.user_distance(f'y{id(object())}')",
    "user_domain": "native.user_domain('x', lambda data: True, {})",
    "user_measurement": OURS,
    "user_transformation": (
        "native.make_user_transformation(*space, *space, lambda rows: rows, lambda d_in: d_in)"
    ),
}


@pytest.fixture(scope="module")
def ran():
    return ran_in_forks(CASES, [*MADE.items()])


@pytest.mark.parametrize("name", MADE)
def test_an_interrupt_loses_no_reference_that_native_code_holds(name, ran):
    status, said = ran[name, MADE[name]]
    assert status == 0, said
    survived, moments = said.split()
    assert survived == "survived"
    assert int(moments) >= 1
