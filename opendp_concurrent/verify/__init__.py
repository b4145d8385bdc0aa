"""Exact checks of the theorems: worst analysts against filters, interleavings and simulations.

* ``adversary.py`` has the analysts who launch and query finite mechanisms against a filter; read
  it first.
* ``mechanism.py`` has the finite mechanisms, and two whose approximate zCDP does not add up;
  ``simulation.py`` what interactive ones postprocess.
* ``played.py`` and ``continual.py`` have the analysts who query real code.

The tools use the accumulators and rules of the package itself, and the package does not import
them. An invalid argument raises ``InvalidTypeError`` or ``InvalidValueError``, which names it.
"""

import types

from ..accounting import Within as Within
from .adversary import Item as Item
from .adversary import Limited as Limited
from .adversary import Worst as Worst
from .adversary import response_menu as response_menu
from .adversary import worst_analyst as worst_analyst
from .adversary import worst_loss as worst_loss
from .adversary import worst_renyi as worst_renyi
from .adversary import worst_stopping as worst_stopping
from .continual import ContinualLaw as ContinualLaw
from .continual import Identifier as Identifier
from .continual import Replayed as Replayed
from .continual import clamped_noise as clamped_noise
from .continual import continual_delta as continual_delta
from .continual import continual_epsilon as continual_epsilon
from .continual import continual_renyi as continual_renyi
from .continual import events_differ as events_differ
from .mechanism import Counterexample as Counterexample
from .mechanism import FiniteInteractiveMechanism as FiniteInteractiveMechanism
from .mechanism import FiniteMechanism as FiniteMechanism
from .mechanism import approximate_zcdp_counterexample as approximate_zcdp_counterexample
from .mechanism import composition_delta as composition_delta
from .mechanism import concurrent_delta as concurrent_delta
from .mechanism import concurrent_renyi as concurrent_renyi
from .mechanism import random_interactive as random_interactive
from .mechanism import random_mechanism as random_mechanism
from .mechanism import randomized_response as randomized_response
from .mechanism import sequential_delta as sequential_delta
from .played import Audit as Audit
from .played import Move as Move
from .played import Played as Played
from .played import Reached as Reached
from .played import Tape as Tape
from .played import audit as audit
from .simulation import Simulation as Simulation
from .simulation import certify as certify
from .simulation import simulate as simulate

__all__ = [
    name for name, one in vars().items() if name[0] != "_" and not isinstance(one, types.ModuleType)
]
