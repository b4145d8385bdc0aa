import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.errors import InvalidTypeError

from .drawn import lines

pytest.importorskip("matplotlib")
DELTA = 1e-6


@pytest.fixture
def count(space):
    counted = space >> dp.t.then_count()
    return lambda scale: (
        counted >> dp.c.make_approximate(dp.m.make_laplace(*counted.output_space, scale))
    )


def certified(scale):
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    return oc.m.make_certified_gaussian(*space, scale, dp.zero_concentrated_divergence())


def test_the_error_is_that_of_the_smallest_scale():
    drawn = lines(plot.accuracy_of_plan(certified, 1.0, 0.5, [1, 100], beta=0.01))
    numbers, errors = drawn["each query"]
    for number, error in zip(numbers, errors, strict=True):
        scale = oc.c.smallest_scale(certified, 1.0, 0.5, int(number))
        assert error == certified(scale).accuracy(0.01)
    assert errors[1] == pytest.approx(10 * errors[0])


def test_each_accumulator_has_a_line():
    def make(scale):
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        measure = dp.approximate(dp.max_divergence())
        return oc.m.make_certified_laplace(*space, scale, measure)

    rules = {"basic": oc.accumulators.basic(), "zcdp": oc.accumulators.zcdp(DELTA)}
    ax = plot.accuracy_of_plan(make, 1.0, (1.0, DELTA), [100], accumulators=rules)
    drawn = lines(ax)
    assert set(drawn) == {"basic", "zcdp"}
    assert drawn["zcdp"][1][0] < 0.6 * drawn["basic"][1][0]
    assert ax.get_ylabel() == "error with probability 0.95"


def test_a_mechanism_whose_error_is_not_known_is_refused(count):
    with pytest.raises((InvalidTypeError, AttributeError)):
        plot.accuracy_of_plan(count, 1, (1.0, DELTA), [1])
