"""Maps are read through OpenDP, and it is known whether Python answered."""

import opendp.prelude as dp

from opendp_concurrent._opendp.data import measurement_map, native_only, space_of


def test_a_map_in_python_is_known(space):
    laplace = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    ours = dp.m.make_user_measurement(*space, dp.max_divergence(), len, lambda d_in: 0.5)
    chained = dp.c.make_composition([laplace, ours])
    assert native_only(measurement_map, laplace, 1) == (0.5, True)
    assert native_only(measurement_map, ours, 1) == (0.5, False)
    assert native_only(measurement_map, chained, 1) == (1.0, False)


def test_an_attribute_does_not_change_the_map(space):
    laplace = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    laplace.map = lambda d_in: 0.0
    assert measurement_map(laplace, 1) == 0.5
    assert space_of(laplace) == (*space, dp.max_divergence())
