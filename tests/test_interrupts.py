"""Interrupts wait in a section, are let in where that is asked, and are never lost."""

import asyncio
import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from opendp_concurrent._opendp.interrupts import CRITICAL, Lock, interruptible, uninterruptible

from .forks import run_program


def interrupt():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    left = signal.signal(signal.SIGINT, before)
    assert left in (signal.default_int_handler, signal.SIG_IGN)


def test_an_interrupt_waits_for_the_end_of_the_outermost_section():
    done = []

    @uninterruptible
    def inner():
        interrupt()
        return "inner"

    with pytest.raises(KeyboardInterrupt), CRITICAL:  # noqa: PT012
        interrupt()
        done.append(inner())
        done.append("outer")
    assert done == ["inner", "outer"]
    with CRITICAL:  # it was raised once
        pass


def test_an_error_in_a_section_is_the_context_of_the_interrupt():
    with pytest.raises(KeyboardInterrupt) as caught, CRITICAL:  # noqa: PT012
        interrupt()
        raise ValueError("first")
    assert str(caught.value.__context__) == "first"
    with pytest.raises(ValueError, match="alone"), CRITICAL:
        raise ValueError("alone")


def test_one_interrupt_is_let_in_and_the_next_one_waits():
    seen = []

    def function(argument):
        try:
            interrupt()
        finally:
            seen.append(argument)
            interrupt()  # while the first is on its way
            seen.append("cleaned")

    with pytest.raises(KeyboardInterrupt), CRITICAL:  # noqa: PT012
        with pytest.raises(KeyboardInterrupt):
            interruptible(function, "let in")
        seen.append("section")
    assert seen == ["let in", "cleaned", "section"]


def test_what_waits_is_raised_before_a_function_is_called():
    called = []
    with CRITICAL:
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            interruptible(called.append, 1)
    assert not called


def test_a_section_below_what_is_let_in_is_a_section():
    seen = []

    def function():
        with CRITICAL:
            interrupt()
            seen.append("inner")
        seen.append("never")

    with CRITICAL:
        with pytest.raises(KeyboardInterrupt):
            interruptible(function)
        seen.append("outer")
    assert seen == ["inner", "outer"]


def lost_in_c():
    """Stop at an interrupt, and raise another error without its context, as C code may."""
    with suppress(KeyboardInterrupt):
        interrupt()
    raise RuntimeError("stopped")


def test_an_interrupt_that_c_code_has_replaced_is_raised_anew():
    with CRITICAL, pytest.raises(KeyboardInterrupt) as caught:
        interruptible(lost_in_c)
    assert caught.value.__context__ is None
    with CRITICAL, pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)  # nothing is left of it


def test_an_interrupt_that_python_has_replaced_stays_replaced():
    def replaces():
        try:
            interrupt()
        except KeyboardInterrupt as error:
            raise ValueError("stopped") from error

    with CRITICAL, pytest.raises(ValueError, match="stopped"):
        interruptible(replaces)


def test_a_handler_that_raises_nothing_is_called_once_at_the_end():
    calls = []
    signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    with CRITICAL:
        interrupt()
        interrupt()
        assert not calls
    assert calls == [signal.SIGINT]
    with CRITICAL:
        assert interruptible(lambda: (interrupt(), interrupt(), len(calls))[2]) == 3
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("first", [signal.default_int_handler, signal.SIG_IGN])
def test_a_handler_that_a_function_sets_counts_from_the_end_on(first):
    calls = []

    def mine(number, frame):
        calls.append(number)

    signal.signal(signal.SIGINT, first)
    with CRITICAL:
        interruptible(signal.signal, signal.SIGINT, mine)
        interrupt()
        assert not calls
    assert calls == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is mine
    signal.signal(signal.SIGINT, first)
    with CRITICAL:
        interruptible(signal.signal, signal.SIGINT, signal.SIG_IGN)
        interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_event_loop_is_interrupted_after_the_section():
    seen = []

    async def main():
        with CRITICAL:
            interrupt()
            seen.append("section")
        await asyncio.sleep(30)
        seen.append("never")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert seen == ["section"]

    def inside():
        asyncio.run(main())

    with CRITICAL, pytest.raises(KeyboardInterrupt):
        interruptible(inside)
    assert seen == ["section", "section"]


def test_the_main_thread_can_be_interrupted_while_it_waits_for_a_lock():
    lock, free, held = Lock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            free.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt), lock:
            raise AssertionError("somebody else holds it")
        assert not lock.held()
    finally:
        timer.join()
        free.set()
        thread.join()
    with lock:  # nobody has it
        assert lock.held()


def test_a_lock_is_released_by_an_error_and_can_be_taken_again_inside():
    lock = Lock()
    with pytest.raises(ValueError, match="text"), lock, lock:
        int("text")
    free = []
    thread = threading.Thread(target=lambda: free.append(lock.__enter__()))
    thread.start()
    thread.join(timeout=60)
    assert free == [None]


def test_other_threads_have_no_sections():
    seen = []

    def work():
        with CRITICAL:
            os.kill(os.getpid(), signal.SIGINT)  # the main thread's
            seen.append(interruptible(int, "7"))

    thread = threading.Thread(target=work)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        thread.start()
        thread.join()
        time.sleep(30)
    thread.join()
    assert seen == [7]


FORKED = """
import os, signal, sys, threading, time
from opendp_concurrent._opendp.interrupts import CRITICAL

def fork():
    if os.fork() == 0:  # the main thread, which was in a section, is gone
        try:
            with CRITICAL:
                signal.raise_signal(signal.SIGINT)
            os._exit(1)
        except KeyboardInterrupt:
            pass
        os._exit(0 if signal.getsignal(signal.SIGINT) is signal.default_int_handler else 2)

with CRITICAL:
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_thread_that_forks_in_a_section_of_the_main_thread_leaves_it():
    assert run_program(FORKED).returncode == 0


STORM = """
import os, signal, subprocess, sys
from opendp_concurrent._opendp.interrupts import CRITICAL, Lock, interruptible, _STATE

kept, lock, both = [], Lock(), [0, 0]
killer = subprocess.Popen([sys.executable, "-c", "import os, random, sys, time\\n"
    "while os.getppid() == int(sys.argv[1]):\\n"
    "    time.sleep(random.uniform(1e-4, 5e-4)); os.kill(int(sys.argv[1]), 2)", str(os.getpid())])

def work():
    while len(kept) < 2000:
        with lock:
            both[0] += 1
            try:
                interruptible(sum, range(300))
            finally:
                both[1] += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)

def level(inner):  # an interrupt may come while another one is kept: the next level keeps it
    def run():
        while signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            try:
                inner()
            except KeyboardInterrupt as error:
                kept.append(error)
    return run

for _ in range(6):
    work = level(work)
work()
killer.kill(); killer.wait()
assert both[0] == both[1] > 100, both
assert not lock.held() and not _STATE.levels, _STATE.levels
print("fine")
"""


def test_thousands_of_interrupts_cut_nothing_in_two():
    done = run_program(STORM)
    assert done.stdout == "fine\n", done.stderr[-2000:]
