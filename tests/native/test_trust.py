"""No map of OpenDP is read without the fence, and importing this package sets it."""

import subprocess
import sys

import opendp.prelude as dp
import pytest

from opendp_concurrent.errors import ConcurrentError
from opendp_concurrent.native import trust

dp.enable_features("contrib")
COUNT = dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
IMPORTED = """
import opendp.prelude as dp
import {module}
from opendp_concurrent.native import opendp, trust
dp.enable_features("contrib", "honest-but-curious")
bits = dp.m.make_randomized_response_bitvec(
    dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.5
)
for read in (trust.trusted, opendp.measurement_map):
    try:
        read(bits, 1)
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.mark.parametrize("module", ["opendp_concurrent", "opendp_concurrent.native.opendp"])
def test_the_fence_is_in_force_after_any_import_of_this_package(module):
    code = IMPORTED.format(module=module)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["AdvisoryError"] * 2


def test_no_map_is_read_without_a_fence(monkeypatch):
    monkeypatch.setattr(trust, "_FENCE", [trust._none])
    with pytest.raises(ConcurrentError, match="before the fence"):
        trust.trusted(COUNT, 1)


def test_the_fence_is_told_whether_data_flow(monkeypatch):
    asked = []
    monkeypatch.setattr(trust, "_FENCE", [])
    trust.set_fence(lambda made, d_in, *, flows: asked.append((made, d_in, flows)) or made)
    assert trust.trusted(COUNT, 3) is trust.trusted(COUNT, 4, flows=True) is COUNT
    assert asked == [(COUNT, 3, False), (COUNT, 4, True)]
