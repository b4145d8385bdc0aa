"""Decide on launches in a turn, by the rules of their accounts on what the ledger has then."""

from __future__ import annotations

from typing import Protocol

from ..accounts.account import Account, Plan, Trial
from ..accounts.charge import Charge, LimitCharge
from ..accounts.history import refuse
from ..accounts.on_ledger import limits_of
from ..errors import BudgetExceededError
from ..sums.accumulator import Accumulator


class Turn(Protocol):
    """A turn at a book. No other process charges a launch during the turn.

    :ivar planned: the states of accounts after the launches that this turn has written
    """

    planned: dict[Account, Plan]

    @property
    def accumulator(self) -> Accumulator:
        """The accumulator of all charges so far, of every process and of this turn."""

    def total(self, limit: LimitCharge) -> Accumulator:
        """Return the accumulator of all charges so far below a limit.

        :raises LimitMismatchError: if another process opened it under other terms
        """

    def write(
        self, charge: Charge, after: Accumulator, count: int, limits: tuple[Accumulator, ...]
    ) -> None:
        """Add ``count`` equal charges, after which the accumulator is ``after``.

        All of them are durable at turn's end, or none.

        :param limits: the accumulators of its limits after them, in their order
        """


def decide(trial: Trial, charge: Charge, turn: Turn) -> bool:
    """Decide on launches, and write their charge.

    :return: False if they must be planned again; nothing is written then
    :raises BudgetExceededError: if an account refuses; nothing is written then
    """
    chain, plans = trial.chain, trial.plans
    if not trial.stands_after(turn.planned):
        return False
    places = [place for place, _ in limits_of(chain)]
    totals = [*(turn.total(one) for one in charge.limits), turn.accumulator]
    losses = [*(one.d_mid for one in charge.limits), charge.d_mid]
    places.append(len(chain) - 1)
    for place, total, d_mid in zip(places, totals, losses, strict=True):
        plans[place] = chain[place].plan_on(total, d_mid, trial, place)
        if not turn.planned:  # the total is on disk
            chain[place].follow(total)
    if trial.fits > trial.least and any(isinstance(one, BudgetExceededError) for one in plans):
        return False
    refuse(chain, plans)
    *limits, root = (chain[place].planned(plans[place]) for place in places)
    turn.write(charge, root, trial.fits, tuple(limits))
    turn.planned.update(zip(chain, plans, strict=True))
    return True
