"""Queries of bounded sensitivity, which are checked before they run on the data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import index
from typing import Any

from opendp.metrics import absolute_distance
from opendp.mod import (
    Domain,
    Function,
    Measurement,
    Metric,
    Odometer,
    OdometerQueryable,
    OpenDPException,
    Queryable,
    Transformation,
)

from ..errors import InvalidTypeError, InvalidValueError, PrivacyMapError, SpaceMismatchError
from ..frames.count import counted
from ..interrupts import let_in
from ..native import opendp as _native
from ..queryables.as_transformation import AsTransformation
from ..queryables.data import Sealed, unseal
from ..types import Answer, Argument, Distance, Query
from .steps import Steps

INTEGERS = frozenset({"i8", "i16", "i32", "i64", "i128", "u8", "u16", "u32", "u64", "usize"})
NUMBERS = INTEGERS | {"f32", "f64"}
REMEMBERED = 4096  # transformations that are not checked again
NOT_ASKED = (  # callable, and not on data
    Function,
    Measurement,
    Odometer,
    OdometerQueryable,
    Queryable,
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
    >>> far([1] * 1000)(oc.m.Deviation(space >> dp.t.then_count(), guess=1000)).outcome
    BELOW
    """

    query: Query
    guess: float


def sensitivity_at(d_in: Distance, sensitivity: Argument) -> Any:
    """Return the sensitivity of queries at distance ``d_in``. It is 1 if left out at d_in = 1.

    It must be given at another distance: only the author of a callable knows its sensitivity there.
    """
    if sensitivity is not None:
        return sensitivity
    if type(d_in) in (int, float) and d_in == 1:
        return 1
    raise InvalidTypeError(
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
        space: tuple[Domain, Metric],
        d_in: Distance,
        sensitivity: float,
        steps: Steps,
        token: Sealed,
        *,
        monotone: bool,
    ) -> None:
        self._space, self._d_in, self._sensitivity = space, d_in, sensitivity
        self.steps, self._token, self._monotone = steps, token, monotone
        self._known: dict[int, Transformation] = {}
        self._python: list[Any] = []

    def accept(self, query: Query) -> Callable[[], int]:
        """Return a function that computes the answer, or raise. Nothing is computed yet."""
        if isinstance(query, Deviation):
            if self._monotone:
                raise InvalidValueError(
                    "the query is a deviation, which is not monotone, whatever query it has; "
                    "build with monotone=False"
                )
            inner = self.accept(query.query)
            guess = self.steps.of("guess", query.guess)
            return lambda: abs(inner() - guess)
        if isinstance(query, AsTransformation):
            query = query.as_transformation()
        if isinstance(query, Transformation):
            self._check_once(query)
            return lambda: self._read(counted(query, unseal(self._token)))
        if not callable(query) or isinstance(query, NOT_ASKED):
            raise InvalidTypeError(
                "the query must be a transformation, or a callable on the data, "
                f"found {type(query).__name__}"
            )
        return lambda: self._read(let_in(query, self._data()))

    def _check_once(self, query: Transformation) -> None:
        """Check a transformation, whose map is read at each query if it is written in Python."""
        if self._known.get(id(query)) is not query and self._check(query):
            if len(self._known) == REMEMBERED:
                self._known.clear()
            self._known[id(query)] = query  # held, so that its identity stays its own

    def _read(self, answer: Answer) -> int:
        with suppress(TypeError):  # an integer, of NumPy's too
            answer = index(answer)
        if self.steps.whole and not isinstance(answer, int):
            raise InvalidTypeError(
                f"the query must have an integer answer, found {type(answer).__name__}; for "
                "floats pass sensitivity as a float: the largest change of an answer at "
                "distance d_in"
            )
        return self.steps.of("the answer of the query", answer)

    def _data(self) -> Any:
        """Return the data in Python's types. They are converted once; a list is copied."""
        if not self._python:
            self._python.append(_native.to_python(unseal(self._token)))
        data = self._python[0]
        return list(data) if type(data) is list else data

    def _check(self, query: Transformation) -> bool:
        """Raise unless the query is allowed. Return whether this verdict can never change."""
        check_query(query, self._space, self.steps.whole)
        try:
            sensitivity, fixed = _native.native_only(
                partial(_native.transformation_map, flows=False), query, self._d_in
            )  # an answer that is NaN raises
        except PrivacyMapError:
            raise
        except (OpenDPException, TypeError, ValueError) as error:
            raise PrivacyMapError(self._d_in, str(error).strip()) from error
        if not sensitivity <= self._sensitivity:
            raise InvalidValueError(
                f"the sensitivity of the query ({sensitivity}) must be at most "
                f"{self._sensitivity} at d_in ({self._d_in}); clamp more tightly, or build "
                "with a larger sensitivity; the query was not run"
            )
        return fixed


def check_query(query: Transformation, space: tuple[Domain, Metric], whole: bool) -> None:
    """Raise unless a transformation maps ``space`` to a number."""
    domain, metric = space
    if query.input_domain != domain:
        raise SpaceMismatchError("input_domain", domain, query.input_domain)
    if query.input_metric != metric:
        raise SpaceMismatchError("input_metric", metric, query.input_metric)
    atom = str(query.output_domain.carrier_type)
    if atom not in NUMBERS:
        raise InvalidTypeError(f"the query must have one number as its answer, found {atom}")
    if query.output_metric != absolute_distance(T=atom):
        raise SpaceMismatchError("output_metric", absolute_distance(T=atom), query.output_metric)
    if whole and atom not in INTEGERS:
        raise InvalidTypeError(
            f"the query must have an integer answer, found {atom}; for floats pass "
            "sensitivity as a float: the largest change of an answer at distance d_in"
        )
