"""A path or a URL is checked before a file is touched."""

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from opendp_concurrent.ledger.opening import path_or_url


class Text(str):
    __slots__ = ()

    def __str__(self):
        return "elsewhere"


def test_paths_and_urls_are_returned():
    for given in ("budget.db", "postgresql+psycopg://user@host/database", Path("budget.db")):
        assert path_or_url(target=given) == given
    found = path_or_url(target=Text("budget.db"))
    assert (type(found), found) == (str, "budget.db")
