"""Measurements and odometers of this package: OpenDP's types, with a direct path for Python calls.

A call from Python spawns a handle without crossing the FFI. OpenDP (in a chain, a cast, a native
compositor) calls them as ordinary user-defined measurements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import expm1, log1p
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from opendp.mod import Domain, Function, Measure, Measurement, Metric, Odometer, Transformation

from .. import _opendp as _native
from .._checks import Record, Unrecorded, at_most, count, function, probability
from ..accounting import RUNNING, Ledger, Lifecycle, Limit, innermost_running
from ..data import Kind, kind_of
from ..errors import (
    Answer,
    Argument,
    Distance,
    InvalidTypeError,
    InvalidValueError,
    Loss,
    RefusalError,
    UnsupportedMeasureError,
)
from ..measures import Accumulator, CompositionMeasure, composition_measure
from .child import adopt
from .data import Sealed, SealedHandle, take_in
from .stream import feeds_many, is_stream

# What a mechanism says of its error before it runs.

LEAST = 1e-300  # smaller probabilities have no double for their logarithm's argument
_MOST = at_most(2**62, "no mechanism releases more")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The error of a mechanism's answers, with confidence.

    :ivar noise: the distribution of the noise, such as ``"Laplace"``
    :ivar scale: its scale, in units of the answers; None if there are several
    :ivar bound: maps β and a number of answers to an error that all of them are within, with
        probability at least 1 - β
    :ivar answers: the number of answers that one release has; None if the caller must say
    """

    noise: str
    scale: float | None
    bound: Callable[[float, int], float]
    answers: int | None = None

    def at(self, beta: float, answers: int | None) -> float:
        """Return the bound, for arguments that are checked."""
        failing = probability(beta=beta)
        if not LEAST <= failing < 1.0:
            raise InvalidValueError(f"beta ({beta}) must be at least 1e-300 and below 1")
        if answers is None:
            answers = self.answers
        if answers is None:
            raise InvalidTypeError(
                "answers must be given: the number of answers that are all within the error, such "
                "as the number of queries, coordinates or steps"
            )
        return self.bound(failing, count(answers=_MOST(answers=answers)))


def of_one(bound: Callable[[float], float]) -> Callable[[float, int], float]:
    """Return the bound of independent answers, from that of one at the probability that it fails.

    All are within with probability 1 - β if each fails with probability 1 - (1-β)^(1/answers).
    """
    return lambda beta, answers: bound(-expm1(log1p(-beta) / answers))


Spawn = Callable[[Sealed], Any]
H = TypeVar("H", covariant=True)


class Inside(NamedTuple):
    """Parts of a measurement of this package.

    :ivar spawn: returns a handle, or a release, on sealed data
    :ivar privacy_map: maps d_in to the privacy loss
    :ivar odometer: the odometer of a filter; None for other measurements
    :ivar carrier_type: what OpenDP converts the data to
    :ivar kind: the kind of the data
    :ivar takes_updates: whether it is a continual mechanism, or wraps one
    :ivar composes: whether it is a compositor or a filter, which launches other mechanisms
    :ivar feeds_many: whether its stream may feed several mechanisms, as that of what it wraps
    :ivar accuracy: the error of its answers; None if it is not known
    :ivar interactive: whether it returns a queryable, not a release; None if that is not known
    :ivar free: whether its launch excludes no other child, whatever it costs; see :func:`is_free`
    :ivar live: whether it may see rows that arrive between its queries, at the same loss
    :ivar bounded: whether the number of its messages is bounded, or it answers once
    """

    spawn: Spawn
    privacy_map: Callable[[Any], Any]
    odometer: ConcurrentOdometer | None
    carrier_type: str
    kind: Kind
    takes_updates: bool = False
    composes: bool = False
    feeds_many: bool = False
    accuracy: Accuracy | None = None
    interactive: bool | None = True
    free: bool = False
    live: bool = False
    bounded: bool = False


def _inside(measurement: Measurement) -> Inside | None:
    found: Inside | None = vars(measurement).get("inside")
    return found


