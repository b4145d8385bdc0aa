"""What OpenDP composes itself, and what its odometers, filters and compositors charge and trust."""

import json
import math
from dataclasses import FrozenInstanceError, dataclass

import opendp.prelude as dp
import pytest
from opendp import mod
from opendp.mod import ExtrinsicDivergence, OpenDPException

PURE = dp.max_divergence()
ZCDP = dp.zero_concentrated_divergence()
COMPOSED = {
    "pure": (PURE, 0.25, 1.0),
    "approximate": (dp.approximate(PURE), (0.25, 0.125), (1.0, 0.5)),
    "zCDP": (ZCDP, 0.25, 1.0),
    "approximate zCDP": (dp.approximate(ZCDP), (0.25, 0.125), (1.0, 0.5)),
}


@pytest.fixture
def odometer(space):
    return dp.c.make_fully_adaptive_composition(*space, PURE)


# --- what is composed -------------------------------------------------------------------------


@pytest.mark.parametrize("measure", COMPOSED)
def test_native_composition_adds_losses(space, user, measure):
    measure, share, four_shares = COMPOSED[measure]
    query = user(len, share, measure)
    odometer = dp.c.make_fully_adaptive_composition(*space, measure)
    compositor = dp.c.make_adaptive_composition(*space, measure, 1, [share] * 4)
    filter_ = dp.c.make_privacy_filter(odometer, 1, four_shares)
    assert compositor.map(1) == filter_.map(1) == four_shares
    assert dp.c.make_composition([query] * 4).map(1) == four_shares
    for mechanism in (odometer, compositor, filter_):
        root = mechanism([1, 2])
        assert [root(query) for _ in range(4)] == [2] * 4
        if mechanism is not compositor:
            assert root.privacy_loss(1) == four_shares


# --- what the odometer charges and believes ---------------------------------------------------


def test_a_native_odometer_charges_after_the_mechanism_has_run(odometer, user):
    root, losses = odometer([1]), []

    def fail(rows):
        losses.append(len(losses))
        raise ValueError("depends on the data")

    for _ in range(3):
        with pytest.raises(OpenDPException, match="depends on the data"):
            root(user(fail, 1.0))
    assert len(losses) == 3
    assert root.privacy_loss(1) == 0.0


def test_a_native_odometer_believes_a_negative_loss(odometer, user):
    root = odometer([1])
    root(user(len, 0.5))
    root(user(len, -5.0))
    assert root.privacy_loss(1) == -4.5


@pytest.mark.parametrize("bound", [-1.0, math.nan])
def test_a_native_filter_accepts_a_bound_that_is_none(odometer, bound):
    assert repr(dp.c.make_privacy_filter(odometer, 1, bound).map(1)) == repr(bound)


# --- native filters ---------------------------------------------------------------------------


def test_a_native_filter_maps_distances_up_to_its_own(odometer):
    filter_ = dp.c.make_privacy_filter(odometer, 2, 1.0)
    assert [filter_.map(d_in) for d_in in (0, 1, 2)] == [1.0] * 3
    with pytest.raises(OpenDPException, match="must not be greater"):
        filter_.map(3)


def test_a_native_filter_runs_the_mechanism_that_it_refuses(odometer, user):
    root, ran = dp.c.make_privacy_filter(odometer, 1, 1.0)([1]), []
    with pytest.raises(OpenDPException, match="exhausted"):
        root(user(lambda rows: ran.append(rows), 5.0))
    assert ran == [[1]]


@pytest.mark.parametrize("k", [7, 10, 11, 49])
def test_a_native_filter_refuses_the_last_of_k_times_one_kth(odometer, user, k):
    """opendp#2131, opendp#2789."""
    root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1])
    share = user(len, 1 / k)
    for _ in range(k - 1):
        root(share)
    with pytest.raises(OpenDPException, match="exhausted"):
        root(share)


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
