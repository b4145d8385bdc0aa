"""Trade-off functions: exact families, certified composition, and the order between them.

Numbers and arrays in, numbers and arrays out: no data, no OpenDP. With a pair of distributions
(P, Q) and the loss L = ln P/Q, the profile is δ(ε) = E_P[(1 - e^(ε-L))₊], for every real ε.

* ``factor.py``: what a product needs to know of a factor; ``gaussian.py``, ``laplace.py`` and
  ``finite.py`` are factors, and ``subsampled.py`` is subsampled noise, with its quadrature in
  ``quadrature.py`` and the decay of its characteristic function in ``decay.py``;
  ``discrete_gaussian.py``, ``vertices.py`` and ``densities.py`` make finite ones.
* ``contour.py`` and ``inversion.py``: the profile of a product, by Fourier inversion, between two
  bounds; ``atoms.py``: the same exactly, where the losses are few, of equal factors by
  ``repeated.py`` and ``binomial.py``; ``bounds.py``: two doubles around an exact value.
* ``product.py`` puts them together; ``search.py`` and ``curve.py`` turn a profile into ε and f(α);
  ``coarse.py`` finds a product that is quicker to ask and loses at least as much.
* ``order.py`` compares; ``powers.py`` counts units; ``residue.py`` is the residual of a Gaussian
  budget; ``shapes.py`` makes functions of others; ``function.py`` is the class that users see, and
  ``arguments.py`` its guards; ``session.py`` keeps both directions of neighbours apart.
"""

from .function import TradeoffFunction
from .optimal_composition import optimal_composition
from .session import Session

__all__ = [
    "Session",
    "TradeoffFunction",
    "optimal_composition",
]
