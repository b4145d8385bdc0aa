import subprocess
import sys

from opendp import _convert

from opendp_concurrent._opendp import private

RENAMED = """
import opendp.prelude
import opendp._data
from opendp import mod

class PrivacyGuarantee:
    def __init__(self, guarantee):
        self.guarantee = guarantee

mod.PrivacyGuarantee = PrivacyGuarantee
del mod.PrivacyProfile
mod.__all__.remove("PrivacyProfile")
"""
PROFILE = """
import opendp.prelude as dp
import opendp_concurrent as oc
from opendp_concurrent._opendp.private import curve_of
assert curve_of(PrivacyGuarantee(len)) is len
assert curve_of(0.5) == 0.5
dp.enable_features("contrib", "honest-but-curious")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
paid = oc.make_concurrent_filter(odometer, 1, 1.0)([1, 2])
paid(space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0))
assert paid.privacy_loss() == 0.25
"""


def test_a_profile_under_the_name_of_0_17_is_read():
    code = RENAMED + PROFILE
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_function_inside_another_is_found_as_in_0_14(monkeypatch):
    def _wrap_py_func(function, kind):
        def wrapper_func(argument):
            return function(argument), kind

        return lambda: wrapper_func

    monkeypatch.delattr(_convert, "_invoke_py_callback", raising=False)
    monkeypatch.setattr(_convert, "_wrap_py_func", _wrap_py_func)
    found = private.callback_codes()
    assert _wrap_py_func(None, None)().__code__ in found
    assert len(found) == 2
