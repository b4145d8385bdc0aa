"""Measurements: mechanisms to launch."""

from .mechanisms import make_above_threshold as make_above_threshold
from .mechanisms import make_certified_gaussian as make_certified_gaussian
from .mechanisms import make_certified_geometric as make_certified_geometric
from .mechanisms import make_certified_laplace as make_certified_laplace
from .mechanisms import make_certified_randomized_response as make_certified_randomized_response
from .mechanisms import (
    make_certified_randomized_response_bool as make_certified_randomized_response_bool,
)
from .mechanisms import make_guess_and_check as make_guess_and_check
from .mechanisms import make_individual_filter as make_individual_filter
from .mechanisms import make_marginals as make_marginals
from .mechanisms import make_private_multiplicative_weights as make_private_multiplicative_weights
from .mechanisms import make_projected_queries as make_projected_queries
from .mechanisms import make_sparse_vector as make_sparse_vector
from .mechanisms import then_above_threshold as then_above_threshold
from .mechanisms import then_certified_gaussian as then_certified_gaussian
from .mechanisms import then_certified_geometric as then_certified_geometric
from .mechanisms import then_certified_laplace as then_certified_laplace
from .mechanisms import then_guess_and_check as then_guess_and_check
from .mechanisms import then_individual_filter as then_individual_filter
from .mechanisms import then_marginals as then_marginals
from .mechanisms import then_private_multiplicative_weights as then_private_multiplicative_weights
from .mechanisms import then_projected_queries as then_projected_queries
from .mechanisms import then_sparse_vector as then_sparse_vector
from .serving import make_shared_release as make_shared_release
from .serving import then_shared_release as then_shared_release
from .streams import make_alarm as make_alarm
from .streams import make_continual as make_continual
from .streams import make_counter as make_counter
from .streams import make_histogram_counter as make_histogram_counter
from .streams import make_window_counter as make_window_counter
from .streams import then_alarm as then_alarm
from .streams import then_continual as then_continual
from .streams import then_counter as then_counter
from .streams import then_histogram_counter as then_histogram_counter
from .streams import then_window_counter as then_window_counter
from .tables import make_table_keys as make_table_keys
from .tables import then_table_keys as then_table_keys

__all__ = [name for name in dir() if not name.startswith("_")]
