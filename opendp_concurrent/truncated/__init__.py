"""Truncated concentrated DP as a privacy measure: its distances, its sum and its tools.

Other rooms do not know it. Importing this room tells ``measures`` of it.
"""

from .. import measures
from .truncated_concentrated_divergence import TruncatedConcentratedDivergence
from .truncated_tools import (
    bad_event_probability,
    group_tcdp,
    mutual_information,
    subsampled_tcdp,
)

measures.include(
    TruncatedConcentratedDivergence,
    bad_event_probability,
    group_tcdp,
    mutual_information,
    subsampled_tcdp,
)
