"""One test over many cases, such as all names or all pages, which reports every case that fails."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def over(cases: Iterable[tuple[Any, ...]]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Return a decorator of a test with arguments: the test then runs on each case, in one test."""
    listed = list(cases)

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        @wraps(test)
        def all_cases() -> None:
            assert listed
            failed = []
            for case in listed:
                try:
                    test(*case)
                except AssertionError as error:
                    failed.append(f"{case}: {error}")
            assert not failed, "\n".join(failed)

        del all_cases.__wrapped__  # or pytest would look for fixtures of its arguments
        return all_cases

    return decorate
