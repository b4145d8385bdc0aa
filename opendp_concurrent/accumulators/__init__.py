"""Upper bounds on the privacy loss of the launches so far, one file per theorem."""

from .advanced import advanced
from .basic import basic
from .best_rule import best_rule, launches_admitted
from .either import either
from .from_rule import from_rule
from .ladder import ladder
from .renyi import renyi
from .residue import residue
from .zcdp import zcdp

__all__ = [
    "advanced",
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
