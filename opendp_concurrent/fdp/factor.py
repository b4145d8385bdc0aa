"""The factors of a product: Gaussian and Laplace noise, also subsampled; finite pairs.

A factor is a pair of distributions (P, Q), known by its loss L = ln P/Q. It is frozen and hashable,
and has

* ``infinite``: P-probability that the loss is infinite; it may be too large by ``slack``, and by
  the relative ``mass_error`` of the masses that it is a sum of;
* ``largest_loss``: largest finite loss, rounded up; infinite if the finite losses have no bound;
* ``largest_loss_lower``: the same, rounded down; a finite pair has its losses instead;
* ``variance`` of the loss, approximately: a scale, not a bound;
* ``symmetric``: whether the pair is known to equal ``swapped()``, which is the pair (Q, P);
* ``gaussian``: μ of a Gaussian pair that is known to lose at least as much; infinite if none is;
* ``unit``: "removed" or "added" if the pair bounds only neighbours where the second or the first
  dataset lacks the unit; else empty;
* ``stands_for``: what the pair bounds from above only; empty if it is known from both sides;
* ``profile(epsilon)``: δ at each real ε;
* ``log_mgf(tau)``: the logarithm of E_P[e^(τL); L finite] for real τ, about.

A factor that is not sampled can be inverted, and has

* ``mgf_error(tau)``: a bound on the error of ``log_mgf(tau)``;
* ``transform(tau, step, nodes)``: the characteristic function on τ + iω at ω = 0, step, ...,
  (nodes - 1) step;
* ``log_decay(tau, omega)``: logarithm of a bound on the absolute value of the characteristic
  function at all frequencies from ω on; 0 if none is known.
"""

from __future__ import annotations

from typing import TypeAlias, Union

from .finite import Finite
from .gaussian import Gaussian
from .laplace import Laplace
from .subsampled import Subsampled

Invertible: TypeAlias = Union[Finite, Gaussian, Laplace]  # noqa: UP007 (evaluated on Python 3.10)
Factor: TypeAlias = Union[Invertible, Subsampled]  # noqa: UP007


def rank(factor: Factor) -> str:
    """A text by which factors have one order, in every process."""
    return factor.digest if isinstance(factor, Finite) else repr(factor)
