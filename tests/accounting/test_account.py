"""The account alone: no OpenDP, no data, no FFI."""

import contextlib
import functools
import math
import threading

import pytest

from opendp_concurrent.accounting.account import Account, Bound
from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.price import StabilityMap
from opendp_concurrent.accounting.rule import Shares, Within
from opendp_concurrent.accounting.store import Charge, InLedger
from opendp_concurrent.errors import (
    BudgetExceededError,
    HaltedError,
    InvalidTypeError,
    InvalidValueError,
    LedgerError,
    PrivacyMapError,
)
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE
from opendp_concurrent.measures.shapes import Planned

ZERO = basic().start(MAX_DIVERGENCE)


def at_most(left, right):
    return left <= right


class Linear:
    """A price of ``epsilon`` per unit of d_in, which counts how often it is read."""

    mechanism = "linear"

    def __init__(self, epsilon, largest=math.inf, alone=True):
        self.epsilon, self.largest, self.read = epsilon, largest, 0
        self.alone = alone

    def at(self, d_in, key=None):
        self.read += 1
        if d_in > self.largest:
            raise PrivacyMapError(d_in, "too far")
        return self.epsilon * d_in

    @property
    def free(self):
        return not self.alone

    def excludes(self, d_in, key=None):
        return self.alone

    def later(self, d_in):
        return self.at(d_in)

    def settled(self):
        return self


def odometer(**arguments):
    return Account(ZERO, **arguments)


def filter_(d_out, d_in=1, **arguments):
    book = arguments.pop("book", None)
    keeper = None if book is None else InLedger(book)
    bound = Bound(d_in, Within(d_out), ZERO, arguments.pop("halt", False), keeper)
    return Account(ZERO if keeper is None else None, bound=bound, **arguments)


def compositor(*d_mids):
    return Account(None, bound=Bound(1, Shares(at_most), Planned(d_mids, 0, ZERO)))


def test_a_distance_once_asked_cannot_refuse_a_launch_of_a_filter():
    """Nor by a loss that turns out to be none when it is added, such as a curve that raises."""

    class Odd(Linear):
        def at(self, d_in, key=None):
            return self.epsilon if d_in == 1 else "no loss"

    account = filter_(1.0)
    assert account.privacy_loss(2) == 0.0
    account.launch(Odd(0.25))
    assert account.privacy_loss(1) == 0.25
    with pytest.raises(InvalidTypeError):
        account.privacy_loss(2)
    unbounded = odometer()
    assert unbounded.privacy_loss(2) == 0.0
    with pytest.raises(PrivacyMapError):
        unbounded.launch(Odd(0.25))
    assert unbounded.privacy_loss(1) == 0.0


def test_a_compositor_has_a_loss_at_its_own_distance_only():
    with pytest.raises(InvalidValueError, match="its loss is known only there"):
        compositor(0.5).privacy_loss(2)


def test_prices_are_read_outside_the_lock():
    account = filter_(1.0)

    class Curious(Linear):
        def at(self, d_in, key=None):
            return account.privacy_loss(1) + super().at(d_in)

    account.launch(Curious(0.25))
    assert account.privacy_loss(1) == 0.25


def test_a_charge_by_a_price_that_launches_itself_is_decided_again():
    account = filter_(1.0)

    class Greedy(Linear):
        def at(self, d_in, key=None):
            if self.read == 0:
                self.read = 1
                account.launch(Linear(0.75))
            return self.epsilon

    with pytest.raises(BudgetExceededError):
        account.launch(Greedy(0.5))
    assert account.privacy_loss(1) == 0.75


class Doing(Linear):
    """A price that does something else the first time that it is read."""

    def __init__(self, epsilon, action):
        super().__init__(epsilon)
        self.action = action

    def at(self, d_in, key=None):
        if not self.read:
            self.read = 1
            self.action()
        return super().at(d_in)


def test_a_first_query_counts_what_a_price_launches_while_it_is_read():
    root = odometer()
    price = Doing(0.125, lambda: root.launch(Linear(0.25)))
    root.store.prices.append((price, False))  # charged, and never read at any distance yet
    assert root.privacy_loss(1) == 0.375
    assert root.privacy_loss(2) == 0.75


