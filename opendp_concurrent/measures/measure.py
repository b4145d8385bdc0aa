"""The protocols of accumulators, and the laws that every accumulator obeys.

An accumulator (G in the papers) is a frozen value: an upper bound on the privacy loss of the
launches so far, for one d_in. ``after`` returns the next accumulator and changes nothing. By Lemma
2.19 of [HSTVVXZ23] valid accumulators and valid continuation rules are equivalent.

The laws are tested for all accumulators in ``tests/contracts``: the loss starts at zero, never
falls and is monotone in d_mid; ``after(d, n)`` equals n times ``after(d)``; a d_mid that is not a
privacy loss raises and changes nothing; the loss is at least the exact real number;
``within(d_out)`` agrees with ``loss``; an accumulator read from a record continues identically.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import inf
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from .. import _checks as checks
from ..errors import Argument, D, InvalidTypeError, Json, Loss, UnsupportedMeasureError, shown
from ..numerics import from_units_up, to_units
from . import opendp as native
from .conversion import Conversion

_TOLERANCE = Fraction(1, 2**40)  # far above differences of C libraries, far below a launch


def times(count: int) -> int:
    """Return the number of launches to add, or raise. A charge is never refunded."""
    return count if type(count) is int and count > 0 else checks.count(count=count)


class AccumulatorState(Protocol[D]):
    """An upper bound on the privacy loss, stored exactly."""

    __slots__ = ()

    @property
    def loss(self) -> D:
        """Return the privacy loss so far, rounded up once."""

    def read(self, d_mid: D) -> D:
        """Return ``d_mid`` in the form that is added, such as a curve at certain orders."""
        return d_mid

    def after(self, d_mid: D, count: int = 1) -> AccumulatorState[D]:
        """Return the accumulator after ``count`` more launches of ``d_mid``; O(1) in ``count``.

        :raises InvalidTypeError, InvalidValueError: if ``d_mid`` is not a privacy loss, or
            ``count`` is not at least 1
        """

    def within(self, d_out: D) -> bool:
        """Return whether the loss is at most ``d_out``, without an expensive loss computation."""

    def remaining(self, d_out: D) -> D:
        """Return the largest d_mid that may still be launched under ``d_out``."""

    def to_record(self) -> Json:
        """Return an exact, JSON-serialisable form."""


class Rounded(AccumulatorState[D], Protocol[D]):
    """An accumulator whose sums depend on functions of the C library.

    The totals of the same launches may differ between two machines in the last digits. Each total
    is rounded up, so each is a bound. A ledger takes the larger total. For an accumulator without
    this method, the totals must be equal.
    """

    def merged(self, other: Rounded[D]) -> Rounded[D] | None:
        """Return the larger of two totals of the same launches, or None if they differ too much."""


class EvenlyDivisible:
    """Accumulators under which the measure's own shares of a bound compose to at most the bound."""

    __slots__ = ()

    def shares(self, measure: CompositionMeasure[D], d_out: D, weights: list[Fraction]) -> list[D]:
        """Return the shares of ``d_out`` that the measure makes."""
        return measure.split(d_out, weights)


def nearly_equal(one: float, other: float) -> bool:
    """Return whether two numbers differ at most by the rounding of two C libraries."""
    if one == other:
        return True
    if not abs(one) < inf or not abs(other) < inf:  # NaN, too
        return False
    first, second = Fraction(one), Fraction(other)
    return abs(first - second) <= _TOLERANCE * max(abs(first), abs(second))


class OfOneMeasure:
    """Accumulators that add up losses under one measure.

    :cvar made_for: its kind
    """

    __slots__ = ()
    made_for: ClassVar[str]

    def supports(self, measure: CompositionMeasure[Any]) -> bool:
        """Return whether it is the measure."""
        return measure.kind == self.made_for

    def __repr__(self) -> str:
        given: Any = self  # a dataclass, whose fields are the arguments of what makes it
        values = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(given))
        return f"{checks.BY_CLASS[type(self)].tag}({', '.join(values)})"


