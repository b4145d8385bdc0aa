"""f-DP: the distance is a trade-off function, and smaller is above it everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType, ModuleType
from typing import Any

from ..arguments.provenance import recorded
from ..errors import InvalidValueError, UnsupportedMeasureError
from ..exact.doubles import split_squares
from ..fdp.function import TradeoffFunction, check_both, check_function
from ..fdp.writing import function_event
from ..measures.conversion import Conversion, Profile
from ..measures.groups import divided_down
from ..measures.kinds import APPROXIMATE, GAUSSIAN, PROFILE, TRADEOFF
from ..measures.measure import Composability, CompositionMeasure, only
from ..measures.opendp import Measure, descriptor, user_divergence
from ..references import cite
from ..sums.accumulator import Accounting, Accumulator
from ..types import Argument, Json, Loss
from .conversions import TO_TRADEOFF
from .gaussian_to_approximate import gaussian_to_delta, gaussian_to_epsilon
from .joins import join_tradeoffs
from .product import Products
from .slots import AnyOrder, Slots

_DRAWN_AT = 1e-6  # the δ at which a plot reads a function


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class Tradeoff:
    """Descriptor: what makes two of these measures equal."""


@recorded
def tradeoff() -> Measure:
    """f-DP; the distance is a :class:`.TradeoffFunction`.

    Telling neighbours apart is at least as hard as f says [DRS22, Definition 2.3], for all ordered
    pairs of neighbours. Losses that are fixed up front compose to their tensor product, also for
    concurrent children [VZ23], under finite communication. For losses that are chosen
    on the way that is *not* so: see :func:`.ladder` and :func:`.residue`. A function with a
    ``direction``, as of sampled noise, is refused: pass its ``both_directions()``.

    Required features: `honest-but-curious`

    :return: a measure, whose distances are trade-off functions

    :example:

    >>> oc.tradeoff()
    Tradeoff
    """
    return user_divergence(TRADEOFF, Tradeoff())


def _split(d_out: TradeoffFunction, weights: list[Fraction]) -> list[Any]:
    """Shares of a power of one function, or of a Gaussian; others are not divisible."""
    whole = sum(weights)
    shares = [d_out.root(weight / whole) for weight in weights]
    if all(share is not None for share in shares):
        return shares
    if d_out.mu is not None:
        return [TradeoffFunction.gaussian(mu) for mu in split_squares(d_out.mu_down, weights)]
    raise InvalidValueError(
        f"d_out ({d_out}) cannot be split in these proportions: "
        "pass a Gaussian trade-off function, or a power that the number of shares divides"
    )


def _epsilon(function: TradeoffFunction, delta: float) -> float:
    """ε at ``delta``: to the last digit for Gaussians, else a certified upper bound."""
    if function.mu is not None:
        return gaussian_to_epsilon(function.mu, delta)
    return function.epsilon(delta)


def _delta(function: TradeoffFunction, epsilon: float) -> float:
    """δ at ``epsilon``, likewise."""
    if function.mu is not None:
        return gaussian_to_delta(function.mu, epsilon)
    return float(function.delta(epsilon))


@dataclass(frozen=True, slots=True)
class TradeoffDivergence(CompositionMeasure):
    """f-DP: losses that are fixed up front multiply, others need an accumulator of their own."""

    kind = TRADEOFF
    tag = "fdp"
    zero = TradeoffFunction.identity()
    composability = Composability.CONCURRENT
    reason = f"{cite('VZ23')}, under finite communication"
    distance_form = "TradeoffFunction"
    most_parallel = 4
    keywords = MappingProxyType({"tradeoff": check_both})
    why_not = "its loss may be unbounded; read it as (epsilon, delta), or as Gaussian DP"
    conversions_from = TO_TRADEOFF
    conversions_to = MappingProxyType(
        {
            APPROXIMATE: Conversion(
                lambda d, ends: (_epsilon(d, ends.at_delta), ends.at_delta), needs_delta=True
            ),
            PROFILE: Conversion(lambda d, ends: Profile(lambda e: _delta(d, e))),
            GAUSSIAN: Conversion(lambda d, ends: d.gaussian_bound),
        }
    )

    def opendp(self) -> Measure:
        return tradeoff()

    @classmethod
    def find(cls, output_measure: Measure) -> TradeoffDivergence | None:
        return only(cls) if type(descriptor(output_measure)) is Tradeoff else None

    def validate(self, name: str, value: Argument) -> TradeoffFunction:
        """Return a trade-off function that bounds both directions of neighbours, or raise."""
        return check_both(**{name: value})

    def validate_budget(self, name: str, value: Argument) -> TradeoffFunction:
        """Return a trade-off function that bounds anything, or raise."""
        function = self.validate(name, value)
        if function == TradeoffFunction.worst():
            raise InvalidValueError(
                f"{name} ({value}) must bound the loss; TradeoffFunction.worst() bounds nothing"
            )
        if function.upper_only:
            raise InvalidValueError(
                f"{name} ({value}) must be exact, and this function is only an upper bound; "
                "pass from_profile() at some of its points, or another function"
            )
        return function

    def at_most(self, left: TradeoffFunction, right: TradeoffFunction) -> bool:
        """Whether the order of functions is shown."""
        return left <= right

    def group_loss(self, loss: TradeoffFunction, size: int) -> TradeoffFunction:
        """1 - (1 - f)^(∘k) [DRS22, Theorem 2.14]."""
        return loss.group(size)

    def member_loss(self, d_out: TradeoffFunction, size: int) -> TradeoffFunction:
        """The same, backwards, for Gaussians only."""
        if size == 1:
            return d_out
        if d_out.mu is None:
            raise self._no_group(size)
        return TradeoffFunction.gaussian(divided_down(d_out.mu_down, size))

    def split(self, d_out: TradeoffFunction, weights: list[Fraction]) -> list[Any]:
        """Shares of a power of one function, or of a Gaussian."""
        return _split(d_out, weights)

    def sum(self) -> Accounting:
        """Refuse: the product bounds nothing then."""
        raise UnsupportedMeasureError(
            "accumulator must be oc.accumulators.ladder(unit) or "
            "oc.accumulators.residue(mu) under Tradeoff: the product of adaptively chosen "
            "trade-off functions is not a bound [RHLMTL26], [TKRH26]; docs/refused.rst has "
            "analysts who exceed it. Gaussian DP has an odometer of its own: "
            "oc.gaussian_tradeoff()"
        )

    def fixed_sum(self) -> Accounting:
        return Products()

    def empty(self) -> Accumulator:
        """Refuse, as ``sum`` does."""
        return self.sum().start(self)

    def read_sum(self, record: Json) -> Accumulator:
        """Refuse, as ``sum`` does."""
        return self.sum().from_record(self, record)

    def in_any_order(self, shares: tuple[Any, ...]) -> tuple[AnyOrder, Slots]:
        return AnyOrder(), Slots.of(shares)

    def join(self, losses: list[list[TradeoffFunction]], parts: Sequence[int]) -> TradeoffFunction:
        """A function that is below all products."""
        return join_tradeoffs(losses, parts)

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[Measure, Any]:
        return tradeoff(), given["tradeoff"]

    def event(self, dp_event: ModuleType, d_mid: TradeoffFunction) -> Any:
        return function_event(dp_event, d_mid)

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return isinstance(value, TradeoffFunction)

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        """The ε at δ = 1e-6."""
        del order
        return check_function(**{of: loss}).epsilon(_DRAWN_AT)

    @classmethod
    def symbol(cls, loss: Loss, order: float | None) -> str:
        del loss, order
        return f"ε at δ = {_DRAWN_AT:g}"


TRADEOFF_DIVERGENCE = only(TradeoffDivergence)
