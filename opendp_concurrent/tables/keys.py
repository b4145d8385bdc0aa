"""Keys that a table has, found from the data under (ε, δ)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from .._checks import Count, epsilon_delta
from .._opendp import dp, to_then
from ..composition import constructor, make_measurement
from ..errors import InvalidTypeError, InvalidValueError
from ..measures import approximate_group, approximate_member
from ..mechanisms import MOST_KEYS, Counts, TruncatedGeometric, key_noise
from ..queryables import ConcurrentMeasurement, Sealed, in_python
from .domain import tables_of, units_in
from .plan import FoundKeys
from .schema import KEYS, Type, in_unit, kind_of, names_of, value_of
from .table import table_given


@constructor
def make_table_keys(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    by: str | Sequence[str],
    d_out: tuple[float, float],
    d_in: Count = 1,
) -> ConcurrentMeasurement:
    """Release those values of columns that enough units have, under (ε, δ).

    The answer maps each key to a noisy number of its units, or to None where only keys can be
    released. Its keys are public: ``list(answer)`` is what :func:`.make_table_count` takes.

    If units have one key each, the noise is geometric and truncated, and no (ε, δ)-DP mechanism
    releases a key with a larger probability [DVGM22]. If they have several, it is either that noise
    or Gaussian noise on weighted numbers [GGKSSY20], whichever needs fewer units.

    Guarantee: at most ``d_out`` at ``d_in``; the proofs are in :doc:`/proofs/tables`. The map of a
    unit is computed exactly, and rounded up once.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables whose units have at most 1000 keys:
        :func:`.make_group_truncate` bounds them
    :param input_metric: units added or removed
    :param by: names of columns of integers, texts, Booleans, dates or timestamps
    :param d_out: (ε, δ), ε from 1e-9 to 100, δ from 1e-200 and below 1
    :param d_in: number of units that are protected together
    :return: a measurement. Its ``users`` is a number of units: a key that so many have is released
        with a probability of about one half, if each of them has as many keys as it may. Its
        ``scale`` is that of the noise in the numbers, or None if there are none.
        :func:`.cast` gives it under other measures, where that is proven
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE homes AS SELECT range AS person, "
    ...     "CASE WHEN range < 900 THEN 'Bern' WHEN range = 950 THEN 'x' ELSE 'Graz' END AS city "
    ...     "FROM range(1000)"
    ... )
    >>> homes = oc.tables.scan(connection, "homes", {"person": int, "city": str}, "person")
    >>> bounded = homes.space >> oc.t.then_truncate(1)
    >>> found = bounded >> oc.m.then_table_keys("city", d_out=(1.0, 1e-6))
    >>> sorted(found(homes))
    ['Bern', 'Graz']
    >>> found.map(1), found.users
    ((1.0, 3.84...e-07), 15)
    """
    tables = tables_of(input_domain, input_metric)
    names = names_of("by", tables.schema, by, KEYS)
    epsilon, delta = epsilon_delta(d_out=d_out)
    if not (1e-9 <= epsilon <= 100.0 and 1e-200 <= delta < 1.0):
        raise InvalidValueError(
            f"d_out ({d_out}) must have an epsilon from 1e-9 to 100 and a delta from 1e-200 to 1: "
            "with a delta of 0 no key can be released, since a neighbouring table may not have it"
        )
    most = tables.groups_at_most(frozenset(names))
    if most > MOST_KEYS:
        raise InvalidValueError(
            f"input_domain has units with up to {most} keys, which must be at most {MOST_KEYS}; "
            "chain with then_group_truncate first"
        )
    own = approximate_member((epsilon, delta), d_in)
    if not (1e-9 <= own[0] and 1e-200 <= own[1]):
        raise InvalidValueError(
            f"d_in ({d_in}) must be smaller: one of so many units has the loss {own}, which must "
            "be at least 1e-9 and 1e-200"
        )
    noise = key_noise(own, most)

    def spawn(token: Sealed) -> dict[Any, int | None]:
        rows = table_given(tables, in_python(token)).ask(FoundKeys(names))
        return noise.release(_counts(tuple(map(tables.schema.type_of, names)), rows))

    def privacy_map(distance: int) -> tuple[float, float]:
        size = units_in(d_in=distance)
        return approximate_group(noise.loss, size) if size else (0.0, 0.0)

    made: Any = make_measurement(
        (input_domain, input_metric),
        dp.approximate(dp.max_divergence()),
        spawn,
        privacy_map,
        f"TableKeys({', '.join(names)})",
        releases=True,
    )
    made.users = noise.users
    made.scale = noise.scale if isinstance(noise, TruncatedGeometric) else None
    return cast(ConcurrentMeasurement, made)


def _moment(text: str) -> datetime:
    """Return a timestamp as the engines write it, with up to 6 digits after the point."""
    seconds, _, parts = text.partition(".")
    return datetime.fromisoformat(f"{seconds}.{parts.ljust(6, '0')}")


def _counts(kinds: tuple[Type, ...], rows: list[tuple[Any, ...]]) -> Counts:
    """Return the numbers of units by key, in the order of the keys, which says nothing else.

    A key that cannot be a public key is left out, as if its rows were.
    """
    found: Counts = {}
    for *values, size, units in sorted(rows):
        try:
            parts = [
                in_unit(kind, value_of(kind_of(kind), by=_moment(one) if kind is datetime else one))
                for kind, one in zip(kinds, values, strict=True)
            ]
        except (InvalidTypeError, InvalidValueError):
            continue
        key = parts[0] if len(parts) == 1 else tuple(parts)
        found.setdefault(key, {})[size] = units
    return found


then_table_keys = to_then(make_table_keys)
