"""Exact checks of the theorems: worst analysts against filters, interleavings and simulations.

``filters`` has the analysts who launch finite mechanisms against a filter; read
``filters/adversary.py`` first. ``interactions`` has the analysts who query interactive mechanisms,
given by tables or by real code. The tools use the accumulators and rules of the package itself, and
the package does not import them. An invalid argument raises ``InvalidTypeError`` or
``InvalidValueError``, which names it.
"""

from types import ModuleType as _Module

from ..accounts.rule import Within as Within
from .filters.adversary import Worst as Worst
from .filters.adversary import worst_analyst as worst_analyst
from .filters.menu import Item as Item
from .filters.menu import Limited as Limited
from .filters.menu import response_menu as response_menu
from .filters.stopping import worst_stopping as worst_stopping
from .filters.strategy import Launch as Launch
from .filters.strategy import Stop as Stop
from .filters.totals import worst_loss as worst_loss
from .filters.totals import worst_mean_loss as worst_mean_loss
from .filters.totals import worst_renyi as worst_renyi
from .interactions.audit import Audit as Audit
from .interactions.audit import audit as audit
from .interactions.continual import Identifier as Identifier
from .interactions.continual import continual_delta as continual_delta
from .interactions.continual import continual_epsilon as continual_epsilon
from .interactions.continual import continual_renyi as continual_renyi
from .interactions.continual import events_differ as events_differ
from .interactions.continual_law import ContinualLaw as ContinualLaw
from .interactions.continual_law import Replayed as Replayed
from .interactions.continual_law import clamped_noise as clamped_noise
from .interactions.interactive import FiniteInteractiveMechanism as FiniteInteractiveMechanism
from .interactions.interactive import random_interactive as random_interactive
from .interactions.interactive import sparse_vector as sparse_vector
from .interactions.interleaving import composition_delta as composition_delta
from .interactions.interleaving import composition_pair as composition_pair
from .interactions.interleaving import concurrent_delta as concurrent_delta
from .interactions.interleaving import sequential_delta as sequential_delta
from .interactions.played import Move as Move
from .interactions.played import Played as Played
from .interactions.played import Reached as Reached
from .interactions.simulation import Simulation as Simulation
from .interactions.simulation import certify as certify
from .interactions.simulation import simulate as simulate
from .interactions.simulation import simulate_batch as simulate_batch
from .interactions.tape import Tape as Tape
from .mechanism import FiniteMechanism as FiniteMechanism
from .mechanism import k_ary_response as k_ary_response
from .mechanism import random_mechanism as random_mechanism
from .mechanism import randomized_response as randomized_response
from .mechanism import truncated_geometric as truncated_geometric

__all__ = [
    name for name, one in globals().items() if name[0] != "_" and not isinstance(one, _Module)
]
