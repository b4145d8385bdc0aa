r"""Individual budgets: each person pays for what they add to a sum, until they cannot.

[FZ21] with noise on sums. Why it is valid: let x' be x without the people of a group G of k.

* Whether a person takes part, and what is left to them, depends on their own row and on the
  queries so far. So on the same history everybody outside of G takes part, or not, on x as on x';
* so the sum of query t differs by the sum over G of ±v, of those in G who take part. Its release
  has a divergence of factor (|sum|/s)^power, given the history;
* a person who takes part pays at least factor (|v|/s)^power, and others are not in the sum; all
  that a person pays is at most d_out. So for k = 1, on every history, the divergences of all
  queries add up to at most d_out, and for k to k^power d_out (``noise_loss.py``);
* with ℓ_t the divergence of query t, a function of the history, the likelihood ratio to the power α
  times exp(-(α-1) Σ ℓ_t) is a supermartingale on x' of mean at most 1, and on every history
  Σ ℓ_t is at most B: the moment is at most exp((α-1) B), which is a divergence of at most B at the
  order α [FZ21], [HSTVVXZ23, Theorem 4.6]. For pure DP the ratio itself is at most exp(Σ ℓ_t).

Nothing here asks that a person who once was left out stays out: what counts is that they are in no
sum that they did not pay for. So they may take part in a cheaper query later.
"""

from __future__ import annotations

from math import ldexp
from typing import Any

from numpy.typing import NDArray
from opendp.domains import atom_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import absolute_distance
from opendp.mod import Domain, Measure, Metric, assert_features

from ..combinators.guards import check_space
from ..combinators.interactive_measurement import make_measurement
from ..errors import InvalidTypeError
from ..native import opendp as _native
from ..queryables.data import Sealed
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.session import validate_d_in
from .bank import Bank
from .noise_loss import NoiseLoss, noise_loss
from .noisy_sum import NoisySum
from .price import Price, individual_budget
from .rows import check_people, open_rows, values_of

ATOM = "i64"
LARGEST_SUM = 2**62


class _IndividualFilter:
    """The state machine: rows, and what is left to each."""

    __slots__ = ("_bank", "_d_out", "_loss", "_rows")

    def __init__(self, rows: NDArray[Any], loss: NoiseLoss, d_out: float) -> None:
        self._rows, self._loss, self._d_out = rows, loss, d_out
        self._bank = Bank(len(rows))

    def __call__(self, query: Any) -> float:
        if not isinstance(query, NoisySum):
            raise InvalidTypeError(f"the query must be a NoisySum, found {type(query).__name__}")
        query = NoisySum(query.per_row, query.bound, query.scale)  # as it is now, and checked
        price = Price.of(query, self._loss, self._d_out)
        release = _release(self._loss, price.scale)
        total = self._bank.charge(values_of(self._rows, query.per_row), price)
        clamped = max(-LARGEST_SUM, min(LARGEST_SUM, total))  # of 2^32 people or more
        noisy = _native.invoke(release, _native.to_pointer(clamped, ATOM))
        return ldexp(float(noisy), price.exponent)


def _release(loss: NoiseLoss, scale: float) -> Any:
    """Noise on an integer, drawn by OpenDP; where it saturates it is clamped, a postprocessing."""
    make = make_laplace if loss.is_laplace else make_gaussian
    return make(atom_domain(T=ATOM), absolute_distance(T=ATOM), scale)


def make_individual_filter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_out: float,
) -> ConcurrentMeasurement:
    """Release noisy sums, where each person has a budget of their own.

    The returned measurement spawns a queryable that takes any number of queries, each a
    :class:`.NoisySum`. A query charges every person the loss of their own number, which for most is
    far below that of ``bound``. Who has too little left is left out of that sum, and pays nothing
    for it; a cheaper query may have them again. So sums are biased once people drop out. Who they
    are, how many they are, and what is left to anybody, is secret: to hear about it, ask for a sum.
    To know how many could pay for a query of value 1, sum 1 for each row.

    All privacy is paid at launch, whatever is asked. Each query charges first, and then draws its
    noise: Laplace for pure DP, Gaussian for zCDP and Rényi DP, OpenDP's, on integers.

    Guarantee: no person loses more than ``d_out``, a group of k no more than k ``d_out`` for pure
    DP, and k² ``d_out`` for zCDP and Rényi DP [FZ21]; proved in
    ``individual/individual_filter.py`` and ``noise_loss.py``. It assumes what :class:`.NoisySum`
    promises of ``per_row``. Charges are exact, and rounded up to 2^-52 of the budget.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: NumPy arrays such as ``dp.numpy.array2_domain``, or vectors; a row for each
        person
    :param input_metric: symmetric or insert-delete distance: people are added or removed
    :param output_measure: pure DP, zero-concentrated DP, or Rényi DP of a fixed order
    :param d_out: budget of each person
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for other measures; use :func:`.cast` on what is returned

    :example:

    >>> import numpy as np
    >>> space = dp.numpy.array2_domain(T=float, num_columns=2), dp.symmetric_distance()
    >>> measurement = oc.m.make_individual_filter(
    ...     *space, dp.zero_concentrated_divergence(), d_out=0.5
    ... )
    >>> measurement.map(1), measurement.map(2)
    (0.5, 2.0)
    >>> queryable = measurement(np.tile([[1.0, 20.0]], (10_000, 1)))
    >>> visits = oc.m.NoisySum(lambda rows: rows[:, 0], bound=100.0, scale=100.0)
    >>> round(queryable(visits), -4)
    10000.0
    """
    assert_features("contrib", "honest-but-curious")
    check_space(input_domain, input_metric)
    check_people(input_domain, input_metric)
    loss, budget = noise_loss(output_measure), individual_budget(output_measure, d_out)

    def spawn(token: Sealed) -> MachineQueryable:
        rows = open_rows(token, input_domain)
        return MachineQueryable(_IndividualFilter(rows, loss, budget), "IndividualFilter")

    def privacy_map(d_in: Any) -> float:
        return loss.of_group(validate_d_in(input_metric, d_in), budget)

    return make_measurement(
        (input_domain, input_metric),
        output_measure,
        spawn,
        privacy_map,
        f"IndividualFilter({output_measure}, d_out={budget})",
    )


then_individual_filter = _native.to_then(make_individual_filter)