class Accumulator(Protocol):
    """A theorem that adds up losses, with its parameters. Frozen; it stores no history.

    This is the type of the ``accumulator`` argument of ``make_concurrent_odometer``. An object of
    your own is accepted if its class has these three methods. You must prove that the accumulators
    that it starts bound the loss of adaptively chosen launches. Optional attributes:

    * ``made_for``: the supported measures, in a few words, for the message of a refusal;
    * ``check_budget(d_out)``: raises if no launch could ever be admitted under ``d_out``;
    * ``shares(measure, d_out, weights)``: returns losses in proportion to weights, the largest of
      which launches are admitted under ``d_out``. Without it, ``largest_share`` searches for them;
    * ``parts()``: for (ε, δ), the rules that ``either`` combines with those of others;
    * ``needs_measure``: True if ``start`` must be given the measure. A ledger then refuses to open
      a budget under a measure that is not registered;
    * ``why_no_events``: why its launches are no list of events of dp-accounting, if that is so.

    To use it with a ledger, register its class: ``oc.extend.register``.
    """

    def supports(self, measure: CompositionMeasure[Any]) -> bool:
        """Return whether it adds up losses of this measure, a :class:`.CompositionMeasure`."""

    def start(self, measure: CompositionMeasure[Any] | None) -> AccumulatorState[Any]:
        """Return the accumulator before the first launch."""

    def from_record(
        self, measure: CompositionMeasure[Any] | None, record: Json
    ) -> AccumulatorState[Any]:
        """Return the accumulator that ``to_record`` described."""


# The basic accumulator: the plain sum that each measure has.


@dataclass(frozen=True, slots=True)
class PlainSum:
    """Basic composition as one of the rules: adds up ε, and needs no slack."""

    delta_slack: float = 0.0

    def cost(self, epsilon: float) -> int:
        """ε, exactly."""
        return to_units(epsilon)

    def spent(self, units: float) -> float:
        """Return the least double at or above the sum."""
        return from_units_up(int(units))

    def epsilon(self, spent: float) -> float:
        """Return the sum itself."""
        return spent

    def largest(self, epsilon: float) -> float:
        """Return the bound itself."""
        return epsilon


@checks.tagged("basic")
@dataclass(frozen=True, slots=True)
class Basic(EvenlyDivisible):
    """Add up the d_mids by the measure's own sum."""

    needs_measure = True

    def supports(self, measure: CompositionMeasure[Any]) -> bool:
        """Return True: every measure has a sum."""
        return True

    def start(self, measure: CompositionMeasure[Any] | None = None) -> AccumulatorState[Any]:
        """Return the empty sum of the measure, without which it is not known what is added up."""
        empty: AccumulatorState[Any] = _checked(measure).total()
        return empty

    def from_record(
        self, measure: CompositionMeasure[Any] | None, record: Json
    ) -> AccumulatorState[Any]:
        """Return the sum that ``to_record`` described."""
        total: AccumulatorState[Any] = _checked(measure).total.from_record(record)
        return total

    def parts(self) -> tuple[PlainSum, ...]:
        """Return the plain sum of the ε."""
        return (PlainSum(),)

    def __repr__(self) -> str:
        return "basic()"


def _checked(measure: CompositionMeasure[Any] | None) -> CompositionMeasure[Any]:
    if not isinstance(measure, CompositionMeasure):
        raise InvalidTypeError(
            f"measure must be a composition measure, found {shown(measure)}, because each measure "
            "has a sum of its own; pass for example "
            "oc.extend.composition_measure(dp.max_divergence())"
        )
    return measure


# What a privacy measure answers, so that nobody else asks which measure it is.
#
# A measure is one class. To add one, derive from :class:`CompositionMeasure`, or from
# :class:`.NumberMeasure` if its distance is one number and losses add up, and register the class:
# ``oc.extend.register``.

