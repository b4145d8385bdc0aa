"""What a launch may do: accounts, prices, rules and accumulators. No data, and nothing of OpenDP.

* ``account.py`` has the life of a launch: price, plan, lock, still current, commit.
* An accumulator is a theorem that adds privacy losses up; ``accumulators.py`` lists them.
  ``epsilon_delta.py``, ``best_rule.py`` and ``ladder.py`` have their states, frozen values whose
  ``after`` returns the next one.
* ``price.py`` has what a launch costs, ``rule.py`` the rules that admit it, and the accumulator of
  a rule of your own.
"""

from . import accumulators as accumulators
from .account import Account, Bound, Launch, Verdict
from .epsilon_delta import EpsilonDeltaSum
from .lifecycle import (
    RUNNING,
    Event,
    Lifecycle,
    State,
    as_child,
    innermost_running,
    label_text,
    labelled,
    named,
)
from .price import Price, StabilityMap, distance_key, own_distance, same_distance
from .rule import ContinuationRule, Shares, Unlimited, Within
from .store import (
    Charge,
    InLedger,
    Ledger,
    Limit,
    LimitCharge,
    Terms,
    limits_of,
    open_limit,
    require_same_terms,
    same_term,
)
