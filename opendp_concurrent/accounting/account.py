"""An account: one node in the tree of accounts, and the life of a launch.

:meth:`Account.launch` has the steps of a launch in their order: price, plan, lock, still current?,
commit. A launch charges the account and all of its ancestors, or none of them.

* Prices come from untrusted privacy maps, so they are read before the lock is taken. Under the
  lock, a launch only compares the states with those that the plans were made for, and replaces
  them. If another thread has changed a state, the launch is planned again.
* The lock is held for a critical section: an interrupt waits until the whole tree is charged.
* A refused launch changes nothing, except that ``halt`` closes the account, as does any other
  message that is no launch.
* Reading a loss changes no loss. An odometer without a bound tracks the loss at each d_in that was
  read. From then on it refuses a launch whose loss at that d_in is not known.
* The store of the root decides last: :class:`InMemory`, or that of a ledger (``store.py``), which
  has the charges of other processes. The account itself does not know which of them it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Protocol

from .. import errors, measures
from .._opendp import Lock
from .lifecycle import RUNNING, Lifecycle, Turn, innermost_running, name_of_account
from .price import MappedPrice, Price, StabilityMap, distance_key, own_distance
from .rule import ContinuationRule, Unlimited, Within

UNLIMITED = Unlimited()


def _excludes_at(price: Price, d_in: errors.Distance, key: errors.Key) -> bool:
    """Whether a child excludes others at a d_in. It does where its loss is not known."""
    try:
        return price.excludes(d_in, key)
    except (errors.PrivacyMapError, errors.InvalidTypeError, errors.InvalidValueError):
        return True


class Tracked(NamedTuple):
    """An accumulator, its d_in, and the same d_in in units of the queries' metric, with its key."""

    d_in: errors.Distance
    query_d_in: errors.Distance
    query_key: errors.Key
    accumulator: measures.AccumulatorState[Any]


# the state after a launch, or its refusal
Verdict = dict[errors.Key, Tracked] | errors.BudgetExceededError
History = list[tuple[Price, bool]]  # of launches, and whether the child excludes all others


class Launch(NamedTuple):
    """A launch that was planned, for the store of its tree to charge.

    :ivar chain: the accounts to charge, from the one that launches to the root
    :ivar before: their states, which the plans were made for
    :ivar plans: of each account; a store may replace them
    :ivar excludes: whether the child excludes all others of its tree
    """

    chain: tuple[Account, ...]
    before: list[dict[errors.Key, Tracked]]
    prices: list[Price]
    plans: list[Verdict]
    excludes: bool = False

    def is_current(self) -> bool:
        """Whether the plans are for the states of now. Call this under the lock.

        :raises RefusalError: if the account that launches was closed
        """
        for account, state in zip(self.chain, self.before, strict=True):
            if account._state is not state:
                return False
        self.chain[0].lifecycle.check()
        return True

    def is_current_after(self, others: dict[Account, Verdict]) -> bool:
        """The same if others are charged first, and a ledger decides on what it keeps itself.

        An account that it does not keep is planned again, if no price must be read for that.

        :param others: plans that are being charged
        """
        for place, account in enumerate(self.chain):
            state: Any = others.get(account, account._state)
            if state is not self.before[place] and not account.store.recorded:
                if state.keys() != self.before[place].keys():
                    return False
                self.plans[place] = account._plan(state, self.prices[place])
        self.chain[0].lifecycle.check()
        return True

    def refuse(self) -> None:
        """Raise the refusal of the first account that refuses, if one does."""
        for account, plan in zip(self.chain, self.plans, strict=True):
            if isinstance(plan, errors.BudgetExceededError):
                account.refused(plan)
                raise plan

    def commit(self) -> Lifecycle:
        """Charge the launch, and return the lifecycle of the child. It cannot fail.

        This closes the child of the tree that excludes all others, if one is open.
        """
        chain, _, prices, plans, excludes = self
        for place in range(len(chain) - 1, -1, -1):  # from the root
            account, history = chain[place], chain[place].store.prices
            account._state = plans[place]  # no plan is a refusal here
            if history is not None:
                history.append((prices[place].settled(), excludes))
        first = chain[0].lifecycle
        if not excludes:
            if first.parents or (first.turn and first.turn.holder):
                first.passes()
            return first
        child = Lifecycle(first, chain[0]._exclusive_reason or "")
        first.passes(child)
        return child


