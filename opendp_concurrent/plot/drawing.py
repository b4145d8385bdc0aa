"""What the pictures share: axes, labels, and a curve with its bracket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import ConcurrentError, InvalidValueError
from ..fdp.function import TradeoffFunction, check_function

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class MissingMatplotlibError(ConcurrentError, ImportError):
    """Something was to be drawn, and matplotlib is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "pictures need matplotlib, which the extra named plot brings; "
            "from a clone: pip install -e '.[plot]'"
        )


def require_matplotlib() -> None:
    """Raise :class:`MissingMatplotlibError` if it is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingMatplotlibError from None


def drawable(**argument: Any) -> Any:
    """Return matplotlib's axes, or raise."""
    require_matplotlib()
    from matplotlib.axes import Axes

    return checks.instance(Axes)(**argument)


def axes(ax: Axes | None, size: tuple[float, float] = (6.0, 4.0)) -> Axes:
    """Return the axes to draw on; of a new figure of ``size``, in inches, if there are none yet."""
    if ax is not None:
        return ax
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").subplots()


def labelled(functions: Any, labels: Sequence[str] | None) -> list[tuple[TradeoffFunction, str]]:
    """Return one function or several with their labels, or raise."""
    single = checks.is_a(functions, TradeoffFunction)
    given = checks.sequence("TradeoffFunctions", functions=[functions] if single else functions)
    for one in given:
        check_function(functions=one)
    if labels is None:
        return [(one, repr(one).removeprefix("TradeoffFunction(")[:-1]) for one in given]
    labels = checks.each("names", checks.text)(labels=labels)
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
