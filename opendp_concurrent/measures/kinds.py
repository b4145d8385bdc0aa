"""Names of the kinds of measures, so that a measure can name another without importing it."""

from __future__ import annotations

PURE = "MaxDivergence"
APPROXIMATE = "Approximate(MaxDivergence)"
ZCDP = "ZeroConcentratedDivergence"
APPROXIMATE_ZCDP = "Approximate(ZeroConcentratedDivergence)"
RENYI = "RenyiDivergence"
FIXED = "FixedRenyiDivergence"
TRUNCATED = "TruncatedConcentratedDivergence"
GAUSSIAN = "GaussianTradeoff"
TRADEOFF = "Tradeoff"
PROFILE = "SmoothedMaxDivergence"  # a target of conversions only
