"""What a product of trade-off functions needs to know of each factor."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple, Protocol

from .bounds import Array, Bounds, ComplexArray


class Transform(NamedTuple):
    """A characteristic function at the nodes of a contour, in units of its value at ω = 0.

    :ivar values: E_P[e^((τ+iω)L)] / E_P[e^(τL)]
    :ivar error: bound on the error of each value
    :ivar dilation: s² if the loss was dilated to a lattice, by less than a Gaussian of μ = s does
    """

    values: ComplexArray
    error: float
    dilation: float = 0.0


class Factor(Protocol):
    """A pair of distributions (P, Q), known by its loss L = ln P/Q. Frozen and hashable."""

    @property
    def infinite(self) -> float:
        """P-probability that the loss is infinite."""

    @property
    def mass_error(self) -> float:
        """Bound on the relative error of the masses that ``infinite`` is a sum of."""

    @property
    def slack(self) -> float:
        """Bound on how much too large ``infinite`` is."""

    @property
    def largest_loss(self) -> float:
        """Largest finite loss, rounded up; infinite if the finite losses have no bound."""

    @property
    def variance(self) -> float:
        """Variance of the loss, approximately: a scale, not a bound."""

    @property
    def horizon(self) -> float:
        """Largest frequency at which :meth:`log_decay` holds."""

    @property
    def symmetric(self) -> bool:
        """Whether the swapped pair is known to be the same."""

    @property
    def gaussian(self) -> float:
        """μ of a Gaussian pair that is known to lose at least as much; infinite if none is."""

    @property
    def stands_for(self) -> str:
        """What the pair bounds from above only; empty if the pair is known from both sides."""

    def log_mgf(self, tau: Array) -> Array:
        """The logarithm of E_P[e^(τL); L finite] for real τ, up to :meth:`mgf_error`."""

    def mgf_error(self, tau: Any) -> Any:
        """Bound on the error of :meth:`log_mgf` at ``tau``."""

    def transform(self, tau: float, step: float, nodes: int) -> Transform:
        """Characteristic function on τ + iω at ω = 0, step, ..., (nodes - 1) step."""

    def log_decay(self, tau: float, omega: Array) -> Array:
        """Logarithm of a bound on |values| at all frequencies from ω to the horizon."""

    def profile(self, epsilon: Array) -> Bounds:
        """δ at each real ε."""

    def swapped(self) -> Factor:
        """The pair (Q, P)."""


class NoiseFactor:
    """What Gaussian and Laplace noise have in common: a symmetric pair without infinite losses."""

    infinite = mass_error = slack = 0.0
    symmetric = True
    gaussian = inf
    stands_for = ""

    def swapped(self) -> Any:
        """The pair (Q, P), which is the same."""
        return self
