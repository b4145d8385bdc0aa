"""f-DP and Gaussian DP as privacy measures: trade-off functions, which ``fdp`` computes, and μ.

Other rooms do not know them. Importing this room tells them what leads here: the measures and their
conversions, the optimal composition of (ε, δ) losses, and the accumulators in units of a function.
"""

from .. import accumulators
from ..accumulators.best_rule import include as include_in_best_rule
from ..measures import CompositionMeasure, include
from ..measures.kinds import APPROXIMATE
from .gaussian_tradeoff import GaussianTradeoff
from .ladder import ladder
from .ladder_at_delta import alike_ladder
from .product import optimal_pair
from .residue import residue
from .tradeoff import TRADEOFF_DIVERGENCE, TradeoffDivergence

include(GaussianTradeoff)
include(TradeoffDivergence)
CompositionMeasure.optimal_compositions[APPROXIMATE] = optimal_pair
include_in_best_rule(TRADEOFF_DIVERGENCE, alike_ladder)
accumulators.include(ladder, residue)
