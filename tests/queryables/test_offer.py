"""0.1.0 charged what a privacy map said at the first launch, or what an attribute said."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError

dp.enable_features("contrib", "honest-but-curious")

PURE = dp.max_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ROWS = [1, 2, 3]


class Knob:
    """A measurement whose scale, and with it its map, changes."""

    def __init__(self, epsilon=0.1, measure=PURE, curve=lambda epsilon: epsilon):
        self.epsilon, self.read = epsilon, 0

        def privacy_map(d_in):
            self.read += 1
            return curve(self.epsilon * d_in)

        self.measurement = dp.m.make_user_measurement(
            *SPACE, measure, lambda rows: self.epsilon, privacy_map
        )


def filter_(d_out=1.0, measure=PURE):
    odometer = oc.make_concurrent_odometer(*SPACE, measure)
    return oc.make_concurrent_filter(odometer, 1, d_out)


def test_the_price_that_is_compared_is_the_price_that_is_charged():
    """A map that tells a small loss once, and a large one then."""
    answers = iter([0.25, 1e6] * 50)
    fickle = dp.m.make_user_measurement(*SPACE, PURE, len, lambda d_in: next(answers))
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    root = oc.make_concurrent_filter(odometer, 1, 1.0)(ROWS)
    child = root(odometer)
    assert (root.privacy_loss(), child.privacy_loss(1)) == (0.0, 0.0)
    child(fickle)
    assert (root.privacy_loss(), child.privacy_loss(1)) == (0.25, 0.25)
    with pytest.raises(BudgetExceededError):
        child(fickle)


def test_maps_of_opendp_are_read_once(monkeypatch):
    from opendp_concurrent.queryables import mechanism as offer

    read, real = [], offer.read_map
    monkeypatch.setattr(offer, "read_map", lambda one, d_in: (read.append(one), real(one, d_in))[1])
    root = filter_()(ROWS)
    laplace = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=100.0)
    for _ in range(5):
        root(laplace)
    assert len(read) == 1
    knob = Knob(0.01)
    for _ in range(5):
        root(knob.measurement)
    assert len(read) == 6
    prices = [price for price, _ in root._session.account.store.prices]
    assert len(set(map(id, prices))) == 2  # equal prices are kept once


@pytest.mark.parametrize("asked", [(), (3,)])
def test_an_odometer_that_is_asked_late_has_the_loss_of_the_launch(asked):
    knob = Knob()
    root = oc.make_concurrent_odometer(*SPACE, PURE)(ROWS)
    for d_in in asked:
        root.privacy_loss(d_in)
    child = root(oc.make_concurrent_odometer(*SPACE, PURE))
    knob.epsilon = 1e6
    child(knob.measurement)
    knob.epsilon = 0.1
    for handle in (root, child):
        assert handle.privacy_loss(asked[0] if asked else 1) == 1e6 * (asked[0] if asked else 1)


def test_a_map_that_does_not_answer_at_1_is_launched():
    """Nobody has asked for a loss there."""

    def from_2_on(d_in):
        if d_in < 2:
            raise ValueError("at least 2")
        return 0.5

    measurement = dp.m.make_user_measurement(*SPACE, PURE, len, from_2_on)
    root = oc.make_concurrent_odometer(*SPACE, PURE)(ROWS)
    root(measurement)
    assert root.privacy_loss(3) == 0.5
