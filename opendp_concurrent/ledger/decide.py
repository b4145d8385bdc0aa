"""Decide on launches in a turn, by the rules of their accounts on what the ledger has then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..accounts.account import Launch
from ..accounts.store import Charge, limits_of

if TYPE_CHECKING:
    from .book import SqlTurn


def decide(launch: Launch, charge: Charge, turn: SqlTurn) -> bool:
    """Decide on a launch, and write its charge.

    :return: False if it must be planned again; nothing is written then
    :raises BudgetExceededError: if an account refuses; nothing is written then
    """
    chain, plans = launch.chain, launch.plans
    totals = [*[turn.total(one) for one in charge.limits], turn.accumulator]
    losses = [*(one.d_mid for one in charge.limits), charge.d_mid]
    if not launch.is_current_after(turn.planned):
        return False
    places = [*dict(limits_of(chain)), len(chain) - 1]
    for place, total, d_mid in zip(places, totals, losses, strict=True):
        plans[place] = chain[place].plan_on(total, d_mid, launch, place)
        if not turn.planned:  # the total is on disk
            chain[place].follow(total)
    launch.refuse()
    after = []
    for place in places:
        after.append(chain[place].planned(plans[place]))
    *limits, root = after
    turn.write(charge, root, tuple(limits))
    turn.planned.update(zip(chain, plans, strict=True))
    return True
