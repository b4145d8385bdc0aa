"""Within swapped_in, OpenDP's names make what this package makes; then they are OpenDP's again."""

import doctest
import importlib
import importlib.util
import os
import pkgutil
import sys
import threading
from types import ModuleType

import numpy as np
import opendp
import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import GLOBAL_FEATURES

import opendp_concurrent as oc
from opendp_concurrent import _opendp
from opendp_concurrent.queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer

from .build import PURE, SPACE
from .forks import run_program

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def is_ours():
    """Whether each of OpenDP's names makes what this package makes."""
    compositor = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5])
    odometer = dp.c.make_fully_adaptive_composition(*SPACE, PURE)
    bounded = dp.c.make_privacy_filter(odometer, 1, 1.0)
    then = SPACE >> dp.c.then_adaptive_composition(PURE, 1, [0.5])
    context = dp.Context.compositor([1], dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0))
    return {
        isinstance(compositor, ConcurrentMeasurement),
        isinstance(odometer, ConcurrentOdometer),
        isinstance(bounded, ConcurrentMeasurement),
        isinstance(then, ConcurrentMeasurement),
        isinstance(context.accountant, ConcurrentMeasurement),
    }


@pytest.fixture
def module():
    """A module that has imported OpenDP's and our functions by name."""
    made = ModuleType("a_users_module")
    made.make_privacy_filter = dp.c.make_privacy_filter
    made.ours = oc.make_concurrent_filter
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


def test_opendps_names_make_ours_and_then_opendps_again():
    assert is_ours() == {False}
    with oc.swapped_in():
        assert is_ours() == {True}
        with oc.swapped_in():
            assert is_ours() == {True}
        assert is_ours() == {True}
    assert is_ours() == {False}
    with pytest.raises(KeyboardInterrupt), oc.swapped_in():
        raise KeyboardInterrupt
    assert is_ours() == {False}


def test_names_that_modules_have_imported_are_swapped_too(module):
    theirs, ours = module.make_privacy_filter, module.ours
    with oc.swapped_in():
        assert module.make_privacy_filter is dp.c.make_privacy_filter is not theirs
        assert opendp.context.make_privacy_filter is dp.c.make_privacy_filter
        module.later = dp.c.make_privacy_filter  # as of a module that is loaded now
        assert oc.make_concurrent_filter is module.ours is ours
    assert module.make_privacy_filter is module.later is dp.c.make_privacy_filter is theirs
    assert module.ours is ours


def test_the_feature_that_constructors_need_is_enabled_for_the_block():
    dp.disable_features("honest-but-curious")
    try:
        with oc.swapped_in(), oc.swapped_in():
            assert is_ours() == {True}
        assert "honest-but-curious" not in GLOBAL_FEATURES
    finally:
        dp.enable_features("honest-but-curious")
    with oc.swapped_in():
        pass
    assert "honest-but-curious" in GLOBAL_FEATURES


def test_the_last_block_of_all_threads_puts_opendps_back():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with oc.swapped_in():
            entered.set()
            assert leave.wait(60)

    thread = threading.Thread(target=other)
    with oc.swapped_in():
        thread.start()
        assert entered.wait(60)
    assert is_ours() == {True}
    leave.set()
    thread.join()
    assert is_ours() == {False}


def test_what_was_made_in_the_block_keeps_working():
    with oc.swapped_in():
        odometer = dp.c.make_fully_adaptive_composition(*SPACE, PURE)
        root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1, 2, 3])
    root(SPACE >> dp.t.then_count() >> dp.m.then_laplace(2.0))
    assert root.remaining() == 0.5


# --- the examples inside the installed package of OpenDP -----------------------------------------

# casts without fill_null, on which OpenDP's map is wrong (opendp#2938): refused on purpose
REFUSED = {"opendp.extras.polars.DPExpr.median", "opendp.extras.polars.DPExpr.quantile"}


def failures(only=None):
    """How many examples there are, and how many fail by the name of their object."""
    globs = {"dp": dp, "np": np, "pl": pl}
    examples, failed = 0, {}
    for found in pkgutil.walk_packages(opendp.__path__, "opendp."):
        try:
            module = importlib.import_module(found.name)
        except ImportError:  # of an extra that is not installed
            continue
        for test in doctest.DocTestFinder().find(module, extraglobs=globs):
            if only is not None and test.name not in only:
                continue
            examples += len(test.examples)
            runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
            failed[test.name] = runner.run(test, out=lambda _: None).failed
    return examples, {name: number for name, number in failed.items() if number}


def test_examples_of_the_installed_opendp_run_as_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with oc.swapped_in():
        examples, during = failures()
    _, before = failures(only=during)
    assert examples > 200
    assert sum(before.values()) < 20  # of extras that are not installed
    assert {name for name in during if during[name] != before.get(name)} <= REFUSED


# --- scripts -------------------------------------------------------------------------------------

SCRIPT = """
import sys
import beside
import opendp.prelude as dp
from opendp.combinators import make_privacy_filter
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
odometer = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
root = make_privacy_filter(odometer, 1, 1.0)([1, 2, 3])
print(__name__, sys.argv[1:], type(root).__name__)
if sys.argv[1:]:
    sys.exit(3)
"""


def run(*arguments):
    code = "from opendp_concurrent.__main__ import main; raise SystemExit(main())"
    return run_program(code, "run", *arguments)


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["a", "--b"], 3)])
def test_a_script_that_is_written_for_opendp_runs_with_ours(tmp_path, arguments, code):
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run(os.path.relpath(tmp_path / "script.py"), *arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == f"__main__ {arguments} ConcurrentFilterQueryable\n"


def test_a_block_that_cannot_begin_leaves_opendp_as_it_was(monkeypatch):
    theirs = dp.c.make_privacy_filter
    with monkeypatch.context() as patched:
        patched.setattr(_opendp.dp, "Context", None)  # is read after the functions are replaced
        with pytest.raises(TypeError), oc.swapped_in():
            pytest.fail("the block began")
    with oc.swapped_in():
        assert dp.c.make_privacy_filter is not theirs
    assert dp.c.make_privacy_filter is theirs
