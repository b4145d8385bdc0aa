"""Measurements: mechanisms to launch."""

from .continual.mechanism import make_continual, then_continual
from .counters.accuracy import counter_nodes, counter_rmse, square_root_rmse, window_rmse
from .counters.alarm import make_alarm, then_alarm
from .counters.counter import make_counter, then_counter
from .counters.histogram import make_histogram_counter, then_histogram_counter
from .counters.window import make_window_counter, then_window_counter
from .individual.individual_filter import make_individual_filter, then_individual_filter
from .individual.noisy_sum import NoisySum
from .individual.noisy_table_sum import NoisyTableSum
from .individual.price import individual_scale
from .individual.table_filter import make_individual_table_filter, then_individual_table_filter
from .measurements.checked_queries import Deviation
from .measurements.gaussian import make_certified_gaussian, then_certified_gaussian
from .measurements.geometric import make_certified_geometric, then_certified_geometric
from .measurements.guess_and_check import make_guess_and_check, then_guess_and_check
from .measurements.laplace import make_certified_laplace, then_certified_laplace
from .measurements.linear.linear_answers import LinearAnswers
from .measurements.linear.linear_queries import make_linear_queries, then_linear_queries
from .measurements.linear.marginals import Marginals
from .measurements.linear.multiplicative_weights import (
    make_private_multiplicative_weights,
    then_private_multiplicative_weights,
)
from .measurements.linear.products import Products
from .measurements.linear.projection import make_projected_queries, then_projected_queries
from .measurements.randomized_response import (
    make_certified_randomized_response,
    make_certified_randomized_response_bool,
)
from .measurements.sparse_vector import (
    Outcome,
    SparseVectorAnswer,
    make_above_threshold,
    make_sparse_vector,
    sparse_vector_accuracy,
    then_above_threshold,
    then_sparse_vector,
)
from .measurements.table_keys import make_table_keys, then_table_keys
from .public import names_of
from .queryables.updates import Update, Updates
from .releases.shared_release import make_shared_release, then_shared_release
from .training.dp_sgd import make_dp_sgd, then_dp_sgd

__all__ = [
    "Deviation",
    "LinearAnswers",
    "Marginals",
    "NoisySum",
    "NoisyTableSum",
    "Outcome",
    "Products",
    "SparseVectorAnswer",
    "Update",
    "Updates",
    "counter_nodes",
    "counter_rmse",
    "individual_scale",
    "make_above_threshold",
    "make_alarm",
    "make_certified_gaussian",
    "make_certified_geometric",
    "make_certified_laplace",
    "make_certified_randomized_response",
    "make_certified_randomized_response_bool",
    "make_continual",
    "make_counter",
    "make_dp_sgd",
    "make_guess_and_check",
    "make_histogram_counter",
    "make_individual_filter",
    "make_individual_table_filter",
    "make_linear_queries",
    "make_private_multiplicative_weights",
    "make_projected_queries",
    "make_shared_release",
    "make_sparse_vector",
    "make_table_keys",
    "make_window_counter",
    "sparse_vector_accuracy",
    "square_root_rmse",
    "then_above_threshold",
    "then_alarm",
    "then_certified_gaussian",
    "then_certified_geometric",
    "then_certified_laplace",
    "then_continual",
    "then_counter",
    "then_dp_sgd",
    "then_guess_and_check",
    "then_histogram_counter",
    "then_individual_filter",
    "then_individual_table_filter",
    "then_linear_queries",
    "then_private_multiplicative_weights",
    "then_projected_queries",
    "then_shared_release",
    "then_sparse_vector",
    "then_table_keys",
    "then_window_counter",
    "window_rmse",
]
__getattr__, __dir__ = names_of(__name__, __all__)
