"""Five pictures: budgets over time, the accuracy of a plan, trade-off curves, counters, ledgers.

These functions need matplotlib, which the extra ``plot`` installs. They import it when they draw,
and raise an ImportError that names the extra if it is missing. Each function draws on the axes
``ax``, or on those of a new figure, and returns the axes. A new figure belongs to no window, so it
does not depend on a backend. To save it, use ``ax.figure.savefig(...)``. An invalid argument raises
``InvalidTypeError`` or ``InvalidValueError``, which names it. :func:`plot_ledger` needs the extra
``ledger``, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from math import floor, inf
from typing import TYPE_CHECKING, Any

import numpy as np
from opendp.mod import Measure, Measurement

from . import _checks as checks
from ._checks import function
from .context import smallest_scale
from .errors import Argument, Distance, InvalidTypeError, InvalidValueError, Loss
from .fdp import Array, TradeoffFunction, check_function
from .measures import PRIOR, composition_measure, height, risk, rounded_up, tradeoff
from .measures import name as name_of_loss
from .queryables import accuracy_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes

    from .ledger import SqlLedger
else:
    Axes = Any  # matplotlib is imported when something is drawn

__all__ = [
    "accuracy_of_plan",
    "plot_ledger",
    "plot_session",
    "plot_tradeoff",
]


def _axes(ax: Axes | None) -> Axes:
    """Return the given axes, or those of a new figure."""
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib; the extra named plot installs it: from a clone, "
            "pip install -e '.[plot]'",
            name="matplotlib",
        ) from error
    if ax is None:
        return Figure(figsize=(6.0, 4.0), layout="constrained").subplots()
    found: Axes = checks.instance(Axes)(ax=ax)
    return found


def _from_array(values: Argument) -> Any:
    """Return a small array as a list, and anything else as it is."""
    small = isinstance(values, np.ndarray) and values.size <= checks.MOST_ELEMENTS
    return values.tolist() if small else values


def _listed(of: str, inner: checks.Guard[Any]) -> checks.Guard[list[Any]]:
    """Return a guard of nonempty sequences or arrays, whose elements pass another guard."""
    read = checks.each(of, inner, empty=False)
    return checks.Guard(
        lambda name, value: read.check(name, _from_array(value)), read.kind, read.refused
    )


def _named(of: str) -> checks.Guard[dict[Any, Any]]:
    """Return a guard of nonempty mappings from names."""

    def check(name: str, value: Argument) -> dict[Any, Any]:
        found = checks.mapping(f"names to {of}", **{name: value})
        if not found:
            raise InvalidTypeError(f"{name} must be a nonempty mapping from names to {of}")
        return found

    return checks.Guard(check, "nothing hostile", (None, 3, [1], {}))


def _labelled(functions: Any, labels: Sequence[str] | None) -> list[tuple[TradeoffFunction, str]]:
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


def _finish(ax: Axes, xlabel: str, ylabel: str) -> Axes:
    """Name the axes, and draw the grid and the legend."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(visible=True, which="major", alpha=0.3)
    ax.legend()
    return ax


# --- a budget over time --------------------------------------------------------------------------


