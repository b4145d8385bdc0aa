"""An equal call frees the converters of arguments that another thread may be using.

Before each call, OpenDP sets ``argtypes`` of a function that all threads share. ctypes then makes
new converters, and frees the old ones, while a call in another thread that has not converted its
arguments yet still refers to them. It takes a garbage collection at that moment, whose finalizers
let the other thread run; ``--threads`` runs eight threads until the process crashes, which takes
from seconds to minutes with Python 3.11.
"""

import gc
import sys
import threading

import opendp.prelude as dp
from opendp._lib import lib

dp.enable_features("contrib")
measurement = dp.m.make_laplace(
    dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0
)


def converters(function):
    return next(one for one in gc.get_referents(function) if type(one) is tuple)


class Cyclic:
    """Garbage whose finalizer runs Python code, in which another thread may get its turn."""

    def __init__(self):
        self.me = self

    def __del__(self):
        for _ in range(20):
            pass


def work():
    while True:
        Cyclic()
        measurement.map(1.0)


if "--threads" in sys.argv:
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    for _ in range(8):
        threading.Thread(target=work).start()
else:
    measurement.map(1.0)
    before = converters(lib.opendp_core__measurement_map)
    measurement.map(1.0)
    after = converters(lib.opendp_core__measurement_map)
    sys.exit(None if after is before else "an equal call has replaced the converters")
