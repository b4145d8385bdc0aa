"""Proof by machine: the worst analysts against filters, interleavings and simulations, computed.

Read ``adversary.py`` first. Nothing in the package imports this; it uses the accumulators and rules
of production as they are.
"""

from .adversary import Worst, worst_analyst
from .audit import Audit, audit
from .continual import (
    Identifier,
    continual_delta,
    continual_epsilon,
    continual_renyi,
    events_differ,
)
from .continual_law import ContinualLaw, Replayed, clamped_noise
from .interactive import FiniteInteractiveMechanism, random_interactive, sparse_vector
from .interleaving import composition_delta, composition_pair, concurrent_delta, sequential_delta
from .mechanism import (
    FiniteMechanism,
    k_ary_response,
    random_mechanism,
    randomized_response,
    truncated_geometric,
)
from .menu import Item, Limited, response_menu
from .played import Move, Played, Reached
from .promise import Outcome, Promise
from .promises import promises
from .renyi import worst_renyi
from .simulation import Simulation, certify, simulate, simulate_batch
from .strategy import Launch, Stop
from .tape import Tape
from .totals import worst_loss, worst_mean_loss

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
    "Outcome",
    "Played",
    "Promise",
    "Reached",
    "Replayed",
    "Simulation",
    "Stop",
    "Tape",
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
    "promises",
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
]
