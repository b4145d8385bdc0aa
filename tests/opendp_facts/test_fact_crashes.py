"""What ends the process. Nothing of it can be caught, so it has to be refused beforehand."""

import sys

import pytest

SAY = "\nprint('REACHED', flush=True)\n"
ROOTS = {
    "odometer": "root = odometer([1])",
    "filter": "root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1])",
    "compositor": "root = dp.c.make_adaptive_composition(*space, PURE, 1, [1.0])([1])",
}
QUERIES = {
    "text": "'text'",
    "number": "1",
    "odometer": "odometer",
    "transformation": "space >> dp.t.then_count()",
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("root", ROOTS)
def test_a_query_that_is_no_measurement_kills_the_process(kills_the_process, root, query):
    kills_the_process(f"{ROOTS[root]}{SAY}root({QUERIES[query]})")


def test_a_filter_of_a_renyi_odometer_kills_the_process_as_it_is_made(kills_the_process):
    kills_the_process(
        "odometer = dp.c.make_fully_adaptive_composition(*space, RENYI)"
        f"{SAY}dp.c.make_privacy_filter(odometer, 1, lambda alpha: 5 * alpha)"
    )


def test_a_queryable_of_measurement_pointers_frees_its_query_twice(kills_the_process):
    kills_the_process(
        "queryable = dp.new_queryable(lambda query: 1, Q='AnyMeasurementPtr')\n"
        f"laplace([1]){SAY}"
        "for _ in range(5):\n    queryable(laplace)\n    laplace.map(1)\n    laplace([1])"
    )


@pytest.mark.parametrize("call", ["laplace.map(1)", "laplace([1])"])
def test_a_subclass_of_measurement_without_its_type_kills_the_process(kills_the_process, call):
    kills_the_process(f"class Sub(dp.Measurement):\n    pass\n\nlaplace.__class__ = Sub{SAY}{call}")


def test_a_subclass_of_odometer_without_its_type_kills_the_process(kills_the_process):
    kills_the_process(
        f"class Sub(dp.Odometer):\n    pass\n\nodometer.__class__ = Sub{SAY}odometer([1])"
    )


@pytest.mark.skipif(sys.version_info < (3, 11, 7), reason="older Pythons come back with an error")
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit"])
@pytest.mark.parametrize(
    "call",
    [
        "dp.m.make_user_measurement(*space, PURE, fail, lambda d_in: 0.0)([1])",
        "dp.m.make_user_measurement(*space, PURE, len, fail).map(1)",
        "dp.new_queryable(fail)(1)",
    ],
    ids=["function", "map", "transition"],
)
def test_an_exception_that_is_no_exception_subclass_kills_the_process(
    kills_the_process, call, error
):
    """Callbacks catch ``Exception`` only: an interrupt while one runs leaves nothing behind."""
    kills_the_process(f"def fail(argument):\n    raise {error}\n{SAY}{call}")


@pytest.mark.parametrize("again", ["measurement.map(1)", "profile.delta(1.0)"])
def test_the_curve_of_a_privacy_profile_can_be_returned_only_once(kills_the_process, again):
    """The native side frees what a map returns, so that a map must make a new profile."""
    kills_the_process(
        "profile = dp.new_privacy_profile(lambda epsilon: 0.5)\n"
        "measurement = dp.m.make_user_measurement(\n"
        "    *space, dp.smoothed_max_divergence(), len, lambda d_in: profile.curve)\n"
        f"measurement.map(1){SAY}"
        f"for _ in range(5):\n    {again}"
    )