def may_feed_many(measurement: Measurement) -> bool:
    """Whether the stream of a measurement may feed several mechanisms.

    A composition of this package asks each of them for a bound on its messages where it needs one.
    """
    found = _inside(measurement)
    if found is not None and found.composes:
        return composition_measure(measurement.output_measure).exclusive_reason is None
    return feeds_many(measurement.output_measure) or (found is not None and found.feeds_many)


def may_be_live(measurement: Measurement) -> bool:
    """Whether a measurement may see rows that arrive between its queries."""
    found = _inside(measurement)
    return found is not None and found.live


def known_accuracy(measurement: Measurement) -> Accuracy | None:
    """Return the accuracy that a measurement was made with; None if it has none."""
    found = _inside(measurement)
    return None if found is None else found.accuracy


def accuracy_of(measurement: Measurement) -> Accuracy:
    """Return the accuracy of a measurement, or raise."""
    found = known_accuracy(measurement)
    if found is None:
        raise InvalidTypeError(
            f"the accuracy of {measurement} is not known: it belongs to a mechanism of oc.m, and "
            "neither what launches mechanisms nor a postprocessor has one; ask the mechanism"
        )
    return found


def interactive(measurement: Measurement) -> bool | None:
    """Whether a measurement returns a queryable, not a release; None if that is not known.

    For OpenDP's own it is read from the record of how they were made.
    """
    found = _inside(measurement)
    if found is not None:
        return found.interactive
    module, name, arguments = _made(measurement)
    if not isinstance(arguments, dict):
        return None
    if name in _COMPOSE:
        return True
    if name == "make_composition":
        parts = arguments.get("measurements")
        known = [interactive(one) for one in parts] if isinstance(parts, list) else [None]
        return True if True in known else None if None in known else False
    if name == "make_chain_mt":
        return interactive(arguments.get("measurement1"))
    if name == "make_chain_pm":  # a postprocessor may turn a queryable into anything
        return False if interactive(arguments.get("measurement0")) is False else None
    if "measurement" in arguments:  # a cast
        return interactive(arguments["measurement"])
    return False if module == "measurements" and name not in _UNKNOWN else None


def _made(measurement: Measurement) -> tuple[Any, Any, Any]:
    """Return the module, name and arguments of the constructor of a native measurement."""
    made = getattr(measurement, "__opendp_dict__", None)
    made = made if type(made) is dict else {}
    return made.get("__module__"), made.get("__function__"), made.get("__kwargs__")


def is_free(measurement: Measurement) -> bool:
    """Whether a launch excludes no other child under a uniform measure, whatever it costs.

    What answers once is such a launch, and so is what composes launches, each of which excludes
    others itself if it must. Anything else may have its loss only as a whole.
    """
    found = _inside(measurement)
    if found is not None:
        return found.free
    _, name, arguments = _made(measurement)
    if name in _POSTPROCESSED and isinstance(arguments, dict):
        behind = arguments.get(_POSTPROCESSED[name])
        return isinstance(behind, Measurement) and is_free(behind)
    if name == "make_user_measurement" and isinstance(arguments, dict):
        return _DATA.fullmatch(str(arguments.get("TO"))) is not None
    return name in _ONCE or interactive(measurement) is False


def takes_stream(measurement: Measurement) -> bool:
    """Whether a measurement on a stream receives what arrives later.

    OpenDP's compositors pass the stream on. Any other measurement that is not made here runs once,
    on the empty stream.
    """
    found = _inside(measurement)
    if found is not None:
        return found.takes_updates or found.composes
    return _made(measurement)[1] in _COMPOSE or _all_behind(measurement, takes_stream)


def is_bounded(measurement: Measurement) -> bool:
    """Whether a measurement on a stream composes with others whatever its loss is.

    The number of its messages is bounded, or it answers once; or it is under pure DP, perhaps below
    a cast [HSV25, Corollary 7.2].
    """
    found = _inside(measurement)
    if found is not None and found.bounded:
        return True
    pure = feeds_many(measurement.output_measure)
    return pure or (found is None and _all_behind(measurement, is_bounded))


def _all_behind(measurement: Measurement, holds: Callable[[Measurement], bool]) -> bool:
    """Whether something holds of all that a native measurement passes its stream on to."""
    _, name, arguments = _made(measurement)
    if not isinstance(arguments, dict):
        return False
    parts = arguments.get("measurements")
    if name == "make_composition" and isinstance(parts, list):
        return all(map(holds, parts))
    behind = arguments.get("measurement0", arguments.get("measurement"))  # postprocessed, or cast
    return isinstance(behind, Measurement) and holds(behind)


