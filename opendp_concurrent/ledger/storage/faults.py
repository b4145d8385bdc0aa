"""What went wrong with a database, and what to do about it."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

_LOST = "the connection failed: look after the server and the network, and ask again"
_ADVICE = (  # what SQLite says, classes of PostgreSQL's SQLSTATE; what to do
    (("database or disk is full", "53100"), "the disk is full: free some space, and ask again"),
    (
        ("attempt to write a readonly database", "25006", "42501"),
        "it cannot be written: let this process write it and, for SQLite, its folder",
    ),
    (
        ("database is locked", "database table is locked", "55P03"),
        "another process has kept it locked for {wait:g} s: find out which, or open the ledger "
        "with a longer wait, and ask again",
    ),
    (
        ("unable to open database file", "3D000"),
        "it cannot be opened: look at its name, its folder and the permissions; open_ledger opens "
        "what create_ledger has made",
    ),
    (("file is not a database",), "the file is not a ledger: look at its name"),
    (("database disk image is malformed",), "the file is damaged: restore the newest copy"),
    (("disk I/O error",), "the disk failed: look after it before you go on"),
    (
        ("charges are append-only", "UNIQUE constraint failed", "23505", "P0001"),
        "somebody writes to it by other means: stop them",
    ),
    (("08", "57P", "57014", "25P03", "28", "the server has not answered"), _LOST),
)


def explain(name: str, error: Exception, stands: str, wait: float) -> str:
    """Say what went wrong with the ledger ``name``, what stands, and what to do."""
    own = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    reason = str(own).strip().split("\n")[0]
    what = getattr(own, "sqlstate", None) or reason
    advice = next((text for starts, text in _ADVICE if what.startswith(starts)), None)
    if advice is None:
        advice = _LOST if "connection" in reason else "look after it, and ask again"
    return f"ledger {name}: {reason}; {advice.format(wait=wait)}; {stands}"
