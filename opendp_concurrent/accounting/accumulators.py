"""Upper bounds on the privacy loss of the launches so far."""

from .best_rule import any_time as any_time
from .best_rule import best_rule as best_rule
from .best_rule import launches_admitted as launches_admitted
from .best_rule import renyi as renyi
from .best_rule import zcdp as zcdp
from .epsilon_delta import advanced as advanced
from .epsilon_delta import basic as basic
from .epsilon_delta import either as either
from .ladder import ladder as ladder
from .ladder import residue as residue
from .rule import from_rule as from_rule

__all__ = [name for name in dir() if not name.startswith("_")]