_COMPOSE = ("make_adaptive_composition", "make_sequential_composition", "make_privacy_filter")
_POSTPROCESSED = {"make_chain_pm": "measurement0", "make_chain_mt": "measurement1"}
_DATA = re.compile(r"(Vec<)*(bool|String|usize|[iuf]\d+)>*")
_ONCE = ("make_private_lazyframe",)  # a frame is collected once
_UNKNOWN = ("make_user_measurement", "make_private_lazyframe", "make_private_expr")


class ConcurrentMeasurement(Measurement):
    """A measurement of this package: a compositor, a filter, a cast, or a chain to one.

    A wrapper of one has the same properties, or refuses to wrap it; see ``make_measurement``.

    :ivar summary: a short description
    """

    _type_ = Measurement._type_
    summary: str
    inside: Inside
    made_on: tuple[Domain, Metric, Measure]  # how they were made, for dp.serialize

    @property
    def takes_updates(self) -> bool:
        """Whether it is a continual mechanism, or wraps one."""
        return self.inside.takes_updates

    @property
    def composes(self) -> bool:
        """Whether it is a compositor or a filter, which launches other mechanisms."""
        return self.inside.composes

    @property
    def interactive(self) -> bool | None:
        """Whether it returns a queryable, not a release; None if that is not known."""
        return self.inside.interactive

    def accuracy(self, beta: float = 0.05, *, answers: int | None = None) -> float:
        """Return a bound on the error of the answers, before the mechanism runs.

        With probability at least 1 - ``beta``, all of the first ``answers`` answers are within it
        of the exact ones. It depends on the mechanism's parameters only, not on the data. What the
        error of an answer is, and what the bound assumes, is in ``docs/mechanisms.rst``.

        :param beta: probability of a larger error, from 1e-300 up to 1, exclusive
        :param answers: number of queries, coordinates or steps; it may be left out if one release
            has a fixed number of answers
        :return: the error, in units of the answers
        :raises InvalidTypeError: if the mechanism's accuracy is not known, or if ``answers`` must
            be given
        :raises InvalidValueError: naming the argument
        """
        return accuracy_of(self).at(beta, answers)

    @property
    @_native.uninterruptible
    def input_domain(self) -> Domain:
        """Domain of the data."""
        domain: Domain = _native.made_as(super().input_domain, self.made_on[0])
        return domain

    @property
    @_native.uninterruptible
    def input_metric(self) -> Metric:
        """Metric in whose units d_in is."""
        metric: Metric = _native.made_as(super().input_metric, self.made_on[1])
        return metric

    @property
    @_native.uninterruptible
    def output_measure(self) -> Measure:
        """How privacy loss is measured."""
        measure: Measure = _native.made_as(super().output_measure, self.made_on[2])
        return measure

    @property
    def odometer(self) -> ConcurrentOdometer | None:
        """The odometer of a filter; None for other measurements."""
        return self.inside.odometer

    def __call__(self, arg: Any) -> Answer:
        """Return an answer, or a queryable, on the data ``arg``, which is converted once."""
        token = take_in(arg, self.made_on[0], self.inside.carrier_type, self.inside.kind)
        answer = _native.call_native(self.inside.spawn, token)
        if not RUNNING.get() and isinstance(answer, SealedHandle):
            return answer  # no mechanism has made it, and it belongs to no launch
        return adopt(answer, Lifecycle(innermost_running()), None)

    def invoke(self, arg: Any) -> Answer:
        """Return an answer, or a queryable; the same as calling the measurement."""
        return self(arg)

    def map(self, d_in: Distance) -> Any:
        """Map an input distance to the privacy loss of the whole interaction."""
        return self.inside.privacy_map(d_in)

    def check(self, d_in: Distance, d_out: Loss, *, debug: bool = False) -> bool:
        """Whether the privacy loss at ``d_in`` is at most ``d_out``.

        This returns False for incomparable distances, where OpenDP's own ``check`` raises.
        """
        try:
            measure = composition_measure(self.output_measure)
        except UnsupportedMeasureError:  # a privacy profile
            return bool(super().check(d_in, d_out, debug=debug))
        return measure.check(self.map(d_in), d_out)

    def __rshift__(self, other: Any) -> Any:
        """Apply a postprocessor to what is released."""
        return super().__rshift__(function(postprocessor=other))

    def __repr__(self) -> str:
        return self.summary


