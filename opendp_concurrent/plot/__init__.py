"""Pictures of privacy losses, budgets, trade-off functions, continual counters and strategies.

These functions need matplotlib, which the extra ``plot`` installs. They import it when they draw,
and raise an ImportError that names the extra if it is missing. Each function draws on the axes
``ax``, or on those of a new figure, and returns the axes. A new figure belongs to no window, so it
does not depend on a backend. To save it, use ``ax.figure.savefig(...)``. An invalid argument raises
``InvalidTypeError`` or ``InvalidValueError``, which names it.
"""

from __future__ import annotations

from ..public import names_of
from .accuracy import plot_accuracy
from .budgets import plot_budgets
from .counters import plot_counter_error
from .estimates import plot_estimates
from .ledger import plot_ledger
from .plan import accuracy_of_plan
from .profile import plot_profile
from .session import plot_session
from .strategy import plot_strategy
from .stream import plot_stream
from .tradeoff import plot_tradeoff

__all__ = [
    "accuracy_of_plan",
    "plot_accuracy",
    "plot_budgets",
    "plot_counter_error",
    "plot_estimates",
    "plot_ledger",
    "plot_profile",
    "plot_session",
    "plot_strategy",
    "plot_stream",
    "plot_tradeoff",
]
__getattr__, __dir__ = names_of(__name__, __all__)
