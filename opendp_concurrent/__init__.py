"""Concurrent composition of interactive differential privacy mechanisms, for OpenDP."""

from opendp.context import constructors, register

from .accounts.charge import labelled
from .accumulators.advanced import advanced
from .accumulators.basic import basic
from .accumulators.best_rule import best_rule, launches_admitted
from .accumulators.either import either
from .accumulators.from_rule import from_rule
from .accumulators.ladder import ladder
from .accumulators.renyi import renyi
from .accumulators.residue import residue
from .accumulators.zcdp import zcdp
from .combinators.bounded import make_bounded_interactive
from .combinators.calibration import largest_share, smallest_scale
from .combinators.cast import cast
from .combinators.chain import make_chain_ot, make_chain_po
from .combinators.concurrent_composition import (
    make_concurrent_composition,
    then_concurrent_composition,
)
from .combinators.concurrent_filter import make_concurrent_filter
from .combinators.concurrent_odometer import make_concurrent_odometer, then_concurrent_odometer
from .combinators.context import concurrent_context
from .combinators.filter_to_odometer import make_filter_to_odometer
from .combinators.indexed import (
    make_indexed_composition,
    make_null_query_extension,
    make_ordered_composition,
    then_indexed_composition,
    then_ordered_composition,
)
from .combinators.loss_of import loss_of
from .combinators.named_casts import (
    make_approxDP_to_fDP,
    make_fDP_to_approxDP,
    make_fDP_to_GDP,
    make_fixedRDP_to_approxDP,
    make_GDP_to_approxDP,
    make_GDP_to_fDP,
    make_GDP_to_zCDP,
    make_larger_delta,
    make_profile_to_fDP,
    make_pureDP_to_fDP,
    make_pureDP_to_fixedRDP,
    make_pureDP_to_GDP,
    make_pureDP_to_RDP,
    make_pureDP_to_tCDP,
    make_pureDP_to_zCDP,
    make_RDP_to_approxDP,
    make_RDP_to_fixedRDP,
    make_tCDP_to_approxDP,
    make_zCDP_to_fDP,
    make_zCDP_to_fixedRDP,
    make_zCDP_to_RDP,
    make_zCDP_to_tCDP,
)
from .combinators.postprocessing import ANSWER, QUERY, make_interactive_postprocessing
from .combinators.wrap import make_interactive
from .continual.checkpoint import Checkpoint, make_resumable
from .continual.concurrent import make_concurrent_continual
from .continual.mechanism import make_continual, then_continual
from .continual.parallel import make_parallel_continual, then_parallel_continual
from .continual.stream import (
    category_stream,
    event_change,
    event_presence,
    integer_stream,
    record_stream,
    user_presence,
)
from .continual.transformations import (
    make_bounded_contributions,
    make_stream_clamp,
    make_stream_filter,
    make_stream_map,
    then_bounded_contributions,
    then_stream_clamp,
    then_stream_filter,
    then_stream_map,
)
from .counters.accuracy import counter_nodes, square_root_rmse
from .counters.alarm import make_alarm, then_alarm
from .counters.counter import (
    make_counter,
    make_histogram_counter,
    then_counter,
    then_histogram_counter,
)
from .counters.window import make_window_counter, then_window_counter
from .fdp.function import TradeoffFunction
from .fdp.optimal_composition import optimal_composition
from .individual.individual_filter import make_individual_filter, then_individual_filter
from .individual.noisy_sum import NoisySum
from .individual.price import individual_scale
from .install import install
from .measurements.gaussian import make_gaussian, then_gaussian
from .measurements.geometric import make_geometric, then_geometric
from .measurements.guess_and_check import make_guess_and_check, then_guess_and_check
from .measurements.laplace import make_laplace, then_laplace
from .measurements.multiplicative_weights import (
    make_private_multiplicative_weights,
    then_private_multiplicative_weights,
)
from .measurements.projection import make_projected_queries, then_projected_queries
from .measurements.questions import Deviation
from .measurements.randomized_response import (
    make_randomized_response,
    make_randomized_response_bool,
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
from .measures.conversions.truncated_tools import (
    bad_event_probability,
    group_tcdp,
    mutual_information,
    subsampled_tcdp,
)
from .measures.distances import TruncatedConcentrated
from .measures.fixed_renyi_divergence import fixed_renyi_divergence
from .measures.gaussian_tradeoff import gaussian_tradeoff
from .measures.tradeoff import tradeoff
from .measures.truncated_concentrated_divergence import truncated_concentrated_divergence
from .parallel.analyst_quotas import AnalystQuotas, make_analyst_quotas
from .parallel.parallel import make_parallel_composition, then_parallel_composition
from .parallel.partition import by_column, by_key, by_split, by_values
from .queryables.stream import Update, Updates

__all__ = [
    "ANSWER",
    "QUERY",
    "AnalystQuotas",
    "Checkpoint",
    "Deviation",
    "NoisySum",
    "Outcome",
    "SparseVectorAnswer",
    "TradeoffFunction",
    "TruncatedConcentrated",
    "Update",
    "Updates",
    "advanced",
    "bad_event_probability",
    "basic",
    "best_rule",
    "by_column",
    "by_key",
    "by_split",
    "by_values",
    "cast",
    "category_stream",
    "concurrent_context",
    "counter_nodes",
    "either",
    "event_change",
    "event_presence",
    "fixed_renyi_divergence",
    "from_rule",
    "gaussian_tradeoff",
    "group_tcdp",
    "individual_scale",
    "integer_stream",
    "labelled",
    "ladder",
    "largest_share",
    "launches_admitted",
    "loss_of",
    "make_GDP_to_approxDP",
    "make_GDP_to_fDP",
    "make_GDP_to_zCDP",
    "make_RDP_to_approxDP",
    "make_RDP_to_fixedRDP",
    "make_above_threshold",
    "make_alarm",
    "make_analyst_quotas",
    "make_approxDP_to_fDP",
    "make_bounded_contributions",
    "make_bounded_interactive",
    "make_chain_ot",
    "make_chain_po",
    "make_concurrent_composition",
    "make_concurrent_continual",
    "make_concurrent_filter",
    "make_concurrent_odometer",
    "make_continual",
    "make_counter",
    "make_fDP_to_GDP",
    "make_fDP_to_approxDP",
    "make_filter_to_odometer",
    "make_fixedRDP_to_approxDP",
    "make_gaussian",
    "make_geometric",
    "make_guess_and_check",
    "make_histogram_counter",
    "make_indexed_composition",
    "make_individual_filter",
    "make_interactive",
    "make_interactive_postprocessing",
    "make_laplace",
    "make_larger_delta",
    "make_null_query_extension",
    "make_ordered_composition",
    "make_parallel_composition",
    "make_parallel_continual",
    "make_private_multiplicative_weights",
    "make_profile_to_fDP",
    "make_projected_queries",
    "make_pureDP_to_GDP",
    "make_pureDP_to_RDP",
    "make_pureDP_to_fDP",
    "make_pureDP_to_fixedRDP",
    "make_pureDP_to_tCDP",
    "make_pureDP_to_zCDP",
    "make_randomized_response",
    "make_randomized_response_bool",
    "make_resumable",
    "make_sparse_vector",
    "make_stream_clamp",
    "make_stream_filter",
    "make_stream_map",
    "make_tCDP_to_approxDP",
    "make_window_counter",
    "make_zCDP_to_RDP",
    "make_zCDP_to_fDP",
    "make_zCDP_to_fixedRDP",
    "make_zCDP_to_tCDP",
    "mutual_information",
    "optimal_composition",
    "record_stream",
    "renyi",
    "residue",
    "smallest_scale",
    "sparse_vector_accuracy",
    "square_root_rmse",
    "subsampled_tcdp",
    "then_above_threshold",
    "then_alarm",
    "then_bounded_contributions",
    "then_concurrent_composition",
    "then_concurrent_odometer",
    "then_continual",
    "then_counter",
    "then_gaussian",
    "then_geometric",
    "then_guess_and_check",
    "then_histogram_counter",
    "then_indexed_composition",
    "then_individual_filter",
    "then_laplace",
    "then_ordered_composition",
    "then_parallel_composition",
    "then_parallel_continual",
    "then_private_multiplicative_weights",
    "then_projected_queries",
    "then_sparse_vector",
    "then_stream_clamp",
    "then_stream_filter",
    "then_stream_map",
    "then_window_counter",
    "tradeoff",
    "truncated_concentrated_divergence",
    "user_presence",
    "zcdp",
]

install()
for _constructor, _name in (
    (make_concurrent_composition, "concurrent_composition"),
    (make_concurrent_odometer, "concurrent_odometer"),
    (make_concurrent_filter, "concurrent_filter"),
    (make_gaussian, "certified_gaussian"),
    (make_geometric, "certified_geometric"),
    (make_laplace, "certified_laplace"),
    (make_alarm, "continual_alarm"),
    (make_counter, "continual_counter"),
    (make_histogram_counter, "continual_histogram"),
    (make_window_counter, "continual_window"),
    (make_parallel_composition, "parallel_composition"),
    (make_analyst_quotas, "analyst_quotas"),
    (make_above_threshold, "interactive_above_threshold"),
    (make_guess_and_check, "guess_and_check"),
    (make_private_multiplicative_weights, "private_multiplicative_weights"),
    (make_projected_queries, "projected_queries"),
    (make_sparse_vector, "sparse_vector"),
    (make_indexed_composition, "indexed_composition"),
    (make_individual_filter, "individual_filter"),
    (make_ordered_composition, "ordered_composition"),
):
    if _name not in constructors:
        register(_constructor, _name)
del _constructor, _name
