"""What belongs to the owner, and no code that runs on data may use: ledgers and stores."""

from __future__ import annotations

from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from ..accounts.lifecycle import check_home
from ..errors import ReentrantLaunchError
from .callbacks import remember

C = TypeVar("C")


def outside_only(cls: type[C]) -> type[C]:
    """Let the public methods of a ledger or a store refuse code that runs on data.

    Later launches would see what such code did to it, and so learn about the data.
    """
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and name.strip("_") in (name, "enter", "exit"):
            setattr(cls, name, _outside(method))
    return cls


def _outside(method: Any) -> Any:
    @wraps(method)
    def checked(*arguments: Any, **named: Any) -> Any:
        try:
            check_home(())
        except ReentrantLaunchError as error:
            remember(error)  # it may pass through native calls
            raise
        return method(*arguments, **named)

    return checked
