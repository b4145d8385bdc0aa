"""What every public constructor has: features, guards, and a record of how it was called."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast, overload

from opendp.mod import assert_features

from ..arguments.checked import checked
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
    make: Any = None,
    /,
    *,
    features: tuple[str, ...] = FEATURES,
    **given: Callable[..., Any],
) -> Any:
    """Make a constructor that checks its arguments, needs features, and records its call.

    First the guards of the arguments, as by :func:`.checked`; then the features of OpenDP; then the
    constructor itself; then the record for ``dp.serialize``.

    :param features: those of OpenDP that the user must have enabled
    :param given: guards that no annotation carries
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def featured(*args: Any, **kwargs: Any) -> Any:
            assert_features(*features)
            return function(*args, **kwargs)

        return recorded(checked(**given)(cast(F, featured)))

    return decorate if make is None else decorate(make)
