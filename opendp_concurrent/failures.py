"""What may leave code that sees rows: an interrupt without its text, and no other exception.

``except Exception`` is too narrow there: a panic of Polars and ``SystemExit`` are no ``Exception``,
and their text may have a row.
"""

from __future__ import annotations

from .shown import is_a


def pass_interrupt(error: BaseException) -> None:
    """Raise an interrupt anew, without text, notes or context; return if it is another exception.

    :param error: what such code has raised; the caller hides it if this function returns
    """
    if not is_a(error, KeyboardInterrupt):
        return
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as fresh:
        fresh.__context__ = None  # it would be the error of the handler that the caller is in
        raise
