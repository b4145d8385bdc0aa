"""An account: one node in the tree of accounts, and the state that a launch charges.

* A launch charges the account and all of its ancestors, or none of them.
* Prices come from untrusted privacy maps, so they are read before the lock is taken. Under the
  lock, the account only compares the state with the one that the prices were read for, and
  replaces it. If another thread has changed the state, the launch is decided again.
* The lock is held for a critical section: an interrupt waits until the whole tree is charged.
* A refused launch changes nothing, except that ``halt`` closes the account.
* Reading a loss changes no loss. An odometer without a bound tracks the loss at each d_in that was
  read. From then on it refuses a launch whose loss at that d_in is not known.
* The root is given what keeps its charges: a history in memory, or a ledger (``on_ledger.py``),
  which overrides the account. The account itself does not know which of them it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import is_
from typing import TYPE_CHECKING, NamedTuple

from ..errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    RefusalError,
)
from ..interrupts import Lock
from ..sums.accumulator import Accumulator
from ..types import Distance, Key, Loss, State
from .charge import Terms
from .history import Arbiter, History, Keeper
from .lifecycle import Event, Lifecycle, innermost_running
from .name import name_of_account
from .price import Inward, Lifted, Price, distance_key, own_distance
from .rule import ContinuationRule, Unlimited, Within

if TYPE_CHECKING:
    from .on_ledger import OnLimit

UNLIMITED = Unlimited()


class Tracked(NamedTuple):
    """An accumulator, its d_in, and the same d_in in units of the queries' metric."""

    d_in: Distance
    query_d_in: Distance
    accumulator: Accumulator

    def holding(self, accumulator: Accumulator) -> Tracked:
        """Return it with another accumulator."""
        return self._replace(accumulator=accumulator)


Verdict = dict[Key, Tracked] | BudgetExceededError  # the state after a launch, or its refusal


