"""What each transformation of tables means, in plain Python on lists of rows.

It shares no code with the rendering. A row is a dictionary; NaN has become None.
"""

import operator
import re
from bisect import bisect_left, bisect_right
from datetime import date, datetime, time
from fractions import Fraction
from hashlib import md5
from itertools import pairwise
from math import floor, trunc

from opendp_concurrent.tables.moments import strategy_for

ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
COMPARE = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}
COMPARE |= {">": operator.gt, ">=": operator.ge}


def sortable(value):
    """A key that orders values of one type: NULL first, texts by their bytes."""
    if value is None:
        return (0,)
    return (1, value.encode() if isinstance(value, str) else value)


def key_of(row, columns):
    return tuple(sortable(row[column]) for column in columns)


def scanned(rows, unit):
    """The rows as they are read."""
    read = [{name: None if one != one else one for name, one in row.items()} for row in rows]
    return [row for row in read if row[unit] is not None]


def kind_of(one, schema):
    """The type of an expression; constants have that of what they are beside."""
    if one.operation == "column":
        return schema[one.given]
    if one.operation == "literal":
        return type(one.given)
    if one.operation in ("+", "-", "*"):
        return float if float in {kind_of(of, schema) for of in one.operands} else int
    if one.operation in ("case", "fill_null"):
        values = one.operands if one.operation == "fill_null" else values_of(one)
        others = [of for of in values if of.operation != "literal"]
        return kind_of((others or values)[0], schema)
    if one.operation == "clip":
        return kind_of(one.operands[0], schema)
    if one.operation == "cut":
        return int if one.given[1] is None else str
    if one.operation == "cast":
        return one.given
    kinds = {"/": float, "//": int, "part": int, "length": int, "lower": str}
    return kinds.get(one.operation, bool)


def values_of(one):
    """The values of a choice."""
    pairs = len(one.operands) // 2
    return one.operands[1 : 2 * pairs : 2] + one.operands[2 * pairs :]


def in_64_bits(value):
    return value if -(2**63) <= value < 2**63 else None


def evaluate(one, row, schema):
    """The value of an expression; None is NULL."""
    kind, operation = kind_of(one, schema), one.operation
    if operation == "column":
        return row[one.given]
    if operation == "literal":
        return one.given
    if operation in ("and", "or", "not"):  # what is NULL does not hold
        held = [bool(evaluate(of, row, schema)) for of in one.operands]
        return not held[0] if operation == "not" else (all if operation == "and" else any)(held)
    if operation == "case":
        pairs = len(one.operands) // 2
        for place in range(0, 2 * pairs, 2):
            if evaluate(one.operands[place], row, schema):
                return in_kind(evaluate(one.operands[place + 1], row, schema), kind)
        last = one.operands[2 * pairs :]
        return in_kind(evaluate(last[0], row, schema), kind) if last else None
    values = [evaluate(of, row, schema) for of in one.operands]
    if operation == "fill_null":
        return in_kind(next((value for value in values if value is not None), None), kind)
    if operation == "is_null":
        return values[0] is None
    if None in values:
        return False if kind is bool and operation != "cast" else None
    if operation in COMPARE:
        return COMPARE[operation](*(sortable(value) for value in values))
    own, *others = values
    if operation == "is_in":
        return any(own == value for value in one.given)
    if operation == "//":
        return own // others[0] if others[0] >= 1 else None
    if operation == "length":
        return len(own)
    if operation == "lower":
        return re.sub("[A-Z]+", lambda found: found[0].lower(), own)
    if operation in ARITHMETIC:
        return float_arithmetic(operation, *values) if kind is float else whole(operation, *values)
    if operation == "clip":
        low, high = one.given
        return in_kind(min(max(own, low), high), kind)
    if operation == "cut":
        breaks, labels, closed = one.given
        place = (bisect_right if closed else bisect_left)(
            [sortable(value) for value in breaks], sortable(own)
        )
        return place if labels is None else labels[place]
    return PARTS[one.given](own) if operation == "part" else cast(own, kind)


PARTS = {name: operator.attrgetter(name) for name in ("year", "month", "day", "hour", "minute")}
PARTS |= {"week": lambda day: day.isocalendar().week, "weekday": lambda day: day.isoweekday()}


def in_kind(value, kind):
    return float(value) if kind is float and value is not None else value


def whole(operation, left, right):
    return in_64_bits(ARITHMETIC[operation](left, right))


def float_arithmetic(operation, *values):
    found = []
    for value in map(float, values):
        if abs(value) > 1e150:
            return None
        found.append(0.0 if operation in "*/" and abs(value) < 1e-150 else value)
    return None if operation == "/" and found[1] == 0.0 else ARITHMETIC[operation](*found)


