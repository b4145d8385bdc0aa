"""Faults of OpenDP that show in a Polars plan: which ones, by the steps of the plan.

The plan is read, never run. It is read from Polars' own JSON of it, whose nodes are dicts with one
key. Where a name or a node is unknown, the answer is the one that refuses more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from math import inf
from typing import Any, NamedTuple

from opendp.extras.polars import pl
from opendp.mod import LazyFrameDomain

from ..attributes import native_frame

_INPUTS = ("input", "input_left", "input_right", "dsl")
_DATA = {"df", "schema", "kwargs", "Series"}
_SAME_NAME = {"Cast": "expr", "BinaryExpr": "left", "Ternary": "truthy", "Over": "function"}
_ANY = "*"  # a column whose name is not known


def read(frame: Any) -> Any:
    """Return the plan of a LazyFrame as Polars writes it."""
    buffer = BytesIO()
    native_frame(frame).serialize_json(buffer)
    return json.loads(buffer.getvalue())


def lines(plan: Any) -> Iterator[list[tuple[str, Any]]]:
    """Yield the steps of a plan from each of its sources to its end."""
    ((kind, body),) = plan.items()
    inputs = [body[key] for key in _INPUTS if isinstance(body.get(key), dict)]
    for source in inputs:
        for line in lines(source):
            yield [*line, (kind, body)]
    if not inputs:
        yield [(kind, body)]


def nodes(part: Any) -> Iterator[tuple[str, Any]]:
    """Yield the nodes of an expression, without data."""
    if isinstance(part, str):
        yield part, None
    for one in part if isinstance(part, list) else ():
        yield from nodes(one)
    for key, value in part.items() if isinstance(part, dict) else ():
        yield key, value
        if key not in _DATA:
            yield from nodes(value)


def columns(part: Any) -> set[str]:
    """Return the names of the columns that an expression reads."""
    found = {value for kind, value in nodes(part) if kind == "Column"}
    return found | {_ANY for kind, _ in nodes(part) if kind == "Selector"}


def _node(expression: Any) -> tuple[str, Any]:
    if not isinstance(expression, dict):
        return str(expression), None
    ((kind, body),) = expression.items()
    return kind, body


def name_of(expression: Any) -> str:
    """Return the name of the column that an expression makes, or ``*`` if it is not known."""
    kind, body = _node(expression)
    if kind == "Alias":
        return str(body[1])
    if kind == "Column":
        return str(body)
    if kind in _SAME_NAME:
        return name_of(body[_SAME_NAME[kind]])
    if kind == "Function" and "StructExpr" not in json.dumps(body["function"]):
        return name_of(body["input"][0])
    return {"Literal": "literal", "Len": "len"}.get(kind, _ANY)


def _unchanged(expression: Any) -> bool:
    """Whether an expression is a column, or a selection of columns, under its own name."""
    kind, body = _node(expression)
    return kind in ("Column", "Selector") or (kind == "Alias" and body[0] == {"Column": body[1]})


def _nulls(part: Any, lost: dict[str, set[int]]) -> set[int]:
    """Return the faults by which an expression has nulls where OpenDP believes it has none."""
    if isinstance(part, list):
        return set().union(*(_nulls(one, lost) for one in part))
    if not isinstance(part, dict):
        return set()
    found: set[int] = set()
    for kind, body in part.items():
        if kind == "Column":
            found |= lost.get(body, set()) | lost.get(_ANY, set())
        elif kind == "Selector":
            found |= set().union(*lost.values())
        elif kind == "Function" and body["function"] in ("FillNull", "DropNulls"):
            found |= _nulls(body["input"][1:], lost) | (_nulls(body["input"][:1], lost) & {2935})
        elif kind != "Literal":
            found |= _nulls(body, lost)
        if kind == "Cast" and columns(body):
            found.add(2938)
        if kind == "Cut":
            found.add(2939)
        if kind == "BinaryExpr" and body["op"] == "Modulus" and not _is_literal(body["right"]):
            found.add(2940)
    return found


def _is_literal(expression: Any, *, but: tuple[Any, ...] = (0, None)) -> bool:
    """Whether an expression is a literal whose value is none of ``but``."""
    kind, body = _node(expression)
    value = _value(body) if kind == "Literal" else None
    return value is not None and value not in but


def _value(literal: Any) -> Any:
    while isinstance(literal, dict) and len(literal) == 1:
        (literal,) = literal.values()
    return literal


def plain(part: Any) -> frozenset[str]:
    """Return the names of columns; any other expression is ``*``, which is no column."""
    if isinstance(part, list):
        return frozenset().union(*map(plain, part))
    kind, body = _node(part)
    if kind == "Function" and body["function"] == "AsStruct":
        return plain(body["input"])
    return frozenset({body if kind == "Column" else _ANY})


class Change(NamedTuple):
    """How many rows differ between neighbours in one group, and in how many groups."""

    by: frozenset[str]
    rows: float = inf
    groups: float = inf


def rows_in(by: frozenset[str], changes: list[Change]) -> float:
    """Return how many rows differ at most in one group by these columns."""

    def once(one: Change) -> float:
        if one.by <= by - {_ANY}:
            return one.rows
        return one.rows * min(other.groups for other in changes if one.by <= other.by)

    return min(map(once, changes), default=inf)


@dataclass
class Plans:
    """The plans on a path, in the order they run, and the faults found so far.

    :ivar bounded: columns by which a bound on contributions is known before the first plan
    :ivar changes: what differs between neighbours before the first plan; all of it is known
    :ivar identifier: the column of identifiers, if distances are in these
    :ivar units: how many rows differ, or how many identifiers
    :ivar lost: columns with nulls or NaN that OpenDP does not expect, and the issues
    :ivar domain: the input domain of the last plan
    :ivar changed: columns that were bounded before
    :ivar joined: whether the plan has public keys
    """

    bounded: set[str]
    changes: list[Change]
    identifier: str | None
    units: float
    lost: dict[str, set[int]]
    domain: LazyFrameDomain
    found: set[int] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    joined: bool = False

    @property
    def unfinished(self) -> set[int]:
        """The faults that a later plan may have, of which nothing is known."""
        return set().union({2949} if self.changed else (), *self.lost.values())

    def add(self, plan: Any) -> None:
        """Read the next plan."""
        before = self.changes, self.identifier
        for line in lines(plan):  # one, but for public keys
            self.changes, self.identifier = before
            self.joined = any(kind == "Join" for kind, _ in line)
            for kind, body in line:
                self._step(kind, body)

    def _step(self, kind: str, body: Any) -> None:
        seen = [one for key in body if key not in _INPUTS for one in nodes({key: body[key]})]
        kinds = {one for one, _ in seen}
        for one, value in seen:
            fills = one == "Function" and value["function"] == "FillNull"
            if fills and not _is_literal(value["input"][1], but=(None,)):  # or NaN, null in JSON
                self.found.add(2936)
            if one == "Cast" and "Float32" in json.dumps(value["dtype"]):
                self.found.add(2941)
        if "ToPhysical" in kinds:
            self.found.add(2944)
        if kind == "Filter" and kinds & {"Over", "Window"}:
            self.bounded |= columns(body["predicate"])
            for over, limit in _limits(body["predicate"]):
                self._truncate(over, limit)
            return
        if kind in ("HStack", "Select"):
            for one in body.get("exprs", body.get("expr")):
                self._define(one)
        elif kind == "GroupBy":
            keys = columns(body["keys"])
            if self.changed and (keys & self.changed or _ANY in keys | self.changed):
                self.found.add(2949)
            self._aggregate(body["aggs"])
            self.bounded |= keys
            # OpenDP takes every aggregate for nullable
            self.lost = {_ANY: {2935}} if 2935 in set().union(*self.lost.values()) else {}
            self._group(plain(body["keys"]), body)
        if self.changes:
            self.identifier = None  # truncations stand directly after each other

    def _truncate(self, over: Any, limit: float) -> None:
        """Note what a truncation leaves of each identifier."""
        kind, body = _node(over["function"])
        if kind == "Function" and "Rank" in body["function"]:
            one = Change(plain(body["input"]), groups=self.units * limit)
        else:
            one = Change(plain(over["partition_by"]) - {self.identifier}, self.units * limit)
        self.changes = [*self.changes, one] if self.identifier else []

    def _group(self, keys: frozenset[str], body: Any) -> None:
        if any(kind == "FfiPlugin" for kind, _ in nodes(body["aggs"])):
            self._check_margin(keys, self.domain.get_margin(_expressions(body["keys"])))
        elif self.identifier in keys:
            self.changes = [*self.changes, Change(keys - {self.identifier}, self.units)]
        else:  # each row that differs is one group that leaves and one that comes
            self.changes = [Change(frozenset(), 2 * rows_in(frozenset(), self.changes), 1)]

    def _check_margin(self, keys: frozenset[str], margin: Any) -> None:
        """A margin bounds each of two neighbours, and twice as much can change between them."""
        several = [one.groups for one in self.changes if keys <= one.by - {_ANY}]
        groups = min([rows_in(frozenset(), self.changes), *several])
        if margin.max_length is not None and margin.max_length < rows_in(keys, self.changes):
            self.found.add(2945)
        public = self.joined or margin.invariant is not None  # both have the same groups
        if margin.max_groups is not None and not public and margin.max_groups < groups:
            self.found.add(2945)

    def _define(self, expression: Any) -> None:
        self._aggregate(expression)
        if _unchanged(expression):
            return
        name = name_of(expression)
        if name in self.bounded or _ANY in self.bounded or (name == _ANY and self.bounded):
            self.changed.add(name)
        self.lost = {**self.lost, name: _nulls(expression, self.lost)}

    def _aggregate(self, expression: Any) -> None:
        if any(kind == "FfiPlugin" for kind, _ in nodes(expression)):
            self.found |= _nulls(expression, self.lost)


def _limits(predicate: Any) -> Iterator[tuple[Any, float]]:
    """Yield the truncations of a filter, as OpenDP reads them, and their limits."""
    kind, body = _node(predicate)
    both = kind == "BinaryExpr" and body["op"] == "And"
    if both or (kind == "Function" and body["function"] == {"Boolean": "AllHorizontal"}):
        for one in [body["left"], body["right"]] if both else body["input"]:
            yield from _limits(one)
    elif kind == "BinaryExpr":
        below = body["op"] in ("Lt", "LtEq")
        over, limit = (body["left"], body["right"])[:: 1 if below else -1]
        if _node(over)[0] == "Over":
            most = _value(limit)
            yield _node(over)[1], most + ("Eq" in body["op"]) if type(most) is int else inf


def _expressions(keys: list[Any]) -> list[Any]:
    """Return keys of a plan as Polars' expressions."""
    return [pl.Expr.deserialize(BytesIO(json.dumps(one).encode()), format="json") for one in keys]
