"""0.1.0 let Ctrl-C out of a Python callback inside a native call, which killed the process."""

import pytest

from ..forks import ran_in_forks

CASES = """
import signal
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

def sequential_launch():
    root = oc.make_concurrent_odometer(*space, sequential)([1])
    return lambda: root(user(sequential, (0.1, 0.0)))

def pure_launch():
    root = oc.make_concurrent_odometer(*space, PURE)([1])
    return lambda: root(user(PURE, 0.1))

def below_native():
    native = dp.c.make_adaptive_composition(*space, PURE, 1, [1.0] * 3)([1])
    child = native(oc.make_concurrent_composition(*space, PURE, 1, [0.1] * 3))
    return lambda: child(user(PURE, 0.1))

def price():
    root = oc.make_concurrent_filter(oc.make_concurrent_odometer(*space, PURE), 1, 9.0)([1])
    return lambda: root(user(PURE, None, len, lambda d_in: 0.1 * interrupted(d_in)))

def native_child():
    root = oc.make_concurrent_odometer(*space, PURE)([1])
    child = root(user(PURE, 0.1, lambda rows: dp.new_queryable(interrupted)))
    return lambda: child(1)

def transformation():
    same = dp.t.make_user_transformation(
        *space, *space, lambda rows: rows[: interrupted(rows)], lambda d_in: d_in
    )
    chained = same >> oc.make_concurrent_composition(*space, PURE, 1, [0.1])
    return lambda: chained([1])(user(PURE, 0.1, len))

def postprocessor():
    root = (oc.make_concurrent_odometer(*space, PURE) >> interrupted)([1])
    return lambda: root(user(PURE, 0.1, len))

def run(name, how):
    global HOW
    HOW = how
    print("before", flush=True)
    ask = globals()[name]()
    try:
        ask()
    except KeyboardInterrupt as error:
        print("interrupted", error.__cause__, flush=True)
    armed[0] = False
    print("after", ask() in (1, [1]), flush=True)
"""
NAMES = (
    "sequential_launch",
    "pure_launch",
    "below_native",
    "price",
    "native_child",
    "transformation",
    "postprocessor",
)


@pytest.fixture(scope="module")
def ran():
    return ran_in_forks(CASES, [(name, how) for name in NAMES for how in ("raised", "sent")])


@pytest.mark.parametrize("how", ["raised", "sent"])
@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_inside_a_native_call_comes_out_of_it_with_its_type(name, how, ran):
    status, said = ran[name, how]
    assert status == 0, said
    assert said.splitlines() == ["before", "interrupted None", "after True"]
