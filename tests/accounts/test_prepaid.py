"""Charges that wait for their launches; tests/queryables/test_prepaid.py has them as users do."""

import operator
import threading

import pytest

from opendp_concurrent.accounts.account import Account, Bound
from opendp_concurrent.accounts.prepaid import Given, Prepaid, PrepaidPrice
from opendp_concurrent.accounts.rule import Within
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    LedgerError,
    PrepaidPriceError,
    PrepaidUsedError,
    PrivacyMapError,
    ReentrantLaunchError,
)
from tests.accounts.test_account import ZERO, Book, Linear, filter_, odometer


def block_of(account, price, count=0, size=0):
    block = Prepaid(account, price, operator.le, size)
    block.check(None)
    if count:
        block.pay(count, count)
    return block


def test_each_charge_is_written_by_itself_and_told_to_be_prepaid():
    book = Book()
    root = filter_(1.0, book=book)
    block_of(root, Linear(0.125), 3)
    assert [(one.d_mid, one.mechanism) for one in book.charges] == [(0.125, "prepaid: linear")] * 3
    assert root.launches == 3


def test_launches_of_a_block_write_nothing():
    book = Book()
    root = filter_(1.0, book=book)
    block = block_of(root, Linear(0.125), 3)
    book.failing = True
    for _ in range(3):
        block.take(Linear(0.125))
    with pytest.raises(PrepaidUsedError):
        block.take(Linear(0.125))
    assert len(book.charges) == 3


def test_charges_that_cannot_be_written_are_none():
    book = Book(failing=True)
    root = filter_(1.0, book=book)
    block = block_of(root, Linear(0.125), size=4)
    with pytest.raises(LedgerError):
        block.take(Linear(0.125))
    assert (block.paid, book.charges) == (0, [])
    book.failing = False
    block.take(Linear(0.125))
    assert (block.paid, block.unspent) == (4, 3)


@pytest.mark.parametrize("others", [0, 1, 2, 5, 7])
def test_what_others_charge_in_between_makes_a_lease_smaller(others):
    class Busy(Book):
        """Others charge after the size was chosen, and before the turn begins."""

        late = 0

        def turn(self):
            for _ in range(self.late):
                self.charged_by_another(0.125)
            self.late = 0
            return super().turn()

    book = Busy()
    root = filter_(1.0, book=book)
    block = block_of(root, Linear(0.125), size=6)
    book.late = others
    block.take(Linear(0.125))
    assert block.paid == min(6, 8 - others)
    assert len(book.charges) == block.paid + others
    book.late = 1
    with pytest.raises(BudgetExceededError):
        block_of(root, Linear(0.125), 8)


def test_every_account_of_a_chain_is_charged_as_often():
    root = filter_(1.0)
    child = odometer(parent=root)
    block = block_of(child, Linear(0.125), 3)
    assert (root.launches, child.launches) == (3, 3)
    assert (root.privacy_loss(1), child.privacy_loss(1)) == (0.375, 0.375)
    with pytest.raises(BudgetExceededError):
        block_of(child, Linear(0.125), 6)
    assert (root.launches, child.launches, block.unspent) == (3, 3, 3)


@pytest.mark.parametrize("admitted", range(1, 9))
def test_a_lease_takes_what_is_left(admitted):
    root = filter_(admitted / 8)
    block = block_of(root, Linear(0.125), size=8)
    block.take(Linear(0.125))
    assert block.paid == admitted
    for _ in range(admitted - 1):
        block.take(Linear(0.125))
    with pytest.raises(BudgetExceededError):
        block.take(Linear(0.125))


def test_a_loss_that_is_read_meanwhile_is_compared():
    """Between the comparison of prices and the launch, another thread reads a loss at d_in 2."""
    root = Account(ZERO, bound=Bound(1, Within(9.0), ZERO))
    block = block_of(root, Linear(0.125), 2)

    class Steep:
        mechanism = "steep"

        def __init__(self):
            self.asked = []

        def at(self, d_in):
            self.asked.append(d_in)
            if len(self.asked) == 1:
                assert root.privacy_loss(2) == 0.5
            return 0.125 * d_in**3

        later = at

        def settled(self):
            return self

    steep = Steep()
    with pytest.raises(PrepaidPriceError):
        block.take(steep)
    assert (steep.asked, block.unspent) == ([1, 1, 2], 2)


def test_the_price_of_a_block_is_not_read_while_a_launch_is_noted():
    price = PrepaidPrice(Linear(0.125), [lambda d_mid: d_mid], operator.le)
    with price._lock, pytest.raises(ReentrantLaunchError):
        price.at(1)
    assert price.at(1) == 0.125


def test_a_price_that_was_compared_nowhere_is_not_launched():
    price = PrepaidPrice(Linear(0.125), [lambda d_mid: d_mid], operator.le)
    with pytest.raises(InvalidTypeError, match="the measurement that was prepaid"):
        price.check(Linear(0.125))


def test_a_given_price_is_known_at_one_distance():
    given = Given(0.25, 2)
    assert (given.at(2), given.later(2), given.settled()) == (0.25, 0.25, given)
    with pytest.raises(PrivacyMapError):
        given.at(3)


def test_one_thread_prepays_for_all():
    book = Book()
    root = filter_(1.0, book=book)
    block, barrier = block_of(root, Linear(0.125), size=4), threading.Barrier(4)

    def take():
        barrier.wait()
        block.take(Linear(0.125))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (block.paid, block.unspent, len(book.charges)) == (4, 0, 4)


def test_prepaying_from_within_prepaying_is_refused():
    root = filter_(1.0)

    class Nested(Linear):
        def at(self, d_in):
            block.take(self)
            return super().at(d_in)

    nested = Nested(0.125)
    block = Prepaid(root, nested, operator.le, 4)
    with pytest.raises(ReentrantLaunchError):
        block.take(nested)
    assert root.privacy_loss(1) == 0.0


def test_no_wait_for_a_block_that_is_closed():
    block = block_of(filter_(1.0), Linear(0.125), size=4)
    block.close()
    with pytest.raises(PrepaidUsedError, match="were closed"):
        block.take(Linear(0.125))
    assert block.closed
