"""The kinds of measures by name, whatever their parameters."""

from __future__ import annotations

from .approximate_max_divergence import APPROXIMATE_MAX_DIVERGENCE
from .fixed_renyi_divergence import FAMILY as FIXED
from .gaussian_tradeoff import FAMILY as GAUSSIAN
from .max_divergence import MAX_DIVERGENCE
from .renyi_divergence import RENYI_DIVERGENCE
from .tradeoff import FAMILY as TRADEOFF
from .truncated_concentrated_divergence import FAMILY as TRUNCATED
from .zero_concentrated_divergence import ZERO_CONCENTRATED_DIVERGENCE

PURE, APPROXIMATE = MAX_DIVERGENCE.family, APPROXIMATE_MAX_DIVERGENCE.family
ZCDP, RENYI = ZERO_CONCENTRATED_DIVERGENCE.family, RENYI_DIVERGENCE.family
OURS = (FIXED, TRUNCATED, GAUSSIAN, TRADEOFF)  # those that OpenDP lacks

__all__ = [
    "APPROXIMATE",
    "FIXED",
    "GAUSSIAN",
    "OURS",
    "PURE",
    "RENYI",
    "TRADEOFF",
    "TRUNCATED",
    "ZCDP",
]
