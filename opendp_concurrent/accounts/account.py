"""One node of the tree of accounts: the only thing here that changes.

* A launch charges the account and all of its ancestors, or none of them.
* Prices come from untrusted privacy maps, so they are read before the lock is taken; under the
  lock are only the comparison with the state that they were read for, the rebinding and the
  sequence number. If another thread was faster, the launch is decided again on its state.
* A refused launch changes nothing; with ``halt`` it closes the account.
* A question changes no loss. An odometer without a bound keeps the loss at each d_in that was
  asked for: from then on it refuses a launch whose loss there is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import is_
from threading import Lock
from typing import Any, NamedTuple

from ..accumulators.accumulator import Accumulator
from ..errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    LedgerError,
    PrivacyMapError,
)
from .charge import Charge, Ledger
from .lifecycle import Event, Lifecycle, innermost_running
from .price import Inward, Lifted, Price, distance_key
from .rule import ContinuationRule, Unlimited

UNLIMITED = Unlimited()


class Tracked(NamedTuple):
    """An accumulator with the d_in that it is for, and that d_in in units of the queries."""

    d_in: Any
    query_d_in: Any
    accumulator: Accumulator


@dataclass(frozen=True, slots=True)
class Bound:
    """What an account enforces: a rule on one accumulator, at one d_in."""

    d_in: Any
    rule: ContinuationRule
    start: Accumulator
    halt: bool = False
    ledger: Ledger | None = None


class Account:
    """Privacy loss of one odometer, filter or compositor.

    One that is made while a mechanism runs is launched from what pays for that mechanism.

    :param start: the accumulator of no launch, for a d_in that is asked about; None when the
        account has a loss at the d_in of its bound only
    :param bound: what is enforced, if anything
    :param inward: stability map from the account's d_in to that of its queries
    :param parent: the account that is charged for every launch of this one (a child odometer)
    :param sequential_reason: why children are closed by the next launch, or None if they are not
    """

    __slots__ = (
        "_bound",
        "_bound_key",
        "_chain",
        "_current",
        "_history",
        "_inward",
        "_lifted",
        "_lock",
        "_sequential_reason",
        "_start",
        "_state",
        "lifecycle",
    )

    def __init__(
        self,
        start: Accumulator | None,
        *,
        bound: Bound | None = None,
        inward: Inward | None = None,
        parent: Account | None = None,
        sequential_reason: str | None = None,
    ) -> None:
        self._start, self._bound, self._inward = start, bound, inward
        self._chain: tuple[Account, ...] = (self, *(parent._chain if parent else ()))
        root = self._chain[-1]
        self._lock: Lock = root._lock if parent else Lock()
        self.lifecycle: Lifecycle = Lifecycle(parent.lifecycle if parent else innermost_running())
        self._sequential_reason = sequential_reason
        self._current: Lifecycle | None = None  # newest child of a sequential tree, at its root
        self._history: list[Price] = []
        self._lifted: dict[int, tuple[Price, Lifted]] = {}
        self._bound_key = distance_key(bound.d_in) if bound else None
        self._state: dict[Any, Tracked] = {}
        if bound:
            query_d_in = inward(bound.d_in) if inward else bound.d_in
            self._state = {self._bound_key: Tracked(bound.d_in, query_d_in, bound.start)}

    @property
    def launches(self) -> int:
        """How many launches were charged."""
        return len(self._history)

    # --- launching -------------------------------------------------------------------------

    def launch(self, price: Price) -> Lifecycle:
        """Charge a launch to this account and its ancestors, or raise and change nothing.

        :return: the lifecycle of the child that is about to run
        :raises BudgetExceededError, HaltedError, ClosedChildError: refused
        :raises PrivacyMapError: the price cannot be used
        :raises LedgerError: the charge stands, but could not be written: do not run
        """
        chain = self._chain
        for account in chain:
            account.lifecycle.check_not_running()
        self.lifecycle.check()
        prices = self._prices(price)
        while True:
            before = [account._state for account in chain]
            plans = list(map(Account._plan, chain, before, prices))
            with self._lock:
                if not all(map(is_, before, [account._state for account in chain])):
                    continue
                self.lifecycle.check()
                refusal = self._refuse(plans)
                if refusal is not None:
                    raise refusal
                child = self._rebind(plans, prices)
                charges = self._charges()
                break
        for ledger, charge in charges:
            _append(ledger, charge)
        return child

    def _prices(self, price: Price) -> list[Price]:
        prices = [price]
        for account in self._chain[:-1]:
            prices.append(account._lift(prices[-1]))
        return prices

    def _lift(self, price: Price) -> Price:
        if self._inward is None:
            return price
        known = self._lifted.get(id(price))
        if known is None or known[0] is not price:
            known = self._lifted[id(price)] = (price, Lifted(price, self._inward))
        return known[1]

    def _plan(
        self, state: dict[Any, Tracked], price: Price
    ) -> dict[Any, Tracked] | BudgetExceededError:
        """State after the launch, or the refusal; reads untrusted maps, changes nothing."""
        after = {}
        for key, tracked in state.items():
            bound = self._bound if key == self._bound_key else None
            try:
                d_mid = price.at(tracked.query_d_in)
            except PrivacyMapError:
                if bound or not self._bound:
                    raise
                continue  # not the bound's d_in: what was once asked must not refuse a launch
            try:
                verdict = (bound.rule if bound else UNLIMITED).admits(tracked.accumulator, d_mid)
            except (InvalidTypeError, InvalidValueError) as error:
                raise PrivacyMapError(tracked.query_d_in, str(error)) from error
            if isinstance(verdict, BudgetExceededError):
                return verdict
            after[key] = Tracked(tracked.d_in, tracked.query_d_in, verdict)
        return after

    def _refuse(
        self, plans: list[dict[Any, Tracked] | BudgetExceededError]
    ) -> BudgetExceededError | None:
        for account, plan in zip(self._chain, plans, strict=True):
            if isinstance(plan, BudgetExceededError):
                if account._bound and account._bound.halt:
                    account.lifecycle.happen(Event.REFUSED_WITH_HALT)
                return plan
        return None

    def _rebind(self, plans: Iterable[Any], prices: Iterable[Price]) -> Lifecycle:
        for account, plan, price in zip(self._chain, plans, prices, strict=True):
            account._state = plan
            account._history.append(price)
        if self._sequential_reason is None:
            return self.lifecycle
        root = self._chain[-1]
        if root._current is not None:
            root._current.happen(Event.SUPERSEDED)
        root._current = Lifecycle(self.lifecycle, self._sequential_reason)
        return root._current

    def _charges(self) -> list[tuple[Ledger, Charge]]:
        """What the launch just made must be written down, as of now."""
        charges = []
        for account in self._chain:
            bound = account._bound
            if bound is not None and bound.ledger is not None:
                tracked = account._state[account._bound_key]
                d_mid = account._history[-1].at(tracked.query_d_in)
                charge = Charge(account.launches, bound.d_in, d_mid, tracked.accumulator.loss)
                charges.append((bound.ledger, charge))
        return charges

    # --- questions -------------------------------------------------------------------------

    def privacy_loss(self, d_in: Any) -> Any:
        """Loss so far at ``d_in``; O(1) for a d_in seen before."""
        return self._accumulator(d_in).loss

    def loss_after(self, d_in: Any, prices: Iterable[Price]) -> Any:
        """Loss at ``d_in`` if ``prices`` were launched now; nothing is charged."""
        accumulator = self._accumulator(d_in)
        query_d_in = self._inward(d_in) if self._inward else d_in
        for price in prices:
            accumulator = accumulator.after(price.at(query_d_in))
        return accumulator.loss

    def remaining(self) -> Any:
        """What the bound still admits; None without a bound."""
        if self._bound is None:
            return None
        return self._bound.rule.remaining(self._state[self._bound_key].accumulator)

    def knows(self, d_in: Any) -> bool:
        """Whether the loss at ``d_in`` is kept up to date."""
        return distance_key(d_in) in self._state

    def _accumulator(self, d_in: Any) -> Accumulator:
        tracked = self._state.get(distance_key(d_in))
        return tracked.accumulator if tracked else self._track(d_in)

    def _track(self, d_in: Any) -> Accumulator:
        """Read the history once for a d_in not asked before, then keep it up to date."""
        if self._start is None:
            assert self._bound is not None
            raise InvalidValueError(
                f"d_in ({d_in}): the loss of a compositor is known at its own d_in "
                f"({self._bound.d_in}) only"
            )
        query_d_in = self._inward(d_in) if self._inward else d_in
        accumulator, read = self._start, 0
        while True:
            for _, run in groupby(self._history[read:], key=id):
                price, *more = run
                accumulator = accumulator.after(price.at(query_d_in), 1 + len(more))
                read += 1 + len(more)
            with self._lock:
                if read == len(self._history):
                    tracked = Tracked(d_in, query_d_in, accumulator)
                    self._state = {**self._state, distance_key(d_in): tracked}
                    return accumulator


def _append(ledger: Ledger, charge: Charge) -> None:
    try:
        ledger.append(charge)
    except Exception as error:
        raise LedgerError(
            f"charge {charge.sequence} could not be written ({type(error).__name__}): "
            "it stays charged and the mechanism did not run; mend the ledger and ask again"
        ) from error
