"""A bar for what takes long, by tqdm if it is installed.

Nothing that it shows depends on data: it is how many steps are done, and of how many.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import suppress
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


def counted(
    items: Iterable[T], progress: bool, total: int | None = None
) -> Generator[T, None, None]:
    """Yield items, and show a bar of how many are done if there is to be progress."""
    if progress:
        with suppress(ImportError):  # the extra named progress installs it
            items = import_module("tqdm.auto").tqdm(items, total=total)
    yield from items
