"""A session: one invocation's account and sealed data, and the steps of a launch.

The steps are: check, price, decide, charge, record, run, return. They never change order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import count
from typing import Any

from opendp.mod import Domain, Metric, Odometer

from ..accounts.account import Account
from ..accounts.lifecycle import Lifecycle
from ..accounts.name import as_child
from ..accounts.price import own_distance
from ..arguments import checks
from ..arguments.owned import plain
from ..errors import InvalidTypeError, InvalidValueError, RefusalError, tell_charged, uncharged
from ..errors import charged as known_charged
from ..interrupts import let_in, whole
from ..measures import CompositionMeasure
from ..native import opendp as _native
from ..types import Answer, Distance, Loss, Query
from .child import adopt
from .data import Sealed, check_sources
from .description import Description
from .limits import Limits
from .machine import MachineQueryable
from .mechanism import ConcurrentMeasurement, ConcurrentOdometer, interactive, run
from .offer import MeasurementPrice, Offers
from .opaque import hide_errors
from .sequential import SequentialRunner
from .turn import in_turn, inherited_lock, lock_for_turns


class Launcher:
    """The state behind a handle of an odometer, filter or compositor.

    :param account: decides on launches and records their charges
    :param space: domain and metric of the queries
    :param metric: metric that the account's d_in is a distance of
    :param token: the sealed data, as a member of the queries' domain
    :param runner: runs launches in sequence, for a measure that composes sequentially only
    :param postprocessors: functions that are applied to every answer
    :ivar limits: the limits that were opened here
    """

    _asked = "the query"  # what messages call it
    _static = ""  # why what takes updates is refused, once it has run; empty if it is not

    def __init__(
        self,
        account: Account,
        space: tuple[Domain, Metric],
        metric: Metric,
        measure: CompositionMeasure,
        token: Sealed,
        runner: SequentialRunner | None,
        postprocessors: tuple[Callable[[Any], Any], ...] = (),
    ) -> None:
        self.account, self.measure = account, measure
        self._metric, self._token, self._runner = metric, token, runner
        self._postprocessors = postprocessors
        self._offers = Offers(space, measure)
        self._children = count(1)
        self.limits = Limits()
        # launches take turns below a sequential measure, and inside a native call
        self.native = _native.inside_native_call()
        self.lock = inherited_lock()
        if runner is not None or self.native:
            self.lock = runner.lock if runner is not None else lock_for_turns()

    @property
    def token(self) -> Sealed:
        """The sealed data, for a child odometer."""
        return self._token

    @property
    def runner(self) -> SequentialRunner | None:
        """The sequential runner, for a child odometer."""
        return self._runner

    def launch(self, query: Query) -> Answer:
        """Launch a measurement, or open a child odometer, which is not charged yet."""
        if isinstance(query, Odometer):
            _native.tell_launched(False)
            return uncharged(self._open, query)
        return self._launch(query, self.account.launch, self._token)

    def _launch(
        self, query: Query, charge: Callable[[MeasurementPrice], Lifecycle], token: Sealed
    ) -> Any:
        """Launch a measurement on data of the session, or on a part of them.

        :param charge: charges the launch, and returns the lifecycle of the child
        """
        charged: list[bool | None] = [False]  # None while it is being charged
        try:
            price = self._offers.price(query, self._asked)
            if self.lock is None:
                answer = self._walk(query, price, charge, token, charged)
            else:  # launches run in the order in which they are charged
                answer = in_turn(self.lock, self._walk, query, price, charge, token, charged)
            return self._postprocess(answer)
        except BaseException as error:
            tell_charged(error, charged[0])
            raise
        finally:
            _native.tell_launched(charged[0])

    def _walk(
        self,
        query: Query,
        price: MeasurementPrice,
        charge: Callable[[MeasurementPrice], Lifecycle],
        token: Sealed,
        charged: list[bool | None],
    ) -> Any:
        check_sources(token)
        if not self.account.tracks_any_loss:
            price.read_at_1()
        charged[0] = None
        try:
            permit = charge(price)
        except BaseException as error:  # what reads a price, or refuses, has told it
            charged[0] = known_charged(error)
            raise
        charged[0] = True
        self._offers.remember(price)
        return hide_errors(permit, permit.run, self._run, price.measurement, permit, token)

    def _run(self, query: Query, permit: Lifecycle, token: Sealed) -> Any:
        if isinstance(query, ConcurrentMeasurement):
            with self._as_child(permit):
                return self._hand_out(query, permit, token)
        return self._hand_out(query, permit, token)

    def _as_child(self, permit: Lifecycle) -> AbstractContextManager[None]:
        """Give a number to accounts that are opened in this block. A refusal shows it."""
        return as_child(permit.named, next(self._children))

    def _hand_out(self, query: Query, permit: Lifecycle, token: Sealed) -> Any:
        runner = self._runner
        answer = run(query, token) if runner is None else runner.run(run, query, token)
        return adopt(answer, permit, self.lock)

    def _check_odometer(self, odometer: Odometer) -> None:
        if not isinstance(odometer, ConcurrentOdometer):
            raise InvalidTypeError(
                f"{self._asked} is a native odometer, which has no privacy map, and cannot say "
                "what each of its launches costs; pass one made by make_concurrent_odometer"
            )
        self._offers.check_space(odometer)

    def _open(self, odometer: Odometer) -> Any:
        self._check_odometer(odometer)
        self.account.lifecycle.check_not_running()
        self.account.lifecycle.check()
        with self._as_child(self.account.lifecycle):
            handle = odometer.spawn(odometer, self._token, self)
        return self._postprocess(handle)

    def _postprocess(self, answer: Answer) -> Any:
        for postprocessor in self._postprocessors:
            answer = let_in(postprocessor, answer)
        if self._static and isinstance(answer, MachineQueryable) and answer.takes_updates:
            raise InvalidTypeError(self._static)
        return answer

    def privacy_loss(self, d_in: Distance) -> Loss:
        """Return the loss so far at ``d_in``."""
        self._check_d_in(d_in)
        return self.account.privacy_loss(d_in)

    @whole
    def loss_after(self, queries: Iterable[Any], d_in: Distance) -> Loss:
        """Return the loss at ``d_in`` if the measurements ``queries`` were launched now."""
        planned = checks.read("measurements", queries=queries)
        self._check_d_in(d_in)
        prices = [
            self._offers.price(query, f"queries[{index}]") for index, query in enumerate(planned)
        ]
        return self.account.loss_after(d_in, prices)

    def describe(self, query: Query, d_in: Distance) -> Description:
        """Describe a launch of ``query`` without charging or running it."""
        self._check_d_in(d_in)
        d_in = own_distance(d_in)
        if isinstance(query, Odometer):
            self._check_odometer(query)
            return Description("odometer", True, d_in, None, None)
        price = self._offers.price(query, self._asked)
        loss = self.account.price_at(d_in, price)
        refusal = self.account.refusal(price)
        return Description(price.mechanism, interactive(price.measurement), d_in, loss, refusal)

    def refusal(self, query: Query) -> RefusalError | None:
        """Return why a launch of ``query`` would be refused now; None if it would be admitted."""
        return self.account.refusal(self._offers.price(query, self._asked))

    def _check_d_in(self, d_in: Distance) -> None:
        # anything but a plain number is validated first: its key may be infinite
        if type(d_in) not in (int, float) or not self.account.knows(d_in):
            validate_d_in(self._metric, d_in)


def validate_d_in(metric: Metric, d_in: Distance) -> Any:
    """Return a copy of ``d_in`` if it is a distance of ``metric``, or raise."""
    d_in = plain(d_in)
    if isinstance(d_in, bool):
        raise InvalidTypeError(f"d_in ({d_in}) must be a distance of {metric}, found bool")
    if isinstance(d_in, (int, float)):
        checks.non_negative(d_in=d_in)
        if d_in == 0:
            d_in = type(d_in)()  # not -0.0, which is another distance
    _native.check_distance(metric, "d_in", d_in)
    try:
        return own_distance(d_in)
    except (RecursionError, MemoryError) as error:
        raise InvalidValueError(
            f"d_in ({checks.shown(d_in)}) must be a distance that can be copied"
        ) from error
