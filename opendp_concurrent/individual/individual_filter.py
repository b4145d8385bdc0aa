r"""The individual filter: noisy sums that charge each person's own budget for their own value.

This is [FZ21] with noise on sums. The proof: let x' be x without the people of a group G of k.

* Whether a person takes part, and their remaining budget, depend only on their own row and on the
  queries so far. So on the same history, the same people outside G take part on x as on x'.
* So the sum of query t differs by the sum of ±v over the people in G who take part. Given the
  history, its release has a divergence of factor (|sum|/s)^power.
* A person who takes part is charged at least factor (|v|/s)^power; others are not in the sum. All
  charges of a person add up to at most d_out. So on every history the divergences of all queries
  add up to at most d_out for k = 1, and to at most k^power d_out for any k (``noise_loss.py``).
* Let ℓ_t be the divergence of query t, a function of the history. The likelihood ratio to the power
  α times exp(-(α-1) Σ ℓ_t) is a supermartingale on x' of mean at most 1. On every history Σ ℓ_t is
  at most B. So the moment is at most exp((α-1) B), which is a divergence of at most B at order α
  [FZ21], [HSTVVXZ23, Theorem 4.6]. For pure DP the ratio itself is at most exp(Σ ℓ_t).

The proof does not need that a person who was left out once stays out. It needs only that a person
is charged for each sum that they are in. So they may take part in a cheaper query later.
"""

from __future__ import annotations

from math import ldexp
from typing import Any

from numpy.typing import NDArray
from opendp.mod import Domain, Measure, Metric

from ..combinators.constructor import constructor
from ..combinators.interactive_measurement import make_measurement
from ..errors import InvalidTypeError
from ..native import opendp as _native
from ..queryables.data import Sealed
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.session import validate_d_in
from ..types import Distance, Query
from .bank import Bank
from .integer_noise import IntegerNoise
from .noise_loss import NoiseLoss, noise_loss
from .noisy_sum import NoisySum
from .price import Price, individual_budget
from .rows import check_people, open_rows, values_of


class _IndividualFilter:
    """State machine of the filter: the rows, and the remaining budget of each."""

    def __init__(self, rows: NDArray[Any], loss: NoiseLoss, d_out: float) -> None:
        self._rows, self._loss, self._d_out = rows, loss, d_out
        self._bank = Bank(len(rows))

    def check(self, query: Query) -> tuple[NoisySum, Price]:
        """Return a copy of the query, checked again, and its price, or raise."""
        if not isinstance(query, NoisySum):
            raise InvalidTypeError(f"the query must be a NoisySum, found {type(query).__name__}")
        query = NoisySum(query.per_row, query.bound, query.scale)
        return query, Price.of(query, self._loss, self._d_out)

    def __call__(self, query: Query) -> float:
        query, price = self.check(query)
        noise = IntegerNoise(self._loss, price.scale)
        total = self._bank.charge(values_of(self._rows, query.per_row), price)
        return ldexp(float(noise.add(total)), price.exponent)


@constructor
def make_individual_filter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_out: float,
) -> ConcurrentMeasurement:
    """Release noisy sums, where each person has a budget of their own.

    The returned measurement spawns a queryable that takes any number of queries, each a
    :class:`.NoisySum`. A query charges each person the loss of their own number, which for most
    people is far below the loss of ``bound``. A person whose remaining budget is too small is left
    out of the sum and is not charged; a cheaper query may include them again. So sums are biased
    once people drop out. Who dropped out, how many, and each remaining budget are secret. To
    estimate how many people can pay for a query of value 1, query the sum of 1 for each row.

    All privacy is charged at launch, whatever the queries. Each query charges people first; then
    OpenDP draws its noise on integers: Laplace for pure DP, Gaussian for zCDP and Rényi DP.

    Guarantee: a person loses at most ``d_out``. A group of k people loses at most k ``d_out`` for
    pure DP, and at most k² ``d_out`` for zCDP and Rényi DP [FZ21]. The proof is in
    ``individual/individual_filter.py`` and ``noise_loss.py``. It assumes the promise about
    ``per_row`` in :class:`.NoisySum`. Charges are exact, rounded up to 2^-52 of the budget.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: NumPy arrays such as ``dp.numpy.array2_domain``, or vectors, with one row
        per person
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
    check_people(input_domain, input_metric)
    loss, budget = noise_loss(output_measure), individual_budget(output_measure, d_out)

    def spawn(token: Sealed) -> MachineQueryable:
        rows = open_rows(token, input_domain)
        return MachineQueryable(_IndividualFilter(rows, loss, budget), "IndividualFilter")

    def privacy_map(d_in: Distance) -> float:
        return loss.of_group(validate_d_in(input_metric, d_in), budget)

    return make_measurement(
        (input_domain, input_metric),
        output_measure,
        spawn,
        privacy_map,
        f"IndividualFilter({output_measure}, d_out={budget})",
    )


then_individual_filter = _native.to_then(make_individual_filter)