M = TypeVar("M", bound="Convertible[Any]")
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Composability(Enum):
    """How interactive children may be queried: the values are what is shown to users.

    Under a uniform measure children are concurrent, except those that are known to have their loss
    only as a whole. Under a sequential measure each child is like these: it is closed as soon as
    anything else of its tree is launched or answers.

    :example:

    >>> oc.extend.Composability.SEQUENTIAL.value
    'sequential'
    """

    CONCURRENT = "concurrent"
    UNIFORM = "uniform"
    SEQUENTIAL = "sequential"


class Convertible(ABC, Generic[D]):
    """A measure from or to which distances are converted.

    :cvar kind: its name without parameters; in a ledger it is kept for ever
    :cvar conversions_to: by the kind of the target, the theorems that lead to it in one step
    :cvar conversions_from: by the kind of the source, theorems that the source does not know
    :cvar why_not: why there are no others
    :cvar read_from: kinds from whose losses those of this measure follow without any slack
    :cvar takes_delta: whether a conversion to it may be given a δ
    """

    __slots__ = ()
    kind: ClassVar[str]
    conversions_to: ClassVar[Mapping[str, Conversion]] = NOTHING
    conversions_from: ClassVar[Mapping[str, Conversion]] = NOTHING
    why_not: ClassVar[str] = "none is known"
    read_from: ClassVar[tuple[str, ...]] = ()
    takes_delta: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The kind with its parameters, as OpenDP shows it; also what a ledger records."""
        return self.kind

    @abstractmethod
    def opendp(self) -> native.Measure:
        """Make OpenDP's measure object. Measures are compared as objects, never by name."""

    @abstractmethod
    def validate(self, name: str, value: Argument) -> D:
        """Return ``value`` as a distance, or raise naming ``name``."""

    @classmethod
    def find(cls, output_measure: native.Measure) -> Any:
        """Return the measure for OpenDP's object; None if that is of another kind."""
        if cls.kind in native.DESCRIBED:
            found = native.descriptor(output_measure)
            ours = type(found) is native.Described and found.kind == cls.kind
            return singleton(cls, *found.parameters) if ours else None
        one = singleton(cls)
        return one if one.opendp() == output_measure else None

    @classmethod
    def from_tag(cls, tag: str) -> Any:
        """Return the measure with this name; None if that is of another kind."""
        return singleton(cls) if tag == cls.kind else None


