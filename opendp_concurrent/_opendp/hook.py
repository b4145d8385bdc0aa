"""Functions of OpenDP that this package replaces, and the way back."""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from opendp import mod
from opendp.mod import Measurement, Transformation
from opendp.typing import _ELEMENTARY_TYPES

from .._checks import CopiedRecord
from .interrupts import uninterruptible


class Hook:
    """What stands in place of a function of OpenDP, from :meth:`put` until :meth:`undo`."""

    def __init__(self, owner: ModuleType | type, name: str, extend: Callable[[Any], Any]) -> None:
        """Describe the hook.

        :param owner: a module or class of OpenDP
        :param extend: returns the new function, from OpenDP's
        """
        self._owner, self._name, self._extend = owner, name, extend
        self._before: Any = None
        self._after: Any = None

    def __str__(self) -> str:
        return f"{self._owner.__name__}.{self._name}"

    def put(self) -> None:
        """Replace OpenDP's function. Idempotent."""
        if self._after is None:
            self._before = getattr(self._owner, self._name)
            self._after = self._extend(self._before)
            setattr(self._owner, self._name, self._after)

    def undo(self) -> None:
        """Put OpenDP's function back, unless somebody else has replaced it since."""
        if self._after is not None and getattr(self._owner, self._name) is self._after:
            setattr(self._owner, self._name, self._before)
            self._after = None


def infer_as_measurement(*kinds: type) -> None:
    """Make OpenDP treat ``kinds`` as measurements where it infers types, as in lists."""
    _ELEMENTARY_TYPES.update(dict.fromkeys(kinds, "AnyMeasurementPtr"))


def copy_lists() -> None:
    """Make measurements keep copies of the lists that they are made of. Idempotent."""
    Measurement.__opendp_dict__ = CopiedRecord()


def chaining(chains: dict[type, Callable[[Any, Transformation], Any]]) -> Hook:
    """Return the hook by which ``transformation >> x`` reaches the chain for the kind of x.

    OpenDP declares ``Transformation >> Odometer`` and does not implement it.
    """

    def extend(original: Callable[..., Any]) -> Any:
        @wraps(original)
        def rshift(self: Transformation, other: Any) -> Any:
            for kind, chain in chains.items():
                if isinstance(other, kind):
                    return chain(other, self)
            if isinstance(other, (Measurement, Transformation)):  # made already: a short call
                return uninterruptible(original)(self, other)
            return original(self, other)

        return rshift

    return Hook(Transformation, "__rshift__", extend)


def deserializing(module: str, rebuild: Callable[[dict[str, Any]], Any]) -> Hook:
    """Return the hook by which ``dp.deserialize`` rebuilds what ``module`` has made."""

    def extend(original: Callable[..., Any]) -> Any:
        @wraps(original)
        def hook(record: dict[str, Any]) -> Any:
            ours = "__function__" in record and record.get("__module__") == module
            return rebuild(record) if ours else original(record)

        return hook

    return Hook(mod, "_deserialization_hook", extend)
