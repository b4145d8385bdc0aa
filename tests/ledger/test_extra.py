"""Without SQLAlchemy, the import of the ledger names the extra."""

import importlib
import sys

import pytest

MODULE = "opendp_concurrent.ledger.extra"


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)  # its import fails
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(ImportError, match="the extra named ledger installs") as caught:
        importlib.import_module(MODULE)
    assert caught.value.name == "sqlalchemy"
