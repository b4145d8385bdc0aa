"""Trade-off functions: exact families, certified composition, and the order between them.

The functions take and return numbers and arrays. They use no data and nothing of OpenDP. For a
pair of distributions (P, Q) and the loss L = ln P/Q, the profile is δ(ε) = E_P[(1 - e^(ε-L))₊],
for every real ε. Read ``function.py`` first: it has the public class.

* Factors of a product: ``exact.py`` has Gaussian noise; ``noise.py`` Laplace and sampled noise;
  ``finite.py`` finite pairs, also of discrete Gaussians and of given trade-off functions.
* Bounds on the profile of a product: ``inversion.py`` by Fourier inversion, ``exact.py`` by sums if
  there are few losses, ``sandwich.py`` with rare losses. ``product.py`` chooses among them.
* ``bounds.py`` has pairs of doubles that enclose an exact value, and the search in a profile.
* ``order.py`` turns a profile into f(α), compares functions, counts units and computes residuals;
  ``shapes.py`` makes functions from others.
* ``session.py`` keeps both directions of neighbours apart, bounds a mechanism of which a profile is
  known, and finds noise; ``exchange.py`` says what ledgers keep, and exchanges events with
  dp-accounting, which ``reading.py`` reads.
"""

from .bounds import UNIT, Array
from .exchange import Accountant, from_dp_event, function_event, to_dp_event
from .function import TradeoffFunction, check_both, check_function
from .session import (
    SELECTIONS,
    Session,
    optimal_composition,
    profile_to_tradeoff,
    smallest_sigma,
    zcdp_to_tradeoff,
)

__all__ = [
    "Accountant",
    "Session",
    "TradeoffFunction",
    "from_dp_event",
    "optimal_composition",
    "smallest_sigma",
    "to_dp_event",
]
