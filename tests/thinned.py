"""Cases that are many and alike: CI runs every k-th of them, ``-m slow`` the others."""

from collections import Counter

import pytest

EVERY = {
    "contracts/test_catalogue_messages.py::test_each_argument_may_be_large": 7,
    "composition/test_block_growing_table.py::test_a_unit_is_in_no_more_weeks_than_it_is_charged_for": 2,  # noqa: E501
    "context/test_calibration.py::test_a_scale_is_found_in_fewer_than_a_hundred_builds": 2,
    "context/test_context.py::test_a_context_spends_all_of_an_even_split": 3,
    "context/test_decimals.py::test_decimals_that_add_up_to_the_bound_fit": 3,
    "context/test_fitted.py::test_noise_under_measures_of_this_package": 2,
    "context/test_fitted.py::test_the_scale_is_the_one_that_opendp_finds": 2,
    "context/test_frame_query.py::test_the_scale_is_the_one_that_opendp_finds": 3,
    "context/test_query.py::test_a_nested_context_under_another_measure_costs_the_loss_of_its_query": 2,  # noqa: E501
    "context/test_table_query.py::test_a_scale_is_found_in_at_most_100_builds": 2,
    "fdp/test_atoms.py::test_optimal_composition_equals_the_sum_over_subsets": 2,
    "fdp/test_curve.py::test_beta_and_delta_are_dual": 2,
    "fdp/test_fuzz.py::test_hostile_functions_answer_in_few_steps": 4,
    "fdp/test_function.py::test_a_rate_is_read_as_itself": 3,
    "fdp/test_function.py::test_answers_depend_on_the_function_alone": 2,
    "fdp/test_gaussian.py::test_values_logarithms_and_cumulants_are_within_their_errors": 4,
    "fdp/test_inversion.py::test_bounds_contain_the_exact_value": 4,
    "fdp/test_inversion.py::test_bounds_of_random_products_contain_the_exact_value": 3,
    "fdp/test_laplace.py::test_extreme_scales_are_bounded_without_a_warning": 5,
    "fdp/test_laplace.py::test_two_mechanisms_equal_their_integral": 3,
    "fdp/test_one_direction.py::test_it_has_a_bound_that_is_valid_everywhere": 3,
    "fdp/test_order.py::test_a_polygon_below_a_profile_is_below_it": 3,
    "fdp/test_order.py::test_behind_the_tail_the_ratio_falls": 4,
    "fdp/test_order.py::test_child_and_residual_are_within_the_budget": 3,
    "fdp/test_order.py::test_it_is_never_worse_than_the_difference_of_squares": 2,
    "fdp/test_sandwich.py::test_noise_on_a_grid_has_pairs_that_touch_it": 12,
    "fdp/test_sandwich.py::test_products_of_two_are_all_sums": 4,
    "fdp/test_sandwich.py::test_spreading_touches_from_above_and_merging_from_below": 3,
    "measures/conversions/test_formulas.py::test_zcdp_to_delta_is_the_infimum_over_orders": 4,
    "measures/conversions/test_formulas.py::test_zcdp_to_epsilon_is_the_infimum_over_orders": 4,
    "mechanisms/linear/test_projection.py::test_batches_move_by_no_more_than_their_stability": 2,
    "mechanisms/linear/test_marginals.py::test_sums_and_pairs_of_each_form_of_data": 3,
    "mechanisms/linear/test_multiplicative_weights.py::test_all_answers_are_within_the_error": 2,
    "mechanisms/linear/test_multiplicative_weights.py::test_the_loss_is_within_the_budget_and_uses_it": 2,  # noqa: E501
    "mechanisms/linear/test_multiplicative_weights.py::test_updates_and_errors_stay_within_the_plan": 3,  # noqa: E501
    "mechanisms/test_sparse_vector_loss.py::test_accuracy_holds_on_whole_and_on_fine_grids": 4,
    "mechanisms/test_sparse_vector_loss.py::test_adaptive_queries_cost_no_more_than_the_map_says": 2,  # noqa: E501
    "mechanisms/test_sparse_vector_loss.py::test_no_outcome_costs_more_than_the_map_says": 4,
    "numerics/test_rounding.py::test_even_shares_can_all_be_spent_and_no_more": 3,
    "queryables/test_exclusive.py::test_a_handle_that_was_made_in_a_thread_is_closed_by_the_next_launch": 4,  # noqa: E501
    "serving/test_messages.py::test_a_query_goes_from_a_client_to_a_server": 3,
    "streams/test_counter.py::test_losses_against_their_formulas": 3,
    "tables/test_moments.py::test_the_interval_has_the_truth_if_the_noise_is_within_the_accuracy": 3,  # noqa: E501
    "tables/test_tasks.py::test_a_line_gives_the_truth": 2,
}


def thin(items):
    """Mark the others; of several parameters, CI has each value of each."""
    counts, had = Counter(), set()
    for item in items:
        name = item.nodeid.partition("[")[0].partition("/")[2]
        if name not in EVERY:
            continue
        given = item.callspec.params
        values = {(name, one, repr(value)) for one, value in given.items() if len(given) > 1}
        if counts[name] % EVERY[name] and values <= had:
            item.add_marker(pytest.mark.slow)
        had |= values
        counts[name] += 1
