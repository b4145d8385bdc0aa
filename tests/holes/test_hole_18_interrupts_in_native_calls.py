"""0.1.0 let Ctrl-C out of a Python callback inside a native call, which killed the process."""

import ctypes
import subprocess
import sys
import threading
from operator import methodcaller

import opendp.prelude as dp
import pytest
from opendp import _convert, _lib

import opendp_concurrent as oc
from opendp_concurrent.native import boundary as _boundary

dp.enable_features("contrib", "honest-but-curious")
PURE, SEQUENTIAL = dp.max_divergence(), dp.approximate(dp.zero_concentrated_divergence())
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


class Interrupt(BaseException):
    """No Exception, as KeyboardInterrupt."""


CASES = """
import sys
import opendp.prelude as dp
import opendp_concurrent as oc
dp.enable_features("contrib", "honest-but-curious")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
pure, sequential = dp.max_divergence(), dp.approximate(dp.zero_concentrated_divergence())
armed = [True]

def interrupted(argument):
    if armed[0]:
        raise KeyboardInterrupt
    return 1

def user(measure, loss, function=interrupted, privacy_map=None):
    return dp.m.make_user_measurement(*space, measure, function, privacy_map or (lambda d_in: loss))

def query(rows):
    return interrupted(rows)

def sequential_launch():
    root = oc.make_concurrent_odometer(*space, sequential)([1])
    return lambda: root(user(sequential, (0.1, 0.0)))

def pure_launch():
    root = oc.make_concurrent_odometer(*space, pure)([1])
    return lambda: root(user(pure, 0.1))

def below_native():
    native = dp.c.make_adaptive_composition(*space, pure, 1, [1.0] * 3)([1])
    child = native(oc.make_concurrent_composition(*space, pure, 1, [0.1] * 3))
    return lambda: child(user(pure, 0.1))

def price():
    root = oc.make_concurrent_filter(oc.make_concurrent_odometer(*space, pure), 1, 9.0)([1])
    return lambda: root(user(pure, None, len, lambda d_in: 0.1 * interrupted(d_in)))

def native_child():
    root = oc.make_concurrent_odometer(*space, pure)([1])
    child = root(user(pure, 0.1, lambda rows: dp.new_queryable(interrupted)))
    return lambda: child(1)

def opendps_own():
    return lambda: user(pure, 0.1)([1])

print("before", flush=True)
ask = globals()[sys.argv[1]]()
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
    "opendps_own",
)


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_inside_a_native_call_comes_out_of_it_with_its_type(name):
    done = subprocess.run(
        [sys.executable, "-c", CASES, name], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["before", "interrupted None", "after True"]


def test_an_interrupt_that_waits_is_not_raised_at_the_entry_of_a_callback():
    """One that arrived during the native call would be raised before any ``try``."""
    for function in (
        _convert._invoke_py_callback,
        _convert._invoke_py_transition,
        _lib._total_cmp,
        _lib._ref_count,
    ):
        assert function.__code__.co_filename == _boundary.__file__, function
    failures = []

    def step(left, right):
        return 0

    def fail(error):
        failures.append(type(error))
        return 1

    probe = type(step)(_boundary._COMPARED, {}, "probe")
    probe.__kwdefaults__ = {"step": step, "fail": fail}
    # a C function that calls back, with nothing between in which Python would look
    call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object)(probe)
    interrupt = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.py_object)(
        ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
    )
    found = []

    def work():
        # all of this is written in C: the interrupt is set, then the callback is entered
        steps = [
            methodcaller("__call__", threading.get_ident(), Interrupt),
            methodcaller("__call__", 1, 2),
        ]
        try:
            found.extend(map(type(steps[0]).__call__, steps, [interrupt, call]))
        except Interrupt:
            found.append("raised outside")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(timeout=60)
    assert found == [1, 1]
    assert failures == [Interrupt]


def test_a_callback_that_is_interrupted_reports_an_error():
    failures = []

    def step(*arguments):
        raise Interrupt

    def fail(error):
        failures.append(error)
        if len(failures) < 3:
            raise Interrupt  # another one, while the first is dealt with
        return 17

    probe = type(step)(_boundary._COMPARED, {}, "probe")
    probe.__kwdefaults__ = {"step": step, "fail": fail}
    assert probe(1, 2) == 17
    assert len(failures) == 3


FULL = """
import sys
import opendp.prelude as dp
import opendp_concurrent
from opendp import _convert, _lib
dp.enable_features("contrib", "honest-but-curious")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()

