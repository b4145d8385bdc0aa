"""What every public constructor has: features, guards, and a record of how it was called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

from opendp.mod import assert_features

from ..arguments.checked import find_guards
from ..arguments.provenance import recorded
from . import guards as guards  # of OpenDP's objects, which annotations name

F = TypeVar("F", bound=Callable[..., Any])
FEATURES = ("contrib", "honest-but-curious")


@overload
def constructor(make: F, /) -> F: ...
@overload
def constructor(
    *, features: tuple[str, ...] = FEATURES, **given: Callable[..., Any]
) -> Callable[[F], F]: ...
def constructor(
    make: Any = None, /, *, features: tuple[str, ...] = FEATURES, **given: Callable[..., Any]
) -> Any:
    """Make a constructor that needs features, checks its arguments, and records its call.

    First the features of OpenDP; then the guards of the arguments, as by :func:`.checked`; then the
    constructor itself; then the record for ``dp.serialize``.

    :param features: those of OpenDP that the user must have enabled
    :param given: guards that no annotation carries
    """

    def decorate(make: F) -> F:
        guards = find_guards(make, given)
        made: F = recorded(make, guards, partial(assert_features, *features))
        vars(made).update(__guards__=guards, __features__=features)
        return made

    return decorate if make is None else decorate(make)
