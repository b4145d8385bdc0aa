"""What the pictures share: axes, labels, and a curve with its bracket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ConcurrentError, InvalidTypeError, InvalidValueError
from ..tradeoff.function import TradeoffFunction

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class MissingMatplotlibError(ConcurrentError, ImportError):
    """Something was to be drawn, and matplotlib is not installed."""

    def __init__(self) -> None:
        super().__init__("pictures need matplotlib: pip install 'opendp-concurrent[plot]'")


def require_matplotlib() -> None:
    """Raise :class:`MissingMatplotlibError` if it is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingMatplotlibError from None


def axes(ax: Axes | None, size: tuple[float, float] = (6.0, 4.0)) -> Axes:
    """Return the axes to draw on; of a new figure of ``size``, in inches, if there are none yet."""
    if ax is not None:
        return ax
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").subplots()


def labelled(functions: Any, labels: Sequence[str] | None) -> list[tuple[TradeoffFunction, str]]:
    """Return one function or several with their labels, or raise."""
    given = [functions] if isinstance(functions, TradeoffFunction) else functions
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or not given:
        raise InvalidTypeError("functions must be a TradeoffFunction, or a nonempty list of them")
    for one in given:
        if not isinstance(one, TradeoffFunction):
            raise InvalidTypeError(
                f"functions must be TradeoffFunctions, found {type(one).__name__}"
            )
    if labels is None:
        return [(one, repr(one).removeprefix("TradeoffFunction(")[:-1]) for one in given]
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Sequence):
        raise InvalidTypeError("labels must be a list of names, one for each function")
    if len(labels) != len(given):
        raise InvalidValueError(f"labels has {len(labels)} elements, functions {len(given)}")
    return list(zip(given, labels, strict=True))


def curve(ax: Axes, x: Any, guarantee: Any, other: Any, label: str) -> None:
    """Draw the guaranteed side of a bracket as a line, and fill up to the other side."""
    (line,) = ax.plot(x, guarantee, label=label)
    if other is not None:
        ax.fill_between(x, guarantee, other, color=line.get_color(), alpha=0.3, linewidth=0.0)


def finish(ax: Axes, xlabel: str, ylabel: str) -> Axes:
    """Name the axes, and draw grid and legend."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(visible=True, which="major", alpha=0.3)
    ax.legend()
    return ax