def cast(own, kind):
    if type(own) is float and kind is int:
        return trunc(own) if -(2.0**63) < own < 2.0**63 else None
    if type(own) is str and kind is int:
        return in_64_bits(int(own)) if re.fullmatch("0|-?[1-9][0-9]{0,18}", own) else None
    if type(own) is str and kind is date:
        try:
            return date.fromisoformat(own) if re.fullmatch("[0-9]{4}(-[0-9]{2}){2}", own) else None
        except ValueError:
            return None
    if kind is datetime:
        return own if type(own) is datetime else datetime.combine(own, time())
    if kind is date:
        return own.date() if type(own) is datetime else own
    return own if type(own) is kind else kind(own)


def where(rows, unit, predicate, schema):
    return [row for row in rows if evaluate(predicate, row, schema)]


def with_columns(rows, unit, columns, schema):
    fresh = [{name: evaluate(one, row, schema) for name, one in columns.items()} for row in rows]
    return [{**row, **more} for row, more in zip(rows, fresh, strict=True)]


def table_select(rows, unit, columns):
    kept = {*columns, unit}
    return [{name: one for name, one in row.items() if name in kept} for row in rows]


def by_unit(rows, unit):
    units = {}
    for row in rows:
        units.setdefault(row[unit], []).append(row)
    return units


def text_of(value):
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def hash_of(key, numbers, unit):
    parts = [f"{len(numbers)}:{key}", *map(str, numbers), *map(text_of, unit)]
    return md5("|".join(parts).encode()).hexdigest()


def hashed(found, key, unit, before=()):
    """What is sorted, with its numbers, in the order of hashes."""
    rank = lambda one: (hash_of(key, (*before, one[0]), (unit,)), one[0])  # noqa: E731
    return sorted(enumerate(found, 1), key=rank)


def truncate(rows, unit, per_unit, order_by=(), descending=False, key="fair"):
    kept = []
    for value, own in by_unit(rows, unit).items():
        numbered = sorted(own, key=lambda row: key_of(row, list(row)))
        found = [row for _, row in hashed(numbered, key, value)]
        found.sort(key=lambda row: key_of(row, order_by), reverse=descending)  # stable
        kept += found[:per_unit]
    return kept


def group_truncate(rows, unit, by, groups, rows_each, key="fair"):
    kept = []
    for value, own in by_unit(rows, unit).items():
        distinct = sorted({key_of(row, by) for row in own})
        for number, group in hashed(distinct, key, value)[:groups]:
            members = [row for row in own if key_of(row, by) == group]
            found = sorted(members, key=lambda row: key_of(row, list(row)))
            kept += [row for _, row in hashed(found, key, value, (number,))[:rows_each]]
    return kept


def per_unit(rows, unit, columns):
    return [
        {unit: value, **{name: of_unit(one, own) for name, one in columns.items()}}
        for value, own in by_unit(rows, unit).items()
    ]


def of_unit(one, rows):
    if one.statistic == "count":
        return len(rows)
    values = known(rows, one.column)
    if one.statistic == "count_distinct":
        return len(set(values))
    if one.statistic in ("min", "max"):
        order = {"min": min, "max": max}[one.statistic]
        return order(values, key=sortable, default=None)
    most = (-(2.0**51) * one.quantum, 2.0**51 * one.quantum) if one.quantum else None
    total = sum(value if most is None else steps(value, most, one.quantum) for value in values)
    low, high = (steps(end, one.bounds, one.quantum) for end in one.bounds)
    clamped = min(max(total, low), high)
    return clamped if one.quantum is None else clamped * one.quantum


def rows_per_unit(rows, unit, edges):
    sizes = [len(own) for own in by_unit(rows, unit).values()]
    return [sum(low <= one < high for one in sizes) for low, high in pairwise(edges)]


def public_join(rows, unit, on, schema, partners):
    joined = []
    for row in rows:
        key = tuple(row[name] for name in on)
        key = key[0] if len(on) == 1 else key
        if key in partners:
            values = partners[key] if len(schema) > 1 else (partners[key],)
            read = [None if one != one else one for one in values]
            joined.append({**row, **dict(zip(schema, read, strict=True))})
    return joined


def matching(rows, by, key):
    key = (key,) if len(by) == 1 else key
    return [row for row in rows if all(row[b] == k for b, k in zip(by, key, strict=True))]


def by_key(rows, by, keys, count):
    return count(rows) if by is None else [count(matching(rows, by, key)) for key in keys]


def table_count(rows, unit, by=None, keys=None):
    return by_key(rows, by, keys, len)


def distinct_units(rows, unit, by=None, keys=None):
    return by_key(rows, by, keys, lambda own: len(by_unit(own, unit)))


