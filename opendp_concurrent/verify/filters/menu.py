"""What an analyst may launch, and when."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ... import checks
from ...checks import at_most, non_negative, shown
from ...errors import BudgetExceededError, ConcurrentError, InvalidTypeError, InvalidValueError
from ..mechanism import FiniteMechanism, randomized_response

MOST_LAUNCHES = at_most(500, "each is a level of recursion")


class Item(NamedTuple):
    """What an analyst may launch: a name, the loss that it declares, and what it does."""

    name: str
    d_mid: Any
    mechanism: FiniteMechanism


class Rule(Protocol):
    """A continuation rule, such as ``Within(d_out)``."""

    def admits(self, accumulator: Any, d_mid: Any) -> Any:
        """Return the next accumulator, or a ``BudgetExceededError``."""


def a_rule(**argument: Any) -> Any:
    """Return a continuation rule, or raise."""
    ((name, value),) = argument.items()
    if not callable(getattr(type(value), "admits", None)):
        raise InvalidTypeError(
            f"{name} must have a method admits(accumulator, d_mid), found {type(value).__name__}"
        )
    return value


def response_menu(*epsilons: float) -> list[Item]:
    """Randomized responses, which declare (ε, 0).

    :param epsilons: one item for each
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> [(item.name, item.d_mid) for item in verify.response_menu(0.5, 1.0)]
    [('0.5', (0.5, 0.0)), ('1', (1.0, 0.0))]
    """
    numbers = [non_negative(**{f"epsilons[{index}]": one}) for index, one in enumerate(epsilons)]
    return [Item(f"{one:g}", (one, 0.0), randomized_response(one)) for one in numbers]


class Limited:
    """A rule for analysts who launch a limited number of times.

    Its states are pairs: an accumulator, and how many launches are left.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def admits(self, state: tuple[Any, int], d_mid: Any) -> Any:
        """Return the next state, or a refusal."""
        accumulator, left = state
        if left == 0:
            return BudgetExceededError(accumulator, d_mid, None)
        after = self._rule.admits(accumulator, d_mid)
        return after if isinstance(after, BudgetExceededError) else (after, left - 1)


class Remembered:
    """The same verdicts, each asked for once: a refusal tells what remains, which is dear to find.

    :param rule: whose verdicts depend on the state and d_mid only
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._verdicts: dict[Any, Any] = {}

    def admits(self, state: Any, d_mid: Any) -> Any:
        """Return the next state, or the refusal."""
        key = state, d_mid
        if key not in self._verdicts:
            self._verdicts[key] = self._rule.admits(state, d_mid)
        return self._verdicts[key]


def check_menu(menu: Any) -> list[Item]:
    """Return the items, or raise."""
    checks.sequence("Item(name, d_mid, mechanism)", menu=menu)
    for index, item in enumerate(menu):
        if not isinstance(item, Item) or not isinstance(item.mechanism, FiniteMechanism):
            raise InvalidTypeError(f"menu[{index}] must be Item(name, d_mid, FiniteMechanism)")
    return list(menu)


def next_state(rule: Rule, state: Any, item: Item) -> Any:
    """State after a launch; None if it is refused, or if it tells nothing and costs nothing."""
    try:
        after = rule.admits(state, item.d_mid)
    except ConcurrentError:
        raise
    except Exception as error:
        raise InvalidTypeError(
            f"accumulator must be a state of the rule, found {shown(state)} where it admits "
            f"{shown(item.d_mid)}: {error}"
        ) from error
    if isinstance(after, BudgetExceededError):
        return None
    if after == state:
        if item.mechanism.first == item.mechanism.second:
            return None
        raise InvalidValueError(
            f"menu item {item.name!r} is admitted at no cost, so without an end: {item.d_mid} "
            "changes nothing in the rule's state; wrap the rule in Limited to count launches"
        )
    return after


class EndlessError(InvalidValueError):
    """More launches than are tried."""


def check_depth(depth: int, most: int) -> None:
    """Raise if an analyst launches without an end."""
    if depth > most:
        raise EndlessError(
            f"most ({most}) launches are made without an end; pass a larger one, or a smaller bound"
        )
