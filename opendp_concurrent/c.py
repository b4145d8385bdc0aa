"""Combinators: measurements and odometers from others."""

from .blocks.block_filter import make_block_filter
from .combinators.bounded import make_bounded_interactive
from .combinators.cast import cast
from .combinators.chain import make_chain_ot
from .combinators.concurrent_composition import (
    make_concurrent_composition,
    then_concurrent_composition,
)
from .combinators.concurrent_filter import make_concurrent_filter
from .combinators.concurrent_odometer import make_concurrent_odometer, then_concurrent_odometer
from .combinators.filter_to_odometer import make_filter_to_odometer
from .combinators.indexed import (
    make_indexed_composition,
    make_null_query_extension,
    make_ordered_composition,
    then_indexed_composition,
    then_ordered_composition,
)
from .combinators.limited import make_limited
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
from .combinators.postprocessing import (
    ANSWER,
    QUERY,
    make_chain_po,
    make_interactive_postprocessing,
)
from .combinators.wrap import make_interactive
from .contexts.calibration import largest_share, smallest_scale
from .continual.checkpoint import Checkpoint, make_resumable
from .continual.concurrent import make_concurrent_continual
from .continual.parallel import make_parallel_continual, then_parallel_continual
from .parallel.analyst_quotas import AnalystQuotas, make_analyst_quotas
from .parallel.by import by_column, by_entry, by_key, by_split, by_values
from .parallel.parallel import make_parallel_composition, then_parallel_composition
from .public import names_of
from .selection.private_selection import make_private_selection

__all__ = [
    "ANSWER",
    "QUERY",
    "AnalystQuotas",
    "Checkpoint",
    "by_column",
    "by_entry",
    "by_key",
    "by_split",
    "by_values",
    "cast",
    "largest_share",
    "make_GDP_to_approxDP",
    "make_GDP_to_fDP",
    "make_GDP_to_zCDP",
    "make_RDP_to_approxDP",
    "make_RDP_to_fixedRDP",
    "make_analyst_quotas",
    "make_approxDP_to_fDP",
    "make_block_filter",
    "make_bounded_interactive",
    "make_chain_ot",
    "make_chain_po",
    "make_concurrent_composition",
    "make_concurrent_continual",
    "make_concurrent_filter",
    "make_concurrent_odometer",
    "make_fDP_to_GDP",
    "make_fDP_to_approxDP",
    "make_filter_to_odometer",
    "make_fixedRDP_to_approxDP",
    "make_indexed_composition",
    "make_interactive",
    "make_interactive_postprocessing",
    "make_larger_delta",
    "make_limited",
    "make_null_query_extension",
    "make_ordered_composition",
    "make_parallel_composition",
    "make_parallel_continual",
    "make_private_selection",
    "make_profile_to_fDP",
    "make_pureDP_to_GDP",
    "make_pureDP_to_RDP",
    "make_pureDP_to_fDP",
    "make_pureDP_to_fixedRDP",
    "make_pureDP_to_tCDP",
    "make_pureDP_to_zCDP",
    "make_resumable",
    "make_tCDP_to_approxDP",
    "make_zCDP_to_RDP",
    "make_zCDP_to_fDP",
    "make_zCDP_to_fixedRDP",
    "make_zCDP_to_tCDP",
    "smallest_scale",
    "then_concurrent_composition",
    "then_concurrent_odometer",
    "then_indexed_composition",
    "then_ordered_composition",
    "then_parallel_composition",
    "then_parallel_continual",
]
__getattr__, __dir__ = names_of(__name__, __all__)
