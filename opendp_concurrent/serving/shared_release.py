"""Shared release: one query, answered at many levels of noise, which cost what the finest costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary, ref

from .. import _opendp as _native
from .. import accounting, composition, errors, measures, mechanisms, numerics, queryables
from .._checks import Positive, optional, positive, written
from .._opendp import dp
from . import levels as noise
from .levels import Levels


class Opened:
    """The shared releases that were opened on one handle.

    :ivar by_making: by how they were made; one that nobody holds is forgotten, unless it was paid
    :ivar paid: those that have answered
    :ivar lock: while one is stored
    """

    def __init__(self) -> None:
        self.by_making: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self.paid, self.lock = set[Any](), _native.Lock()


class SharedReleaseQueryable(queryables.Handle, dp.Queryable):
    """Handle of a shared release. It returns the answer to one query, at any level of noise."""

    query_type = "f64"

    def __init__(
        self, session: queryables.Session, levels: Levels, odometer: queryables.ConcurrentOdometer
    ) -> None:
        super().__init__(session, self._ask)
        self._levels, self._lock, self._odometer = queryables.seal(levels), _native.Lock(), odometer
        self._opened: Callable[[], Opened | None] = lambda: None

    def __call__(self, level: float) -> errors.Answer:
        """Return the answer at a level. A level that was asked before has the same answer.

        A level that is finer than all before is charged for its distance from the finest one, to
        the handle that this was opened on and its ancestors. Any other level is free, also when no
        budget is left, until 1,000 levels were answered. Under zCDP and its relatives, the answer
        to a level between two that were charged is the coarser one's, and a level below the first
        one is refused.

        :param level: privacy loss per unit of sensitivity (ε), or per its square (ρ), from 2^-30 to
            2^20, rounded down to a multiple of 2^-30
        :return: an integer, or a list of integers; a mean of them under zCDP and its relatives
        :raises BudgetExceededError: a bound refused; nothing was charged
        :raises InvalidTypeError, InvalidValueError: naming the argument
        :raises HaltedError, ForkedError: the handle that this was opened on is closed
        """
        return queryables.without_frames(super().__call__, level)

    def _ask(self, level: errors.Argument) -> errors.Answer:
        answer = self._at(errors.uncharged(_units, level))
        for postprocessor in self._odometer.postprocessors:
            answer = _native.interruptible(postprocessor, answer)
        return answer

    def _at(self, asked: int) -> errors.Answer:
        """Return the answer at a level in units. Its frame has the levels, and ends here."""
        session = self._session
        with session.lock or self._lock, self._lock:  # in this order: turns are taken first
            levels: Levels = queryables.unseal(self._levels)
            if asked > levels.finest:
                levels.keep(asked, session.launch(levels.launch(asked, self._levels)))
                opened = self._opened()
                if opened is not None:  # it has this for good, since it was paid
                    opened.paid.add(self)
                return levels.at(asked)
            return errors.uncharged(self._known, levels, asked)

    def _known(self, levels: Levels, asked: int) -> errors.Answer:
        """Return the answer at a level that needs no launch."""
        account = self._session.account
        account.check_open()
        account.lifecycle.enter()
        levels.check(asked)
        return queryables.hide_errors(account.lifecycle, levels.at, asked)

    @property
    def finest(self) -> float:
        """The finest level so far, up to which levels are free; 0 before the first answer."""
        levels: Levels = queryables.unseal(self._levels)
        return noise.level_of(levels.finest)

    def privacy_loss(self, d_in: errors.Distance) -> Any:
        """Return the privacy loss of all levels so far together; changes nothing.

        :param d_in: distance between neighbouring inputs, in units of the release's input metric
        """
        return self._session.privacy_loss(d_in)

    def accuracy(self, level: float, beta: float = 0.05, *, answers: int | None = None) -> float:
        """Return a bound on the error of the answers at a level; changes nothing.

        Under zCDP and its relatives, it is that of the coarser answer which this level has. With
        probability at least 1 - ``beta``, all ``answers`` are within it of the exact ones.

        :param level: as for a query
        :param beta: probability of a larger error, from 1e-300 up to 1, exclusive
        :param answers: number of coordinates; it may be left out if the domain fixes it
        """
        asked = _units(level)
        known: queryables.Accuracy = queryables.without_frames(self._accuracy, asked)
        return known.at(beta, answers)

    def _accuracy(self, level: int) -> queryables.Accuracy:
        levels: Levels = queryables.unseal(self._levels)
        return levels.accuracy(self._odometer.query_space[0], level)

    def __repr__(self) -> str:
        return f"SharedReleaseQueryable({self._odometer.measure.name}, finest={self.finest})"


def _units(level: errors.Argument) -> int:
    return noise.units_of(positive(level=level))


def spawn_shared(
    odometer: queryables.ConcurrentOdometer,
    token: queryables.Sealed,
    parent: queryables.Session | None,
) -> SharedReleaseQueryable:
    """Return the handle of a shared release below ``parent``; the same one for an equal release."""
    known = None if parent is None else _made(odometer)
    if parent is None or known is None:
        return _open(odometer, token, parent)
    queryables.check_process(token)
    opened: Opened = parent.shared.setdefault("releases", Opened())
    handle: SharedReleaseQueryable | None = opened.by_making.get(known)
    if handle is None:
        rebuilt = _rebuilt(known, odometer)
        if rebuilt is None:
            return _open(odometer, token, parent)
        made = _open(rebuilt, token, parent)
        made._opened = ref(opened)
        with opened.lock:  # if another thread stores one first, this one was never used
            handle = opened.by_making.setdefault(known, made)
    return handle


def _made(odometer: queryables.ConcurrentOdometer) -> str | None:
    """Return how a release was made; None if it has a function of Python, which has no record."""
    try:
        return str(dp.serialize(written(odometer, "made")))
    except errors.InvalidTypeError:
        return None


def _rebuilt(
    known: str, odometer: queryables.ConcurrentOdometer
) -> queryables.ConcurrentOdometer | None:
    """Return the release that a record describes; None if the record does not describe one.

    Others get its answers, too. So it is made of its record: OpenDP's record of an object is an
    attribute that can be set, and has lists that can be changed.
    """
    from .serialization import deserialize  # once all constructors are known

    space = odometer.input_domain, odometer.input_metric
    try:
        made = deserialize(known, space=space, output_measure=odometer.output_measure)
    except (errors.InvalidTypeError, errors.InvalidValueError, errors.SpaceMismatchError):
        return None
    return (
        made
        if isinstance(made, queryables.ConcurrentOdometer) and made.spawn is spawn_shared
        else None
    )


def _open(
    odometer: queryables.ConcurrentOdometer,
    token: queryables.Sealed,
    parent: queryables.Session | None,
) -> SharedReleaseQueryable:
    measure, space = odometer.measure, odometer.query_space
    token, inward = queryables.head(odometer, token)
    account = accounting.Account(
        odometer.accumulator.start(measure),
        inward=inward,
        parent=parent.account if parent else None,
        opaque=odometer.opaque,
    )
    if measure.kind in noise.STEPPED:
        _check_sums(account)
        levels: Levels = noise.LaplaceLevels(space, measure)
    else:
        levels = noise.GaussianLevels(space, measure)
    session = queryables.Session(account, space, odometer.input_metric, measure, token)
    return SharedReleaseQueryable(session, levels, odometer)


def _check_sums(account: accounting.Account) -> None:
    """Raise unless this account and its ancestors add losses up by their plain sum.

    Only there is the loss of all levels at most that of the finest one, on every transcript.
    """
    for start in account.starts():
        if type(start) not in (measures.ScalarSum, measures.PairSum):
            raise errors.UnsupportedMeasureError(
                "a shared release without a ceiling is charged step by step, which is proven for "
                "accounts that add losses up by basic(), not for others and not for the shares of "
                "a compositor; pass ceiling, the finest level, which is paid once"
            )


@dataclass(frozen=True, slots=True)
class _Steps(measures.Basic):
    """The sum of a shared release, which has no bound of its own."""

    def check_budget(self, d_out: errors.Loss) -> None:
        """Raise: a filter over the odometer would launch, and not answer levels."""
        raise errors.InvalidTypeError(
            f"odometer is a shared release, which has no bound ({errors.shown(d_out)}) of its "
            "own; launch it on the handle of a filter or limit, or pass ceiling to it"
        )


class _Below:
    """The levels of a release up to its ceiling, which was paid."""

    def __init__(self, chain: noise.Chain, ceiling: int) -> None:
        self._chain, self._ceiling = chain, ceiling

    def check(self, message: errors.Argument) -> int:
        """Return a level in units, or raise."""
        level = _units(message)
        if level > self._ceiling:
            raise errors.InvalidValueError(
                f"level ({errors.shown(message)}) must be at most {noise.level_of(self._ceiling)}, "
                "the ceiling that was paid; launch a release with a higher one"
            )
        self._chain.check(level)
        return level

    def __call__(self, message: errors.Argument) -> errors.Answer:
        return self._chain.at(self.check(message))


@composition.constructor(ceiling=optional(positive))
def make_shared_release(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    ceiling: Positive | None = None,
) -> queryables.ConcurrentOdometer | queryables.ConcurrentMeasurement:
    """Answer one query at many levels of noise, which together cost what the finest one costs.

    Several analysts ask for the same count, or one analyst asks again with less noise. Chain this
    to the query, launch it on a handle, and ask what is returned for levels: ``release(0.1)``. No
    level need be planned. A level is the privacy loss per unit of sensitivity, ε, under pure and
    (ε, δ)-DP; under the other measures it is ρ, per square of the sensitivity.

    * Without ``ceiling``, this is an odometer. To launch it costs nothing. A level that is finer
      than all before is charged for the difference. All other levels are free. A level that a bound
      refuses is not charged, and the coarser ones stay available. To launch an equal release on the
      same handle returns the release that was opened before, by any message that it was written in
      (:func:`.serialize`); one with Python functions is never equal to another.
    * With ``ceiling``, this is a measurement that is charged for this level at its launch. All
      levels up to it are free. Its ``accuracy`` is that of the answer at the ceiling.

    The noise at each level is discrete Laplace noise, of scale 1/level, and levels are drawn such
    that the finest one tells all about the data that the others tell (derived; levels in any order
    after [ARNP25]). Under zCDP, Rényi DP, tCDP and Gaussian DP without ``ceiling`` an answer is the
    mean of independent discrete Gaussian releases, weighted by their precision. Its variance is at
    most 1/(2 level).

    Guarantee: all answers at all levels, to all analysts, are D e-DP for the finest level e that
    was answered and the sensitivity D. Levels may be chosen adaptively, and other mechanisms of the
    same handle run concurrently. Charging differences is valid for plain sums of ε (and δ) only:
    other accumulators are refused without ``ceiling``, because it is false there. The exact answer
    is computed once, and kept in this process: a record of it would be refined twice.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: integers or vectors of integers: the output domain of the query
    :param input_metric: absolute or L1 distance; L2 for vectors with Gaussian noise
    :param output_measure: how privacy is measured
    :param ceiling: the finest level, from 2^-30 to 2^20, rounded down to a multiple of 2^-30; none
        if left out
    :return: without ``ceiling``, an odometer that is launched on a handle, and gives a
        :class:`.SharedReleaseQueryable`; else a measurement whose queryable takes levels
    :raises UnsupportedMeasureError: for approximate zCDP, and for measures without a conversion;
        without ``ceiling``, for f-DP, and for vectors under Gaussian DP
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's noise is not for this domain and metric

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    >>> shared = space >> dp.t.then_count() >> oc.m.then_shared_release(dp.max_divergence())
    >>> release = root(shared)
    >>> coarse, fine, same = release(0.25), release(0.5), release(0.25)
    >>> coarse == same, root.privacy_loss()
    (True, 0.5)
    >>> root(shared) is release
    True
    >>> release(2.0)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.BudgetExceededError: the filter refuses: spent 0.5 of 1, asked 1.5, ...
    """
    measure, space = measures.composition_measure(output_measure), (input_domain, input_metric)
    if measure.composability is measures.Composability.SEQUENTIAL:
        raise errors.UnsupportedMeasureError(
            f"output_measure ({measure.name}) composes sequentially, and a shared release stays "
            "open beside other launches; use zCDP"
        )
    if ceiling is None and measure.kind == measures.TRADEOFF:
        raise errors.UnsupportedMeasureError(
            "ceiling must be given under f-DP, where the losses of steps have no sum; or use "
            "zCDP, or Gaussian DP"
        )
    if ceiling is not None or measure.kind in noise.STEPPED:
        mechanisms.built(
            dp.m.make_laplace, input_domain=input_domain, input_metric=input_metric, scale=1.0
        )
    else:
        mechanisms.make_certified_gaussian(input_domain, input_metric, 1.0, output_measure)
    if mechanisms.atom_type(input_domain) in mechanisms.FINEST:
        raise errors.InvalidTypeError(
            f"input_domain ({input_domain}) must be of integers; count, or sum integers, such as "
            "values in cents"
        )
    if ceiling is None:
        return queryables.ConcurrentOdometer(space, measure, _Steps(), spawn_shared)
    paid = noise.units_of(ceiling, "ceiling")
    level = noise.level_of(paid)

    def spawn(data: queryables.Sealed) -> queryables.MachineQueryable:
        return queryables.MachineQueryable(
            _Below(noise.Chain(queryables.in_python(data), noise.GeometricDraws()), paid), "Shared"
        )

    pure = composition.make_measurement(
        space,
        dp.max_divergence(),
        spawn,
        lambda d_in: numerics.upper(lambda real: real(d_in) * real(level)),
        f"shared_release(ceiling={level})",
    )
    accuracy = mechanisms.laplace_accuracy(input_domain, 1 / level, None)
    return mechanisms.certify(pure, output_measure, mechanisms.laplace_losses(level), accuracy)


then_shared_release = _native.to_then(make_shared_release)
