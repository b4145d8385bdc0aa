"""OpenDP rebuilds what was serialised by a function that it looks up at each call."""

import json

import opendp.prelude as dp
import pytest
from opendp import mod

import opendp_concurrent as oc
from opendp_concurrent.native.opendp import extend_deserialize

dp.enable_features("contrib", "honest-but-curious")


def test_the_function_is_looked_up_when_it_is_used(monkeypatch):
    """The extension for objects of this package replaces it."""
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


def test_the_extension_is_installed_once_and_leaves_the_rest_to_opendp():
    hook = mod._deserialization_hook
    extend_deserialize("opendp_concurrent", lambda record: record)
    assert mod._deserialization_hook is hook
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    assert dp.deserialize(dp.serialize(count)).map(1) == 0.5
    ours = oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [0.5])
    assert dp.deserialize(dp.serialize(ours)).map(1) == 0.5
