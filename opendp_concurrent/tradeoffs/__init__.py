"""f-DP as a privacy measure: its distances are trade-off functions, which ``fdp`` computes.

Other rooms do not know f-DP. Importing this room tells them what leads into it: the measure and its
conversions, the optimal composition of (ε, δ) losses, and the accumulators in units of a function.
"""

from .. import accumulators
from ..accumulators.best_rule import include as include_in_best_rule
from ..measures import CompositionMeasure, include
from ..measures.kinds import APPROXIMATE
from .ladder import ladder
from .ladder_at_delta import alike_ladder
from .product import optimal_pair
from .residue import residue
from .tradeoff import TRADEOFF_DIVERGENCE, TradeoffDivergence

include(TradeoffDivergence)
CompositionMeasure.optimal_compositions[APPROXIMATE] = optimal_pair
include_in_best_rule(TRADEOFF_DIVERGENCE, alike_ladder)
accumulators.include(ladder, residue)
