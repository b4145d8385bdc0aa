"""The number of rows of a plan on a LazyFrame, with the stability that OpenDP certifies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import index
from typing import Any

from opendp.extras.polars import dp_len, pl

from .. import _opendp as _native
from .. import composition, errors, queryables
from .._opendp import dp
from .noise import ATOM, Steps


@composition.constructor
def make_frame_count(
    input_domain: dp.Domain, input_metric: dp.Metric, lazyframe: Any
) -> dp.Transformation:
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
    if all(
        unit != dp.frame_distance(one())
        for one in (dp.symmetric_distance, dp.insert_delete_distance)
    ):
        raise errors.InvalidValueError(
            f"lazyframe must have a bound on the rows of one individual, and its rows are at "
            f"{unit}; truncate first, with query.truncate_per_group(k) of a context"
        )
    count = _native.make_user_transformation(
        stable.output_domain,
        unit,
        dp.atom_domain(T=ATOM),
        dp.absolute_distance(T=ATOM),
        _native.carry(_rows),
        _native.carry(rows_that_differ),
    )
    made: dp.Transformation = stable >> count
    _remember(made, input_domain, input_metric, lazyframe)
    return made


def stable_frame(
    input_domain: dp.Domain, input_metric: dp.Metric, lazyframe: pl.LazyFrame
) -> dp.Transformation:
    """Return OpenDP's stable transformation of a plan, or raise with OpenDP's reason."""
    if not isinstance(input_domain, dp.LazyFrameDomain) or pl is None:
        raise errors.InvalidTypeError(
            f"input_domain ({input_domain}) must be a domain of LazyFrames; "
            "for vectors of records, use dp.t.then_count"
        )
    if not isinstance(lazyframe, pl.LazyFrame):
        raise errors.InvalidTypeError(
            f"lazyframe must be a plan, a Polars LazyFrame, found {type(lazyframe).__name__}"
        )
    unit = input_metric.inner_metric if isinstance(input_metric, dp.FrameDistance) else input_metric
    by_identifier = isinstance(unit, (dp.SymmetricIdDistance, dp.ChangeOneIdDistance))
    outputs = ["FrameDistance<SymmetricDistance>", "MI"] if by_identifier else ["MI"]
    refusals = []
    for output in outputs:  # with an identifier, to rows if the plan truncates
        try:
            stable: dp.Transformation = dp.t.make_stable_lazyframe(
                input_domain, input_metric, lazyframe, MO=output
            )
            return stable
        except dp.OpenDPException as error:
            refusals.append(error)
    reason = str(refusals[-1]).strip()
    raise errors.InvalidValueError(
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
        raise errors.InvalidValueError(
            "d_in must bound the number of rows: pass dp.polars.Bound(per_group=...), or bounds "
            "with both per_group and num_groups"
        )
    return int(min(known))


def _rows(frame: pl.LazyFrame) -> int:
    return _told(lambda: frame.select(pl.len()))


def _told(rows: Callable[[], Any]) -> int:
    """Return the one cell of a frame. An error of Polars may show rows, so the log has it."""
    what = "the rows of a plan could not be counted"
    return int(queryables.hidden(lambda: rows().collect().item(), what=what))


def _remember(made: dp.Transformation, domain: dp.Domain, metric: dp.Metric, plan: Any) -> None:
    """Remember a measurement with the same answer, which leaves the data in OpenDP.

    It adds noise of scale 0 and is no measurement for an analyst.
    """
    try:
        exact = dp.m.make_private_lazyframe(
            domain, metric, dp.max_divergence(), plan.select(dp_len(scale=0.0, signed=True))
        )
    except dp.OpenDPException:  # then the transformation counts
        return
    vars(made)["exact"] = exact


def counted(query: dp.Transformation, pointer: Any) -> errors.Answer:
    """Return the answer of a transformation; of a frame count, without converting the frame."""
    exact = vars(query).get("exact")
    if exact is None:
        return _native.apply(query, pointer)
    return _told(lambda: _native.invoke(exact, pointer))


then_frame_count = _native.to_then(make_frame_count)


# Queries of bounded sensitivity, which are checked before they run on the data.

INTEGERS = frozenset({"i8", "i16", "i32", "i64", "i128", "u8", "u16", "u32", "u64", "usize"})
NUMBERS = INTEGERS | {"f32", "f64"}
REMEMBERED = 4096  # transformations that are not checked again
NOT_ASKED = (  # callable, and not on data
    dp.Function,
    dp.Measurement,
    dp.Odometer,
    dp.OdometerQueryable,
    dp.Queryable,
    _native.PARTIAL_CONSTRUCTOR,
    type,
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """The distance of a query's answer from a guess. It has the sensitivity of the query.

    :ivar query: a query
    :ivar guess: a number that does not depend on the data

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> far = oc.m.make_above_threshold(*space, dp.max_divergence(), 1, scale=2.0, threshold=100)
    >>> far([1] * 1000)(oc.handles.Deviation(space >> dp.t.then_count(), guess=1000)).outcome
    BELOW
    """

    query: errors.Query
    guess: float


def sensitivity_at(d_in: errors.Distance, sensitivity: errors.Argument) -> Any:
    """Return the sensitivity of queries at distance ``d_in``. It is 1 if left out at d_in = 1.

    It must be given at another distance: only the author of a callable knows its sensitivity there.
    """
    if sensitivity is not None:
        return sensitivity
    if type(d_in) in (int, float) and d_in == 1:
        return 1
    raise errors.InvalidTypeError(
        f"sensitivity must be given at d_in ({d_in}): the largest change of an answer "
        "between inputs at distance d_in; it is 1 by default only at d_in = 1. If one "
        "record more or less changes an answer by at most s, then d_in records change it "
        "by at most d_in times s"
    )


class CheckedQueries:
    """Check queries on one dataset, and return their answers in whole steps.

    A transformation must map the space to a number, and its stability map must be at most
    ``sensitivity`` at ``d_in``. The author of any other callable promises this.

    :param space: domain and metric of the data
    :param d_in: distance between neighbouring inputs
    :param sensitivity: bound on the change of an answer between inputs at distance ``d_in``
    :param token: the sealed data
    """

    def __init__(
        self,
        space: tuple[dp.Domain, dp.Metric],
        d_in: errors.Distance,
        sensitivity: float,
        steps: Steps,
        token: queryables.Sealed,
        *,
        monotone: bool,
    ) -> None:
        self._space, self._d_in, self._sensitivity = space, d_in, sensitivity
        self.steps, self._token, self._monotone = steps, token, monotone
        self._known: dict[int, dp.Transformation] = {}
        self._python: list[Any] = []

    def accept(self, query: errors.Query) -> Callable[[], int]:
        """Return a function that computes the answer, or raise. Nothing is computed yet."""
        if isinstance(query, Deviation):
            if self._monotone:
                raise errors.InvalidValueError(
                    "the query is a deviation, which is not monotone, whatever query it has; "
                    "build with monotone=False"
                )
            inner = self.accept(query.query)
            guess = self.steps.of("guess", query.guess)
            return lambda: abs(inner() - guess)
        if isinstance(query, queryables.AsTransformation):
            query = query.as_transformation()
        if isinstance(query, dp.Transformation):
            self._check_once(query)
            return lambda: self._read(counted(query, queryables.unseal(self._token)))
        if not callable(query) or isinstance(query, NOT_ASKED):
            raise errors.InvalidTypeError(
                "the query must be a transformation, or a callable on the data, "
                f"found {type(query).__name__}"
            )
        return lambda: self._read(_native.interruptible(query, self._data()))

    def _check_once(self, query: dp.Transformation) -> None:
        """Check a transformation, whose map is read at each query if it is written in Python."""
        if self._known.get(id(query)) is not query and self._check(query):
            if len(self._known) == REMEMBERED:
                self._known.clear()
            self._known[id(query)] = query  # held, so that its identity stays its own

    def _read(self, answer: errors.Answer) -> int:
        with suppress(TypeError):  # an integer, of NumPy's too
            answer = index(answer)
        if self.steps.whole and not isinstance(answer, int):
            raise errors.InvalidTypeError(
                f"the query must have an integer answer, found {type(answer).__name__}; for "
                "floats pass sensitivity as a float: the largest change of an answer at "
                "distance d_in"
            )
        return self.steps.of("the answer of the query", answer)

    def _data(self) -> Any:
        """Return the data in Python's types, converted once if no rows arrive; a list is copied."""
        if self._token.live or not self._python:
            self._python = [_native.to_python(queryables.unseal(self._token))]
        data = self._python[0]
        return list(data) if type(data) is list else data

    def _check(self, query: dp.Transformation) -> bool:
        """Raise unless the query is allowed. Return whether this verdict can never change."""
        check_query(query, self._space, self.steps.whole)
        try:
            sensitivity, fixed = _native.native_only(
                partial(_native.transformation_map, flows=False), query, self._d_in
            )  # an answer that is NaN raises
        except errors.PrivacyMapError:
            raise
        except (dp.OpenDPException, TypeError, ValueError) as error:
            raise errors.PrivacyMapError(self._d_in, str(error).strip()) from error
        if not sensitivity <= self._sensitivity:
            raise errors.InvalidValueError(
                f"the sensitivity of the query ({sensitivity}) must be at most "
                f"{self._sensitivity} at d_in ({self._d_in}); clamp more tightly, or build "
                "with a larger sensitivity; the query was not run"
            )
        return fixed


def check_query(query: dp.Transformation, space: tuple[dp.Domain, dp.Metric], whole: bool) -> None:
    """Raise unless a transformation maps ``space`` to a number."""
    domain, metric = space
    if query.input_domain != domain:
        raise errors.SpaceMismatchError("input_domain", domain, query.input_domain)
    if query.input_metric != metric:
        raise errors.SpaceMismatchError("input_metric", metric, query.input_metric)
    atom = str(query.output_domain.carrier_type)
    if atom not in NUMBERS:
        raise errors.InvalidTypeError(f"the query must have one number as its answer, found {atom}")
    if query.output_metric != dp.absolute_distance(T=atom):
        raise errors.SpaceMismatchError(
            "output_metric", dp.absolute_distance(T=atom), query.output_metric
        )
    if whole and atom not in INTEGERS:
        raise errors.InvalidTypeError(
            f"the query must have an integer answer, found {atom}; for floats pass "
            "sensitivity as a float: the largest change of an answer at distance d_in"
        )
