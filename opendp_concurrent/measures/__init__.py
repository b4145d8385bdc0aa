"""The privacy measures that are composed here, one class each.

Everything that differs between measures is asked of the measure object,
:class:`.CompositionMeasure` in ``measure.py``: which distances are valid, their order, the sum that
adds losses up, the conversions that lead out, and by which theorem children compose concurrently.

* Measures: ``max_divergence.py``, ``approximate.py``, ``zero_concentrated.py``, ``renyi.py``,
  ``truncated.py``, ``gaussian.py``, ``tradeoffs.py``.
* ``measure.py`` also has the protocol of accumulators. ``shapes.py`` has what those have in common
  whose distance is a number or a pair, and the joins of parallel parts; ``sums.py`` the exact sums,
  ``slots.py`` plans of trade-off functions, ``conversion.py`` the conversions that need no measure.
* ``opendp.py`` makes and recognises OpenDP's measures. ``registry.py`` has the table of classes and
  finds the object of a measure. To add a measure, write its class in a file here, and add a line to
  the table. Another package adds its own by ``oc.extend.register``.
"""

from .approximate import APPROXIMATE_MAX_DIVERGENCE
from .attacker import PRIOR, Risk, risk, risk_of, rounded_up
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
from .gaussian import GAUSSIAN_TRADEOFF, gaussian_tradeoff
from .max_divergence import MAX_DIVERGENCE
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
    PROFILE,
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
    by_tag,
    composition_measure,
    convertible_kinds,
    convertible_measure,
    height,
    name,
    register,
    registered,
)
from .renyi import (
    READ,
    RENYI_DIVERGENCE,
    OnOrders,
    approximate_renyi_divergence,
    fixed_renyi_divergence,
    grid_curve,
)
from .shapes import NumberMeasure, approximate_group, approximate_member
from .sums import PairSum, Planned, ScalarSum
from .tradeoffs import TRADEOFF_DIVERGENCE, laplace_to_tradeoff, tradeoff
from .truncated import (
    TruncatedConcentrated,
    group_tcdp,
    subsampled_tcdp,
    truncated_concentrated_divergence,
)
from .zero_concentrated import ZERO_CONCENTRATED_DIVERGENCE

__all__ = [
    "group_tcdp",
    "risk",
    "subsampled_tcdp",
]
