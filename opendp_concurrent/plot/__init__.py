"""Pictures of trade-off functions, profiles and budgets, with the bracket of each value filled.

Needs matplotlib, the extra ``plot``; it is imported when something is drawn. Every function returns
the axes that it drew on: those it was given, or those of a new figure. A new figure belongs to no
window, so nothing here depends on a backend; ``ax.figure.savefig(...)`` writes it.
"""

from __future__ import annotations

from .budgets import plot_budgets
from .ledger import plot_ledger
from .profile import plot_profile
from .stream import plot_stream
from .tradeoff import plot_tradeoff

__all__ = ["plot_budgets", "plot_ledger", "plot_profile", "plot_stream", "plot_tradeoff"]
