"""0.1.0 charged what a privacy map said at the first launch, or what an attribute said."""

import pytest

from opendp_concurrent.errors import BudgetExceededError

from ..build import DATA, a_filter, an_odometer, costing, laplace


class Knob:
    """A measurement whose scale, and with it its map, changes."""

    def __init__(self, epsilon=0.1):
        self.epsilon = epsilon
        self.measurement = costing(lambda d_in: self.epsilon * d_in, lambda rows: self.epsilon)


def test_the_price_that_is_compared_is_the_price_that_is_charged():
    """A map that tells a small loss once, and a large one then."""
    answers = iter([0.25, 1e6] * 50)
    fickle, root = costing(lambda d_in: next(answers)), a_filter()(DATA)
    child = root(an_odometer())
    assert (root.privacy_loss(), child.privacy_loss(1)) == (0.0, 0.0)
    child(fickle)
    assert (root.privacy_loss(), child.privacy_loss(1)) == (0.25, 0.25)
    with pytest.raises(BudgetExceededError):
        child(fickle)


def test_maps_of_opendp_are_read_once(monkeypatch):
    from opendp_concurrent.queryables import mechanism as offer

    read, real = [], offer.read_map
    monkeypatch.setattr(offer, "read_map", lambda one, d_in: (read.append(one), real(one, d_in))[1])
    root = a_filter()(DATA)
    count = laplace(0.01)
    for _ in range(5):
        root(count)
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
    root = an_odometer()(DATA)
    for d_in in asked:
        root.privacy_loss(d_in)
    child = root(an_odometer())
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

    measurement = costing(from_2_on)
    root = an_odometer()(DATA)
    root(measurement)
    assert root.privacy_loss(3) == 0.5
