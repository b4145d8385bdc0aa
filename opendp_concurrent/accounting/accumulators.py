"""Upper bounds on the privacy loss of the launches so far, one file per theorem."""

from .any_time import any_time
from .best_rule import best_rule, launches_admitted, renyi, zcdp
from .epsilon_delta import advanced, basic, either
from .from_rule import from_rule
from .ladder import ladder, residue

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