def distinct_values(rows, unit, columns, by=None, keys=None):
    values = lambda own: {tuple(row[name] for name in columns) for row in own}  # noqa: E731
    return by_key(rows, by, keys, lambda own: sum(None not in one for one in values(own)))


def steps(value, bounds, quantum):
    if value is None:
        return 0
    low, high = bounds
    clamped = min(max(value, low), high)
    return clamped if quantum is None else floor(clamped * (1.0 / quantum) + 0.5)


def clamp64(value):
    return min(max(value, -(2**63 - 1)), 2**63 - 1)


def table_sum(rows, unit, column, bounds, quantum=None, by=None, keys=None):
    total = lambda own: clamp64(sum(steps(row[column], bounds, quantum) for row in own))  # noqa: E731
    return by_key(rows, by, keys, total)


def table_moments(rows, unit, column, bounds, quantum=None, order=1, by=None, keys=None, norm="l1"):
    """The integers by their definitions, group by group."""
    first, last = (steps(one, bounds, quantum) for one in bounds)
    middle = (first + last) // 2
    reach = last - middle
    half = reach**2 // 2
    power = {"l1": 2 / 3, "l2": 1 / 2, "linf": 0}[norm]
    if order == 1:
        weights = [1, max(1, round(3 ** (-power / 2) * reach))]
    else:
        top = reach**2 - half
        weights = [1, max(1, round((4 / 3**0.5) ** power * top / reach)), max(1, top)]
    found = []
    for own in groups_of(rows, by, keys):
        values = known(own, column)
        off = [steps(one, bounds, quantum) - middle for one in values]
        squares = [sum(one**2 - half for one in off)] if order == 2 else []
        sums = [*squares, sum(off), len(off)]
        found += [clamp64(weight * one) for weight, one in zip(weights, sums, strict=True)]
    return found


def groups_of(rows, by, keys):
    """The rows of each key, or all rows."""
    return [rows] if by is None else [matching(rows, by, key) for key in keys]


def known(rows, column):
    return [row[column] for row in rows if row[column] is not None]


def table_histogram(rows, unit, column, edges, by=None, keys=None):
    return [
        sum(low <= one < high for one in known(own, column))
        for own in groups_of(rows, by, keys)
        for low, high in pairwise(edges)
    ]


def table_prefixes(rows, unit, column, cuts, by=None, keys=None, norm="l1"):
    """Integer combinations of counts; the matrix is public."""
    matrix, found = strategy_for(len(cuts) + 1, norm).matrix.tolist(), []
    for own in groups_of(rows, by, keys):
        places = [sum(cut <= one for cut in cuts) for one in known(own, column)]
        cells = [places.count(i) for i in range(len(cuts) + 1)]
        found += [sum(a * x for a, x in zip(line, cells, strict=True)) for line in matrix]
    return found


def table_answers(rows, unit, answers, by=None, keys=None, norm="l1"):
    """Each answer's own integers, with public weights."""
    parts = []
    for one in answers:
        given = (one.column, one.bounds, one.quantum)
        order = 1 if one.statistic == "mean" else 2
        bounds = one.bounds or (0, 1)
        if one.statistic == "count":
            parts.append((lambda own: [len(own)], [1]))
        elif one.statistic == "sum":
            largest = max(abs(steps(end, bounds, one.quantum)) for end in bounds)
            total = lambda own, g=given: [sum(steps(row[g[0]], *g[1:]) for row in own)]  # noqa: E731
            parts.append((total, [largest]))
        else:
            moments = lambda own, g=given, o=order: table_moments(own, unit, *g, o, norm=norm)  # noqa: E731
            row = {one.column: None}
            ends = [moments([{**row, one.column: end}]) for end in (*bounds, sum(bounds) / 2)]
            parts.append((moments, [max(map(abs, each)) for each in zip(*ends, strict=True)]))
    size = {"l1": sum, "linf": max, "l2": lambda row: sum(float(x) ** 2 for x in row) ** 0.5}[norm]
    sizes = [float(size(row)) for _, row in parts]
    weights = [max(1, round(16 * max(sizes) / max(one, 1.0))) for one in sizes]
    weights = [1] if len(parts) == 1 else weights
    found = []
    for own in groups_of(rows, by, keys):
        for (values, _), weight in zip(parts, weights, strict=True):
            found += [clamp64(weight * one) for one in values(own)]
    return found


def quantile_scores(rows, unit, column, candidates, alpha):
    share = Fraction(alpha).limit_denominator(10_000)
    p, q = share.numerator, share.denominator
    found = known(rows, column)
    return [
        abs((q - p) * sum(one < c for one in found) - p * sum(one > c for one in found))
        for c in candidates
    ]
