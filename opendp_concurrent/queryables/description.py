"""What a launch would return and cost: a description, made without a launch."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import RefusalError
from ..types import Distance, Loss


@dataclass(frozen=True, slots=True)
class Description:
    """A launch as it would be now. It was not run, and nothing was charged.

    :ivar mechanism: constructors and their numbers, such as ``count >> laplace(scale=2.0)``
    :ivar interactive: whether it returns a queryable, not a release; None if that is not known,
        as for a measurement written in Python
    :ivar d_in: distance between neighbouring inputs that ``loss`` is for
    :ivar loss: privacy loss at ``d_in``, under the measure of the handle; None for an odometer,
        which costs nothing itself
    :ivar refusal: why a launch would be refused now; None if it would be admitted

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> root = (space >> oc.then_concurrent_odometer(dp.max_divergence()))([1, 2, 3])
    >>> root.describe(space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0), d_in=1)
    Description(mechanism='count >> laplace(scale=4.0)', interactive=False, d_in=1,
    loss=0.25, refusal=None)
    """

    mechanism: str
    interactive: bool | None
    d_in: Distance
    loss: Loss
    refusal: RefusalError | None

    @property
    def admitted(self) -> bool:
        """Whether a launch would be admitted now."""
        return self.refusal is None