def read_map(measurement: Measurement, d_in: Distance) -> Any:
    """Call the privacy map of a measurement."""
    ours = _inside(measurement)
    if ours is not None:
        return ours.privacy_map(d_in)
    return _native.measurement_map(measurement, d_in)


@dataclass(eq=False, repr=False)
class ConcurrentOdometer(Odometer):
    """An odometer that OpenDP can chain and nest, made in Python.

    OpenDP has no user-defined odometers, so there is no native object behind it. Native functions
    refuse it as a null pointer.

    :param query_space: domain and metric of the queries
    :param transformation: maps the odometer's input to ``query_space``, if they differ
    :param postprocessors: functions that are applied to every answer, first to last
    :param record: a ledger, and the d_in of its charges
    :param opaque: whether errors of mechanisms are hidden from the analyst
    :param limit: the bound that it has below another account; None for others
    :param wrapped: whether its handle answers other messages than launches
    """

    _type_: ClassVar[type] = Odometer._type_
    query_space: tuple[Domain, Metric]
    measure: CompositionMeasure[Any]
    accumulator: Accumulator
    spawn: Callable[[ConcurrentOdometer, Sealed, Any], Any]
    transformation: Transformation | None = None
    postprocessors: tuple[Callable[[Any], Any], ...] = ()
    record: tuple[Ledger, Distance] | None = None
    opaque: bool = False
    limit: Limit | None = None
    wrapped: bool = False

    def __post_init__(self) -> None:
        self.__opendp_dict__: dict[str, Any] = Unrecorded()
        self.exclusive_reason = self.measure.exclusive_reason

    @cached_property
    def distance_type(self) -> str:
        """OpenDP's type of the distances of its input metric."""
        return str(self.input_metric.distance_type)

    @cached_property
    def metric_name(self) -> str:
        """The name of its input metric, as ledgers record it."""
        return str(self.input_metric)

    @cached_property
    def carrier_type(self) -> str:
        """What OpenDP converts its data to."""
        return str(self.input_domain.carrier_type)

    @cached_property
    def kind(self) -> Kind:
        """The kind of its data."""
        return kind_of(self.input_domain)

    @cached_property
    def output_measure(self) -> Measure:
        """How privacy loss is measured."""
        return self.measure.opendp()

    @cached_property
    def input_domain(self) -> Domain:
        """Domain of the data."""
        head = self.transformation
        return self.query_space[0] if head is None else head.input_domain

    @cached_property
    def input_metric(self) -> Metric:
        """Metric in whose units d_in is."""
        head = self.transformation
        return self.query_space[1] if head is None else head.input_metric

    def __del__(self) -> None:
        """Nothing to free."""

    def __call__(self, arg: Any) -> Answer:
        """Spawn an odometer queryable on the data ``arg``, converted once."""
        token = take_in(arg, self.input_domain, self.carrier_type, self.kind)
        return _native.call_native(self.spawn, self, token, None)

    def invoke(self, arg: Any) -> Answer:
        """Spawn an odometer queryable on the data ``arg``, converted once."""
        return self(arg)

    def __rshift__(self, other: Any) -> ConcurrentOdometer:
        return postprocess(self, other)

    def __repr__(self) -> str:
        return (
            f"ConcurrentOdometer(\n"
            f"    input_domain   = {self.input_domain},\n"
            f"    input_metric   = {self.input_metric},\n"
            f"    output_measure = {self.measure.name},\n"
            f"    accumulator    = {self.accumulator}"
            + ("" if self.limit is None else f",\n    limit          = {self.limit}")
            + ")"
        )


def require_launches(odometer: ConcurrentOdometer) -> None:
    """Raise if the handle of an odometer answers other messages than launches."""
    if odometer.wrapped:
        raise InvalidTypeError(
            "odometer answers messages of a postprocessor, or a limited number of them, which what "
            "is made of it would not; make that of the odometer inside, and then wrap it"
        )


