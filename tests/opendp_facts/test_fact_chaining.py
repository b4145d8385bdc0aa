"""What ``>>`` does. Scripts run apart, as importing this package teaches ``>>`` more."""

import opendp.prelude as dp
import pytest
from opendp.extras._utilities import to_then

CLAMPED = """
clamp = dp.t.make_clamp(*space, (0, 1))
odometer = dp.c.make_fully_adaptive_composition(*clamp.output_space, PURE)
"""
FAILS = """
try:
    {}
except {} as error:
    assert {!r} in str(error), error
else:
    raise SystemExit("it works now: our extension of >> may go")
"""


@pytest.mark.parametrize(
    "chain", ["clamp >> odometer", "clamp >> dp.c.then_fully_adaptive_composition(PURE)"]
)
def test_a_transformation_does_not_chain_to_an_odometer(succeeds, chain):
    """``Transformation.__rshift__`` declares an overload for it."""
    succeeds(CLAMPED + FAILS.format(chain, "ValueError", "rshift expected"))


def test_an_odometer_does_not_chain_to_a_postprocessor(succeeds):
    succeeds(CLAMPED + FAILS.format("odometer >> (lambda x: x)", "TypeError", "unsupported"))


def test_a_space_chains_to_an_odometer(space):
    pure = dp.max_divergence()
    odometer = space >> dp.c.then_fully_adaptive_composition(pure)
    assert isinstance(odometer, dp.Odometer)
    assert odometer.input_domain == space[0]


def test_a_transformation_chains_to_a_measurement_and_a_measurement_to_a_function(space, user):
    clamp = dp.t.make_clamp(*space, (0, 1))
    rows = user(list, space=clamp.output_space)
    assert (clamp >> rows)([5, -5]) == [1, 0]
    assert (clamp >> rows >> sum)([5, -5]) == 1


def test_a_transformation_chains_to_an_interactive_measurement(space, user):
    clamp = dp.t.make_clamp(*space, (0, 1))
    compositor = dp.c.make_adaptive_composition(*clamp.output_space, dp.max_divergence(), 1, [0.0])
    assert (clamp >> compositor)([5, -5])(user(list, space=clamp.output_space)) == [1, 0]


def test_a_chain_multiplies_distances(space):
    twice = dp.t.make_user_transformation(
        *space, *space, lambda rows: rows * 2, lambda d_in: 2 * d_in
    )
    compositor = dp.c.make_adaptive_composition(*space, dp.max_divergence(), 2, [0.5])
    assert (twice >> compositor).map(1) == 0.5


def test_to_then_leaves_the_space_to_what_comes_before(space):
    def make_mine(input_domain, input_metric, number):
        return input_domain, input_metric, number

    domain, metric, number = space >> to_then(make_mine)(7)
    assert (domain, metric) == space
    assert number == 7


def test_spaces_and_measures_compare_by_meaning(space):
    assert space == (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
    assert space[0] != dp.vector_domain(dp.atom_domain(T=float))
    zcdp = dp.zero_concentrated_divergence()
    assert dp.approximate(zcdp) == dp.approximate(dp.zero_concentrated_divergence())
    assert dp.approximate(zcdp) != dp.approximate(dp.max_divergence())
    assert zcdp != dp.approximate(zcdp)
