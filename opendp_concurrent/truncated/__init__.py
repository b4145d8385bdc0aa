"""Rényi DP of few orders as privacy measures: of one order, and up to an order (truncated).

Other rooms do not know them. Importing this room tells ``measures`` of them.
"""

from .. import measures
from .fixed_renyi_divergence import FixedRenyiDivergence
from .truncated_concentrated_divergence import TruncatedConcentratedDivergence
from .truncated_tools import (
    group_tcdp,
    subsampled_tcdp,
)

measures.include(FixedRenyiDivergence)
measures.include(
    TruncatedConcentratedDivergence,
    group_tcdp,
    subsampled_tcdp,
)
