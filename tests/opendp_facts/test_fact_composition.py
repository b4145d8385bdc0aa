"""Descriptors of measures, and the hook of deserialisation."""

from dataclasses import FrozenInstanceError, dataclass

import opendp.prelude as dp
import pytest
from opendp import mod
from opendp.mod import ExtrinsicDivergence

# --- native filters ---------------------------------------------------------------------------


dp.enable_features("contrib", "honest-but-curious")


def test_the_function_is_looked_up_when_it_is_used(monkeypatch):
    """``oc.install`` replaces it."""
    monkeypatch.setattr(mod, "_deserialization_hook", lambda record: ("rebuilt", record))
    assert dp.deserialize('{"some": 1}') == ("rebuilt", {"some": 1})


@dataclass(frozen=True)
class Plain:
    value: float

    def __lt__(self, other):
        return False

    __gt__ = __lt__


def test_a_descriptor_comes_back_and_is_annotated_if_it_lets_itself():
    measure = dp.user_divergence("mine", Plain(2.0))
    assert isinstance(measure, ExtrinsicDivergence)
    assert measure.descriptor == Plain(2.0)
    with pytest.raises(FrozenInstanceError):
        measure.descriptor.__opendp_dict__ = {}


def test_native_measures_have_no_descriptor():
    assert not hasattr(dp.max_divergence(), "descriptor")
