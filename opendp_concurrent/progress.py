"""Progress of what takes long: told to a callable, or shown as a bar by tqdm.

Nothing that is told depends on data: it is how many steps are done, and of how many. A callable
that raises counts as an interrupt, so nobody takes its error for one of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Annotated, Any, TypeVar

from .arguments.checks import guard
from .errors import InvalidTypeError
from .types import Argument

T = TypeVar("T")
Told = Callable[[int, int | None], object]


@guard("callable or None or flag", 3, "text")
def progress_of(name: str, value: Argument) -> Any:
    """Return a callable, True, or None for no progress, or raise."""
    if value is None or value is False:
        return None
    if value is True or callable(value):
        return value
    raise InvalidTypeError(
        f"{name} must be a callable that takes what is done and the total, or True for a bar, "
        f"found {type(value).__name__}"
    )


Progress = Annotated[Told | bool | None, progress_of]


def counted(
    items: Iterable[T], progress: Told | bool | None, total: int | None = None, every: int = 1
) -> Generator[T, None, None]:
    """Yield items, and tell how many are done.

    :param progress: called with the number that is done and the total; True for a bar
    :param total: number of items, if it is known
    :param every: after how many items it is told; it is told at the end, too
    :raises KeyboardInterrupt: if ``progress`` raises
    """
    if progress is None or progress is False:
        yield from items
        return
    done = 0
    with _bar(total) if progress is True else nullcontext(progress) as tell:
        for done, item in enumerate(items, start=1):
            yield item
            if done % every == 0:
                _tell(tell, done, total)
        if done % every or not done:
            _tell(tell, done, total)


def _tell(tell: Told, done: int, total: int | None) -> None:
    try:
        tell(done, total)
    except Exception as error:
        raise KeyboardInterrupt("progress has raised") from error


@contextmanager
def _bar(total: int | None) -> Iterator[Told]:
    try:
        tqdm = import_module("tqdm.auto").tqdm
    except ImportError:
        raise InvalidTypeError(
            "progress=True needs tqdm, which the extra named progress installs: from a clone, "
            "pip install -e '.[progress]'; or pass a callable"
        ) from None
    with tqdm(total=total) as bar:
        yield lambda done, _: bar.update(done - bar.n)
