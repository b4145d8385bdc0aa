"""Exact checks of the theorems: worst analysts against filters, interleavings and simulations.

* ``adversary.py`` has the analysts who launch and query finite mechanisms against a filter; read
  it first. ``totals.py`` has the exact losses, and what must be refused.
* ``counterexample.py`` has two mechanisms whose approximate zCDP does not add up.
* ``interactive.py`` has interactive mechanisms, ``simulation.py`` what they postprocess.
* ``played.py``, ``tape.py`` and ``continual.py`` have the analysts who query real code.

The tools use the accumulators and rules of the package itself, and the package does not import
them. An invalid argument raises ``InvalidTypeError`` or ``InvalidValueError``, which names it.
"""

from ..accounting import Within
from .adversary import Item, Limited, Worst, response_menu, worst_analyst, worst_stopping
from .continual import (
    ContinualLaw,
    Identifier,
    Replayed,
    clamped_noise,
    continual_delta,
    continual_epsilon,
    continual_renyi,
    events_differ,
)
from .counterexample import Counterexample, approximate_zcdp_counterexample
from .interactive import (
    FiniteInteractiveMechanism,
    composition_delta,
    concurrent_delta,
    concurrent_renyi,
    random_interactive,
    sequential_delta,
)
from .mechanism import FiniteMechanism, random_mechanism, randomized_response
from .played import Move, Played, Reached
from .simulation import Simulation, certify, simulate
from .tape import Audit, Tape, audit
from .totals import worst_loss, worst_renyi

__all__ = [
    "Audit",
    "ContinualLaw",
    "Counterexample",
    "FiniteInteractiveMechanism",
    "FiniteMechanism",
    "Identifier",
    "Item",
    "Limited",
    "Move",
    "Played",
    "Reached",
    "Replayed",
    "Simulation",
    "Tape",
    "Within",
    "Worst",
    "approximate_zcdp_counterexample",
    "audit",
    "certify",
    "clamped_noise",
    "composition_delta",
    "concurrent_delta",
    "concurrent_renyi",
    "continual_delta",
    "continual_epsilon",
    "continual_renyi",
    "events_differ",
    "random_interactive",
    "random_mechanism",
    "randomized_response",
    "response_menu",
    "sequential_delta",
    "simulate",
    "worst_analyst",
    "worst_loss",
    "worst_renyi",
    "worst_stopping",
]
