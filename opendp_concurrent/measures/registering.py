"""What a measure of another package must be, so that it speaks for itself only.

What is looked up by a name, such as a kind, a tag or keywords, is asked of the measures of this
package first. So a class that changes after it was registered changes no answer about them.
"""

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Iterable, Mapping
from inspect import isabstract

from ..arguments.checks import flag, shown
from ..errors import InvalidTypeError, InvalidValueError
from ..types import Argument
from .conversion import Conversion
from .measure import Composability, CompositionMeasure
from .noise import Noise

_NEEDED = ("kind", "zero", "reason", "distance_form")
_FLAGS = ("one_number", "needs_orders", "adaptive_updates", "takes_delta")
_TEXTS = ("kind", "reason", "distance_form", "tag", "why_not", "no_group")
_TAG = re.compile(r"[a-z][a-z0-9_.-]{0,63}:[a-z][a-z0-9_.-]{0,63}")  # as for ledger.register


def check_class(measure: Argument) -> None:
    """Raise unless ``measure`` is a class below ``CompositionMeasure`` that defines everything.

    Classes are compared, and are keys, so a metaclass of another package is refused.
    """
    if type(measure) is not ABCMeta or not issubclass(measure, CompositionMeasure):
        raise InvalidTypeError(
            "measure must be a subclass of CompositionMeasure, without a metaclass of its own, "
            f"found {shown(measure)}"
        )
    missing = [name for name in _NEEDED if not hasattr(measure, name)]
    if isabstract(measure) or missing:
        lacking = ", ".join([*missing, *sorted(measure.__abstractmethods__)])
        raise InvalidTypeError(f"measure ({measure.__name__}) must define {lacking}")
    for name in _TEXTS:
        _require(type(getattr(measure, name)) is str, measure, name, "a string")
    for name in _FLAGS:
        flag(**{f"measure.{name}": getattr(measure, name)})
    kind, noise = measure.composability, measure.noise
    _require(isinstance(kind, Composability), measure, "composability", "a member of Composability")
    _require(
        noise is None or isinstance(noise, Noise), measure, "noise", "a member of Noise, or None"
    )
    reads = measure.read_from
    texts = type(reads) is tuple and all(type(one) is str for one in reads)
    _require(texts, measure, "read_from", "a tuple of kinds, which are strings")
    for name in ("conversions_to", "conversions_from"):
        good = all(type(one) is Conversion for one in _items(measure, name).values())
        _require(good, measure, name, "a mapping from kinds to Conversion objects")


def check_names(
    measure: type[CompositionMeasure], known: Iterable[type[CompositionMeasure]]
) -> None:
    """Raise unless the tag and the keywords of ``measure`` are its own."""
    tag, keywords = measure.tag, _items(measure, "keywords")
    if tag and _TAG.fullmatch(tag) is None:
        raise InvalidValueError(
            f"measure.tag ({shown(tag)}) must be left out, or be the name of your package, a colon "
            "and a name, in lower case, such as 'acme:doubled'; other tags are of this package"
        )
    for word, guard in keywords.items():
        if not word.isidentifier() or not callable(guard):
            raise InvalidTypeError(
                f"measure.keywords has {shown(word)}: it must map names of arguments to functions "
                "that check them"
            )
    for other in known:
        if tag and other.tag == tag:
            raise InvalidValueError(
                f"measure.tag ({tag!r}) is already the tag of {other.kind}; choose another"
            )
        if keywords and other.keywords.keys() == keywords.keys():
            raise InvalidValueError(
                f"measure.keywords ({', '.join(keywords)}) are already those of {other.kind} in "
                "loss_of; choose other names"
            )


def _items(measure: type[CompositionMeasure], name: str) -> Mapping[str, Argument]:
    found: Argument = getattr(measure, name)
    _require(isinstance(found, Mapping), measure, name, "a mapping")
    read = dict(found)
    _require(
        all(type(one) is str for one in read), measure, name, "a mapping whose keys are strings"
    )
    return read


def _require(holds: bool, measure: Argument, name: str, rule: str) -> None:
    if not holds:
        raise InvalidTypeError(f"measure.{name} ({shown(getattr(measure, name))}) must be {rule}")
