"""Training by rounds: a filter whose launches are rounds of noisy gradients, among others."""

from __future__ import annotations

from typing import Any

from opendp.measures import approximate, max_divergence
from opendp.mod import Domain, Measurement, Metric, Odometer

from ..accounts.account import Account, Bound
from ..accounts.charge import Ledger
from ..accounts.lifecycle import Lifecycle
from ..accounts.prepaid import Given
from ..accounts.rule import Within
from ..arguments import checks
from ..combinators.accounting import bounded
from ..combinators.concurrent_odometer import make_concurrent_odometer
from ..combinators.constructor import constructor
from ..combinators.interactive_measurement import constant_map, make_measurement
from ..errors import InvalidTypeError, InvalidValueError, tell_charged
from ..errors import charged as known_charged
from ..fdp.allocation import LEAST_SIGMA, MOST_SIGMA
from ..individual.rows import check_people, open_rows
from ..interrupts import Lock
from ..measures import composition_measure
from ..native import opendp as _native
from ..queryables.data import Sealed, check_sources, seal, unseal
from ..queryables.machine import without_frames
from ..queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer, replace
from ..queryables.recorded import check_ledger, open_book
from ..queryables.root import ConcurrentFilterQueryable
from ..queryables.session import Launcher
from ..sums.accumulator import Accumulator
from ..tradeoffs.rounds import Round, Rounds
from ..types import Answer, Query
from .batches import allocation, poisson
from .gradients import Gradient, NoisySum, Vector

_MOST_SIZE = checks.at_most(2**26, "a sum is drawn one number at a time")


class _Price(Given):
    """The price of one unit."""

    __slots__ = ()
    mechanism = "dp_sgd round"


class RoundLauncher(Launcher):
    """The state behind a handle that runs rounds beside other launches.

    :param rounds: the kind of the rounds
    :param noisy: the noisy sum of each round
    :param rows: the data
    :param example: a public row, on which each gradient is tried; None for no trial
    """

    __slots__ = (
        "_batches",
        "_example",
        "_noisy",
        "_permit",
        "_price",
        "_rounds",
        "_rows",
        "_turns",
    )

    def __init__(
        self,
        account: Account,
        odometer: ConcurrentOdometer,
        token: Sealed,
        rounds: Rounds,
        noisy: NoisySum,
        example: Any,
    ) -> None:
        super().__init__(
            account, odometer.query_space, odometer.input_metric, odometer.measure, token, None
        )
        self._rounds, self._noisy, self._example = rounds, noisy, example
        self._rows = seal(open_rows(token, odometer.query_space[0]))
        self._price = _Price(Round(), 1)
        self._batches: list[tuple[Lifecycle, Sealed]] = []  # of an epoch
        self._turns = Lock()

    def launch(self, query: Query) -> Answer:
        """Run a round if ``query`` is a gradient, or launch a measurement."""
        if checks.is_a(query, Measurement, Odometer, _native.PARTIAL_CONSTRUCTOR):
            return super().launch(query)
        charged: list[bool | None] = [False]
        try:
            return self._round(query, charged)
        except BaseException as error:
            tell_charged(error, charged[0])
            raise
        finally:
            _native.tell_launched(charged[0])

    def _round(self, gradient: Any, charged: list[bool | None]) -> Vector:
        if not callable(gradient):
            raise InvalidTypeError(
                "the query must be a measurement, or a function from one row to its gradient, "
                f"found {type(gradient).__name__}"
            )
        self.account.check_open()
        check_sources(self._token)
        if self._example is not None:
            self._noisy.tried(gradient, self._example)
        permit, batch = self._next(charged)
        answer: Vector = without_frames(permit.run, self._release, gradient, batch)
        return answer

    def _next(self, charged: list[bool | None]) -> tuple[Lifecycle, Sealed]:
        """Return the next batch, after a charge; of an epoch, only the first one is charged."""
        with self._turns:
            if self._batches:
                return self._batches.pop()
        charged[0] = None
        try:
            permit = self.account.launch(self._price)
        except BaseException as error:
            charged[0] = known_charged(error)
            raise
        charged[0] = True
        count, rounds = len(unseal(self._rows)), self._rounds
        found = [poisson(count, rounds.rate)] if rounds.rate else allocation(count, rounds.batches)
        first, *rest = [(permit, seal(batch)) for batch in found]
        with self._turns:
            self._batches += rest
        return first

    def _release(self, gradient: Gradient, batch: Sealed) -> Vector:
        rows = unseal(self._rows)
        return self._noisy.release(gradient, (rows[one] for one in unseal(batch)))


