"""Interactive and one-shot mechanisms: they draw all noise from OpenDP.

* ``sparse_vector.py``, ``guess_and_check.py``, ``linear_answers.py``, ``histogram.py`` and
  ``marginals.py`` answer queries.
* ``certified.py`` has OpenDP's noise with a certified bound under any measure; ``keys.py`` finds
  keys; ``selection.py`` selects privately; ``individual.py`` charges each row what it has lost.
* ``noise.py`` and ``queries.py`` have what they share.
"""

from .certified import (
    composed,
    laplace_losses,
    make_certified_gaussian,
    make_certified_geometric,
    make_certified_laplace,
    make_certified_randomized_response,
    make_certified_randomized_response_bool,
    then_certified_gaussian,
    then_certified_geometric,
    then_certified_laplace,
)
from .guess_and_check import (
    make_guess_and_check,
    make_private_multiplicative_weights,
    then_guess_and_check,
    then_private_multiplicative_weights,
)
from .individual import NoisySum, individual_scale, make_individual_filter, then_individual_filter
from .keys import MOST_KEYS, Counts, TruncatedGeometric, key_noise
from .linear_answers import LinearAnswers, make_projected_queries, then_projected_queries
from .marginals import make_marginals, then_marginals
from .noise import (
    ATOM,
    FINEST,
    UP,
    IntegerDraws,
    OneSidedNoise,
    Steps,
    atom_type,
    built,
    certify,
    is_vector,
    known_size,
    laplace_accuracy,
)
from .queries import Deviation, make_frame_count, stable_frame, then_frame_count
from .selection import make_private_selection
from .sparse_vector import (
    ABOVE,
    BELOW,
    EXHAUSTED,
    NoisyComparison,
    Outcome,
    SparseVectorAnswer,
    SparseVectorNoise,
    least_cost,
    make_above_threshold,
    make_sparse_vector,
    reads_curves,
    sparse_vector_accuracy,
    then_above_threshold,
    then_sparse_vector,
)

__all__ = ["individual_scale", "sparse_vector_accuracy"]
