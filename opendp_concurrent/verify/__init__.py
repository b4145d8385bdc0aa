"""Exact checks of the theorems: worst analysts against filters, interleavings and simulations.

``filters`` has the analysts who launch finite mechanisms against a filter; read
``filters/adversary.py`` first. ``interactions`` has the analysts who query interactive mechanisms,
given by tables or by real code. The tools use the accumulators and rules of the package itself, and
the package does not import them. An invalid argument raises ``InvalidTypeError`` or
``InvalidValueError``, which names it.
"""

from ..accounts.rule import Within
from ..public import names_of
from .filters.adversary import Worst, worst_analyst
from .filters.menu import Item, Limited, response_menu
from .filters.stopping import worst_stopping
from .filters.strategy import Launch, Stop
from .filters.totals import worst_loss, worst_mean_loss, worst_renyi
from .interactions.audit import Audit, audit
from .interactions.continual import (
    Identifier,
    continual_delta,
    continual_epsilon,
    continual_renyi,
    events_differ,
)
from .interactions.continual_law import ContinualLaw, Replayed, clamped_noise
from .interactions.interactive import FiniteInteractiveMechanism, random_interactive, sparse_vector
from .interactions.interleaving import (
    composition_delta,
    composition_pair,
    concurrent_delta,
    sequential_delta,
)
from .interactions.played import Move, Played, Reached
from .interactions.simulation import Simulation, certify, simulate, simulate_batch
from .interactions.tape import Tape
from .mechanism import (
    FiniteMechanism,
    k_ary_response,
    random_mechanism,
    randomized_response,
    truncated_geometric,
)

__all__ = [
    "Audit",
    "ContinualLaw",
    "FiniteInteractiveMechanism",
    "FiniteMechanism",
    "Identifier",
    "Item",
    "Launch",
    "Limited",
    "Move",
    "Played",
    "Reached",
    "Replayed",
    "Simulation",
    "Stop",
    "Tape",
    "Within",
    "Worst",
    "audit",
    "certify",
    "clamped_noise",
    "composition_delta",
    "composition_pair",
    "concurrent_delta",
    "continual_delta",
    "continual_epsilon",
    "continual_renyi",
    "events_differ",
    "k_ary_response",
    "random_interactive",
    "random_mechanism",
    "randomized_response",
    "response_menu",
    "sequential_delta",
    "simulate",
    "simulate_batch",
    "sparse_vector",
    "truncated_geometric",
    "worst_analyst",
    "worst_loss",
    "worst_mean_loss",
    "worst_renyi",
    "worst_stopping",
]
__getattr__, __dir__ = names_of(__name__, __all__)