def stuck(argument):
    raise RecursionError

def user(function, privacy_map):
    return dp.m.make_user_measurement(*space, dp.max_divergence(), function, privacy_map)

class Distance:
    def __eq__(self, other):
        raise ValueError

def below(frames, ask):
    return ask() if frames == 0 else below(frames - 1, ask)

ask = dp.new_queryable(lambda query: 2)
sys.setrecursionlimit(400)
for frames in range(340, 400):
    try:
        assert below(frames, lambda: ask(1)) == 2
    except AssertionError:
        raise
    except Exception:  # it has no room, and ends
        pass
sys.setrecursionlimit(1000)

for function in (_convert._invoke_py_callback, _convert._invoke_py_transition, _lib._total_cmp):
    function.__kwdefaults__["fail"] = stuck
measurement, mapped = user(stuck, lambda d_in: 0.1), user(len, stuck)
cases = (
    lambda: measurement([1]),
    lambda: mapped.map(1),
    lambda: dp.new_queryable(stuck)(1),
)
for case in cases:
    try:
        case()
    except dp.OpenDPException as error:
        print("null pointer" in str(error))
print(_lib._total_cmp(Distance(), Distance()))
"""


def test_a_full_stack_is_an_error():
    """No error could be made there, which was tried again for ever; Ctrl-C did not end it."""
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["True", "True", "True", "0"]


def test_an_argument_is_opendps_before_anything_else_may_fail():
    seen = []

    class Argument:
        pass

    class Owned(Argument):
        pass

    def step(argument):
        seen.append(type(argument))
        raise Interrupt

    probe = type(step)(_boundary._OWNED, {}, "probe")
    probe.__kwdefaults__ = {"step": step, "fail": lambda error: 3, "plain": Owned}
    argument = Argument()
    assert probe(argument) == 3
    assert seen == [Owned]


def test_no_line_of_a_callback_is_traced():
    """The argument was freed twice if a trace function raised at the line before the ``try``."""
    codes = {_boundary._OWNED, _boundary._COMPARED, _boundary._COUNTED}
    seen = []

    def trace(frame, event, argument):
        if frame.f_code in codes:
            seen.append((frame.f_code.co_name, event))
        return trace

    measurement = dp.m.make_user_measurement(*SPACE, PURE, lambda rows: 1.0, lambda d_in: 0.1)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        answer = measurement([1]), measurement.map(1), _lib._total_cmp(1, 2) > 0
        _lib._ref_count(trace, True), _lib._ref_count(trace, False)
    finally:
        sys.settrace(before)
    assert answer == (1.0, 0.1, True)
    assert {name for name, _ in seen} == {"_owned", "_compared", "_counted"}
    assert {event for _, event in seen} == {"call", "return"}


def test_references_are_counted_once_each():
    one = object()
    before = sys.getrefcount(one)
    assert _lib._ref_count(one, True) is True
    assert sys.getrefcount(one) == before + 1
    assert _lib._ref_count(one, False) is True
    assert sys.getrefcount(one) == before


def test_errors_of_callbacks_are_told_as_before():
    def fail(rows):
        raise ValueError("its own words")

    measurement = dp.m.make_user_measurement(*SPACE, PURE, fail, lambda d_in: 0.1)
    with pytest.raises(dp.OpenDPException, match="its own words"):
        measurement([1])
    queryable = dp.new_queryable(fail)
    with pytest.raises(dp.OpenDPException, match="its own words"):
        queryable(1)
    assert oc.make_concurrent_odometer(*SPACE, SEQUENTIAL)([1]).privacy_loss(1) == (0.0, 0.0)


def test_an_error_that_cannot_be_formatted_is_told_by_its_type():
    """All that was told of it was a null pointer."""

    class Unreadable(Exception):
        @property
        def __notes__(self):
            raise ValueError

    def fail(rows):
        raise Unreadable

    measurement = dp.m.make_user_measurement(*SPACE, PURE, fail, lambda d_in: 0.1)
    with pytest.raises(dp.OpenDPException, match="Unreadable"):
        measurement([1])
