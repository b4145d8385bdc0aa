"""Faults of OpenDP that show in a Polars plan: which ones, by the steps of the plan.

The plan is read, never run. It is read from Polars' own JSON of it, whose nodes are dicts with one
key. Where a name or a node is unknown, the answer is the one that refuses more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

_INPUTS = ("input", "input_left", "input_right", "dsl")
_DATA = {"df", "schema", "kwargs", "Series"}
_SAME_NAME = {"Cast": "expr", "BinaryExpr": "left", "Ternary": "truthy", "Over": "function"}
_ANY = "*"  # a column whose name is not known


def read(frame: Any) -> Any:
    """Return the plan of a LazyFrame as Polars writes it."""
    buffer = BytesIO()
    frame._ldf.serialize_json(buffer)
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
            found |= _nulls(body["input"][1:], lost)
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
    value = expression.get("Literal", {"": None}) if isinstance(expression, dict) else None
    while isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return value is not None and value not in but


class Plans:
    """The plans on a path, in the order they run, and the faults found so far.

    :param bounded: columns by which a bound on contributions is known before the first plan
    """

    def __init__(self, bounded: Iterable[str]) -> None:
        self.found: set[int] = set()
        self.rows = 1  # that a truncation leaves of one identifier in one group
        self._bounded = set(bounded)
        self._changed: set[str] = set()  # after they were bounded
        self._lost: dict[str, set[int]] = {}  # columns with unexpected nulls

    def add(self, plan: Any) -> None:
        """Read the next plan."""
        for line in lines(plan):
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
            self._bounded |= columns(body["predicate"])
            if any("IntRange" in json.dumps(value) for one, value in seen if one == "Function"):
                self.rows *= 1 + max(_literal(value) for one, value in seen if one == "Literal")
        elif kind in ("HStack", "Select"):
            for one in body.get("exprs", body.get("expr")):
                self._define(one)
        elif kind == "GroupBy":
            keys = columns(body["keys"])
            if self._changed and (keys & self._changed or _ANY in keys | self._changed):
                self.found.add(2949)
            self._aggregate(body["aggs"])
            self._bounded |= keys
            self._lost = {}  # OpenDP takes every aggregate for nullable

    def _define(self, expression: Any) -> None:
        self._aggregate(expression)
        if _unchanged(expression):
            return
        name = name_of(expression)
        if name in self._bounded or _ANY in self._bounded or (name == _ANY and self._bounded):
            self._changed.add(name)
        self._lost = {**self._lost, name: _nulls(expression, self._lost)}

    def _aggregate(self, expression: Any) -> None:
        if any(kind == "FfiPlugin" for kind, _ in nodes(expression)):
            self.found |= _nulls(expression, self._lost)


def _literal(value: Any) -> int:
    while isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return value if type(value) is int else 0
