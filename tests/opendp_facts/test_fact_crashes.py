"""What ends the process. Nothing of it can be caught, so it has to be refused beforehand."""

import sys

import pytest

SAY = "\nprint('REACHED', flush=True)\n"


def test_a_query_that_is_no_measurement_kills_the_process(kills_the_process):
    kills_the_process(f"root = odometer([1]){SAY}root('text')")


def test_a_subclass_of_measurement_without_its_type_kills_the_process(kills_the_process):
    made = "class Sub(dp.Measurement):\n    pass\n\nlaplace.__class__ = Sub"
    kills_the_process(f"{made}{SAY}laplace.map(1)")


@pytest.mark.skipif(sys.version_info < (3, 11, 7), reason="older Pythons come back with an error")
def test_an_exception_that_is_no_exception_subclass_kills_the_process(kills_the_process):
    """Callbacks catch ``Exception`` only: an interrupt while one runs leaves nothing behind."""
    fails = "def fail(argument):\n    raise KeyboardInterrupt\n"
    kills_the_process(f"{fails}{SAY}dp.new_queryable(fail)(1)")


def test_the_curve_of_a_privacy_profile_can_be_returned_only_once(kills_the_process):
    """The native side frees what a map returns, so that a map must make a new profile."""
    kills_the_process(
        "profile = dp.new_privacy_profile(lambda epsilon: 0.5)\n"
        "measurement = dp.m.make_user_measurement(\n"
        "    *space, dp.smoothed_max_divergence(), len, lambda d_in: profile.curve)\n"
        f"measurement.map(1){SAY}"
        "for _ in range(5):\n    measurement.map(1)"
    )
