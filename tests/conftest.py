import os

import opendp.prelude as dp
import pytest
from hypothesis import settings

os.environ["RUST_BACKTRACE"] = "0"  # OpenDP turns it on; each of its errors then costs 50 ms
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def _features():
    dp.enable_features("contrib", "honest-but-curious")


@pytest.fixture
def space():
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
