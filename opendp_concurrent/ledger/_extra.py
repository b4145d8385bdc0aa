"""What the ledger needs besides: said in words, where it is not installed."""

from __future__ import annotations

try:
    import sqlalchemy  # noqa: F401
except ImportError as error:
    raise ImportError(
        "a ledger needs SQLAlchemy, which the extra named ledger brings; from a clone: "
        "pip install -e '.[ledger]'",
        name="sqlalchemy",
    ) from error
