"""0.1.0 let Ctrl-C out of a Python callback inside a native call, which killed the process."""

import pytest

from ..forks import ran_in_forks

PROGRAM = """
import signal
from functools import partial
sequential = dp.approximate(dp.zero_concentrated_divergence())
armed = [True]

def interrupted(argument):
    if armed[0] and HOW == "raised":
        raise KeyboardInterrupt
    if armed[0]:
        signal.raise_signal(signal.SIGINT)
    return 1

def user(measure, loss, function=interrupted, privacy_map=None):
    return dp.m.make_user_measurement(*space, measure, function, privacy_map or (lambda d_in: loss))

def launch(query, measure=PURE):
    return partial(oc.make_concurrent_odometer(*space, measure)([1]), query)

def run(how, asked):
    global HOW
    HOW = how
    print("before", flush=True)
    ask = eval(asked)
    try:
        ask()
    except KeyboardInterrupt as error:
        print("interrupted", error.__cause__, flush=True)
    armed[0] = False
    print("after", ask() in (1, [1]), flush=True)
"""
SHARE = "oc.make_concurrent_composition(*space, PURE, 1, [0.1])"
ASKED = {
    "sequential_launch": "launch(user(sequential, (0.1, 0.0)), sequential)",
    "pure_launch": "launch(user(PURE, 0.1))",
    "below_native": (
        "partial(dp.c.make_adaptive_composition(*space, PURE, 1, [1.0])([1])("
        "oc.make_concurrent_composition(*space, PURE, 1, [0.1] * 3)), user(PURE, 0.1))"
    ),
    "price": "launch(user(PURE, None, len, lambda d_in: 0.1 * interrupted(d_in)))",
    "native_child": (
        "partial(launch(user(PURE, 0.1, lambda rows: dp.new_queryable(interrupted)))(), 1)"
    ),
    "transformation": (
        "lambda: (dp.t.make_user_transformation(*space, *space, lambda rows: "
        f"rows[: interrupted(rows)], lambda d_in: d_in) >> {SHARE})([1])(user(PURE, 0.1, len))"
    ),
    "postprocessor": (
        "partial((oc.make_concurrent_odometer(*space, PURE) >> interrupted)([1]), "
        "user(PURE, 0.1, len))"
    ),
}
CASES = [(how, asked) for asked in ASKED.values() for how in ("raised", "sent")]


@pytest.fixture(scope="module")
def ran():
    return ran_in_forks(PROGRAM, CASES)


@pytest.mark.parametrize("how", ["raised", "sent"])
@pytest.mark.parametrize("name", ASKED)
def test_an_interrupt_inside_a_native_call_comes_out_of_it_with_its_type(name, how, ran):
    status, said = ran[how, ASKED[name]]
    assert status == 0, said
    assert said.splitlines() == ["before", "interrupted None", "after True"]
