"""Prepaid launches: charges that were made before it was decided what runs.

A handle of prepaid launches holds a number of charges, each of one price. All were made in one
step, each as a charge of its own. A launch takes one of them, and charges nothing more.

* A launch may use a charge if it costs at most the price that was paid at every d_in at which an
  account tracks its loss. Its map is read at each launch. If the loss is read at another d_in
  later, all measurements that ran must cost at most the price there, too.
* A charge is taken before its mechanism runs. It is never put back, and never refunded.
* Nothing is decided about the budget when a charge is taken, so no ledger is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from ..errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    PrepaidPriceError,
    PrepaidUsedError,
    PrivacyMapError,
    tell_charged,
)
from ..interrupts import Lock
from ..types import Distance, Key, Loss
from .account import Account
from .lifecycle import Lifecycle
from .price import Price, distance_key
from .reentry import check_not_held

_LATER = "what was launched for a prepaid price is not known to cost at most as much there"


class Given:
    """The price that is a d_mid, at one d_in.

    :param d_in: distance between neighbouring inputs, in units of the queries' metric
    """

    __slots__ = ("_d_in", "_d_mid", "_key")

    mechanism = "any"

    def __init__(self, d_mid: Loss, d_in: Distance) -> None:
        self._d_mid, self._d_in, self._key = d_mid, d_in, distance_key(d_in)

    def at(self, d_in: Distance) -> Loss:
        """Return the d_mid, or raise at another d_in."""
        if distance_key(d_in) != self._key:
            raise PrivacyMapError(
                d_in, f"a prepaid d_mid is known at d_in={self._d_in} only; prepay a measurement"
            )
        return self._d_mid

    later = at

    def settled(self) -> Price:
        """Return the price itself."""
        return self


class PrepaidPrice:
    """The price of prepaid launches. It remembers where it was read, and what was launched.

    :param price: the price that was paid
    :param reads: return a d_mid in the form in which an account adds it
    :param at_most: whether a d_mid is at most another
    """

    __slots__ = ("_asked", "_at_most", "_launched", "_lock", "_price", "_reads")

    def __init__(
        self,
        price: Price,
        reads: Iterable[Callable[[Distance], Loss]],
        at_most: Callable[[Loss, Loss], bool],
    ) -> None:
        self._price, self._reads, self._at_most = price, tuple(reads), at_most
        self._asked: dict[Key, Distance] = {}  # each d_in at which it was read, by its key
        self._launched: dict[int, Price] = {}  # by id: other measurements, and maps that changed
        self._lock = Lock()  # no d_in is added while a launch is noted

    @property
    def mechanism(self) -> str:
        """The mechanism that was prepaid. What is launched may be another one."""
        return f"prepaid: {self._price.mechanism}"

    def at(self, d_in: Distance) -> Loss:
        """Return the d_mid that was paid at ``d_in``."""
        d_mid = self._price.at(d_in)
        self._ask(d_in)
        return d_mid

    def later(self, d_in: Distance) -> Loss:
        """Return the d_mid at ``d_in``, if nothing that was launched costs more there."""
        paid = self._price.later(d_in)
        self._ask(d_in)  # what is launched from here on is compared there, too
        for price in list(self._launched.values()):
            if not self._covers(price.later(d_in), paid, d_in):
                raise PrivacyMapError(d_in, _LATER)
        return paid

    def witness(self) -> None:
        """Read the map at 1, so that launches can be compared there."""
        with suppress(PrivacyMapError):
            self.at(1)

    def settled(self) -> Price:
        """Return the price itself: all prepaid charges have it."""
        return self

    def check(self, price: Price) -> int:
        """Raise unless ``price`` is at most the price that was paid, wherever that was read.

        :return: number of d_ins at which both were read
        """
        asked = list(self._asked.values())
        if price is self._price:
            return len(asked)
        if not asked:
            raise InvalidTypeError(
                "the query must be the measurement that was prepaid: its price was not read at any "
                "d_in, so that it cannot be compared with another one; read privacy_loss(d_in) "
                "before you prepay"
            )
        for d_in in asked:
            d_mid, paid = price.at(d_in), self._price.at(d_in)
            if not self._covers(d_mid, paid, d_in):
                raise PrepaidPriceError(d_mid, paid, d_in)
        return len(asked)

    def note(self, price: Price, checked: int) -> bool:
        """Record that ``price`` is launched; False if it must be checked at another d_in first."""
        if price is self._price:
            return True
        with self._lock:
            if len(self._asked) > checked:
                return False
            settled = price.settled()
            if settled is not self._price:
                self._launched[id(settled)] = settled
            return True

    def _ask(self, d_in: Distance) -> None:
        key = distance_key(d_in)
        if key not in self._asked:
            check_not_held(self._lock)
            with self._lock:
                self._asked[key] = d_in

    def _covers(self, d_mid: Loss, paid: Loss, d_in: Distance) -> bool:
        if d_mid is paid:
            return True
        try:
            return all(self._at_most(read(d_mid), read(paid)) for read in self._reads)
        except (InvalidTypeError, InvalidValueError) as error:  # of a curve, read just now
            raise PrivacyMapError(d_in, str(error)) from error


class Prepaid:
    """Charges of one account that wait for their launches. Safe to use from all threads.

    :param account: the account that is launched on
    :param price: the price of each charge
    :param size: number of charges to make when none is left; 0 to refuse then
    """

    __slots__ = ("_account", "_closed", "_left", "_paid", "_price", "_renewal", "_size")

    def __init__(
        self,
        account: Account,
        price: Price,
        at_most: Callable[[Loss, Loss], bool],
        size: int = 0,
    ) -> None:
        self._account, self._size = account, size
        self._price = PrepaidPrice(price, [one.read for one in account.starts()], at_most)
        self._paid = self._left = 0
        self._closed = False
        self._renewal = Lock()  # one thread prepays, and the others wait for it

    @property
    def paid(self) -> int:
        """Number of launches that were prepaid."""
        return self._paid

    @property
    def unspent(self) -> int:
        """Number of prepaid launches that were not launched."""
        return self._left

    @property
    def closed(self) -> bool:
        """Whether it was closed: what was not launched is lost."""
        return self._closed

    def check(self, again: Callable[[], Price] | None) -> None:
        """Raise if launches of the measurement that is to be prepaid could not be compared with it.

        :param again: returns its price, to be read again; None if no measurement is prepaid
        """
        account = self._account
        if not account.asked:
            self._price.witness()
        account.ask(self._price)
        if again is not None:
            self._price.check(again())

    def pay(self, count: int, least: int) -> None:
        """Charge from ``least`` to ``count`` launches.

        :raises: as :meth:`.Account.launch`, if fewer than ``least`` are admitted
        """
        charged = self._account.prepay(self._price, count, least)
        with self._account.lock:
            self._paid += charged
            self._left += charged

    def close(self) -> None:
        """Refuse further launches."""
        self._closed = True

    def take(self, price: Price) -> Lifecycle:
        """Use one charge for a launch of ``price``, or raise and use none.

        :return: the lifecycle of the child that is about to run
        :raises PrepaidUsedError: if none is left
        :raises PrepaidPriceError: if the launch is not known to cost at most what was paid
        :raises PrivacyMapError, RefusalError, ReentrantLaunchError: as :meth:`.Account.launch`
        :raises BudgetExceededError, LedgerError: if none is left, and no more could be prepaid
        """
        account, paid = self._account, self._paid
        account.check_open()
        try:
            while True:
                checked = self._price.check(price)  # untrusted maps are read before the lock
                with account.lock:
                    if self._take(price, checked):
                        return account.begin()
                account.lifecycle.check()
                if not self._left or self._closed:
                    self._renew()
        except BaseException as error:
            if self._paid != paid:  # prepaid again, here or by another thread, and then refused
                if isinstance(error, ConcurrentError):
                    error.charged = None
                else:
                    tell_charged(error, None)
            raise

    def _take(self, price: Price, checked: int) -> bool:
        """Use a charge under the lock, and return whether one was used."""
        if not self._left or self._closed:
            return False
        still_open = self._account.lifecycle.is_open  # or closed while maps were read
        if not still_open or not self._price.note(price, checked):
            return False
        self._left -= 1  # from here on it is spent, whatever happens
        return True

    def _renew(self) -> None:
        check_not_held(self._renewal)
        with self._renewal:
            if self._closed or not self._size:
                raise PrepaidUsedError(self._paid, closed=self._closed)
            if not self._left:  # another thread may have renewed it
                self.pay(self._size, 1)
