"""Measurements: mechanisms to launch."""

from .continual.mechanism import make_continual as make_continual
from .continual.mechanism import then_continual as then_continual
from .counters.accuracy import counter_rmse as counter_rmse
from .counters.accuracy import window_rmse as window_rmse
from .counters.alarm import make_alarm as make_alarm
from .counters.alarm import then_alarm as then_alarm
from .counters.counter import make_counter as make_counter
from .counters.counter import then_counter as then_counter
from .counters.histogram import make_histogram_counter as make_histogram_counter
from .counters.histogram import then_histogram_counter as then_histogram_counter
from .counters.window import make_window_counter as make_window_counter
from .counters.window import then_window_counter as then_window_counter
from .individual.individual_filter import make_individual_filter as make_individual_filter
from .individual.individual_filter import then_individual_filter as then_individual_filter
from .individual.noisy_sum import NoisySum as NoisySum
from .individual.price import individual_scale as individual_scale
from .measurements.checked_queries import Deviation as Deviation
from .measurements.gaussian import make_certified_gaussian as make_certified_gaussian
from .measurements.gaussian import then_certified_gaussian as then_certified_gaussian
from .measurements.geometric import make_certified_geometric as make_certified_geometric
from .measurements.geometric import then_certified_geometric as then_certified_geometric
from .measurements.guess_and_check import make_guess_and_check as make_guess_and_check
from .measurements.guess_and_check import then_guess_and_check as then_guess_and_check
from .measurements.laplace import make_certified_laplace as make_certified_laplace
from .measurements.laplace import then_certified_laplace as then_certified_laplace
from .measurements.linear.linear_answers import LinearAnswers as LinearAnswers
from .measurements.linear.marginals import make_marginals as make_marginals
from .measurements.linear.marginals import then_marginals as then_marginals
from .measurements.linear.multiplicative_weights import (
    make_private_multiplicative_weights as make_private_multiplicative_weights,
)
from .measurements.linear.multiplicative_weights import (
    then_private_multiplicative_weights as then_private_multiplicative_weights,
)
from .measurements.linear.projection import make_projected_queries as make_projected_queries
from .measurements.linear.projection import then_projected_queries as then_projected_queries
from .measurements.randomized_response import (
    make_certified_randomized_response as make_certified_randomized_response,
)
from .measurements.randomized_response import (
    make_certified_randomized_response_bool as make_certified_randomized_response_bool,
)
from .measurements.sparse_vector import Outcome as Outcome
from .measurements.sparse_vector import SparseVectorAnswer as SparseVectorAnswer
from .measurements.sparse_vector import make_above_threshold as make_above_threshold
from .measurements.sparse_vector import make_sparse_vector as make_sparse_vector
from .measurements.sparse_vector import sparse_vector_accuracy as sparse_vector_accuracy
from .measurements.sparse_vector import then_above_threshold as then_above_threshold
from .measurements.sparse_vector import then_sparse_vector as then_sparse_vector
from .measurements.table_keys import make_table_keys as make_table_keys
from .measurements.table_keys import then_table_keys as then_table_keys
from .queryables.updates import Update as Update
from .queryables.updates import Updates as Updates
from .releases.shared_release import make_shared_release as make_shared_release
from .releases.shared_release import then_shared_release as then_shared_release

__all__ = [name for name in dir() if not name.startswith("_")]