@checks.checked(order=checks.optional(checks.order))
def plot_session(
    losses: Mapping[str, Sequence[Any]] | Sequence[Any],
    *,
    d_out: Loss | None = None,
    refused: Mapping[str, Sequence[int]] | Sequence[int] = (),
    order: float | None = None,
    ylabel: checks.Text | None = None,
    output_measure: Measure | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the result of ``privacy_loss()`` after each launch, and the bound.

    The number drawn is the ε of a pair (ε, δ), the ρ of truncated concentrated DP, the ε of a
    trade-off function at δ = 1e-6, and the value of a Rényi curve at ``order``, or at the smallest
    order of its grid.

    A refused launch counts as a launch that does not change the loss.

    :param losses: after the first launch, the second, and so on; or a mapping from the names of
        several accounts or accumulators to such lists
    :param d_out: a bound, drawn as a dotted line
    :param refused: numbers of the refused launches, counted from 1, each marked by a cross; a
        mapping from the same names if ``losses`` is a mapping
    :param order: of Rényi curves
    :param ylabel: name of the y axis
    :param output_measure: of the losses; only for your own measure
    :param ax: axes to draw on

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    >>> losses, refused = [], []
    >>> for number, scale in enumerate([2.0, 4.0, 2.0, 4.0], start=1):
    ...     try:
    ...         release = root(space >> dp.t.then_count() >> dp.m.then_laplace(scale))
    ...     except oc.errors.BudgetExceededError:
    ...         refused.append(number)
    ...     losses.append(root.privacy_loss())
    >>> ax = oc.plot.plot_session(losses, d_out=1.0, refused=refused)
    >>> ax.get_lines()[0].get_ydata().tolist(), ax.get_lines()[1].get_xdata().tolist()
    ([0.5, 0.75, 0.75, 1.0], [3])
    """
    several = isinstance(losses, Mapping)
    given = {
        label: _items(values, f"losses[{label!r}]" if several else "losses")
        for label, values in (
            _named("lists")(losses=losses) if several else {"spent": losses}
        ).items()
    }
    crosses = _crosses(refused, given, several)
    under = None if output_measure is None else composition_measure(output_measure)
    of = "" if output_measure is None else " under output_measure"
    values = {
        label: [height(loss, order, of=f"losses{of}", under=under) for loss in items]
        for label, items in given.items()
    }
    bound = None if d_out is None else height(d_out, order, of=f"d_out{of}", under=under)
    ax = _axes(ax)
    colors = {
        label: ax.plot(np.arange(1, len(line) + 1), line, label=label, drawstyle="steps-post")[
            0
        ].get_color()
        for label, line in values.items()
    }
    hidden = ""  # the legend needs only one entry for refusals
    for label, where in crosses.items():
        if where:
            at = [values[label][number - 1] for number in where]
            ax.plot(where, at, "x", color=colors[label], label=f"{hidden}refused")
            hidden = "_"
    if bound is not None:
        ax.axhline(bound, color="0.5", linestyle=":", label="d_out")
    ax.set_ylim(bottom=0.0)
    first = next((loss for items in given.values() for loss in items), d_out)
    return _finish(
        ax, "launches", name_of_loss(first, order, under=under) if ylabel is None else ylabel
    )


def _items(values: Argument, argument: str) -> list[Any]:
    return list(checks.elements("losses or launches", **{argument: _from_array(values)}))


def _crosses(refused: Argument, given: dict[str, list[Any]], several: bool) -> dict[str, list[int]]:
    if several and isinstance(refused, tuple) and not refused:
        refused = {}
    if several != isinstance(refused, Mapping):
        raise InvalidTypeError("refused must be a mapping if losses is a mapping, else a list")
    numbers = refused if several else {"spent": refused}
    for label in numbers:
        if label not in given:
            raise InvalidValueError(f"refused[{label!r}] must be among the names of losses")
    found = {}
    for label, items in given.items():
        found[label] = [checks.count(refused=n) for n in _items(numbers.get(label, ()), "refused")]
        if any(number > len(items) for number in found[label]):
            raise InvalidValueError(
                f"refused ({max(found[label])}) must be at most {len(items)}, the launches made"
            )
    return found


# --- the accuracy of a plan ----------------------------------------------------------------------

_MOST = checks.at_most(2**53, "it is drawn as a double")


@checks.checked(
    make_measurement=function,
    launches=_listed("integers", _MOST),
    accumulators=checks.optional(_named("accumulators")),
    answers=checks.optional(_MOST),
)
def accuracy_of_plan(
    make_measurement: Callable[[float], Measurement],
    d_in: Distance,
    d_out: Loss,
    launches: Sequence[int],
    *,
    accumulators: Mapping[str, Any] | None = None,
    beta: checks.Probability = 0.05,
    answers: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the error of each query against the number of queries that share a budget evenly.

    The scale of the noise is :func:`.smallest_scale` for the number of launches, and the error is
    that of ``mechanism.accuracy(beta)`` at this scale. Nothing is launched.

    :param make_measurement: makes a mechanism of ``oc.m`` from a noise scale
    :param d_in: distance between neighbouring inputs
    :param d_out: bound on all launches together
    :param launches: numbers of launches, in the order in which they are drawn
    :param accumulators: maps names to accumulators, each with a line; the default is that of the
        measure
    :param beta: probability of a larger error, of each query
    :param answers: number of answers of one query, for mechanisms that need it
    :param ax: axes to draw on

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> zcdp = dp.zero_concentrated_divergence()
    >>> ax = oc.plot.accuracy_of_plan(
    ...     lambda scale: oc.m.make_certified_gaussian(*space, scale, zcdp), 1.0, 0.5, [1, 4, 16]
    ... )
    >>> [round(float(error), 2) for error in ax.get_lines()[0].get_ydata()]
    [1.96, 3.92, 7.84]
    """
    lines: dict[str, list[float]] = {}
    for name, accumulator in (accumulators or {"each query": None}).items():
        lines[name] = []
        for number in launches:
            scale = smallest_scale(make_measurement, d_in, d_out, number, accumulator=accumulator)
            lines[name].append(accuracy_of(make_measurement(scale)).at(beta, answers))
    ax = _axes(ax)
    for name, errors in lines.items():
        ax.plot(launches, errors, label=name, marker=".")
    ax.set_ylim(bottom=0.0)
    return _finish(ax, "queries that share the budget", f"error with probability {1 - beta:g}")


# --- trade-off curves ----------------------------------------------------------------------------

_SLOPES, _WIDTH = 400, 1e-4  # points of the profile, and the relative width of its brackets
_NOTHING = 1e-5  # δ of steeper slopes that is omitted
_LARGEST = 699.0  # ε whose e^ε is a double


@checks.checked(points=checks.at_most(10**5, "each is drawn"), prior=checks.optional(PRIOR))
def plot_tradeoff(
    functions: TradeoffFunction | Sequence[TradeoffFunction],
    *,
    labels: Sequence[str] | None = None,
    points: int = 201,
    prior: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw trade-off functions: β = f(α), the smallest type II error at each type I error.

    The line is a lower bound, which is guaranteed. The dotted line is 1 - α: no privacy loss.

    With a prior, a dashed line touches each curve at the best guess of an attacker, and its label
    says how often he is right at most.

    :param functions: one or several
    :param labels: names in the legend; by default those that the functions print
    :param points: number of values of α, at least 1; they are denser near 0 and 1
    :param prior: probability, before the attacker saw anything, that the person is in the data; see
        :func:`opendp_concurrent.measures.risk`
    :param ax: axes to draw on

    :example:

    >>> f = oc.TradeoffFunction.laplace(1.0)
    >>> ax = oc.plot.plot_tradeoff([f, oc.TradeoffFunction.pure(1.0)], labels=["Laplace", "pure"])
    >>> [line.get_label() for line in ax.get_lines()]
    ['Laplace', 'pure', '1 - α']
    """
    drawn = _labelled(functions, labels)
    # Chebyshev points, since trade-off functions bend near 0 and 1
    alphas = (1 - np.cos(np.linspace(0.0, np.pi, points))) / 2
    ax = _axes(ax)
    for one, label in drawn:
        line = ax.plot(alphas, _betas(one, alphas), label=label)[0]
        if prior is not None:
            success = risk(tradeoff(), one, prior=prior).success
            wrong = 1 - success  # = prior β + (1 - prior) α
            ax.plot(
                [0.0, wrong / (1 - prior)],
                [wrong / prior, 0.0],
                "--",
                color=line.get_color(),
                label=f"right with probability at most {rounded_up(success)}",
            )
    ax.plot([0.0, 1.0], [1.0, 0.0], "k:", linewidth=1.0, label="1 - α")
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    return _finish(ax, "type I error α", "type II error β")


def _betas(function: TradeoffFunction, alphas: Array) -> list[float]:
    """f(α), rounded down: by chords through its profile, if f has no closed form."""
    product = function.product
    if not product.is_exact or (product.squares and product.factors):
        both = function, function.inverse()
        grid = np.linspace(0.0, max(map(_reach, both)), _SLOPES)
        sides = [np.asarray(one.delta_bounds(grid, width=_WIDTH).upper) for one in both]
        falling = [np.minimum.accumulate(side).tolist() for side in sides]
        function = TradeoffFunction.from_profile(grid.tolist(), *falling)
    return [function.beta(float(alpha)) for alpha in alphas]


def _reach(function: TradeoffFunction) -> float:
    """ε beyond which δ is about its limit, at least 1."""
    target = min(1.0, float(function.delta(inf)) + _NOTHING)
    reach = float(function.epsilon_bounds(target, width=1e-2).upper)
    return min(max(1.0, reach), _LARGEST)


# --- ledgers -------------------------------------------------------------------------------------

_DRAWN = 10  # lines; there are as many colors
_BY = ("limit", "label", "block", "time")


@checks.checked(
    ledger=checks.with_method("to_dp_events", "be made by opendp_concurrent.ledger"),
    against=checks.one_of("time", "launches"),
    by=checks.optional(checks.one_of(*_BY)),
)
def plot_ledger(
    ledger: SqlLedger, *, against: str = "time", by: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the privacy loss after each launch, and the bound of a filter.

    The number drawn is the ε of a pair (ε, δ), the ρ of truncated concentrated DP, the value of a
    Rényi curve at its smallest order, and the ε of a trade-off function at δ = 1e-6.

    :param ledger: made by ``opendp_concurrent.ledger``; all of it is read and checked
    :param against: the x axis: ``"time"``, in whole days of UTC, or ``"launches"``
    :param by: what has a line of its own: each ``"limit"`` (:func:`.make_limited`), that is what an
        analyst or a team has spent; each ``"label"`` (:func:`.labelled`), with what its launches
        would cost alone; each ``"block"`` (:func:`.make_block_filter`); ``"time"`` is one line for
        the whole budget, or for the block with the largest loss so far. Of more than ten lines,
        the ten with the largest losses are drawn, and the legend says so. The default is
        ``"block"`` for the ledger of a block filter, and ``"time"`` for any other
    :param ax: axes to draw on
    :raises LedgerError: if the ledger cannot be read, or is not consistent

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> with oc.ledger.create_ledger(Path(folder.name) / "budget.db", dataset="survey") as ledger:
    ...     ax = oc.plot.plot_ledger(ledger)
    >>> folder.cleanup()
    """
    from .ledger import Line, has_blocks, height_of, in_words, spending

    summary, listed = ledger.read()
    entries = list(listed)
    terms = summary.terms
    of = by or ("block" if has_blocks(summary.spent) else "time")
    lines, number = spending(summary, entries, of, _DRAWN)
    if entries and not lines:
        raise InvalidValueError(
            f"by ({of!r}) must be something that the ledger has, such as 'time'"
        )
    ax = _axes(ax)
    for line in lines if entries else [Line("spent", [], [], 0)]:
        x: Any = [one.time if against == "time" else one.sequence for one in line.entries]
        label = line.name.replace("$", r"\$")  # no formula
        ax.plot(x, line.heights, label=label, drawstyle="steps-post", marker=".")
    if terms is not None and terms.d_out is not None:
        bound = height_of(terms.measure)(terms.d_out)
        ax.axhline(bound, color="0.5", linestyle=":", label="bound")
    ax.set_ylim(bottom=0.0)
    if against == "time" and entries:
        _in_days(ax, [one.time for one in entries])
    label = "privacy loss" if terms is None else f"privacy loss ({in_words(terms)})"
    ax = _finish(ax, "day (UTC)" if against == "time" else "launches", label)
    title = f"{len(lines)} of {number} {of}s,\nthe largest losses" if number > len(lines) else ""
    if len(lines) > 1:  # beside the lines, which go anywhere
        ax.legend(title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax


def _in_days(ax: Axes, times: list[datetime]) -> None:
    """Show whole days: a session of some seconds is one step, not an axis of its own."""
    from matplotlib import dates

    first, last = (floor(dates.date2num(one)) for one in (min(times), max(times)))  # type: ignore[no-untyped-call]
    ax.set_xlim(first, last + 1)
    locator = dates.AutoDateLocator(tz=timezone.utc, maxticks=8)  # type: ignore[no-untyped-call]
    formatter = dates.ConciseDateFormatter(locator, tz=timezone.utc)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(formatter)
