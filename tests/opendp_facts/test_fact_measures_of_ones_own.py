"""What OpenDP does with measures and distances that are Python objects."""

from dataclasses import FrozenInstanceError, dataclass

import opendp.prelude as dp
import pytest
from opendp.mod import ExtrinsicDivergence


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
