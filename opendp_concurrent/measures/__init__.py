"""The privacy measures that are composed here, one class each.

Everything that differs between measures is asked of the measure object,
:class:`.CompositionMeasure` in ``measure.py``: which distances are valid, their order, the sum that
adds losses up, the conversions that lead out, and by which theorem children compose concurrently.

* Measures: ``divergences.py`` has pure, approximate and zero-concentrated DP; ``renyi.py``,
  ``truncated.py``; ``tradeoffs.py`` has f-DP and Gaussian DP.
* ``measure.py`` also has the protocol of accumulators. ``shapes.py`` has what those have in common
  whose distance is a number or a pair: exact sums, and the joins of parallel parts; ``slots.py``
  plans of trade-off functions, ``conversion.py`` the conversions that need no measure.
* ``opendp.py`` makes and recognises OpenDP's measures. ``registry.py`` has the table of classes,
  finds the object of a measure, and says what a loss means for one person. To add a measure, write
  its class in a file here, and add a line to the table. Another package adds its own by
  ``oc.extend.register``.
"""

from .conversion import (
    Conversion,
    Ends,
    Profile,
    laplace_to_renyi,
    laplace_to_zcdp,
    largest_divergence,
    pure_to_renyi,
    pure_to_zcdp,
    renyi_to_epsilon,
    response_to_renyi,
    zcdp_to_gaussian,
)
from .divergences import APPROXIMATE_MAX_DIVERGENCE, MAX_DIVERGENCE, ZERO_CONCENTRATED_DIVERGENCE
from .measure import (
    Accumulator,
    AccumulatorState,
    Basic,
    Composability,
    CompositionMeasure,
    EvenlyDivisible,
    OfOneMeasure,
    nearly_equal,
    times,
)
from .opendp import (
    APPROXIMATE,
    APPROXIMATE_FIXED,
    APPROXIMATE_ZCDP,
    FIXED,
    GAUSSIAN,
    PURE,
    RENYI,
    TRADEOFF,
    TRUNCATED,
    ZCDP,
    Noise,
    NoiseLoss,
    is_extrinsic,
)
from .registry import (
    PRIOR,
    Risk,
    by_tag,
    composition_measure,
    convertible_kinds,
    convertible_measure,
    height,
    name,
    register,
    registered,
    risk,
    risk_of,
    rounded_up,
)
from .renyi import (
    READ,
    RENYI_DIVERGENCE,
    OnOrders,
    approximate_renyi_divergence,
    fixed_renyi_divergence,
    grid_curve,
)
from .shapes import (
    NumberMeasure,
    PairSum,
    Planned,
    ScalarSum,
    approximate_group,
    approximate_member,
)
from .tradeoffs import (
    GAUSSIAN_TRADEOFF,
    TRADEOFF_DIVERGENCE,
    gaussian_tradeoff,
    laplace_to_tradeoff,
    tradeoff,
)
from .truncated import (
    TruncatedConcentrated,
    group_tcdp,
    subsampled_tcdp,
    truncated_concentrated_divergence,
)

__all__ = [
    "group_tcdp",
    "risk",
    "subsampled_tcdp",
]
