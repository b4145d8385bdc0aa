import gc
import importlib
import os
import pkgutil

import opendp.prelude as dp
import pytest
from hypothesis import HealthCheck, settings

import opendp_concurrent as oc
from opendp_concurrent._opendp import interrupts

from .servers import NOT_TESTED
from .servers import server as server
from .sparks import NO_SPARK
from .sparks import pytest_configure as pytest_configure
from .sparks import spark as spark
from .thinned import thin

gc.disable()  # until all tests are collected: next to nothing of what is made is garbage
os.environ["RUST_BACKTRACE"] = "0"  # OpenDP turns it on; each of its errors then costs 50 ms
settings.register_profile(
    "ci",
    max_examples=15,  # many more by hand: --hypothesis-profile=long
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # the speed of the machine is no assertion
)
settings.register_profile("long", settings.get_profile("ci"), max_examples=1000)
settings.load_profile("ci")
# Hypothesis also tries the constants of the modules that are imported, so which examples a test
# gets would depend on what ran before it on the same worker.
for one in pkgutil.walk_packages(oc.__path__, f"{oc.__name__}."):
    if not one.name.endswith(".__main__"):
        importlib.import_module(one.name)


def pytest_terminal_summary(terminalreporter):
    skipped = [str(report.longrepr) for report in terminalreporter.getreports("skipped")]
    for reason, line in (
        (NOT_TESTED, f"There is no PostgreSQL server: {NOT_TESTED}"),
        (NO_SPARK, f"There is no Spark: {NO_SPARK}"),
    ):
        if any(reason in one for one in skipped):
            terminalreporter.write_line(line, red=True, bold=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    thin(items)


def pytest_collection_finish():
    """Keep what is imported out of each collection: it is most of what there is, and stays."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    gc.unfreeze()  # or native modules report as leaked what nothing frees when Python ends


def pytest_runtest_teardown(item, nextitem):
    """Collect what a module has left, so that a warning about it is the module's failure."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()


@pytest.fixture(autouse=True)
def _features():
    dp.enable_features("contrib", "honest-but-curious")


@pytest.fixture
def space():
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


@pytest.fixture
def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


@pytest.fixture
def make_stream():
    """One stream under a filter of pure DP that feeds all children, at a bound."""

    def make(space, d_out=1e9, measure=None, **keywords):
        measure = measure or dp.max_divergence()
        odometer = oc.make_concurrent_odometer(*space, measure)
        budget = oc.make_concurrent_filter(odometer, 1, d_out)
        return oc.c.make_concurrent_continual(budget, **keywords)

    return make


@pytest.fixture(autouse=True)
def _no_section_is_left_open():
    """A section that a test leaves open would keep interrupts out for good."""
    assert not interrupts.depth()
    yield
    assert not interrupts.depth()
