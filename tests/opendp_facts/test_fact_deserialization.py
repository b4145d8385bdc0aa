"""OpenDP rebuilds what was serialised by a function that it looks up at each call."""

import json

import opendp.prelude as dp
import pytest
from opendp import mod

dp.enable_features("contrib", "honest-but-curious")


def test_the_function_is_looked_up_when_it_is_used(monkeypatch):
    """``oc.install`` replaces it."""
    monkeypatch.setattr(mod, "_deserialization_hook", lambda record: ("rebuilt", record))
    assert dp.deserialize('{"some": 1}') == ("rebuilt", {"some": 1})


def test_it_imports_a_module_by_name():
    """So ``dp.deserialize`` is for trusted messages only."""
    message = dp.serialize(
        dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
    )
    assert json.loads(message)["__module__"] == "transformations"
    with pytest.raises(ModuleNotFoundError):
        dp.deserialize(message.replace('"transformations"', '"no_module_of_opendp"'))
