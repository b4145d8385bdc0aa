"""The parameters of what this package replaces, which ``docs/for-opendp.rst`` builds on."""

import inspect

import opendp.prelude as dp
import pytest

SPACE = "input_domain input_metric output_measure"
PARAMETERS = {
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