def postprocess(odometer: ConcurrentOdometer, postprocessor: Argument) -> ConcurrentOdometer:
    """Apply ``postprocessor`` to every answer."""
    if isinstance(postprocessor, Transformation):
        postprocessor = postprocessor.function
    if not isinstance(postprocessor, Function):
        postprocessor = function(postprocessor=postprocessor)
    require_launches(odometer)
    if is_stream(odometer.query_space[0]):
        raise InvalidTypeError(
            "postprocessor would receive the handles that take updates of "
            f"{odometer.query_space[0]}, which are data; use "
            "make_interactive_postprocessing on what is launched, whose postprocessor gets "
            "queries and answers only"
        )
    return replace(odometer, postprocessors=(*odometer.postprocessors, postprocessor))


# Descriptions: of a measurement, and of what a launch of it would return and cost.


@dataclass(frozen=True, slots=True)
class Description:
    """A launch as it would be now. It was not run, and nothing was charged.

    :ivar mechanism: constructors and their numbers, such as ``count >> laplace(scale=2.0)``
    :ivar interactive: whether it returns a queryable, not a release; None if that is not known,
        as for a measurement written in Python
    :ivar d_in: distance between neighbouring inputs that ``loss`` is for
    :ivar loss: privacy loss at ``d_in``, under the measure of the handle; None for an odometer,
        which costs nothing itself
    :ivar refusal: why a launch would be refused now; None if it would be admitted

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> root = (space >> oc.then_concurrent_odometer(dp.max_divergence()))([1, 2, 3])
    >>> root.describe(space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0), d_in=1)
    Description(mechanism='count >> laplace(scale=4.0)', interactive=False, d_in=1,
    loss=0.25, refusal=None)
    """

    mechanism: str
    interactive: bool | None
    d_in: Distance
    loss: Any
    refusal: RefusalError | None

    @property
    def admitted(self) -> bool:
        """Whether a launch would be admitted now."""
        return self.refusal is None


_LONGEST = 200


def describe(measurement: Measurement) -> str:
    """Describe a measurement by its constructors, such as ``count >> laplace(scale=2.0)``.

    A description has public values only: names of constructors, their numbers, and the names of a
    table's columns, such as ``table_count by carrier >> laplace(scale=10.0)``. Without a record of
    its constructor, a measurement is described by its type.
    """
    summary = getattr(measurement, "summary", None)  # of one of ours
    text = " ".join((summary if isinstance(summary, str) else _text(measurement)).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _text(one: Argument) -> str:
    name: Any
    made = getattr(one, "__opendp_dict__", None)
    record = made if made is not None else {}
    name, arguments = record.get("__function__"), record.get("__kwargs__", {})
    if isinstance(made, Record):
        name, arguments = made.call
    if not isinstance(name, str):
        return type(one).__name__
    if name.startswith("make_chain_"):  # numbered from the end: measurement1, transformation0
        parts = [arguments[key] for key in sorted(arguments, key=lambda key: str(key)[-1:])]
        return " >> ".join(map(_text, parts))
    name = name.removeprefix("make_").removeprefix("new_")
    if "measurement" in arguments:
        return f"{name}({_text(arguments['measurement'])})"
    numbers = [
        f"{key}={(float if isinstance(value, float) else int).__repr__(value)}"
        for key, value in arguments.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    text = f"{name}({', '.join(numbers)})" if numbers else name
    of = arguments.get("column", arguments.get("columns"))
    for word, names in (("of", of), ("by", arguments.get("by"))):
        columns = [names] if isinstance(names, str) else names  # of a table
        named = isinstance(columns, (list, tuple)) and len(columns) > 0
        if named and all(isinstance(column, str) for column in columns):
            text += f" {word} {', '.join(columns)}"
    return text


if TYPE_CHECKING:  # what type checkers and editors know of a handle: OpenDP's classes have no types

    class MeasurementOf(ConcurrentMeasurement, Generic[H]):
        """A measurement that returns handles of a class."""

        def __call__(self, arg: Any) -> H:
            """Return a handle on the data."""

    class OdometerOf(ConcurrentOdometer, Generic[H]):
        """An odometer that returns handles of a class."""

        def __call__(self, arg: Any) -> H:
            """Return a handle on the data."""
