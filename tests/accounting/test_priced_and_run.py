"""What was priced and what ran were read at different times: a stability map changed in between."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.ledger import create_ledger

dp.enable_features("contrib", "honest-but-curious")

PURE = dp.max_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ODOMETER = oc.make_concurrent_odometer(*SPACE, PURE)
COUNT = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=5.0)  # 0.2 at distance 1


class Copies:
    """A transformation whose function copies each row, as often as its stability says."""

    def __init__(self, times=1):
        self.times, self.ran = times, []
        self.transformation = dp.t.make_user_transformation(
            *SPACE, *SPACE, self._copied, lambda d_in: d_in * self.times
        )

    def _copied(self, rows):
        self.ran.append(self.times)
        return list(rows) * self.times


def limited(odometer, label="ada"):
    return oc.c.make_limited(odometer, d_in=1, d_out=2.0, label=label)


def filtered(d_out=100.0, odometer=ODOMETER, **more):
    return oc.make_concurrent_filter(odometer, d_in=1, d_out=d_out, **more)


def test_a_child_odometer_keeps_the_stability_of_its_data():
    copies = Copies(50)
    root = filtered()([1, 2, 3])
    child = root(copies.transformation >> ODOMETER)
    child(COUNT)
    copies.times = 1
    child(COUNT)
    assert root.privacy_loss() == child.privacy_loss(1) == 20.0


@pytest.mark.parametrize("composed", ["odometer", "filter", "ledger"])
def test_the_root_keeps_the_stability_of_its_data(tmp_path, composed):
    copies = Copies(50)
    odometer = copies.transformation >> ODOMETER
    if composed == "ledger":
        ledger = create_ledger(tmp_path / "b.db", "b")
        odometer = copies.transformation >> oc.make_concurrent_odometer(
            *SPACE, PURE, ledger=ledger, d_in=1
        )
    made = filtered(odometer=odometer) if composed == "filter" else odometer
    root = made([1, 2, 3])
    copies.times = 1
    root(COUNT)
    assert root.privacy_loss(1) == 10.0
    assert copies.ran == [50]


def test_partial_constructors_and_several_transformations_are_one_map():
    outer, inner = Copies(2), Copies(3)
    chained = outer.transformation >> inner.transformation >> oc.then_concurrent_odometer(PURE)
    root = filtered()([1, 2, 3])
    child = root(chained)
    child(COUNT)
    outer.times = inner.times = 1
    child(COUNT)
    assert root.privacy_loss() == pytest.approx(2 * 6 * 0.2)


def test_a_part_is_not_opened_at_a_price_that_was_not_charged():
    epsilon = [0.1]
    part = dp.m.make_user_measurement(*SPACE, PURE, lambda rows: epsilon[0], lambda _: epsilon[0])
    parallel = oc.c.make_parallel_composition(
        *SPACE, oc.c.by_values({"a": [1], "b": [2]}), {"a": part, "b": COUNT}
    )
    root = filtered()([1, 2, 3])
    parts, others = root(parallel), root(parallel)
    epsilon[0] = 10.0
    with pytest.raises(InvalidValueError, match="privacy map of the part's measurement"):
        parts["a"]
    parts["b"]
    epsilon[0] = 0.1
    assert others["a"] == 0.1
    assert root.privacy_loss() == 0.4