class Trial(NamedTuple):
    """A launch that was planned, for the arbiter of its tree to charge.

    :ivar chain: the accounts to charge, from the one that launches to the root
    :ivar before: their states, which the plans were made for
    :ivar plans: of each account; an arbiter may replace them
    """

    chain: tuple[Account, ...]
    before: list[dict[Key, Tracked]]
    prices: list[Price]
    plans: list[Verdict]

    def stands(self) -> bool:
        """Whether the plans are for the states of now. Call this under the lock.

        :raises RefusalError: if the account that launches was closed
        """
        if all(map(is_, self.before, [one._state for one in self.chain])):
            self.chain[0].lifecycle.check()
            return True
        return False

    def stands_after(self, others: dict[Account, Verdict]) -> bool:
        """The same if others are charged first, and a ledger decides on what it keeps itself.

        An account that it does not keep is planned again, if no price must be read for that.

        :param others: plans that are being charged
        """
        for place, account in enumerate(self.chain):
            state: State = others.get(account, account._state)
            if state is not self.before[place] and not account.keeper.recorded:
                if state.keys() != self.before[place].keys():
                    return False
                self.plans[place] = account._plan(state, self.prices[place])
        self.chain[0].lifecycle.check()
        return True

    def bind(self) -> Lifecycle:
        """Charge the launch, and return the lifecycle of the child. It cannot fail."""
        chain = self.chain
        for place in range(len(chain) - 1, -1, -1):  # from the root
            chain[place]._state = self.plans[place]
            chain[place].keeper.keep(self.prices[place])
        return chain[0].begin()


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound that an account enforces: a rule on one accumulator, at one d_in.

    :ivar keeper: what keeps the charges if they are durable and shared; ``start`` is then its
        accumulator at opening. At the root of a tree it is a ledger's, and below it that of a limit
    :ivar measure: name of the privacy measure, for refusals
    :ivar accumulator: name of the accumulator, for refusals
    """

    d_in: Distance
    rule: ContinuationRule
    start: Accumulator
    halt: bool = False
    keeper: Keeper | None = None
    measure: str = ""
    accumulator: str = ""


class Account:
    """Privacy loss of one odometer, filter or compositor.

    An account that a running mechanism makes is launched from the account that pays for it.

    :param start: the accumulator of no launch, for each d_in at which a loss is read; None if the
        account has a loss at the d_in of its bound only
    :param bound: the bound to enforce, if any
    :param inward: stability map from the account's d_in to the d_in of its queries
    :param parent: the account that is also charged for every launch of this one (a child odometer)
    :param sequential_reason: why the next launch closes children; None if it does not
    :param opaque: whether errors of mechanisms are hidden from the analyst
    :ivar keeper: what keeps the charges of this account
    :ivar lock: of all accounts of its tree
    """

    def __init__(
        self,
        start: Accumulator | None,
        *,
        bound: Bound | None = None,
        inward: Inward | None = None,
        parent: Account | None = None,
        sequential_reason: str | None = None,
        opaque: bool = False,
    ) -> None:
        self._start, self._bound, self._inward = start, bound, inward
        self._chain: tuple[Account, ...] = (self, *(parent._chain if parent else ()))
        keeper = None if bound is None else bound.keeper
        self.keeper: Keeper = History() if keeper is None else keeper
        self._arbiter: Arbiter = parent._arbiter if parent else self.keeper  # type: ignore[assignment]
        self.lock: Lock = parent.lock if parent else self.keeper.lock or Lock()
        below = parent.lifecycle if parent else innermost_running()
        self.lifecycle: Lifecycle = Lifecycle(
            below,
            halts=bound is not None and bound.halt,
            opaque=opaque,
            name=name_of_account(
                (bound.rule if bound else UNLIMITED).kind,
                None if below is None else below.named,
                self.keeper.dataset,
            ),
        )
        self._sequential_reason = sequential_reason
        self._current: Lifecycle | None = None  # newest child of a sequential tree, at its root
        self._lifted: dict[int, tuple[Price, Lifted]] = {}
        self._bound_key = distance_key(bound.d_in) if bound else None
        self._state: dict[Key, Tracked] = {}
        if bound:
            query_d_in = inward(bound.d_in) if inward else bound.d_in
            self._state = {self._bound_key: Tracked(bound.d_in, query_d_in, bound.start)}

    @property
    def launches(self) -> int:
        """Number of charged launches that this process knows of."""
        return self.keeper.launches

    @property
    def accumulator_of_none(self) -> Accumulator:
        """The accumulator of no launch: in its form, d_mids are added."""
        start = self._bound.start if self._bound else self._start
        assert start is not None
        return start

    @property
    def recorded(self) -> bool:
        """Whether a ledger keeps the charges of this tree."""
        return self._arbiter.recorded

    def open_limit(self, path: tuple[str, ...], terms: Terms) -> OnLimit | None:
        """Return what keeps a limit below this account; None if no ledger keeps this tree.

        :raises InvalidTypeError: if a ledger keeps this tree, but not this account
        """
        return self._arbiter.open_limit(self.keeper, path, terms)

    # --- launching -------------------------------------------------------------------------

    def launch(self, price: Price) -> Lifecycle:
        """Charge a launch to this account and its ancestors, or raise and change nothing.

        :return: the lifecycle of the child that is about to run
        :raises BudgetExceededError, HaltedError, ClosedChildError: if the launch is refused
        :raises ReentrantLaunchError: if it comes from within a mechanism
        :raises PrivacyMapError: if the price cannot be used
        :raises LedgerError: if the charge could not be made durable; the mechanism must not run
        :raises ForkedError: the ledger was opened before this process was forked
        """
        self.check_open()
        chain, arbiter = self._chain, self._arbiter
        prices = self._prices(price)
        while True:
            before = [account._state for account in chain]
            plans: list[Verdict] = list(map(Account._plan, chain, before, prices))
            begun = arbiter.settle(Trial(chain, before, prices, plans))
            if begun is not None:
                return begun

    def check_open(self) -> None:
        """Raise if no launch may begin here and now, whatever it costs."""
        self._arbiter.check_process()
        for account in self._chain:
            account.lifecycle.check_not_running()
        self.lifecycle.check()

    def starts(self) -> list[Accumulator]:
        """For this account and its ancestors, the accumulator of no launch."""
        return [one.accumulator_of_none for one in self._chain]

    def begin(self) -> Lifecycle:
        """Return the lifecycle of a child that is about to run. Call this under the lock.

        Under a measure that composes sequentially, this closes the earlier children of the tree.
        """
        if self._sequential_reason is None:
            return self.lifecycle
        root, child = self._chain[-1], Lifecycle(self.lifecycle, self._sequential_reason)
        if root._current is not None:
            root._current.happen(Event.SUPERSEDED)
        root._current = child
        return child

    def _prices(self, price: Price) -> list[Price]:
        prices = [price]
        for account in self._chain[:-1]:
            prices.append(account._lift(prices[-1]))
        return prices

    def _lift(self, price: Price) -> Price:
        if self._inward is None:
            return price
        return Lifted(price, self._inward, self._lifted)

    def _plan(self, state: dict[Key, Tracked], price: Price) -> Verdict:
        """Return the state after the launch, or the refusal. This reads untrusted maps."""
        after = {}
        for key, tracked in state.items():
            bound = self._bound if key == self._bound_key else None
            try:
                d_mid = price.at(tracked.query_d_in)
            except PrivacyMapError:
                if bound or not self._bound:
                    raise
                continue  # not the bound's d_in: reading a loss must not make launches fail later
            try:
                rule = bound.rule if bound else UNLIMITED
                verdict = rule.admits(tracked.accumulator, d_mid)
            except (InvalidTypeError, InvalidValueError) as error:  # of a curve, read just now
                if self._bound and not bound:
                    continue
                raise PrivacyMapError(tracked.query_d_in, str(error)) from error
            if isinstance(verdict, BudgetExceededError):
                return self._refusal(verdict)
            after[key] = Tracked(tracked.d_in, tracked.query_d_in, verdict)
        return after

    def counted(self, price: Price) -> Loss:
        """Return the d_mid at the d_in of the bound, as it is counted."""
        tracked = self._tracked(self._state)
        try:
            return tracked.accumulator.read(price.at(tracked.query_d_in))
        except (InvalidTypeError, InvalidValueError) as error:
            raise PrivacyMapError(tracked.query_d_in, str(error)) from error

    def plan_on(self, accumulator: Accumulator, d_mid: Loss, trial: Trial, place: int) -> Verdict:
        """Return the plan of a trial for another accumulator: its own if it was made for that."""
        assert self._bound is not None
        tracked = self._tracked(trial.before[place])
        if accumulator is tracked.accumulator:
            return trial.plans[place]
        verdict = self._bound.rule.admits(accumulator, d_mid)
        if isinstance(verdict, BudgetExceededError):
            return self._refusal(verdict)
        return {self._bound_key: tracked.holding(verdict)}

    def planned(self, plan: Verdict) -> Accumulator:
        """Return the accumulator of the bound after a plan that is no refusal."""
        return self._tracked(plan).accumulator

    def follow(self, accumulator: Accumulator) -> None:
        """Take over an accumulator of the bound, which is that of a ledger."""
        tracked = self._tracked(self._state)
        if tracked.accumulator is not accumulator:
            self._state = {self._bound_key: tracked.holding(accumulator)}

    def _tracked(self, state: State) -> Tracked:
        tracked: Tracked = state[self._bound_key]
        return tracked

    def _refusal(self, verdict: BudgetExceededError) -> BudgetExceededError:
        """Return the verdict of this account's bound, with the account's path."""
        assert self._bound is not None
        bound, path = self._bound, self.lifecycle.path
        return verdict.told_by(path, bound.d_in, bound.measure, bound.accumulator)

    def refused(self) -> None:
        """Close this account, if its bound closes it at a refusal. Call this under the lock."""
        if self._bound and self._bound.halt:
            self.lifecycle.happen(Event.REFUSED_WITH_HALT)

    # --- readings --------------------------------------------------------------------------

    def privacy_loss(self, d_in: Distance) -> Loss:
        """Return the loss so far at ``d_in``, in O(1) for a d_in that was read before."""
        return self._accumulator(d_in).loss

    def loss_after(self, d_in: Distance, prices: Iterable[Price]) -> Loss:
        """Return the loss at ``d_in`` if ``prices`` were launched now. Nothing is charged.

        :raises BudgetExceededError: if a price exceeds its share, or no share is left
        """
        accumulator = self._accumulator(d_in)
        query_d_in = self._inward(d_in) if self._inward else d_in
        rule: ContinuationRule = UNLIMITED
        if self._bound and not isinstance(self._bound.rule, Within):
            rule = self._bound.rule  # the rule for shares: a refused launch uses no share
        for price in prices:
            after = rule.admits(accumulator, price.at(query_d_in))
            if isinstance(after, BudgetExceededError):
                raise self._refusal(after)
            accumulator = after
        return accumulator.loss

    def refusal(self, price: Price) -> RefusalError | None:
        """Return why a launch would be refused now; None if it would be admitted.

        Nothing is charged, and ``halt`` closes nothing.

        :raises ReentrantLaunchError, PrivacyMapError, LedgerError: as a launch does
        """
        chain = self._chain
        for account in chain:
            account.lifecycle.check_not_running()
        try:
            self.lifecycle.check()
        except RefusalError as error:
            return error.with_traceback(None)
        for account in chain[::-1]:
            account.keeper.refresh(account)
        for account, one in zip(chain, self._prices(price), strict=True):
            plan = account._plan(account._state, one)
            if isinstance(plan, BudgetExceededError):
                return plan
        return None

    def price_at(self, d_in: Distance, price: Price) -> Loss:
        """Return what ``price`` is at ``d_in``, a distance of this account."""
        return price.at(self._inward(d_in) if self._inward else d_in)

    def remaining(self) -> Loss:
        """Return what the bound still admits; None without a bound."""
        if self._bound is None:
            return None
        self.keeper.refresh(self)
        return self._bound.rule.remaining(self._tracked(self._state).accumulator)

    @property
    def known_loss(self) -> Loss:
        """Loss at the d_in of the bound, as this process knows it. The ledger is not read."""
        return self._tracked(self._state).accumulator.loss

    def knows(self, d_in: Distance) -> bool:
        """Whether the loss at ``d_in`` is tracked."""
        return distance_key(d_in) in self._state

    @property
    def tracks_any_loss(self) -> bool:
        """Whether this account or an ancestor reads the price of a launch at some d_in."""
        return any(account._state for account in self._chain)

    def _accumulator(self, d_in: Distance) -> Accumulator:
        self.keeper.refresh(self)
        tracked = self._state.get(distance_key(d_in))
        return tracked.accumulator if tracked else self._track(d_in)

    def _track(self, d_in: Distance) -> Accumulator:
        """Add up the history for a d_in that was not read before, then track the loss there."""
        if self._start is None:
            assert self._bound is not None
            raise InvalidValueError(
                f"d_in ({d_in}) must be {self._bound.d_in}, the d_in of this "
                f"{self.keeper.what}: its loss is known only there"
            )
        d_in, key = own_distance(d_in), distance_key(d_in)
        query_d_in = self._inward(d_in) if self._inward else d_in
        accumulator, read, history = self._start, 0, self.keeper.prices
        while True:
            for _, run in groupby(history[read:], key=id):
                price, *more = run
                accumulator = accumulator.after(price.at(query_d_in), 1 + len(more))
                read += 1 + len(more)
            with self.lock:
                if read == len(history):
                    tracked = Tracked(d_in, query_d_in, accumulator)
                    self._state = {**self._state, key: tracked}
                    return accumulator
