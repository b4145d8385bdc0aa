"""What was priced and what ran were read at different times: a stability map changed in between."""

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, PrivacyMapError
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


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "on a ledger"])
def test_a_limit_and_its_ancestors_are_charged_at_one_stability(tmp_path, kept):
    copies = Copies()
    more = {"ledger": create_ledger(tmp_path / "b.db", "b")} if kept else {}
    root = filtered(**more)([1, 2, 3])
    limit = root(limited(copies.transformation >> ODOMETER))
    copies.times = 50
    with pytest.raises(PrivacyMapError, match="nothing was charged"):
        limit(COUNT)  # the limit said 0.2 of 2.0, and the root paid 10
    assert (limit.privacy_loss(), root.privacy_loss(), copies.ran) == (0.0, 0.0, [])
    copies.times = 1
    limit(COUNT)
    copies.times = 50  # from here on the data are those of a stability of 1
    limit(COUNT)
    assert limit.privacy_loss() == root.privacy_loss() == 0.4
    assert copies.ran == [1]


def test_a_child_odometer_keeps_the_stability_of_its_data():
    copies = Copies(50)
    root = filtered()([1, 2, 3])
    child = root(copies.transformation >> ODOMETER)
    child(COUNT)
    copies.times = 1
    child(COUNT)
    assert root.privacy_loss() == child.privacy_loss(1) == 20.0
    with pytest.raises(PrivacyMapError, match="stability map"):
        child.privacy_loss(2)  # which the map of now would say
    copies.times = 50
    assert child.privacy_loss(2) == 40.0


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
    if composed != "ledger":
        with pytest.raises(PrivacyMapError, match="stability map"):
            root.privacy_loss(2)
    assert copies.ran == [50]


def test_a_root_whose_map_changes_while_its_function_runs_does_not_open():
    times = [1]

    def grown(rows):
        times[0] = 50
        return list(rows) * 50

    made = dp.t.make_user_transformation(*SPACE, *SPACE, grown, lambda d_in: d_in * times[0])
    with pytest.raises(InvalidValueError, match="stability map"):
        (made >> ODOMETER)([1, 2, 3])
    times[0] = 1
    root = filtered()([1, 2, 3])
    with pytest.raises(InvalidValueError, match="stability map"):
        root(made >> ODOMETER)(COUNT)
    assert root.privacy_loss() == 0.2  # charged before it ran
    times[0] = 1


def test_a_map_that_fails_while_the_function_runs_does_not_say_that_nothing_was_charged():
    works = [True]

    def function(rows):
        works[0] = False
        return rows

    made = dp.t.make_user_transformation(
        *SPACE, *SPACE, function, lambda d_in: d_in if works[0] else 1 / 0
    )
    root = filtered()([1, 2, 3])
    with pytest.raises(InvalidValueError, match="did not run to its end") as refusal:
        root(made >> ODOMETER)(COUNT)
    assert "nothing was charged" not in str(refusal.value)
    assert root.privacy_loss() == 0.2


def test_every_level_of_a_chain_is_checked():
    outer, inner = Copies(2), Copies(3)
    root = filtered()([1, 2, 3])
    middle = root(outer.transformation >> ODOMETER)
    lowest = middle(limited(inner.transformation >> ODOMETER))
    assert lowest.admits(COUNT)  # the maps are read
    for copies in (outer, inner):
        copies.times += 1
        with pytest.raises(PrivacyMapError, match="stability map"):
            lowest(COUNT)
        copies.times -= 1
    assert root.privacy_loss() == 0.0
    lowest(COUNT)
    assert root.privacy_loss() == 0.2 * 6
    outer.times, inner.times = 50, 1
    lowest(COUNT)
    assert (outer.ran, inner.ran) == ([2], [3])
    assert (root.privacy_loss(), lowest.privacy_loss()) == pytest.approx((2.4, 1.2))


def test_a_function_that_failed_runs_again_at_its_stability_only():
    fails, times = [True], [50]

    def copied(rows):
        if fails[0]:
            raise ValueError("not yet")
        return list(rows) * times[0]

    made = dp.t.make_user_transformation(*SPACE, *SPACE, copied, lambda d_in: d_in * times[0])
    root = filtered()([1, 2, 3])
    child = root(made >> ODOMETER)
    with pytest.raises(OpenDPException, match="not yet"):
        child(COUNT)
    assert root.privacy_loss() == 10.0
    fails[0], times[0] = False, 1
    with pytest.raises(PrivacyMapError, match="stability map"):
        child(COUNT)
    assert root.privacy_loss() == 10.0
    times[0] = 50
    child(COUNT)
    assert root.privacy_loss() == 20.0


def test_partial_constructors_and_several_transformations_are_one_map():
    outer, inner = Copies(2), Copies(3)
    chained = outer.transformation >> inner.transformation >> oc.then_concurrent_odometer(PURE)
    root = filtered()([1, 2, 3])
    child = root(chained)
    child(COUNT)
    outer.times = inner.times = 1
    child(COUNT)
    assert root.privacy_loss() == pytest.approx(2 * 6 * 0.2)


def test_an_odometer_on_blocks_keeps_the_stability_of_its_data():
    copies = Copies(5)
    weeks = oc.c.by_key(lambda record: record // 100)
    root = oc.c.make_block_filter(ODOMETER, d_in=1, d_out=100.0, blocks=weeks, keys=[1, 2])(
        [101, 201]
    )
    child = root([1], copies.transformation >> ODOMETER)
    assert child.admits(COUNT)  # which reads the map
    copies.times = 50
    with pytest.raises(PrivacyMapError, match="stability map"):
        child(COUNT)
    copies.times = 5
    child(COUNT)
    copies.times = 1
    child(COUNT)
    assert (root.privacy_loss(1), root.privacy_loss(2)) == (2.0, 0.0)


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