class ChargeStore(Protocol):
    """What keeps the charges of an account. That of a root decides on the launches of its tree.

    :cvar recorded: whether a ledger keeps them
    :cvar what: what an account is called whose loss is known at one d_in only
    """

    recorded: ClassVar[bool]
    what: ClassVar[str]

    @property
    def lock(self) -> Lock | None:
        """The lock of all trees that a budget in a ledger keeps; None if each has its own."""

    @property
    def dataset(self) -> str:
        """Name of the budget in a ledger; empty if it has none."""

    @property
    def launches(self) -> int:
        """Number of charges that this process knows of."""

    @property
    def prices(self) -> History | None:
        """The prices of all launches, in order; None if other processes charge it, too."""

    def refresh(self, account: Account) -> None:
        """Let an account take over what other processes have charged."""

    def charge(self, launch: Launch) -> Lifecycle | None:
        """Charge a launch for good, or raise the refusal.

        :return: the lifecycle of the child; None if the launch must be planned again
        """


class InMemory:
    """The launches of one account, in the memory of this process."""

    __slots__ = ("prices",)
    lock: ClassVar[Lock | None] = None
    recorded: ClassVar[bool] = False
    what: ClassVar[str] = "compositor"
    dataset: ClassVar[str] = ""

    def __init__(self) -> None:
        self.prices: History = []

    @property
    def launches(self) -> int:
        """Number of launches."""
        return len(self.prices)

    def refresh(self, account: Account) -> None:
        """Nothing: no other process charges the account."""

    def charge(self, launch: Launch) -> Lifecycle | None:
        """Charge the launch, or raise the refusal of the first account that refuses."""
        with launch.chain[0].lock:
            if not launch.is_current():
                return None
            launch.refuse()
            return launch.commit()


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound that an account enforces: a rule on one accumulator, at one d_in.

    :ivar store: what keeps the charges if they are durable and shared; ``start`` is then its
        accumulator at opening. At the root of a tree it is a ledger's, and below it that of a limit
    :ivar measure: name of the privacy measure, for refusals
    :ivar accumulator: name of the accumulator, for refusals
    """

    d_in: errors.Distance
    rule: ContinuationRule[Any]
    start: measures.AccumulatorState[Any]
    halt: bool = False
    store: ChargeStore | None = None
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
    :param exclusive_reason: why children may exclude all others; None if they do not
    :param opaque: whether errors of mechanisms are hidden from the analyst
    :ivar store: what keeps the charges of this account
    :ivar root_store: that of the root, which decides
    :ivar lock: of all accounts of its tree
    """

    def __init__(
        self,
        start: measures.AccumulatorState[Any] | None,
        *,
        bound: Bound | None = None,
        inward: StabilityMap | None = None,
        parent: Account | None = None,
        exclusive_reason: str | None = None,
        opaque: bool = False,
    ) -> None:
        self._start, self._bound, self._inward = start, bound, inward
        self._chain: tuple[Account, ...] = (self, *(parent._chain if parent else ()))
        store = None if bound is None else bound.store
        self.store: ChargeStore = InMemory() if store is None else store
        self.root_store: ChargeStore = parent.root_store if parent else self.store
        self.lock: Lock = parent.lock if parent else self.store.lock or Lock()
        below = parent.lifecycle if parent else innermost_running()
        self.lifecycle: Lifecycle = Lifecycle(
            below,
            halts=bound is not None and bound.halt,
            opaque=opaque,
            name=name_of_account(
                (bound.rule if bound else UNLIMITED).kind,
                None if below is None else below.named,
                self.store.dataset,
            ),
            turn=Turn(recorded=self.recorded) if exclusive_reason and parent is None else None,
        )
        self._exclusive_reason = exclusive_reason
        self._lifted: dict[int, tuple[Price, MappedPrice]] = {}
        self._bound_key = distance_key(bound.d_in) if bound else None
        self._state: dict[errors.Key, Tracked] = {}
        if bound:
            query_d_in, query_key = bound.d_in, self._bound_key
            if inward:
                query_d_in = inward(bound.d_in)
                query_key = distance_key(query_d_in)
            self._state = {self._bound_key: Tracked(bound.d_in, query_d_in, query_key, bound.start)}

    @property
    def launches(self) -> int:
        """Number of charged launches that this process knows of."""
        return self.store.launches

    @property
    def initial(self) -> measures.AccumulatorState[Any]:
        """The accumulator of no launch: in its form, d_mids are added."""
        start = self._bound.start if self._bound else self._start
        assert start is not None
        return start

    @property
    def recorded(self) -> bool:
        """Whether a ledger keeps the charges of this tree."""
        return self.root_store.recorded

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
        chain, prices = self._chain, [price]
        if RUNNING.get():
            self._check_not_running()
        self.lifecycle.check()
        for account in chain[:-1]:  # the price, in units of each ancestor
            prices.append(account._lift(prices[-1]))
        while True:
            before, plans = list[dict[errors.Key, Tracked]](), list[Verdict]()
            for account, one in zip(chain, prices, strict=True):  # the maps are read here
                before.append(account._state)
                plans.append(account._plan(before[-1], one))
            if not any(before):  # where the loss of most odometers is read after their launches
                self._read_at_1(price)
            excludes = not price.free and self._excludes(before, prices)
            # under a lock: is the plan still current? then commit, before the mechanism runs
            begun = self.root_store.charge(Launch(chain, before, prices, plans, excludes))
            if begun is not None:
                return begun

    def refused(self, error: errors.ConcurrentError) -> None:
        """Close the account after a refusal, if its bound halts.

        A refusal to a mechanism that runs could depend on the data, so it closes nothing.
        """
        if self._bound and self._bound.halt and self.lifecycle not in RUNNING.get():
            self.lifecycle.halt(error)

    def _excludes(self, before: list[dict[errors.Key, Tracked]], prices: list[Price]) -> bool:
        """Whether the child excludes all others, at any of the d_ins whose losses are known.

        What excludes others at one d_in need not at another one, where its δ is 0.

        :raises UnsupportedMeasureError: if it does, and a ledger keeps the tree
        """
        known = [
            (price, one.query_d_in, one.query_key)
            for state, price in zip(before, prices, strict=True)
            for one in state.values()
        ]
        if not any(map(_excludes_at, *zip(*(known or [(prices[0], 1, None)]), strict=True))):
            return False
        if self.lifecycle.recorded:
            refused = errors.UnsupportedMeasureError(
                "the query cannot be launched in the tree of a ledger: a launch or an answer in "
                "one process cannot close what excludes it in another, and "
                f"{self._exclusive_reason}; launch what answers once, or "
                "make_concurrent_composition"
            )
            errors.tell_charged(refused, False)
            raise refused
        return True

    def _check_not_running(self) -> None:
        for account in self._chain:
            account.lifecycle.check_not_running()

    def _read_at_1(self, price: Price) -> None:
        try:
            price.at(1)
        except (errors.AdvisoryError, errors.FiniteCommunicationError):
            raise
        except errors.PrivacyMapError:
            pass  # the loss may be read elsewhere

    def check_open(self) -> None:
        """Raise if no launch may begin here and now, whatever it costs."""
        self._check_not_running()
        self.lifecycle.check()

    def starts(self) -> list[measures.AccumulatorState[Any]]:
        """For this account and its ancestors, the accumulator of no launch."""
        return [one.initial for one in self._chain]

    def _lift(self, price: Price) -> Price:
        if self._inward is None:
            return price
        return MappedPrice(price, self._inward, self._lifted)

    def _plan(self, state: dict[errors.Key, Tracked], price: Price) -> Verdict:
        """Return the state after the launch, or the refusal. This reads untrusted maps."""
        after = {}
        for key, tracked in state.items():
            bound = self._bound if key == self._bound_key else None
            try:
                d_mid = price.at(tracked.query_d_in, tracked.query_key)
            except errors.PrivacyMapError:
                if bound or not self._bound:
                    raise
                continue  # not the bound's d_in: reading a loss must not make launches fail later
            try:
                rule = bound.rule if bound else UNLIMITED
                verdict = rule.admits(tracked.accumulator, d_mid)
            except (errors.InvalidTypeError, errors.InvalidValueError) as error:
                # of a curve, read just now
                if self._bound and not bound:
                    continue
                raise errors.PrivacyMapError(tracked.query_d_in, str(error)) from error
            if isinstance(verdict, errors.BudgetExceededError):
                return self._refusal(verdict)
            after[key] = Tracked(tracked.d_in, tracked.query_d_in, tracked.query_key, verdict)
        return after

    def counted(self, price: Price) -> Any:
        """Return the d_mid at the d_in of the bound, as it is counted."""
        tracked = self._tracked(self._state)
        try:
            return tracked.accumulator.read(price.at(tracked.query_d_in))
        except (errors.InvalidTypeError, errors.InvalidValueError) as error:
            raise errors.PrivacyMapError(tracked.query_d_in, str(error)) from error

    def plan_on(
        self,
        accumulator: measures.AccumulatorState[Any],
        d_mid: errors.Loss,
        launch: Launch,
        place: int,
    ) -> Verdict:
        """Return the plan of a launch for another accumulator: its own if it was made for that."""
        assert self._bound is not None
        tracked = self._tracked(launch.before[place])
        if accumulator is tracked.accumulator:
            return launch.plans[place]
        verdict = self._bound.rule.admits(accumulator, d_mid)
        if isinstance(verdict, errors.BudgetExceededError):
            return self._refusal(verdict)
        return {self._bound_key: tracked._replace(accumulator=verdict)}

    def planned(self, plan: Verdict) -> measures.AccumulatorState[Any]:
        """Return the accumulator of the bound after a plan that is no refusal."""
        return self._tracked(plan).accumulator

    def follow(self, accumulator: measures.AccumulatorState[Any]) -> None:
        """Take over an accumulator of the bound, which is that of a ledger."""
        tracked = self._tracked(self._state)
        if tracked.accumulator is not accumulator:
            self._state = {self._bound_key: tracked._replace(accumulator=accumulator)}

    def _tracked(self, state: dict[errors.Key, Tracked]) -> Tracked:
        return state[self._bound_key]

    def _refusal(self, verdict: errors.BudgetExceededError) -> errors.BudgetExceededError:
        """Return the verdict of this account's bound, with the account's path."""
        assert self._bound is not None
        bound, path = self._bound, self.lifecycle.path
        return verdict.with_account(path, bound.d_in, bound.measure, bound.accumulator)

    # --- readings --------------------------------------------------------------------------

    def privacy_loss(self, d_in: errors.Distance) -> Any:
        """Return the loss so far at ``d_in``, in O(1) for a d_in that was read before."""
        return self._accumulator(d_in).loss

    def loss_after(self, d_in: errors.Distance, prices: Iterable[Price]) -> Any:
        """Return the loss at ``d_in`` if ``prices`` were launched now. Nothing is charged.

        :raises BudgetExceededError: if a price exceeds its share, or no share is left
        """
        accumulator = self._accumulator(d_in)
        query_d_in = self._inward(d_in) if self._inward else d_in
        rule: ContinuationRule[Any] = UNLIMITED
        if self._bound and not isinstance(self._bound.rule, Within):
            rule = self._bound.rule  # the rule for shares: a refused launch uses no share
        for price in prices:
            after = rule.admits(accumulator, price.at(query_d_in))
            if isinstance(after, errors.BudgetExceededError):
                raise self._refusal(after)
            accumulator = after
        return accumulator.loss

    def refusal(self, price: Price) -> errors.RefusalError | None:
        """Return why a launch would be refused now; None if it would be admitted.

        Nothing is charged, and ``halt`` closes nothing.

        :raises ReentrantLaunchError, PrivacyMapError, LedgerError: as a launch does
        """
        chain, prices = self._chain, [price]
        self._check_not_running()
        try:
            self.lifecycle.check()
        except errors.RefusalError as error:
            return error.with_traceback(None)
        for account in chain[::-1]:
            account.store.refresh(account)
        for account in chain[:-1]:
            prices.append(account._lift(prices[-1]))
        for account, one in zip(chain, prices, strict=True):
            plan = account._plan(account._state, one)
            if isinstance(plan, errors.BudgetExceededError):
                return plan
        if not price.free:
            self._excludes([account._state for account in chain], prices)
        return None

    def price_at(self, d_in: errors.Distance, price: Price) -> Any:
        """Return what ``price`` is at ``d_in``, a distance of this account."""
        return price.at(self._inward(d_in) if self._inward else d_in)

    def remaining(self) -> Any:
        """Return what the bound still admits; None without a bound."""
        if self._bound is None:
            return None
        self.store.refresh(self)
        return self._bound.rule.remaining(self._tracked(self._state).accumulator)

    @property
    def known_loss(self) -> Any:
        """Loss at the d_in of the bound, as this process knows it. The ledger is not read."""
        return self._tracked(self._state).accumulator.loss

    def knows(self, d_in: errors.Distance) -> bool:
        """Whether the loss at ``d_in`` is tracked."""
        return distance_key(d_in) in self._state

    def _accumulator(self, d_in: errors.Distance) -> measures.AccumulatorState[Any]:
        self.store.refresh(self)
        tracked = self._state.get(distance_key(d_in))
        return tracked.accumulator if tracked else self._track(d_in)

    def _track(self, d_in: errors.Distance) -> measures.AccumulatorState[Any]:
        """Add up the history for a d_in that was not read before, then track the loss there."""
        if self._start is None or self.store.prices is None:
            assert self._bound is not None
            raise errors.InvalidValueError(
                f"d_in ({d_in}) must be {self._bound.d_in}, the d_in of this "
                f"{self.store.what}: its loss is known only there"
            )
        d_in, key = own_distance(d_in), distance_key(d_in)
        query_d_in = self._inward(d_in) if self._inward else d_in
        accumulator, read, history = self._start, 0, self.store.prices
        while True:
            for (_, excluded), run in groupby(history[read:], key=lambda one: (id(one[0]), one[1])):
                (price, _), *more = run
                if self._exclusive_reason and not excluded and price.excludes(query_d_in):
                    raise errors.InvalidValueError(
                        f"d_in ({d_in}) must be one at which what was launched beside others is "
                        f"known to have no delta: {self._exclusive_reason}; read the loss at this "
                        "d_in before the launch"
                    )
                accumulator = accumulator.after(price.at(query_d_in), 1 + len(more))
                read += 1 + len(more)
            with self.lock:
                if read == len(history):
                    tracked = Tracked(d_in, query_d_in, distance_key(query_d_in), accumulator)
                    self._state = {**self._state, key: tracked}
                    return accumulator