class CompositionMeasure(Convertible[D]):
    """A privacy measure under which losses are composed.

    What is abstract here, and the attributes without a value, must be given. Everything else has a
    default that is safe for every measure: what is not known is refused.

    :cvar tag: of ours, what ledgers write for the kind; it is never changed
    :cvar zero: the distance of no privacy loss
    :cvar total: the class of the sum of losses, which :func:`.basic` keeps: called without
        arguments, it is the sum of none, and its ``from_record`` reads what ``to_record`` wrote
    :cvar reason: the theorem that lets children be queried concurrently, or why none does
    :cvar distance_form: what a distance looks like, for messages
    :cvar composability: whether interactive children may be interleaved; not, if left out
    :cvar one_number: whether a distance is one number, so that any two can be compared
    :cvar needs_orders: whether distances are curves, which are compared on a grid of orders only
    :cvar most_parallel: largest total distance of the parts of a parallel composition
    :cvar adaptive_updates: whether parallel parts of a stream, whose updates may adapt to answers,
        cost the largest of their losses [HSV25, version 4]
    :cvar assumes_finite: whether its theorem assumes finite communication, if there is a loss
    :cvar noise: the noise with which integers are released under it
    :cvar no_group: why nothing is known of neighbours several steps apart, if that is so
    :cvar keywords: of ``oc.loss_of``, with their guards

    :example:

    >>> import opendp_concurrent.measures as measures
    >>> pure = measures.composition_measure(dp.max_divergence())
    >>> pure.composability.value, pure.distance_form
    ('concurrent', 'epsilon')
    >>> isinstance(pure, measures.CompositionMeasure)
    True
    """

    __slots__ = ()
    tag: ClassVar[str] = ""
    zero: ClassVar[Any]
    total: ClassVar[Any]
    reason: ClassVar[str]
    distance_form: ClassVar[str]
    composability: ClassVar[Composability] = Composability.SEQUENTIAL
    one_number: ClassVar[bool] = False
    needs_orders: ClassVar[bool] = False
    most_parallel: ClassVar[int] = 256
    adaptive_updates: ClassVar[bool] = False
    assumes_finite: ClassVar[bool] = False
    noise: ClassVar[native.Noise | None] = None
    no_group: ClassVar[str] = "a bound on its divergence at one distance gives none at twice that"
    keywords: ClassVar[Mapping[str, Callable[..., Any]]] = NOTHING

    @property
    def exclusive_reason(self) -> str | None:
        """Why some children exclude all others; None if all children are concurrent."""
        return None if self.composability is Composability.CONCURRENT else self.reason

    def excludes(self, loss: Callable[[], D]) -> bool:
        """Whether a child excludes all others, where that is not known of any child.

        :param loss: returns its loss
        """
        return True

    def needs_bound(self, loss: D) -> bool:
        """Whether its theorem assumes finite communication of mechanisms with this loss."""
        return self.assumes_finite and bool(loss != self.zero)

    def parameters(self) -> dict[str, float]:
        """Return what ledgers write beside the tag."""
        return {}

    @classmethod
    def of_parameters(cls, **given: float) -> CompositionMeasure[Any]:
        """Inverse of :meth:`parameters`."""
        return singleton(cls, *given.values())

    # --- distances -------------------------------------------------------------------------------

    @abstractmethod
    def validate_budget(self, name: str, value: Argument) -> D:
        """As ``validate``, for a bound that a filter can enforce."""

    @abstractmethod
    def at_most(self, left: D, right: D) -> bool:
        """Whether a distance is at most another, in the partial order of distances."""

    def check(self, loss: Loss, d_out: Loss) -> bool:
        """Whether a loss is at most ``d_out``; both as they come from outside."""
        return self.at_most(self.validate("d_mid", loss), self.validate("d_out", d_out))

    @abstractmethod
    def split(self, d_out: D, weights: list[Fraction]) -> list[D]:
        """Return shares in proportion to the weights, which compose to at most ``d_out``."""

    def search_family(self, d_out: D, delta: float) -> tuple[float, Callable[[float, Fraction], D]]:
        """Return distances of which any two can be compared, for the search for equal shares.

        :param d_out: a bound near which the search starts
        :param delta: probability of failure of each distance, where distances have one
        :return: the number at which the search starts, and a function that returns the distance for
            a fraction of a number, rounded down
        """
        raise InvalidTypeError(
            f"accumulator must add up losses as {self.name} does: shares of a bound are searched "
            "for only where distances are numbers, or pairs of numbers"
        )

    # --- sums ------------------------------------------------------------------------------------

    def sum(self) -> Accumulator:
        """Return the default accumulator of adaptively chosen losses."""
        return Basic()

    def fixed_sum(self) -> Accumulator:
        """Return how losses add up that are fixed up front."""
        return self.sum()

    @abstractmethod
    def join(self, losses: list[list[D]], parts: Sequence[int]) -> D:
        """Return the loss of a parallel composition.

        :param losses: ``losses[j - 1]`` are those of the distinct parts at distance j
        :param parts: how many parts lose each of these
        """

    def group_loss(self, loss: D, size: int) -> D:
        """Return the loss between datasets that are ``size`` steps apart.

        :param loss: of each step
        """
        if size == 1:
            return loss
        raise self._no_group(size)

    def member_loss(self, d_out: D, size: int) -> D:
        """Return a loss of each of ``size`` steps, so that their group loses at most ``d_out``."""
        if size == 1:
            return d_out
        raise self._no_group(size)

    def _no_group(self, size: int) -> UnsupportedMeasureError:
        return UnsupportedMeasureError(
            f"neighbours are {size} steps apart, and under {self.name} no loss of the whole is "
            f"known from the losses of steps: {self.no_group}; use d_in=1 and a metric that counts "
            "added and removed records, or another measure"
        )

    def optimal(self, shares: tuple[D, ...], delta: float) -> D:
        """Return the optimal composition of losses fixed up front, at a δ."""
        raise InvalidTypeError(f"delta is for (epsilon, delta)-DP; output_measure is {self.name}")

    def in_any_order(self, shares: tuple[D, ...]) -> Any:
        """Return the rule and the accumulator of a plan whose shares may be used in any order."""
        raise UnsupportedMeasureError(
            f"order ('any') is for f-DP, but output_measure is {self.name}; leave order "
            "out, or use make_concurrent_filter, which admits launches in any order"
        )

    # --- mechanisms ------------------------------------------------------------------------------

    @property
    def noise_loss(self) -> native.NoiseLoss | None:
        """What a shift of the noise costs, if that is a power of the shift."""
        return None

    def gaussian_scale(self, sensitivity: float, loss: D) -> float | None:
        """Return about the scale at which Gaussian noise loses ``loss``; None if none is known."""
        return None

    @property
    def is_planned(self) -> bool:
        """Whether parameters of mechanisms can be searched for, to fit a bound under it."""
        return self.one_number

    def planned_under(self, d_out: D) -> tuple[CompositionMeasure[Any], Any, float | None]:
        """Return the measure and bound to plan mechanisms under, and the δ of the cast back."""
        return self, d_out, None

    # --- names, events, pictures -----------------------------------------------------------------

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[native.Measure, D]:
        """Return OpenDP's measure and the distance that the ``keywords`` say."""
        measure, loss = native.of_keywords(**given)  # as OpenDP has it
        return measure, loss

    def event(self, dp_event: ModuleType, d_mid: D) -> Any:
        """Return the event of dp-accounting for the worst mechanism with this loss.

        :param dp_event: the module of that name
        """
        nothing = bool(d_mid == self.zero)
        return dp_event.NoOpDpEvent() if nothing else dp_event.UnsupportedDpEvent()

    @classmethod
    @abstractmethod
    def is_loss(cls, value: Argument) -> bool:
        """Whether the value looks like a loss under a measure of this kind."""

    @classmethod
    @abstractmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        """Return the number that a plot draws for a loss, or raise naming the argument ``of``."""

    @classmethod
    def symbol(cls, loss: Loss | None, order: float | None) -> str:
        """Return what :meth:`height` is called on an axis."""
        return "loss" if order is None else f"loss at order {order:g}"


