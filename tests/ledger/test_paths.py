"""A path or a URL is checked before a file is touched."""

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
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


@pytest.mark.parametrize("given", [None, 1, b"budget.db", ["budget.db"]])
def test_other_types_are_named(given):
    with pytest.raises(InvalidTypeError, match="target must be a path or a URL, found"):
        path_or_url(target=given)


@pytest.mark.parametrize("given", ["", "a\0b", "x" * 4097, "\udc80", Path("a\0b")])
def test_paths_that_cannot_be_are_named(given):
    with pytest.raises(InvalidValueError, match=r"target .* must be a valid path or URL"):
        path_or_url(target=given)
