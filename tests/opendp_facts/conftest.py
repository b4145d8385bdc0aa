"""What the files of this folder share. They pin facts about OpenDP and import only OpenDP.

When a test of this folder fails after an upgrade of OpenDP, something has changed that this package
works around or builds on: look for its uses before changing the test.
"""

import os
import subprocess
import sys

import opendp.prelude as dp
import pytest

PREAMBLE = """
import sys
sys.modules.update(dict.fromkeys(["numpy", "polars", "scipy", "sklearn"]))  # optional, and slow
import opendp.prelude as dp
dp.enable_features("contrib", "honest-but-curious")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE, RENYI = dp.max_divergence(), dp.renyi_divergence()
laplace = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
odometer = dp.c.make_fully_adaptive_composition(*space, PURE)
"""


def _run(script):
    return subprocess.run(
        [sys.executable, "-c", PREAMBLE + script],
        env={**os.environ, "RUST_BACKTRACE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def succeeds():
    """Run a script in a fresh process, apart from what other tests have registered or patched."""

    def succeeds(script):
        done = _run(script)
        assert done.returncode == 0, done.stderr

    return succeeds


@pytest.fixture
def kills_the_process():
    """Run a script that corrupts memory or aborts, which need not show at the first attempt.

    The script prints REACHED right before the last step, so that a mistake in the script, or a
    crash in what leads up to it, is not taken for the crash.
    """

    def kills_the_process(script):
        for _ in range(3):
            done = _run(script)
            assert "REACHED" in done.stdout, f"the script fails too early: {done.stderr}"
            if done.returncode < 0:
                return
        pytest.fail(
            "no signal ended the process any more "
            f"(return code {done.returncode}): if the crash is gone, our workaround may go\n"
            f"{done.stdout}{done.stderr}"
        )

    return kills_the_process


@pytest.fixture
def user(space):
    """Make a measurement from a function, with a constant loss."""

    def user(function=len, loss=0.0, measure=None, space=space):
        measure = dp.max_divergence() if measure is None else measure
        return dp.m.make_user_measurement(*space, measure, function, lambda d_in: loss)

    return user


@pytest.fixture
def laplace(space):
    def laplace(epsilon=0.5):
        return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)

    return laplace
