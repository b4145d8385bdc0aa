"""The menu of an analyst, and the rule that admits launches from it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ...arguments.abilities import hashable, with_method
from ...arguments.checked import checked
from ...arguments.checks import at_most, non_negative, sequence, shown
from ...errors import BudgetExceededError, ConcurrentError, InvalidTypeError, InvalidValueError
from ...types import Loss, State
from ..mechanism import FiniteMechanism, randomized_response


class Item(NamedTuple):
    """A mechanism to launch: its name, the loss that it declares, and its distributions."""

    name: str
    d_mid: Loss
    mechanism: FiniteMechanism


class Rule(Protocol):
    """A continuation rule, such as ``Within(d_out)``."""

    def admits(self, accumulator: State, d_mid: Loss) -> Any:
        """Return the next accumulator, or a ``BudgetExceededError``."""


def response_menu(*epsilons: float) -> list[Item]:
    """Randomized responses that declare (ε, 0).

    :param epsilons: one item for each

    :example:

    >>> [(item.name, item.d_mid) for item in oc.verify.response_menu(0.5, 1.0)]
    [('0.5', (0.5, 0.0)), ('1', (1.0, 0.0))]
    """
    numbers = [non_negative(**{f"epsilons[{index}]": one}) for index, one in enumerate(epsilons)]
    return [Item(f"{one:g}", (one, 0.0), randomized_response(one)) for one in numbers]


class Limited:
    """A rule that also limits the number of launches.

    Its states are pairs: an accumulator, and the number of launches that remain.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def admits(self, state: tuple[Any, int], d_mid: Loss) -> Any:
        """Return the next state, or a refusal."""
        accumulator, left = state
        if left == 0:
            return BudgetExceededError(accumulator, d_mid, None)
        after = self._rule.admits(accumulator, d_mid)
        return after if isinstance(after, BudgetExceededError) else (after, left - 1)


def _menu(**argument: Any) -> list[Item]:
    ((name, _),) = argument.items()
    items = list(sequence("Item(name, d_mid, mechanism)", **argument))
    for index, item in enumerate(items):
        if not isinstance(item, Item) or not isinstance(item.mechanism, FiniteMechanism):
            raise InvalidTypeError(f"{name}[{index}] must be Item(name, d_mid, FiniteMechanism)")
    return items


on_a_menu = checked(
    menu=_menu,
    accumulator=hashable,
    rule=with_method("admits", "have a method admits(accumulator, d_mid)"),
    most=at_most(500, "each is a level of recursion"),
)


def next_state(rule: Rule, state: State, item: Item) -> Any:
    """State after a launch; None if it is refused, or if it costs nothing and reveals nothing."""
    try:
        after = rule.admits(state, item.d_mid)
    except ConcurrentError:
        raise
    except Exception as error:
        raise InvalidTypeError(
            f"accumulator ({shown(state)}) must be a state of the rule, which fails on a launch of "
            f"{shown(item.d_mid)}: {error}"
        ) from error
    if isinstance(after, BudgetExceededError):
        return None
    if after == state:
        if item.mechanism.first == item.mechanism.second:
            return None
        raise InvalidValueError(
            f"menu item {item.name!r} is admitted at no cost, so without limit: {item.d_mid} "
            "does not change the state of the rule; wrap the rule in Limited to count launches"
        )
    return after


def check_depth(depth: int, most: int) -> None:
    """Raise if an analyst launches more than ``most`` mechanisms."""
    if depth > most:
        raise InvalidValueError(
            f"most ({most}) launches are too few, since the filter admits more; pass a larger "
            "number, or a smaller bound"
        )