def test_a_price_that_halts_the_account_is_refused():
    root = filter_(1.0, halt=True)

    def halt():
        with pytest.raises(BudgetExceededError):
            root.launch(Linear(2.0))

    with pytest.raises(HaltedError):
        root.launch(Doing(0.25, halt))
    assert root.launches == 0


def test_no_price_is_read_for_a_halted_account():
    root = filter_(1.0, halt=True)
    with pytest.raises(BudgetExceededError):
        root.launch(Linear(2.0))
    price = Linear(0.25)
    with pytest.raises(HaltedError):
        root.launch(price)
    assert price.read == 0


def test_a_distance_that_a_price_does_not_reach_is_no_longer_kept_and_the_others_are():
    account = filter_(1.0)
    for d_in in (5, 2):
        account.privacy_loss(d_in)
    account.launch(Linear(0.25, largest=3))
    assert [account.knows(d_in) for d_in in (1, 2, 5)] == [True, True, False]


def test_equal_launches_below_a_child_are_kept_once_and_others_for_themselves():
    root = filter_(10.0)
    child = odometer(parent=root, inward=StabilityMap(lambda d_in: d_in * 2))
    one, other = Linear(0.125), Linear(0.25)
    for price in (one, one, other, one):
        child.launch(price)
    (first, _), (second, _), (third, _), (fourth, _) = root.store.prices
    assert first is second
    assert third is not first
    assert fourth is first
    assert root.privacy_loss(1) == 2 * (0.125 * 3 + 0.25)


class Book:
    """A ledger's book, in memory; the charges of others can be added to it."""

    def __init__(self, failing=False):
        self.failing, self.charges, self.accumulator = failing, [], ZERO

    dataset = "survey"
    launches = property(lambda self: len(self.charges))

    def check_process(self):
        pass

    def read(self):
        return self.accumulator

    def settle(self, launch, charge):
        from opendp_concurrent.ledger.book import decide

        with launch.chain[0].lock, self.turn() as turn:
            if not decide(launch, charge, turn):
                return None
        return launch.commit()

    @contextlib.contextmanager
    def turn(self):
        self.pending, self.planned = None, {}
        yield self
        if self.pending:
            if self.failing:
                raise LedgerError("disk full")
            charge, self.accumulator = self.pending
            self.charges.append(charge)

    def write(self, charge, after, limits=()):
        self.pending = charge, after

    def charged_by_another(self, d_mid):
        self.charges.append(Charge(d_mid, "", ""))
        self.accumulator = self.accumulator.after(d_mid)


def test_a_refusal_over_the_charges_of_others_leaves_them_known():
    book = Book()
    root = filter_(1.0, book=book)
    book.charged_by_another(0.75)
    with pytest.raises(BudgetExceededError):
        root.launch(Linear(0.5))
    assert root.known_loss == 0.75


def test_a_budget_in_a_ledger_is_known_at_its_own_distance():
    root = filter_(1.0, d_in=2, book=Book())
    with pytest.raises(InvalidValueError, match="the d_in of this budget in a ledger"):
        root.privacy_loss(1)


def test_prices_are_read_before_the_turn_is_taken():
    class Busy(Book):
        taken = False

        @contextlib.contextmanager
        def turn(self):
            self.taken = True
            with super().turn() as turn:
                yield turn
            self.taken = False

    book = Busy()

    class Price(Linear):
        @functools.cache  # noqa: B019  as prices are
        def at(self, d_in, key=None):
            assert not book.taken
            return super().at(d_in)

    root = filter_(1.0, book=book)
    root.launch(Price(0.25))
    odometer(parent=root, inward=StabilityMap(lambda d_in: 2 * d_in)).launch(Price(0.125))
    assert root.privacy_loss(1) == 0.5


def test_a_first_query_is_right_while_others_launch():
    account, price = odometer(), Linear(1.0)
    stop = threading.Event()

    def launch():
        while not stop.is_set():
            account.launch(price)

    thread = threading.Thread(target=launch)
    thread.start()
    try:
        for d_in in range(1, 50):
            before = account.launches
            assert account.privacy_loss(d_in) >= before * d_in
    finally:
        stop.set()
        thread.join()
    assert account.privacy_loss(7) == 7 * account.launches
