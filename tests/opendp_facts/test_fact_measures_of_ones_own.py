"""What OpenDP does with measures and distances that are Python objects."""

from dataclasses import FrozenInstanceError, dataclass

import opendp.prelude as dp
import pytest
from opendp.mod import ExtrinsicDivergence, OpenDPException


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


def test_check_raises_on_incomparable_distances(space):
    measurement = dp.m.make_user_measurement(
        *space, dp.user_divergence("mine", 1), len, lambda d_in: Plain(1.0)
    )
    assert measurement.map(1) == Plain(1.0)
    assert measurement.check(1, Plain(1.0))
    with pytest.raises(OpenDPException, match="not comparable"):
        measurement.check(1, Plain(2.0))
    pair = dp.c.make_approximate(space >> dp.t.then_count() >> dp.m.then_laplace(1.0))
    with pytest.raises(OpenDPException, match="unknown ordering"):
        pair.check(1, (0.5, 0.1))


def test_float_noise_is_on_the_finest_grid_unless_k_says_otherwise():
    """Sensitivity grows by a step of the grid; at the finest it does not."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    assert dp.m.make_laplace(*space, scale=1.0).map(1.0) == 1.0
    assert dp.m.make_laplace(*space, scale=1.0, k=-3).map(1.0) == 1.125
    assert dp.m.make_gaussian(*space, scale=1.0).map(1.0) == 0.5
    assert dp.m.make_gaussian(*space, scale=1.0, k=-3).map(1.0) == 1.125**2 / 2
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    with pytest.raises(OpenDPException, match="k is only valid"):
        dp.m.make_laplace(*whole, scale=1.0, k=1)
