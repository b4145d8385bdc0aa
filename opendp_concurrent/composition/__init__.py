"""The constructors: odometer, filter, compositor, limit, cast, chain, parallel, blocks.

* ``odometer.py``, which has filters too, and ``compositor.py`` are concurrent composition;
  ``interactive.py`` lifts OpenDP's interactive measurements into it, and changes answers;
  ``casts.py`` changes measures.
* ``parallel.py`` composes over disjoint parts of the data, ``block_filter.py`` over blocks that may
  come later; ``block_totals.py`` has their sums, ``block_keys.py`` and ``block_records.py`` the
  names of blocks and what ledgers keep.
* ``guards.py`` has the guards of OpenDP's objects, and ``constructor``, which every public
  constructor wears.
"""

from .block_filter import BlockFilterQueryable, make_block_filter
from .casts import cast, conversion, make_pureDP_to_zCDP, recertify
from .compositor import (
    MOST_LAUNCHES,
    make_concurrent_composition,
    make_indexed_composition,
    then_concurrent_composition,
    then_indexed_composition,
)
from .guards import (
    accumulator_for,
    check_budget,
    check_inside,
    check_measurement,
    check_measurement_on,
    check_static,
    constructor,
    measure,
    privacy_loss,
    privacy_unit,
    space,
)
from .interactive import (
    ANSWER,
    QUERY,
    Ask,
    Tag,
    as_answering,
    chain,
    constant_map,
    make_bounded_interactive,
    make_chain_ot,
    make_chain_po,
    make_interactive,
    make_interactive_postprocessing,
    make_measurement,
    postprocessing,
    with_handles,
    wrap,
)
from .odometer import (
    guarded,
    loss_of,
    make_concurrent_filter,
    make_concurrent_odometer,
    make_filter_to_odometer,
    make_limited,
    then_concurrent_odometer,
)
from .parallel import ParallelLoss, make_parallel_composition, then_parallel_composition
