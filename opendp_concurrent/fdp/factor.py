"""What a product of trade-off functions needs to know of each factor."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from .bounds import Array, Bounds, ComplexArray


class Transform(NamedTuple):
    """A characteristic function at the nodes of a contour, in units of its value at 0.

    :ivar values: E_P[e^((τ+iω)L)] / E_P[e^(τL)]
    :ivar error: bound on the error of each value
    :ivar variance: s² if the loss was dilated to a lattice by less than a Gaussian of μ = s does
    """

    values: ComplexArray
    error: float
    variance: float = 0.0


class Factor(Protocol):
    """A pair of distributions (P, Q), known by its loss L = ln P/Q. Frozen and hashable."""

    @property
    def infinite(self) -> float:
        """P-probability that the loss is infinite."""

    @property
    def most(self) -> float:
        """Largest finite loss, rounded up; infinite if there is none."""

    @property
    def spread(self) -> float:
        """Variance of the loss, about; a scale, not a bound."""

    @property
    def horizon(self) -> float:
        """Frequency up to which :meth:`log_decay` holds."""

    def log_mgf(self, tau: Array) -> Array:
        """The logarithm of E_P[e^(τL); L finite] for real τ, up to :meth:`mgf_error`."""

    def mgf_error(self, tau: Any) -> Any:
        """Bound on the error of :meth:`log_mgf` at ``tau``."""

    def transform(self, tau: float, step: float, nodes: int) -> Transform:
        """Characteristic function on τ + iω at ω = 0, step, ..., (nodes - 1) step."""

    def log_decay(self, tau: float, omega: Array) -> Array:
        """Logarithm of a bound on |values| for all frequencies from ω to the horizon."""

    def profile(self, epsilon: Array) -> Bounds:
        """δ at each real ε."""

    def swapped(self) -> Factor:
        """The pair (Q, P)."""
