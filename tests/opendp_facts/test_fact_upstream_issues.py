"""What ``docs/for-opendp.rst`` says of OpenDP and no other file of this folder pins."""

import inspect

import opendp.prelude as dp
import pytest

PURE = dp.max_divergence()

OURS = """
certified_gaussian certified_geometric certified_laplace
concurrent_composition concurrent_filter concurrent_odometer continual_alarm continual_counter
continual_histogram continual_window guess_and_check indexed_composition individual_filter
interactive_above_threshold parallel_composition
private_multiplicative_weights projected_queries sparse_vector
"""


# --- opendp#744, opendp#683, opendp#937, opendp#2045, opendp#2046 -----------------------------


def test_opendp_has_registered_none_of_our_names(succeeds):
    """In a process of its own, as importing this package registers them."""
    succeeds(
        "from opendp.context import constructors\n"
        f"taken = set({OURS.split()!r}) & set(constructors)\n"
        "assert not taken, taken\n"
        "assert 'laplace' in constructors"
    )


# --- casts, and what a drop-in has to offer ---------------------------------------------------


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (
            dp.c.make_adaptive_composition,
            ["input_domain", "input_metric", "output_measure", "d_in", "d_mids"],
        ),
        (
            dp.c.make_fully_adaptive_composition,
            ["input_domain", "input_metric", "output_measure"],
        ),
        (dp.c.make_privacy_filter, ["odometer", "d_in", "d_out"]),
        (
            dp.Context.compositor,
            [
                "data",
                "privacy_unit",
                "privacy_loss",
                "split_evenly_over",
                "split_by_weights",
                "domain",
                "margins",
            ],
        ),
    ],
    ids=["compositor", "odometer", "filter", "context"],
)
def test_the_parameters_of_what_we_replace(function, parameters):
    assert [*inspect.signature(function).parameters] == parameters
