"""Import SQLAlchemy, or say which extra installs it."""

try:
    import sqlalchemy  # noqa: F401
except ImportError as error:
    raise ImportError(
        "a ledger needs SQLAlchemy, which the extra named ledger installs; from a clone: "
        "pip install -e '.[ledger]'",
        name="sqlalchemy",
    ) from error