def singleton(cls: type[M], *parameters: float) -> M:
    """Return the one measure of a class with these parameters."""
    found: M = _made(cls, *parameters)
    return found


@lru_cache(maxsize=1024)
def _made(cls: type[Any], *parameters: float) -> Any:
    return cls(*parameters)


class Parametrised(Convertible[D]):
    """A measure with one parameter, which is in its name.

    :cvar parameter: its name
    :cvar guard: of the parameter
    :cvar written: its name in ledgers
    """

    __slots__ = ()
    parameter: ClassVar[str]
    guard: ClassVar[checks.Guard[float]]
    written: ClassVar[str]

    @property
    def name(self) -> str:
        return str(native.Described(self.kind, (getattr(self, self.parameter),), self.parameter))

    @classmethod
    def from_tag(cls, tag: str) -> Any:
        """Return the measure with this name; None if that is of another kind."""
        text = tag.removeprefix(f"{cls.kind}({cls.parameter}=").removesuffix(")")
        try:
            value = float(text)
        except ValueError:
            return None
        described = native.Described(cls.kind, (value,), cls.parameter)
        return cls.of_parameters(**{cls.parameter: value}) if tag == str(described) else None

    def parameters(self) -> dict[str, float]:
        return {self.written: getattr(self, self.parameter)}

    @classmethod
    def of_parameters(cls, **given: float) -> Any:
        return singleton(cls, cls.guard(**given))
