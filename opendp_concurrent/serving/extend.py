"""For those who write measures, accumulators, mechanisms and kinds of data of their own.

``check_measurement`` checks the laws of measurements on the constructor of a plugin.
CONTRIBUTING.md has an example of each of the others. ``checks`` has guards of arguments,
``constructor`` reads them from annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as fields_of
from fractions import Fraction
from math import exp
from typing import Any, TypeVar

import scipy

from .. import _checks as checks
from .. import data as kinds_of_data
from .. import errors, fdp, measures
from .._checks import Count, checked, function, instance, optional, two
from .._opendp import dp
from ..composition import cast, constructor, make_concurrent_odometer
from ..data import Kind
from ..measures import (
    Accumulator,
    AccumulatorState,
    Composability,
    CompositionMeasure,
    Conversion,
    NumberMeasure,
    composition_measure,
)

__all__ = [
    "Accumulator",
    "AccumulatorState",
    "Composability",
    "CompositionMeasure",
    "Conversion",
    "Kind",
    "NumberMeasure",
    "check_measurement",
    "checks",
    "composition_measure",
    "constructor",
    "register",
]

C = TypeVar("C", bound=type[Any])


def register(
    tag: str | None = None,
    *,
    fields: Mapping[str, str] | None = None,
    make: Callable[..., Any] | None = None,
) -> Callable[[C], C]:
    """Make a class of your own known; a decorator of the class.

    * A measure derives from ``CompositionMeasure``, or from ``NumberMeasure`` if its distance is
      one number and losses add up. Its methods are trusted: the author has a proof that the sum of
      adaptively chosen losses bounds the loss of the children, queried as ``composability`` says,
      and that conversions hold. A class with parameters also defines ``find``, which knows OpenDP's
      objects by their descriptor, and ``from_tag``, which knows their names.
    * A kind of data derives from ``Kind``. Its domains and data are no longer of the kinds that
      were known before.
    * An accumulator or a distance needs this for ledgers only, and a ``tag``. A ledger keeps the
      tag and, for each key of ``fields``, the value of one attribute: a number, a string, None, a
      tuple, a distance, or a value of another registered class. Never change a tag or a key:
      ledgers contain them. You may rename the class, its module and its attributes. Values must be
      immutable, and a value that is read must equal the value that was written. Of an accumulator,
      the ledger also keeps the running total: ``to_record`` returns it as JSON, ``from_record``
      reads it. If two machines may compute different totals for the same launches, the accumulator
      needs the method ``merged``.

    Every process that opens a ledger with such values must register their classes first.

    :param tag: of an accumulator or a distance: the name of your package, a colon and a name, in
        lower case, such as ``"acme:pair"``
    :param fields: attribute for each key; by default all fields of a dataclass, by their names
    :param make: function that makes a value from keyword arguments named like the keys; by default
        the class is called with keyword arguments named like the attributes
    :return: a function that registers a class and returns it
    :raises InvalidTypeError, InvalidValueError: naming what the class lacks; or if its kind or its
        tag is known already

    :example:

    >>> @oc.extend.register()
    ... class Doubled(oc.extend.NumberMeasure):
    ...     kind = "acme.Doubled"
    ...     reason = "twice the loss of pure DP, which adds up"
    ...     distance_form = "twice epsilon"
    ...     conversions_from = {
    ...         "MaxDivergence": oc.extend.Conversion(lambda epsilon, ends: 2 * epsilon)
    ...     }
    ...     def opendp(self):
    ...         return dp.user_divergence("acme.Doubled", "acme.Doubled")
    >>> space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> doubled = dp.user_divergence("acme.Doubled", "acme.Doubled")
    >>> oc.m.make_certified_laplace(*space, 2.0, doubled).map(1)
    1.0
    """
    if isinstance(tag, type):
        raise errors.InvalidTypeError("register is called before it decorates: @register()")

    def known(cls: C) -> C:
        if not isinstance(cls, type):
            raise errors.InvalidTypeError(f"a class can be registered, found {errors.shown(cls)}")
        if tag is not None:
            from ..ledger import register_tag  # which needs an extra

            own = {one.name: one.name for one in fields_of(cls)} if is_dataclass(cls) else {}
            register_tag(tag, cls, own if fields is None else fields, make=make)
        elif issubclass(cls, Kind):
            kinds_of_data.register(cls())
        elif issubclass(cls, CompositionMeasure):
            measures.register(cls)
        else:
            raise errors.InvalidTypeError(
                f"the class ({cls.__name__}) must be a CompositionMeasure or a Kind; for an "
                'accumulator or a distance, pass tag, such as "acme:pair"'
            )
        return cls

    return known


# Laws that each measurement keeps, checked on the constructor of somebody else.
#
# They are those of this package's own constructors. Each law is a function that yields what it
# finds.

EPSILONS = (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
ORDERS = (2.0, 4.0, 8.0)
FAILURE = 1e-9  # probability that a law finds what is not there
SECRET = 5  # a value of the data with at least so many characters may be in no message


def at_most(measure: dp.Measure, left: errors.Loss, right: errors.Loss) -> bool:
    """Whether a loss is at most another one; of curves, at a few orders."""
    known = measures.composition_measure(measure)
    first, second = known.validate("left", left), known.validate("right", right)
    if callable(known.zero):
        return all(first(alpha) <= second(alpha) for alpha in ORDERS)
    if isinstance(first, fdp.TradeoffFunction) and not first <= second:
        # what is not shown by its order, and does not differ, is no finding
        return all(first.delta(epsilon) <= second.delta(epsilon) + 1e-12 for epsilon in EPSILONS)
    return known.at_most(first, second)


def same_loss(measure: dp.Measure, one: errors.Loss, other: errors.Loss) -> bool:
    """Whether two losses are at most each other."""
    return at_most(measure, one, other) and at_most(measure, other, one)


@dataclass(frozen=True)
class _Case:
    made: dp.Measurement
    datasets: tuple[Any, Any]
    d_ins: tuple[int, ...]
    query: Callable[[Any], Any]
    exact: Callable[[int], Any] | None
    runs: int

    def run(self, data: Any) -> Any:
        return self.query(self.made(data))


@checked(make=function, query=optional(function), exact=optional(function))
def check_measurement(
    make: Callable[..., dp.Measurement],
    arguments: Mapping[str, Any],
    datasets: tuple[Any, Any],
    *,
    d_ins: tuple[int, ...] = (1, 2, 3),
    query: Callable[[Any], Any] | None = None,
    exact: Callable[[int], Any] | None = None,
    runs: Count = 400,
) -> list[str]:
    """Check the laws that each measurement keeps on the constructor of a plugin.

    * *map*: losses are distances of the measure, do not fall with d_in, and are always the same;
    * *outward*: they are at least the exact ones;
    * *launch*: an odometer is charged what the map says, also if several threads launch at once;
    * *chain*: a step before or after the measurement, that changes nothing, changes no loss;
    * *neighbours*: frequencies of answers do not refute the map. Errors are answers, too. The law
      finds a fault that is not there with a probability of at most 10^-9. It does not find faults
      of mechanisms whose answers hardly ever repeat; use :func:`.audit` for these;
    * *errors*: no message of an error contains values of the data.

    The laws refute, and do not prove: a measurement without findings may still have a wrong map.

    :param make: a constructor
    :param arguments: keyword arguments of the constructor
    :param datasets: two datasets at distance ``d_ins[0]``. Values with at least 5 characters, such
        as 73939, are searched for in messages of errors
    :param d_ins: input distances, increasing
    :param query: maps the handle of an interactive measurement to an answer
    :param exact: maps d_in to the exact loss, a Fraction or a tuple of Fractions
    :param runs: number of runs on each dataset, for *neighbours*
    :return: what was found, each with the name of its law; empty if nothing was found
    :raises InvalidTypeError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> def make_noisy_count(scale, map_):
    ...     noisy = space >> dp.t.then_count() >> dp.m.then_laplace(scale)
    ...     return dp.m.make_user_measurement(*space, dp.max_divergence(), noisy, map_)
    >>> datasets = [73939], []
    >>> right = {"scale": 0.25, "map_": lambda d_in: 4.0 * d_in}
    >>> oc.extend.check_measurement(make_noisy_count, right, datasets)
    []
    >>> wrong = {"scale": 0.25, "map_": lambda d_in: 1.0 / d_in}
    >>> for found in oc.extend.check_measurement(make_noisy_count, wrong, datasets):
    ...     print(found)
    map: 0.5 at 2 is below 1.0 at 1
    map: 0.333... at 3 is below 0.5 at 2
    neighbours: answer ... has a probability of at least ... and at most ...
    """
    made = instance(dp.Measurement)(**{"what make returns": make(**dict(arguments))})
    if len(two(datasets)) != 2:
        raise errors.InvalidTypeError("datasets must be a tuple of two neighbours")
    case = _Case(made, datasets, d_ins, query or (lambda answer: answer), exact, runs)
    found = []
    for name, law in LAWS.items():
        try:
            found += [f"{name}: {one}" for one in law(case)]
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {error}")
    return found


def _map(case: _Case) -> Iterator[str]:
    measure, before = case.made.output_measure, None
    for d_in in case.d_ins:
        loss = case.made.map(d_in)
        if not same_loss(measure, loss, case.made.map(d_in)):
            yield f"two losses at {d_in}"
        if before is not None and not at_most(measure, before[1], loss):
            yield f"{loss} at {d_in} is below {before[1]} at {before[0]}"
        before = d_in, loss


def _outward(case: _Case) -> Iterator[str]:
    for d_in in case.d_ins if case.exact else ():
        loss, exact = (
            one if isinstance(one, tuple) else (one,)
            for one in (case.made.map(d_in), case.exact(d_in))  # type: ignore[misc]
        )
        if any(Fraction(one) < other for one, other in zip(loss, exact, strict=True)):
            yield f"map({d_in}) is {case.made.map(d_in)}, below the exact loss"


def charges(root: Any, made: dp.Measurement, d_ins: tuple[int, ...]) -> Iterator[str]:
    """Where an odometer, on which one measurement was launched, tells another loss than its map."""
    for d_in in d_ins:
        try:
            loss = made.map(d_in)
        except (errors.ConcurrentError, dp.OpenDPException):
            continue
        if not same_loss(made.output_measure, root.privacy_loss(d_in), loss):
            yield f"an odometer charges {root.privacy_loss(d_in)} at {d_in}, the map is {loss}"


def _launch(case: _Case) -> Iterator[str]:
    made, (data, _), d_in = case.made, case.datasets, case.d_ins[0]
    try:
        odometer = make_concurrent_odometer(
            made.input_domain, made.input_metric, made.output_measure
        )
    except errors.UnsupportedMeasureError:
        return  # such as general trade-off functions, which have no sum
    alone, together = odometer(data), odometer(data)
    alone(made)
    yield from charges(alone, made, case.d_ins)
    for _ in range(7):
        alone(made)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: case.query(together(made)), range(8)))
    if not same_loss(made.output_measure, alone.privacy_loss(d_in), together.privacy_loss(d_in)):
        yield "launches of several threads are charged otherwise"


def _chain(case: _Case) -> Iterator[str]:
    made, space = case.made, (case.made.input_domain, case.made.input_metric)
    same = dp.t.make_user_transformation(*space, *space, lambda data: data, lambda d_in: d_in)
    after = dp.new_function(lambda answer: answer, TO="ExtrinsicObject")
    for name, chained in (("before", same >> made), ("after", made >> after)):
        for d_in in case.d_ins:
            if not same_loss(made.output_measure, chained.map(d_in), made.map(d_in)):
                yield f"a step {name} it changes the loss at {d_in}"
        case.query(chained(case.datasets[0]))


def _neighbours(case: _Case) -> Iterator[str]:
    seen = [[_answer(case, data) for _ in range(case.runs)] for data in case.datasets]
    half = max(1, case.runs // 2)  # the first half chooses the event, the second half counts it
    event, side = max(
        ((answer, side) for side in (0, 1) for answer in set(seen[side][:half])),
        key=lambda one: seen[one[1]][:half].count(one[0]) - seen[1 - one[1]][:half].count(one[0]),
    )
    hits, others = (seen[one][-half:].count(event) for one in (side, 1 - side))
    bound, miss = scipy.special.betaincinv, FAILURE / 2  # the limits of Clopper and Pearson
    low = float(bound(hits, half - hits + 1, miss)) if hits else 0.0
    high = 1 - float(bound(half - others, others + 1, miss)) if others < half else 1.0
    orders = ORDERS if callable(case.made.map(case.d_ins[0])) else None  # of a Rényi curve
    profile = cast(case.made, dp.smoothed_max_divergence(), orders=orders).map(case.d_ins[0])
    for epsilon in EPSILONS:
        if low - exp(epsilon) * high > profile.delta(epsilon):
            yield (
                f"answer {event} has a probability of at least {low:.3g} and at most {high:.3g} "
                f"on neighbours, which the map refuses at epsilon {epsilon:g}"
            )
            return


def _answer(case: _Case, data: Any) -> str:
    try:
        return repr(case.run(data))
    except Exception as error:
        return type(error).__name__


def _errors(case: _Case) -> Iterator[str]:
    for data in case.datasets:
        secrets = {text for text in map(str, _values(data)) if len(text) >= SECRET}
        runs = case.run, lambda data: case.made(data)(None), lambda data: case.made(data)("text")
        for run in runs:
            try:
                run(data)
            except Exception as error:
                if any(secret in f"{error} {error.args!r}" for secret in secrets):
                    yield f"a message of {type(error).__name__} has a value of the data"


def _values(data: Any) -> Iterator[Any]:
    if isinstance(data, (list, tuple, dict)):
        for one in data.values() if isinstance(data, dict) else data:
            yield from _values(one)
    else:
        yield data


LAWS: dict[str, Callable[[_Case], Iterator[str]]] = {
    "map": _map,
    "outward": _outward,
    "launch": _launch,
    "chain": _chain,
    "neighbours": _neighbours,
    "errors": _errors,
}
