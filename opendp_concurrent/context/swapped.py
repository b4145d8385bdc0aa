"""OpenDP's names for this package's compositors, odometers, filters and contexts, for a while."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from threading import RLock
from types import ModuleType
from typing import Any

from opendp import combinators

from .. import composition
from .._opendp import dp, uninterruptible
from .context import concurrent_context

_PAIRS = {
    "make_adaptive_composition": composition.make_concurrent_composition,
    "then_adaptive_composition": composition.then_concurrent_composition,
    "make_sequential_composition": composition.make_concurrent_composition,
    "then_sequential_composition": composition.then_concurrent_composition,
    "make_fully_adaptive_composition": composition.make_concurrent_odometer,
    "then_fully_adaptive_composition": composition.then_concurrent_odometer,
    "make_privacy_filter": composition.make_concurrent_filter,
}


def _instead(theirs: Any, ours: Any) -> Any:
    """Return ours as an object of its own: modules that use ours by its own name keep it."""

    @wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs)

    return call


_FUNCTIONS = [
    (theirs, _instead(theirs, ours))
    for name, ours in _PAIRS.items()
    if (theirs := getattr(combinators, name, None)) is not None  # a version may lack a name
]
_THEIRS = vars(dp.Context)["compositor"]
_OURS: Any = staticmethod(_instead(dp.Context.compositor, concurrent_context))
_LOCK = RLock()
_entered = 0
_consent = False  # whether the block enables the feature that constructors of this package need


@contextmanager
def swapped_in() -> Iterator[None]:
    """Let OpenDP's own names make compositors, odometers, filters and contexts of this package.

    Within the block, ``dp.c.make_adaptive_composition``, ``dp.c.make_fully_adaptive_composition``,
    ``dp.c.make_privacy_filter``, their ``then_`` forms and ``dp.Context.compositor`` are those of
    :doc:`/swap-in`. They are replaced as attributes of all loaded modules, and so also in OpenDP's
    own extras and where a module has imported them by name. Then OpenDP's are put back, also after
    an exception, and in modules that were loaded within the block.

    The block enables the feature `honest-but-curious`, which constructors of this package need, and
    disables it at the end if it was not enabled before.

    What was made in the block keeps working. Blocks may nest. The swap is for the whole process:
    all threads see it, until the last block of any thread ends. References elsewhere, such as in a
    list or as a default argument, are not replaced. A process that is started in the block has the
    swap only if it is a fork.

    :example:

    >>> import opendp.prelude as dp
    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> with oc.swapped_in():
    ...     compositor = dp.c.make_adaptive_composition(*space, dp.max_divergence(), 1, [0.5])
    >>> compositor.map(1), compositor([1, 2, 3]).remaining()
    (0.5, (0.5,))
    """
    try:
        _enter()
        yield
    finally:
        _leave()


@uninterruptible
def _enter() -> None:
    global _entered, _consent
    with _LOCK:
        if not _entered:
            _consent = "honest-but-curious" not in dp.GLOBAL_FEATURES
        _entered += 1
        dp.enable_features("honest-but-curious")
        _put(_FUNCTIONS, _THEIRS, _OURS)


@uninterruptible
def _leave() -> None:
    global _entered
    with _LOCK:
        _entered -= 1
        if not _entered and _consent:
            dp.disable_features("honest-but-curious")
        if not _entered:
            _put([(ours, theirs) for theirs, ours in _FUNCTIONS], _OURS, _THEIRS)


def _put(functions: list[tuple[Any, Any]], before: Any, after: Any) -> None:
    """Replace functions in every loaded module but ours, and the method of contexts."""
    found = {id(one): other for one, other in functions}
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and name.partition(".")[0] != "opendp_concurrent":
            names = ModuleType.__getattribute__(module, "__dict__")  # a lazy one stays unloaded
            for key, value in list(names.items()):
                if id(value) in found:
                    names[key] = found[id(value)]
    if vars(dp.Context)["compositor"] is before:
        dp.Context.compositor = after
