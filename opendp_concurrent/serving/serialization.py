"""Messages that name measurements: read back by an allow-list, for messages from anybody.

``dp.serialize`` writes what this package makes as it writes OpenDP's own. ``dp.deserialize`` reads
that after ``oc.install()``, and is for messages of a party that is trusted: for OpenDP's
constructors it imports modules and reads attributes that the message names. :func:`deserialize` is
for all others:

* A name is looked up in a table that was made at import. Nothing is imported or read by name.
* Constructors that take Python functions or Polars plans are not in the table, nor are those whose
  loss rests on a promise of the caller. Neither are such arguments.
* Size, depth, numbers, strings and keys are checked before the first constructor is called.
* Each call is checked against the constructor's signature, and the kinds of its arguments.

What comes out was built by the constructor, here. Its loss is read from its own map, as ever.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from math import isfinite
from typing import Any, NoReturn

from opendp import mod
from opendp.mod import Domain, Measure, Metric

from .. import _checks as checks
from .. import composition
from .._opendp import VERSION
from ..errors import Argument, InvalidTypeError, InvalidValueError, SpaceMismatchError
from .kinds import Work
from .values import Key, call, key_of, signature_of, table

MOST_LETTERS = 2**20
DEEPEST = 100
LONGEST_TEXT = 10_000
MOST_ITEMS = 2**17
_KEYS = frozenset({"__function__", "__module__", "__kwargs__", "__version__"})
_TUPLE = "__tuple__"
_PROMISES = {  # arguments that only a trusted caller may give
    "monotone": "is a promise about queries",
    "score": "is a Python function",
    "interact": "is a Python function",
    "ledger": "is a resource",
}


_STEPS = ("chain", "chain_stream", "make_chain_ot", "cast", "make_chain_mt", "make_chain_tt")
_INNER = ("odometer", "composition")
_Expected = dict[str, Any]  # domain, metric and measure, by the names of arguments


@cache
def _always() -> frozenset[Key]:
    return frozenset(
        key
        for key in table()
        if key[0] in ("domains", "metrics", "measures", "core")
        or key[1] in (*_STEPS, *checks.READ)
        or (key[0] == checks.MODULE and not key[1].startswith("make_"))
    )


def serialize(made: Any) -> str:
    """Write a message for :func:`deserialize`; it is shorter than that of ``dp.serialize``.

    Each step of a chain is written once. ``dp.serialize`` writes the domain of a step as the output
    domain of all steps before it, and the metric as well, so that the length of its message triples
    with each step. Here the domain and the metric of a step are written as constructors of their
    own, such as ``vector_domain`` and ``symmetric_distance``, if OpenDP says that these are equal.

    Python functions, Polars plans, ledgers, handles and data are never written.

    :param made: a measurement, transformation, odometer, domain, metric or measure; a plain value;
        or a list or tuple of these
    :return: JSON
    :raises InvalidTypeError: naming the constructor and the argument that cannot be written

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_clamp((0, 9)) >> dp.t.then_count() >> dp.m.then_laplace(2.0)
    >>> len(oc.serialize(count)) < len(dp.serialize(count)) / 2
    True
    >>> dp.deserialize(oc.serialize(count)).map(1)
    0.5
    """
    return str(mod.serialize(checks.written(made, "made")))


def deserialize(
    message: str,
    *,
    allow: Sequence[Callable[..., Any]] | None = None,
    space: tuple[Domain, Metric] | None = None,
    output_measure: Measure | None = None,
) -> Any:
    """Rebuild an object from an untrusted message of :func:`serialize` or ``dp.serialize``.

    The message can call constructors of OpenDP and of this package only, with plain values and
    with what such constructors return. It cannot carry Python functions, Polars plans, handles or
    data. Nothing is imported or looked up by a name from the message. NaN and infinities are
    refused. ``dp.deserialize``, which imports by name, is for trusted messages only.

    The cells of each call, such as those of a universe, are counted before it, and a message of
    more than 2^20 is refused. A launch of what it made may need much time or memory. A server
    should pass ``allow``, the constructors that it offers, the ``space`` of its data and the
    ``output_measure`` of its budget, which are checked first; and check the result: what it is, and
    its loss.

    Required features: those of the constructors in the message. A message cannot enable features.

    :param message: text that :func:`serialize` returned, of at most 2^20 letters
    :param allow: constructors of measurements, transformations and combinators that the message may
        use, such as ``[dp.t.make_count, dp.m.make_laplace]``; all that can be serialised if left
        out. Domains, metrics, measures, chains and casts are always allowed
    :param space: the domain and the metric that the message must be for; any if left out
    :param output_measure: the measure that the message must be for; any if left out
    :return: a new measurement, transformation, odometer, domain, metric or measure
    :raises InvalidTypeError, InvalidValueError: if the message is not valid, with its first fault;
        or if the constructor refuses its arguments; or if it makes too many cells
    :raises SpaceMismatchError: if it is for another domain, metric or measure

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> svt = oc.m.make_above_threshold(*space, dp.max_divergence(), 1, scale=8.0, threshold=5)
    >>> message = dp.serialize(svt)
    >>> oc.deserialize(message, allow=[oc.m.make_above_threshold]).map(1) == svt.map(1)
    True
    >>> oc.deserialize(message, allow=[dp.t.make_count])
    Traceback (most recent call last):
    InvalidValueError: message calls make_above_threshold, which is not among the constructors...
    """
    text = checks.text(message=message)
    expected = _expected(space, output_measure)
    allowed = _constructors(allow)
    if len(text) > MOST_LETTERS:
        raise InvalidValueError(
            f"message has {len(text)} letters, and must have at most {MOST_LETTERS}"
        )
    try:
        tree = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer
        )
    except InvalidValueError:
        raise
    except RecursionError:
        raise InvalidValueError("message is nested too deeply") from None
    except ValueError:
        raise InvalidValueError("message is not JSON; pass what dp.serialize returns") from None
    if not isinstance(tree, dict | list):
        raise InvalidValueError("message must call a constructor; pass what dp.serialize returns")
    _check(tree, allowed)
    work = Work()
    _check_expected(tree, expected, work)
    made = _build(tree, work)
    for name, wanted in expected.items():
        if wanted is not None and name != "to_measure":
            _require_equal(name, wanted, getattr(made, name, None))
    return made


def _expected(space: Any, output_measure: Argument) -> _Expected:
    domain, metric = (None, None) if space is None else composition.space(space=space)
    if output_measure is not None:
        output_measure = composition.measure(output_measure=output_measure)
    return {
        "input_domain": domain,
        "input_metric": metric,
        "output_measure": output_measure,
        "to_measure": output_measure,
    }


def _constructors(allow: Sequence[Callable[..., Any]] | None) -> frozenset[Key]:
    if allow is None:
        return frozenset(table())
    found = set(_always())
    for index, make in enumerate(checks.elements("constructors", allow=allow)):
        key = _place(make)
        if key not in table():
            raise InvalidTypeError(
                f"allow[{index}] must be a constructor that can be serialised, found "
                f"{getattr(make, '__name__', type(make).__name__)}; pass for example "
                "dp.m.make_laplace; then_ constructors make nothing before they are chained"
            )
        found.add(key)
    return frozenset(found)


def _place(make: Any) -> Key:
    package, _, module = str(getattr(make, "__module__", "")).partition(".")
    return checks.MODULE if package == checks.MODULE else module, str(getattr(make, "__name__", ""))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidValueError("message has an object with the same key twice")
    return found


def _constant(name: str) -> NoReturn:
    raise InvalidValueError(f"message has {name}, and must have finite numbers only")


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        raise InvalidValueError("message has an integer that does not fit 64 bits")
    return int(digits)


# --- what may be in a message, before anything is called ----------------------------------------


def _check(tree: Any, allowed: frozenset[Key]) -> None:
    """Raise for the first thing in the message that must not be there."""
    left, waiting = MOST_ITEMS, [(tree, 0)]
    while waiting:
        one, depth = waiting.pop()
        left -= 1
        if left < 0:
            raise InvalidValueError(f"message has more than {MOST_ITEMS} values")
        if depth > DEEPEST:
            raise InvalidValueError("message is nested too deeply")
        if isinstance(one, str):
            if len(one) > LONGEST_TEXT or not checks.is_text(one):
                raise InvalidValueError(
                    f"message has a string that is longer than {LONGEST_TEXT} letters, or has NUL "
                    "or lone surrogates"
                )
        elif isinstance(one, float) and not isfinite(one):
            raise InvalidValueError("message has a number that is too large for a double")
        elif isinstance(one, list):
            waiting += [(part, depth + 1) for part in one]
        elif isinstance(one, dict):
            waiting += [(part, depth + 1) for part in _parts(one, allowed)]


def _parts(one: dict[str, Any], allowed: frozenset[Key]) -> list[Any]:
    if one.keys() == {_TUPLE}:
        if not isinstance(one[_TUPLE], list):
            raise InvalidValueError("message has a tuple that is no list")
        return list(one[_TUPLE])
    if one.keys() == _KEYS:
        key, version, given = key_of(one), one["__version__"], one["__kwargs__"]
        if key not in table():
            raise InvalidValueError(
                f"message calls {checks.shown(key[1])} of {checks.shown(key[0])}, which is not a "
                "constructor that can be deserialised"
            )
        if key not in allowed:
            raise InvalidValueError(
                f"message calls {key[1]}, which is not among the constructors that are allowed"
            )
        if version != VERSION:
            raise InvalidValueError(
                f"message was written with OpenDP {checks.shown(version)}, and this is OpenDP "
                f"{VERSION}; write it with the same version"
            )
        if not isinstance(given, dict):
            raise InvalidValueError(f"message calls {key[1]} without keyword arguments")
        unknown = [name for name in given if name not in signature_of(key).parameters]
        if unknown:
            raise InvalidValueError(
                f"message calls {key[1]} with {checks.shown(unknown[0])}, which it does not take"
            )
        for name, why in _PROMISES.items():
            if given.get(name):
                raise InvalidValueError(
                    f"message calls {key[1]} with {name}, which {why}; leave it out"
                )
        return list(given.values())
    raise InvalidValueError(
        "message has an object that is neither a call of a constructor nor a tuple; Polars plans "
        "and expressions are not deserialised"
    )


# --- building ------------------------------------------------------------------------------------


def _build(one: Any, work: Work) -> Any:
    if isinstance(one, list):
        return [_build(part, work) for part in one]
    if not isinstance(one, dict):
        return one
    if _TUPLE in one:
        return tuple(_build(part, work) for part in one[_TUPLE])
    given = {name: _build(part, work) for name, part in one["__kwargs__"].items()}
    key = key_of(one)
    work.add(key[1], given)  # trusted messages may take longer
    return call(key, given)


# --- what is expected -----------------------------------------------------------------------------

_FIRST = ("input_domain", "input_metric")  # of the constructor that the data reach first
_TO_FIRST = ("transformation0", "transformation", "measurement0", "measurement", *_INNER)
_LAST = ("to_measure", "output_measure")
_KEEP = frozenset(  # the measure of what they wrap
    {
        "chain",
        "chain_stream",
        "make_block_filter",
        "make_bounded_interactive",
        "make_chain_mt",
        "make_chain_ot",
        "make_concurrent_continual",
        "make_concurrent_filter",
        "make_interactive",
        "make_limited",
    }
)
_TO_LAST = ("measurement1", "measurement", *_INNER)


def _check_expected(tree: Any, expected: _Expected, work: Work) -> None:
    """Raise unless the space and the measure that a message names are the expected ones.

    Only these are built. What cannot be seen in the message is compared once it is built.
    """
    for names, path in ((_FIRST, _TO_FIRST), (_LAST, _TO_LAST)):
        one = tree
        while isinstance(one, dict) and _TUPLE not in one:
            given = one["__kwargs__"]
            for name in names:
                if name in given and expected.get(name) is not None:
                    _require_equal(name, expected[name], _build(given[name], work))
            if any(name in given for name in names):
                break
            if names is _LAST and one["__function__"] not in _KEEP:
                break
            one = next((given[name] for name in path if name in given), None)


def _require_equal(name: str, wanted: Any, found: Any) -> None:
    kind = next(one for one in (Domain, Metric, Measure) if isinstance(wanted, one))
    if not isinstance(found, kind) or found != wanted:  # other kinds cannot be compared
        name = "output_measure" if name == "to_measure" else name
        raise SpaceMismatchError(name, wanted, found)
