"""The number of rows of a plan on a LazyFrame, with the stability that OpenDP certifies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opendp.domains import atom_domain
from opendp.extras.polars import dp_len, pl
from opendp.measurements import make_private_lazyframe
from opendp.measures import max_divergence
from opendp.metrics import (
    absolute_distance,
    frame_distance,
    insert_delete_distance,
    symmetric_distance,
)
from opendp.mod import (
    ChangeOneIdDistance,
    Domain,
    FrameDistance,
    LazyFrameDomain,
    Metric,
    OpenDPException,
    SymmetricIdDistance,
    Transformation,
)
from opendp.transformations import make_stable_lazyframe

from ..combinators.constructor import constructor
from ..errors import InvalidTypeError, InvalidValueError
from ..native import opendp as _native
from ..queryables.opaque import hidden
from ..types import Answer

_ATOM = "i64"


@constructor
def make_frame_count(input_domain: Domain, input_metric: Metric, lazyframe: Any) -> Transformation:
    """Count the rows of a plan on a LazyFrame.

    The plan keeps, drops or changes rows: ``filter``, ``with_columns``, ``truncate_per_group`` of
    a query. It does not aggregate. Data in the plan are ignored: begin it with an empty frame, or
    with a query of a context, where ``query.filter(...).frame_count()`` is this constructor.

    Guarantee: if a plan maps neighbours to frames of which at most k rows differ, their numbers of
    rows differ by at most k. k is what the stability map of OpenDP's
    :func:`~opendp.transformations.make_stable_lazyframe` says, whose proofs this relies on. The
    answer is a query for :func:`.make_sparse_vector` and :func:`.make_guess_and_check`, and can be
    chained with noise, such as ``dp.m.then_laplace``.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a domain of LazyFrames
    :param input_metric: a metric on LazyFrames. If the unit is an identifier with any number of
        rows, the plan must truncate
    :param lazyframe: the plan, a LazyFrame
    :return: a transformation to an integer, under the absolute distance
    :raises InvalidTypeError: if the domain or the plan is not of LazyFrames
    :raises InvalidValueError: if OpenDP certifies no stability of the plan, or no number of rows

    :example:

    >>> import polars as pl
    >>> frame = pl.LazyFrame({"age": [20, 40, 60]})
    >>> space = dp.domain_of(frame, infer=True), dp.symmetric_distance()
    >>> plan = pl.LazyFrame(schema={"age": pl.Int64}).filter(pl.col("age") > 30)
    >>> older = oc.t.make_frame_count(*space, plan)
    >>> older.map(2), older(frame)
    (2, 2)
    """
    stable = stable_frame(input_domain, input_metric, lazyframe)
    # the record of what is made here has no plan, so its stability is checked here
    _native.refuse(stable)
    unit = stable.output_metric
    if all(unit != frame_distance(one()) for one in (symmetric_distance, insert_delete_distance)):
        raise InvalidValueError(
            f"lazyframe must have a bound on the rows of one individual, and its rows are at "
            f"{unit}; truncate first, with query.truncate_per_group(k) of a context"
        )
    count = _native.make_user_transformation(
        stable.output_domain,
        unit,
        atom_domain(T=_ATOM),
        absolute_distance(T=_ATOM),
        _native.carry(_rows),
        _native.carry(rows_that_differ),
    )
    made: Transformation = stable >> count
    _remember(made, input_domain, input_metric, lazyframe)
    return made


def stable_frame(input_domain: Domain, input_metric: Metric, lazyframe: Any) -> Transformation:
    """Return OpenDP's stable transformation of a plan, or raise with OpenDP's reason."""
    if not isinstance(input_domain, LazyFrameDomain) or pl is None:
        raise InvalidTypeError(
            f"input_domain ({input_domain}) must be a domain of LazyFrames; "
            "for vectors of records, use dp.t.then_count"
        )
    if not isinstance(lazyframe, pl.LazyFrame):
        raise InvalidTypeError(
            f"lazyframe must be a plan, a Polars LazyFrame, found {type(lazyframe).__name__}"
        )
    unit = input_metric.inner_metric if isinstance(input_metric, FrameDistance) else input_metric
    by_identifier = isinstance(unit, (SymmetricIdDistance, ChangeOneIdDistance))
    outputs = ["FrameDistance<SymmetricDistance>", "MI"] if by_identifier else ["MI"]
    refusals = []
    for output in outputs:  # with an identifier, to rows if the plan truncates
        try:
            stable: Transformation = make_stable_lazyframe(
                input_domain, input_metric, lazyframe, MO=output
            )
            return stable
        except OpenDPException as error:
            refusals.append(error)
    reason = str(refusals[-1]).strip()
    raise InvalidValueError(
        "lazyframe must be a plan whose stability OpenDP certifies, of row-by-row steps such as "
        f"filter and with_columns: {reason}"
    ) from refusals[-1]


def rows_that_differ(bounds: Sequence[Any]) -> int:
    """Return how many rows differ at most between two frames at these bounds, or raise.

    Each bound holds by itself: the rows of at most ``num_groups`` groups differ, by at most
    ``per_group`` rows in each. Without keys there is one group.
    """
    known = [
        bound.per_group * (bound.num_groups if bound.by else 1)
        for bound in bounds
        if bound.per_group is not None and (not bound.by or bound.num_groups is not None)
    ]
    if not known:
        raise InvalidValueError(
            "d_in must bound the number of rows: pass dp.polars.Bound(per_group=...), or bounds "
            "with both per_group and num_groups"
        )
    fewest: int = min(known)
    return fewest


def _rows(frame: Any) -> int:
    return _told(lambda: frame.select(pl.len()))


def _told(rows: Callable[[], Any]) -> int:
    """Return the one cell of a frame. An error of Polars may show rows, so the log has it."""
    what = "the rows of a plan could not be counted"
    return int(hidden(lambda: rows().collect().item(), what=what))


def _remember(made: Transformation, domain: Domain, metric: Metric, plan: Any) -> None:
    """Remember a measurement with the same answer, which leaves the data in OpenDP.

    It adds noise of scale 0 and is no measurement for an analyst.
    """
    try:
        exact = make_private_lazyframe(
            domain, metric, max_divergence(), plan.select(dp_len(scale=0.0, signed=True))
        )
    except OpenDPException:  # then the transformation counts
        return
    vars(made)["exact"] = exact


def counted(query: Transformation, pointer: Any) -> Answer:
    """Return the answer of a transformation; of a frame count, without converting the frame."""
    exact = vars(query).get("exact")
    if exact is None:
        return _native.apply(query, pointer)
    return _told(lambda: _native.invoke(exact, pointer))


then_frame_count = _native.to_then(make_frame_count)
