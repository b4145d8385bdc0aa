"""Combinators: measurements and odometers from others."""

from .blocks.block_filter import make_block_filter as make_block_filter
from .combinators.bounded import make_bounded_interactive as make_bounded_interactive
from .combinators.cast import cast as cast
from .combinators.chain import make_chain_ot as make_chain_ot
from .combinators.concurrent_composition import (
    make_concurrent_composition as make_concurrent_composition,
)
from .combinators.concurrent_composition import (
    then_concurrent_composition as then_concurrent_composition,
)
from .combinators.concurrent_filter import make_concurrent_filter as make_concurrent_filter
from .combinators.concurrent_odometer import make_concurrent_odometer as make_concurrent_odometer
from .combinators.concurrent_odometer import then_concurrent_odometer as then_concurrent_odometer
from .combinators.filter_to_odometer import make_filter_to_odometer as make_filter_to_odometer
from .combinators.indexed import make_indexed_composition as make_indexed_composition
from .combinators.indexed import then_indexed_composition as then_indexed_composition
from .combinators.limited import make_limited as make_limited
from .combinators.named_casts import make_approxDP_to_fDP as make_approxDP_to_fDP
from .combinators.named_casts import make_fDP_to_approxDP as make_fDP_to_approxDP
from .combinators.named_casts import make_fDP_to_GDP as make_fDP_to_GDP
from .combinators.named_casts import make_fixedRDP_to_approxDP as make_fixedRDP_to_approxDP
from .combinators.named_casts import make_GDP_to_approxDP as make_GDP_to_approxDP
from .combinators.named_casts import make_GDP_to_fDP as make_GDP_to_fDP
from .combinators.named_casts import make_GDP_to_zCDP as make_GDP_to_zCDP
from .combinators.named_casts import make_larger_delta as make_larger_delta
from .combinators.named_casts import make_profile_to_fDP as make_profile_to_fDP
from .combinators.named_casts import make_pureDP_to_fDP as make_pureDP_to_fDP
from .combinators.named_casts import make_pureDP_to_fixedRDP as make_pureDP_to_fixedRDP
from .combinators.named_casts import make_pureDP_to_GDP as make_pureDP_to_GDP
from .combinators.named_casts import make_pureDP_to_RDP as make_pureDP_to_RDP
from .combinators.named_casts import make_pureDP_to_tCDP as make_pureDP_to_tCDP
from .combinators.named_casts import make_pureDP_to_zCDP as make_pureDP_to_zCDP
from .combinators.named_casts import make_RDP_to_approxDP as make_RDP_to_approxDP
from .combinators.named_casts import make_RDP_to_fixedRDP as make_RDP_to_fixedRDP
from .combinators.named_casts import make_tCDP_to_approxDP as make_tCDP_to_approxDP
from .combinators.named_casts import make_zCDP_to_fDP as make_zCDP_to_fDP
from .combinators.named_casts import make_zCDP_to_fixedRDP as make_zCDP_to_fixedRDP
from .combinators.named_casts import make_zCDP_to_RDP as make_zCDP_to_RDP
from .combinators.named_casts import make_zCDP_to_tCDP as make_zCDP_to_tCDP
from .combinators.postprocessing import ANSWER as ANSWER
from .combinators.postprocessing import QUERY as QUERY
from .combinators.postprocessing import make_chain_po as make_chain_po
from .combinators.postprocessing import (
    make_interactive_postprocessing as make_interactive_postprocessing,
)
from .combinators.wrap import make_interactive as make_interactive
from .contexts.calibration import largest_share as largest_share
from .contexts.calibration import smallest_scale as smallest_scale
from .continual.concurrent import make_concurrent_continual as make_concurrent_continual
from .continual.parallel import make_parallel_continual as make_parallel_continual
from .continual.parallel import then_parallel_continual as then_parallel_continual
from .continual.records import from_record as from_record
from .parallel.by import by_column as by_column
from .parallel.by import by_entry as by_entry
from .parallel.by import by_key as by_key
from .parallel.by import by_split as by_split
from .parallel.by import by_values as by_values
from .parallel.parallel import make_parallel_composition as make_parallel_composition
from .parallel.parallel import then_parallel_composition as then_parallel_composition
from .selection.private_selection import make_private_selection as make_private_selection

__all__ = [name for name in dir() if not name.startswith("_")]
