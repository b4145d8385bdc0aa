"""Explain errors of a database, and say what to do."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

_LOST = "the connection failed: check the server and the network, and try again"
_ADVICE = (  # beginnings of SQLite's messages and of PostgreSQL's SQLSTATE; what to do
    (("database or disk is full", "53100"), "the disk is full: free some space, and try again"),
    (
        ("attempt to write a readonly database", "25006", "42501"),
        "it cannot be written: give this process write access to it and, for SQLite, to its folder",
    ),
    (
        ("database is locked", "database table is locked", "55P03"),
        "another process has kept it locked for {wait:g} s: end that process, or open the ledger "
        "with a longer wait, and try again",
    ),
    (
        ("unable to open database file", "3D000"),
        "it cannot be opened: check its name, its folder and the permissions; open_ledger only "
        "opens a ledger that create_ledger made",
    ),
    (("file is not a database",), "the file is not a ledger: check its name"),
    (("database disk image is malformed",), "the file is damaged: restore the newest copy"),
    (("disk I/O error",), "the disk failed: repair it before you continue"),
    (
        ("charges are append-only", "UNIQUE constraint failed", "23505", "P0001"),
        "another program writes to it: stop that program",
    ),
    (("08", "57P", "57014", "25P03", "28", "the server has not answered"), _LOST),
)


def explain(name: str, error: Exception, stands: str, wait: float) -> str:
    """Return a message: the error of the ledger ``name``, what to do, and what was charged."""
    own = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    reason = str(own).strip().split("\n")[0]
    what = getattr(own, "sqlstate", None) or reason
    advice = next((text for starts, text in _ADVICE if what.startswith(starts)), None)
    if advice is None:
        advice = _LOST if "connection" in reason else "resolve this, and try again"
    return f"ledger {name}: {reason}; {advice.format(wait=wait)}; {stands}"