@constructor
def make_dp_sgd(
    input_domain: Domain,
    input_metric: Metric,
    d_out: tuple[float, float],
    *,
    size: int,
    max_grad_norm: float,
    noise_multiplier: float,
    sample_rate: float | None = None,
    batches: int | None = None,
    example: Any = None,
    ledger: Ledger | None = None,
) -> ConcurrentMeasurement:
    """Train by rounds: release noisy sums of clipped gradients, within one (ε, δ) for all queries.

    The returned measurement spawns the queryable of a filter. Call it with a function from one row
    to its gradient: that is a round. It draws a batch, clips the gradient of each of its rows to
    the L2 norm ``max_grad_norm``, rounds it toward zero to 2^-24 of that, and returns the sum with
    discrete Gaussian noise, a NumPy array. Divide it by the public ``sample_rate`` times the number
    of rows for a mean. All samples are OpenDP's. The size of a batch is secret.

    Each round is one launch, so what is not run is not paid. Call the queryable with a measurement
    of (ε, δ)-DP to launch that within the same budget. With ``sample_rate``, each row is in each
    batch with that probability. With ``batches``, an epoch has so many rounds, and each row is in
    one of them, drawn uniformly: an epoch is paid at its first round, and costs less.

    A gradient that raises, or returns another number of numbers, or NaN or infinity, counts as 0:
    an error may depend on the row. Pass an ``example``, a public row, and each function is tried on
    it first: an error is then raised, and nothing is charged. A function may return an array of
    NumPy, PyTorch or JAX. It gets one row, and its author promises that what it returns depends on
    that row alone: not on other rows, earlier calls or chance.

    Guarantee: ``d_out`` for one row that is added or removed, whatever the functions are, chosen by
    earlier answers. Equal rounds reach the optimal bound of rounds that are fixed up front, but for
    the slack of discrete noise, about 10^-7 of ε (``tradeoffs/rounds.py``). At noise 1, rate 0.01
    and δ = 10^-5 these are 254, 1,202 and 2,666 rounds within ε = 1, 2 and 3. Finite communication.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: NumPy arrays such as ``dp.numpy.array2_domain``, or vectors, with one row
        per person
    :param input_metric: symmetric or insert-delete distance: rows are added or removed
    :param d_out: ε and δ of everything that is released
    :param size: number of coordinates of a gradient
    :param max_grad_norm: largest L2 norm of a row's gradient; longer ones are scaled down
    :param noise_multiplier: standard deviation of the noise over ``max_grad_norm``
    :param sample_rate: probability with which a row is in a batch, in (0, 1]
    :param batches: rounds in an epoch of random allocation, at least 2; instead of a rate
    :param example: a public row; None for no trial
    :param ledger: made by ``opendp_concurrent.ledger``; stores every charge before its round runs
    :return: a measurement that spawns a :class:`.ConcurrentFilterQueryable`
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import numpy as np
    >>> space = dp.numpy.array2_domain(T=float, num_columns=3), dp.symmetric_distance()
    >>> training = oc.m.make_dp_sgd(
    ...     *space, (1.0, 1e-5), size=2, max_grad_norm=1.0, noise_multiplier=1.0, sample_rate=0.01
    ... )
    >>> rows = np.random.default_rng(0).normal(size=(1000, 3))
    >>> sgd = training(rows)
    >>> weights = np.zeros(2)
    >>> step = sgd(lambda row: (row[:2] @ weights - row[2]) * row[:2])
    >>> step.shape, round(sgd.privacy_loss()[0], 4)
    ((2,), 0.1...)
    """
    check_people(input_domain, input_metric)
    if (sample_rate is None) == (batches is None):
        raise InvalidTypeError("sample_rate and batches must not be given together: pass one")
    rate = 0.0 if sample_rate is None else checks.probability(sample_rate=sample_rate)
    number = 1 if batches is None else checks.count(batches=batches)
    if not (rate or number > 1):
        name, value = ("batches", batches) if sample_rate is None else ("sample_rate", sample_rate)
        raise InvalidValueError(f"{name} ({value}) must be in (0, 1], or at least 2 batches")
    sigma = checks.positive(noise_multiplier=noise_multiplier)
    least, most = (1 / 16, 1e6) if rate else (LEAST_SIGMA, MOST_SIGMA)
    if not least <= sigma <= most:
        raise InvalidValueError(
            f"noise_multiplier ({sigma}) must be at least {least:g}, at most {most:g}"
        )
    noisy = NoisySum(_MOST_SIZE(size=size), checks.positive(max_grad_norm=max_grad_norm), sigma)
    opendp_measure = approximate(max_divergence())
    measure = composition_measure(opendp_measure)
    budget = measure.validate_budget("d_out", d_out)
    if not 0.0 < budget[1] < 1.0:
        raise InvalidValueError(f"d_out[1] ({budget[1]}) must be in (0, 1): Gaussian noise needs δ")
    rounds = Rounds(sigma, rate, number, noisy.size, budget[1])
    start: Accumulator = rounds.start()
    odometer = make_concurrent_odometer(
        input_domain, input_metric, opendp_measure, accumulator=rounds
    )
    terms, book = bounded(odometer, 1, budget, None), None
    if ledger is not None:
        check_ledger(ledger, measure)
        book, start = open_book(ledger, terms)
        odometer = replace(odometer, record=(ledger, 1))
    bound = Bound(
        1, Within(budget), start, keeper=book, measure=measure.name, accumulator=repr(rounds)
    )

    def spawn(token: Sealed) -> ConcurrentFilterQueryable:
        account = Account(start if book is None else None, bound=bound)
        session = RoundLauncher(account, odometer, token, rounds, noisy, example)
        return ConcurrentFilterQueryable(session, measure.name, 1, budget)

    return make_measurement(
        (input_domain, input_metric),
        opendp_measure,
        spawn,
        constant_map(input_metric, 1, budget),
        f"DPSGD({rounds!r}, d_out={budget})",
        odometer if ledger is not None else None,
        composes=True,
    )


then_dp_sgd = _native.to_then(make_dp_sgd)
