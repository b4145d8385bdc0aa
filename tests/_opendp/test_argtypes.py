"""Threads may call OpenDP's functions, which it configures anew before each call."""

import gc
import subprocess
import sys
import threading

import opendp.prelude as dp
import pytest
from opendp._lib import lib

import opendp_concurrent as oc

dp.enable_features("contrib")


def converters(function):
    return [one for one in gc.get_referents(function) if type(one) is tuple]


def test_a_call_leaves_the_converters_that_another_thread_may_be_using():
    assert oc
    measurement = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0
    )
    measurement.map(1.0)
    for function in (lib.opendp_core__measurement_map, lib.opendp_data__object_free):
        before = converters(function)
        assert len(before) == 1
        measurement.map(1.0)
        assert converters(function)[0] is before[0]


class _Any:
    @classmethod
    def from_param(cls, value):
        return value


class _Frees:
    """Reading it frees an object of OpenDP, as the garbage collector does at any moment."""

    @property
    def from_param(self):
        other = lib["opendp_core___transformation_free"]
        other.argtypes = [_Any]
        return lambda value: value


def test_an_object_that_is_freed_meanwhile_does_not_wait_for_ever():
    def configure():
        lib["opendp_core___measurement_free"].argtypes = [_Frees()]
        done.append(True)

    done = []
    thread = threading.Thread(target=configure, daemon=True)
    thread.start()
    thread.join(20.0)
    assert done


THREADS = """
import gc, sys, threading
import opendp.prelude as dp
import opendp_concurrent
dp.enable_features("contrib")
measurement = dp.m.make_laplace(
    dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0
)
sys.setswitchinterval(1e-6)
gc.set_threshold(20)

class Cyclic:
    def __init__(self):
        self.me = self
    def __del__(self):
        for _ in range(20):
            pass

def work():
    for _ in range(20_000):
        Cyclic()
        measurement.map(1.0)

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
"""


@pytest.mark.slow
def test_eight_threads_read_privacy_maps():
    """Without this, OpenDP 0.16 ends the process ('free(): invalid pointer') in about 15 s."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-1000:]
