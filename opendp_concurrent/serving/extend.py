"""For those who write measures, accumulators, mechanisms and kinds of data of their own.

``check_measurement`` checks the laws of measurements on the constructor of a plugin.
CONTRIBUTING.md has an example of each of the others. ``checks`` has guards of arguments,
``constructor`` reads them from annotations.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from typing import Any, TypeVar

from .. import _checks as checks
from .. import data, errors, measures
from ..composition import constructor
from ..data import Kind
from ..measures import (
    Accumulator,
    AccumulatorState,
    Composability,
    CompositionMeasure,
    Conversion,
    NumberMeasure,
    composition_measure,
)
from .check import check_measurement

__all__ = [
    "Accumulator",
    "AccumulatorState",
    "Composability",
    "CompositionMeasure",
    "Conversion",
    "Kind",
    "NumberMeasure",
    "check_measurement",
    "checks",
    "composition_measure",
    "constructor",
    "register",
]

C = TypeVar("C", bound=type[Any])


def register(
    tag: str | None = None,
    *,
    fields: Mapping[str, str] | None = None,
    make: Callable[..., Any] | None = None,
) -> Callable[[C], C]:
    """Make a class of your own known; a decorator of the class.

    * A measure derives from ``CompositionMeasure``, or from ``NumberMeasure`` if its distance is
      one number and losses add up. Its methods are trusted: the author has a proof that the sum of
      adaptively chosen losses bounds the loss of the children, queried as ``composability`` says,
      and that conversions hold. A class with parameters also defines ``find``, which knows OpenDP's
      objects by their descriptor, and ``from_tag``, which knows their names.
    * A kind of data derives from ``Kind``. Its domains and data are no longer of the kinds that
      were known before.
    * An accumulator or a distance needs this for ledgers only, and a ``tag``. A ledger keeps the
      tag and, for each key of ``fields``, the value of one attribute: a number, a string, None, a
      tuple, a distance, or a value of another registered class. Never change a tag or a key:
      ledgers contain them. You may rename the class, its module and its attributes. Values must be
      immutable, and a value that is read must equal the value that was written. Of an accumulator,
      the ledger also keeps the running total: ``to_record`` returns it as JSON, ``from_record``
      reads it. If two machines may compute different totals for the same launches, the accumulator
      needs the method ``merged``.

    Every process that opens a ledger with such values must register their classes first.

    :param tag: of an accumulator or a distance: the name of your package, a colon and a name, in
        lower case, such as ``"acme:pair"``
    :param fields: attribute for each key; by default all fields of a dataclass, by their names
    :param make: function that makes a value from keyword arguments named like the keys; by default
        the class is called with keyword arguments named like the attributes
    :return: a function that registers a class and returns it
    :raises InvalidTypeError, InvalidValueError: naming what the class lacks; or if its kind or its
        tag is known already

    :example:

    >>> @oc.extend.register()
    ... class Doubled(oc.extend.NumberMeasure):
    ...     kind = "acme.Doubled"
    ...     reason = "twice the loss of pure DP, which adds up"
    ...     distance_form = "twice epsilon"
    ...     conversions_from = {
    ...         "MaxDivergence": oc.extend.Conversion(lambda epsilon, ends: 2 * epsilon)
    ...     }
    ...     def opendp(self):
    ...         return dp.user_divergence("acme.Doubled", "acme.Doubled")
    >>> space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> doubled = dp.user_divergence("acme.Doubled", "acme.Doubled")
    >>> oc.m.make_certified_laplace(*space, 2.0, doubled).map(1)
    1.0
    """
    if isinstance(tag, type):
        raise errors.InvalidTypeError("register is called before it decorates: @register()")

    def known(cls: C) -> C:
        if not isinstance(cls, type):
            raise errors.InvalidTypeError(f"a class can be registered, found {errors.shown(cls)}")
        if tag is not None:
            from ..ledger import register_tag  # which needs an extra

            own = {one.name: one.name for one in fields_of(cls)} if is_dataclass(cls) else {}
            register_tag(tag, cls, own if fields is None else fields, make=make)
        elif issubclass(cls, Kind):
            data.register(cls())
        elif issubclass(cls, CompositionMeasure):
            measures.register(cls)
        else:
            raise errors.InvalidTypeError(
                f"the class ({cls.__name__}) must be a CompositionMeasure or a Kind; for an "
                'accumulator or a distance, pass tag, such as "acme:pair"'
            )
        return cls

    return known
