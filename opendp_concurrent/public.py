"""Public names of a module: all that ``dir`` lists, and what is suggested for a wrong name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import Any, NoReturn

_ROOMS: dict[str, Sequence[str]] = {}  # public names of each module that was imported
_OF_OPENDP = {  # what stands for its constructors here
    "make_adaptive_composition": "make_concurrent_composition",
    "make_sequential_composition": "make_concurrent_composition",
    "make_fully_adaptive_composition": "make_concurrent_odometer",
    "make_privacy_filter": "make_concurrent_filter",
}


def face(module: Mapping[str, Any]) -> tuple[list[str], Callable[[str], NoReturn], Any]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a module that only imports.

    Its names are public unless they begin with an underscore. They are imported as themselves,
    ``from .room import name as name``, which tells type checkers that they are public.
    """
    names = sorted(
        name
        for name, one in module.items()
        if not name.startswith("_") and not isinstance(one, ModuleType)
    )
    return names, *names_of(module["__name__"], names)


def names_of(
    module: str, names: Sequence[str]
) -> tuple[Callable[[str], NoReturn], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module with these public names."""
    _ROOMS[module] = names

    def unknown(wrong: str) -> NoReturn:
        places = {one: room for room, known in _ROOMS.items() for one in known}
        places |= dict.fromkeys(names, module)
        name = _OF_OPENDP.get(wrong, wrong)
        near = get_close_matches(name, () if name.startswith("_") else places, n=1, cutoff=0.8)
        hint = f"; did you mean {places[near[0]]}.{near[0]}?" if near else ""
        raise AttributeError(f"module {module!r} has no attribute {wrong!r}{hint}")

    return unknown, lambda: sorted(names)
