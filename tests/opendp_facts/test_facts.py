"""What is relied on of OpenDP, and no other test would name. These tests import only OpenDP.

When a test of this folder fails after an upgrade of OpenDP, something has changed that this package
works around or builds on: look for its uses before changing the test.
"""

import inspect
import os
import subprocess
import sys

import opendp.prelude as dp
import pytest
from opendp._lib import lib
from opendp.mod import OpenDPException

PURE = dp.max_divergence()
SEQUENTIAL = dp.approximate(dp.zero_concentrated_divergence())
FREE = (0.0, 0.0)
TRIVIAL = dp.atom_domain(T=bool), dp.discrete_distance()
SPACE = "input_domain input_metric output_measure"
PARAMETERS = {  # docs/for-opendp.rst builds on them
    dp.c.make_adaptive_composition: f"{SPACE} d_in d_mids",
    dp.c.make_fully_adaptive_composition: SPACE,
    dp.c.make_privacy_filter: "odometer d_in d_out",
    dp.Context.compositor: (
        "data privacy_unit privacy_loss split_evenly_over split_by_weights domain margins"
    ),
}


@pytest.mark.parametrize("function", PARAMETERS)
def test_the_parameters_of_what_we_replace(function):
    assert [*inspect.signature(function).parameters] == PARAMETERS[function].split()


def test_a_function_that_is_taken_from_the_library_by_subscript_is_shared_with_nobody():
    """So our argument types and OpenDP's stay apart."""
    name = "opendp_core__measurement_invoke"
    assert lib[name] is not lib[name]
    assert lib[name] is not getattr(lib, name)


# --- what ends the process. Nothing of it can be caught, so it has to be refused beforehand ------

PREAMBLE = """
import sys
sys.modules.update(dict.fromkeys(["numpy", "polars", "scipy", "sklearn"]))  # optional, and slow
import opendp.prelude as dp
dp.enable_features("contrib", "honest-but-curious")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()

def fail(argument):
    raise KeyboardInterrupt

def user(function, measure=dp.max_divergence(), privacy_map=lambda d_in: 0.0):
    return dp.m.make_user_measurement(*space, measure, function, privacy_map, TO="ExtrinsicObject")

queryable = dp.new_queryable(lambda query: query)
profile = dp.new_privacy_profile(lambda epsilon: 0.5)
value = user(lambda rows: queryable.value)
curve = user(len, dp.smoothed_max_divergence(), lambda d_in: profile.curve)
"""
KILLS = {  # the first call, whose result is right, and the call that is then made again and again
    "an interrupt in a callback": ("queryable(7) == 7", "dp.new_queryable(fail)(1)"),
    "a queryable whose value is returned twice": ("value([1])(7) == 7", "value([1])(7)"),
    "a profile whose curve is returned twice": ("curve.map(1)", "curve.map(1)"),
}


@pytest.mark.parametrize("name", KILLS)
def test_it_kills_the_process(name):
    """Corrupted memory need not show at the first attempt.

    The script prints REACHED right before the last step, so that a mistake in the script, or a
    crash in what leads up to it, is not taken for the crash.
    """
    if "interrupt" in name and sys.version_info < (3, 11, 7):
        pytest.skip("older Pythons come back with an error")
    first, again = KILLS[name]
    script = f"{PREAMBLE}assert {first}\nprint('REACHED', flush=True)\n"
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", f"{script}for _ in range(5):\n    {again}"],
            env={**os.environ, "RUST_BACKTRACE": "0"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "REACHED" in done.stdout, f"the script fails too early: {done.stderr}"
        if done.returncode < 0:
            return
    pytest.fail(f"if the crash is gone, our workaround may go: {done.stdout}{done.stderr}")


# --- how far OpenDP's sequentiality reaches, and the ways around it -------------------------------


def test_the_next_launch_closes_what_a_launch_has_made_and_a_failed_one_closes_nothing(space):
    """Queryables of every measure, also if they were not returned: see queryables/data.py."""
    kept = []

    def visit(task):
        function = lambda _: task()  # noqa: E731
        loss = lambda d_in: FREE  # noqa: E731
        made = dp.m.make_user_measurement(*TRIVIAL, SEQUENTIAL, function, loss, "ExtrinsicObject")
        return root(made)

    laplace = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    pure = dp.c.make_adaptive_composition(*space, PURE, 1, [1.0] * 4)
    odometer = dp.c.make_fully_adaptive_composition(*space, PURE)
    root = dp.c.make_adaptive_composition(*TRIVIAL, SEQUENTIAL, d_in=1, d_mids=[FREE] * 4)(True)

    def make():
        kept.append((dp.new_queryable(lambda query: query), "asked"))
        return {"q": [(pure([1]), laplace), (odometer([1]), laplace)]}

    def fail():
        kept.append((dp.new_queryable(lambda query: query), "asked"))
        raise ValueError("depends on the data")

    first = visit(make)["q"]
    with pytest.raises(OpenDPException, match="depends on the data"):
        visit(fail)
    for child, query in (*first, *kept):
        child(query)
    assert visit(lambda: None) is None
    for child, query in (*first, kept[0]):
        with pytest.raises(OpenDPException, match="only the most recent release"):
            child(query)
    assert kept[1][0]("asked") == "asked"  # so a launch carries its failure out as an answer


# --- frames ---------------------------------------------------------------------------------------


def test_an_identifier_is_bounded_by_a_truncation_only():
    """So queries on frames of users have the stability that OpenDP certifies."""
    pl = pytest.importorskip("polars")
    empty = pl.LazyFrame(schema={"who": pl.Int64, "age": pl.Int64})
    domain, symmetric = dp.domain_of(empty, infer=True), dp.symmetric_distance()
    unit, rows = dp.symmetric_id_distance(pl.col("who")), "FrameDistance<SymmetricDistance>"
    first = empty.filter(pl.int_range(pl.len()).over("who") < 2)
    made = dp.t.make_stable_lazyframe(domain, unit, first, MO=rows)
    assert made.output_metric == dp.frame_distance(symmetric)
    assert made.map(3)[0].per_group == 6
    for metric, plan, output in ((unit, empty, rows), (symmetric, first, "MI")):
        with pytest.raises(OpenDPException):
            dp.t.make_stable_lazyframe(domain, metric, plan, MO=output)
