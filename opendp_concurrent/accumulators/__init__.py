"""Upper bounds on the privacy loss of the launches so far, one file per theorem."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .advanced import advanced
from .basic import basic
from .best_rule import best_rule, launches_admitted
from .either import either
from .from_rule import from_rule
from .renyi import renyi
from .zcdp import zcdp

if TYPE_CHECKING:
    from ..stopping.any_time import any_time
    from ..tradeoffs.ladder import ladder
    from ..tradeoffs.residue import residue

__all__ = [
    "advanced",
    "any_time",
    "basic",
    "best_rule",
    "either",
    "from_rule",
    "ladder",
    "launches_admitted",
    "renyi",
    "residue",
    "zcdp",
]


def include(*accumulators: Callable[..., Any]) -> None:
    """Offer accumulators of a room that this one does not know, under the names in ``__all__``."""
    globals().update({one.__name__: one for one in accumulators})
