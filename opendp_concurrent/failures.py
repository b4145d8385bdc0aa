"""What may leave code that sees rows: an interrupt without its text, and no other exception.

``except Exception`` is too narrow there: a panic of Polars and ``SystemExit`` are no ``Exception``,
and their text may have a row.
"""

from __future__ import annotations

from contextlib import suppress
from logging import Logger


def pass_interrupt(error: BaseException) -> None:
    """Raise an interrupt anew, without text, notes or context; return if it is another exception.

    :param error: what such code has raised; the caller hides it if this function returns
    """
    interrupted = isinstance(error, KeyboardInterrupt)
    del error  # a traceback keeps this frame
    if not interrupted:
        return
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as fresh:
        fresh.__context__ = None  # it would be the error of the handler that the caller is in
        raise


def log(logger: Logger, message: str, error: BaseException) -> None:
    """Log what is hidden. A handler of the log may raise, or the error's class; that is dropped."""
    with suppress(BaseException):
        logger.error(message, exc_info=error)
