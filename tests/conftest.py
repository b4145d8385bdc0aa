import opendp.prelude as dp
import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def _features():
    dp.enable_features("contrib", "honest-but-curious")


@pytest.fixture
def space():
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
