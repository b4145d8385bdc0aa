"""Common parts of the pictures: axes, labels, and a curve with its bracket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ..arguments import checks
from ..arguments.abilities import instance
from ..arguments.checks import Guard, guard
from ..errors import ConcurrentError, InvalidTypeError, InvalidValueError
from ..fdp.function import TradeoffFunction, check_function
from ..types import Argument

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # matplotlib is imported when something is drawn


class MissingMatplotlibError(ConcurrentError, ImportError):
    """A picture needs matplotlib, which is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "pictures need matplotlib; the extra named plot installs it: from a clone, "
            "pip install -e '.[plot]'"
        )


def require_matplotlib() -> None:
    """Raise :class:`MissingMatplotlibError` if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingMatplotlibError from None


@guard("axes", 3, "text")
def drawable(name: str, value: Argument) -> Any:
    """Return matplotlib's axes, or raise."""
    require_matplotlib()
    from matplotlib.axes import Axes

    return instance(Axes).check(name, value)


Ax = Annotated[Axes, drawable]


def axes(ax: Axes | None, size: tuple[float, float] = (6.0, 4.0)) -> Axes:
    """Return the given axes, or those of a new figure of ``size``, in inches."""
    if ax is not None:
        return ax
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").subplots()


def from_array(values: Argument) -> Any:
    """Return a small array as a list, and anything else as it is."""
    small = isinstance(values, np.ndarray) and values.size <= checks.MOST_ELEMENTS
    return values.tolist() if small else values


def listed(of: str, inner: Guard[Any]) -> Guard[list[Any]]:
    """Return a guard of nonempty sequences or arrays, whose elements pass another guard."""
    read = checks.each(of, inner, empty=False)
    return Guard(lambda name, value: read.check(name, from_array(value)), read.kind, read.refused)


def named(of: str) -> Guard[dict[Any, Any]]:
    """Return a guard of nonempty mappings from names."""

    def check(name: str, value: Argument) -> dict[Any, Any]:
        found = checks.mapping(f"names to {of}", **{name: value})
        if not found:
            raise InvalidTypeError(f"{name} must be a nonempty mapping from names to {of}")
        return found

    return Guard(check, "nothing hostile", (None, 3, [1], {}))


def labelled(functions: Any, labels: Sequence[str] | None) -> list[tuple[TradeoffFunction, str]]:
    """Return one function or several with their labels, or raise."""
    single = isinstance(functions, TradeoffFunction)
    read = checks.each("TradeoffFunctions", check_function, empty=False)
    given = read(functions=[functions] if single else functions)
    if labels is None:
        return [(one, repr(one).removeprefix("TradeoffFunction(")[:-1]) for one in given]
    labels = checks.each("names", checks.text)(labels=labels)
    if len(labels) != len(given):
        raise InvalidValueError(
            f"labels ({len(labels)}) must have one name for each of the {len(given)} functions"
        )
    return list(zip(given, labels, strict=True))


def curve(ax: Axes, label: str, x: Any, guarantee: Any, other: Any = None, **style: Any) -> Any:
    """Draw the guaranteed side of a bracket as a line, and fill up to the other side.

    :return: the color
    """
    (line,) = ax.plot(x, guarantee, label=label, **style)
    color = line.get_color()
    if other is not None:
        ax.fill_between(x, guarantee, other, color=color, alpha=0.3, linewidth=0.0)
    return color


def finish(ax: Axes, xlabel: str, ylabel: str) -> Axes:
    """Name the axes, and draw the grid and the legend."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(visible=True, which="major", alpha=0.3)
    ax.legend()
    return ax
