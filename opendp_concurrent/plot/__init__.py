"""Pictures of privacy losses, budgets, trade-off functions, continual counters and strategies.

Needs matplotlib, the extra ``plot``; it is imported when something is drawn. Every function returns
the axes that it drew on: those it was given, or those of a new figure. A new figure belongs to no
window, so nothing here depends on a backend; ``ax.figure.savefig(...)`` writes it.
"""

from __future__ import annotations

from .budgets import plot_budgets
from .counters import plot_counter_error
from .ledger import plot_ledger
from .profile import plot_profile
from .session import plot_session
from .strategy import plot_strategy
from .stream import plot_stream
from .tradeoff import plot_tradeoff

__all__ = [
    "plot_budgets",
    "plot_counter_error",
    "plot_ledger",
    "plot_profile",
    "plot_session",
    "plot_strategy",
    "plot_stream",
    "plot_tradeoff",
]
