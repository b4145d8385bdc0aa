"""Trade-off functions: exact families, certified composition, and the order between them.

The functions take and return numbers and arrays. They use no data and nothing of OpenDP. For a
pair of distributions (P, Q) and the loss L = ln P/Q, the profile is δ(ε) = E_P[(1 - e^(ε-L))₊],
for every real ε.

* ``factor.py`` has the protocol of a factor of a product. ``gaussian.py``, ``laplace.py``,
  ``finite.py`` and ``subsampled.py`` have the factors. ``discrete_gaussian.py`` and ``vertices.py``
  make finite factors. ``theta.py`` has formulas for discrete Gaussians.
* ``cells.py`` and ``sandwich.py`` bound the profile of a product with sampled noise.
* ``contour.py`` and ``inversion.py`` bound the profile of a product by Fourier inversion,
  ``atoms.py`` computes it exactly if there are few losses; for equal factors ``repeated.py``
  does. ``bounds.py`` has pairs of doubles that enclose an exact value.
* ``product.py`` chooses among these methods. ``search.py`` and ``curve.py`` turn a profile into ε
  and f(α). ``coarse.py`` finds a product that is faster to evaluate and has at least the same loss.
* ``order.py`` compares functions, ``powers.py`` counts units, and ``residue.py`` computes the
  residual of a Gaussian budget. ``shapes.py`` makes functions from others. ``function.py`` has the
  public class, and ``arguments.py`` its guards. ``session.py`` keeps both directions of neighbours
  apart, and ``calibration.py`` finds the noise that a target needs.
* ``concentrated.py`` bounds a mechanism of which a privacy profile is known. ``reading.py`` reads
  events of dp-accounting, ``writing.py`` writes them, ``events.py`` has both as public functions,
  and ``accountant.py`` adds them up.
"""

from . import records as _records  # noqa: F401 # what ledgers keep
from .accountant import Accountant
from .calibration import smallest_sigma
from .events import from_dp_event, to_dp_event
from .function import TradeoffFunction
from .optimal_composition import optimal_composition
from .session import Session

__all__ = [
    "Accountant",
    "Session",
    "TradeoffFunction",
    "from_dp_event",
    "optimal_composition",
    "smallest_sigma",
    "to_dp_event",
]
