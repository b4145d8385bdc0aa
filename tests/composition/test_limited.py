"""Limits: bounds of their own below a cap, which refuses too."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    SpaceMismatchError,
)

from ..build import APPROXIMATE, PURE, SPACE, ZCDP, a_limit, an_odometer, costing, opened


def test_a_limit_below_an_odometer_and_a_compositor():
    root = an_odometer()([1, 2, 3])
    alice = root(a_limit())
    alice(costing(0.5))
    with pytest.raises(BudgetExceededError, match="^limit 'alice' of the odometer refuses"):
        alice(costing(0.25))
    assert root.privacy_loss(1) == 0.5
    shares = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25, 0.25])([1, 2, 3])
    bob = shares(a_limit(0.5, "bob"))
    bob(costing(0.125))
    assert (bob.privacy_loss(), shares.remaining()) == (0.125, (0.25,))
    with pytest.raises(BudgetExceededError, match="^the compositor refuses"):
        bob(costing(0.375))  # more than the next share
    with pytest.raises(BudgetExceededError, match="^limit 'bob' of the compositor refuses"):
        bob(costing(0.5))
    bob(costing(0.25))
    assert (bob.privacy_loss(), shares.remaining()) == (0.375, ())


def test_the_limit_may_have_another_accumulator_than_the_cap():
    tight = oc.accumulators.zcdp(1e-6)
    root = opened((1.0, 1e-6), APPROXIMATE, tight)
    alice = root(a_limit((0.5, 0.0), "alice", APPROXIMATE))
    query = costing((0.01, 0.0), measure=APPROXIMATE)
    for _ in range(49):  # 0.01 is a little more than 1/100
        alice(query)
    with pytest.raises(BudgetExceededError) as refusal:
        alice(query)
    assert refusal.value.account == ("filter", "limit 'alice'")
    assert refusal.value.accumulator == repr(oc.accumulators.basic())
    assert "49 launches" in repr(root)
    assert root.privacy_loss() not in ((0.5, 0.0), (0.5, 1e-6))


def test_d_in_of_a_limit_is_in_units_of_the_queries_below_a_chain():
    twice = dp.t.make_user_transformation(
        *SPACE, *SPACE, lambda rows: rows * 2, lambda d_in: 2 * d_in
    )
    whole = twice >> oc.make_concurrent_filter(an_odometer(), 2, 1.0)
    inside = oc.make_concurrent_filter(twice >> an_odometer(), 1, 1.0)
    for made in (whole, inside):
        root = made([1, 2, 3])
        alice = root(a_limit(0.5, d_in=1))
        assert alice(costing(0.25)) == 6
        assert (alice.privacy_loss(), root.privacy_loss()) == (0.25, 0.5)
        assert alice.privacy_loss(2) == 0.5


def test_a_limit_keeps_its_postprocessor_and_its_opaque_errors():
    root = opened()
    made = oc.c.make_limited(an_odometer() >> str, 1, 0.5, label="alice")
    assert root(made)(costing(0.25)) == "3"
    assert root(a_limit(label="bob") >> str)(costing(0.25)) == "3"
    opaque = oc.make_concurrent_odometer(*SPACE, PURE, opaque_errors=True)
    carol = root(oc.c.make_limited(opaque, 1, 0.5, label="carol"))

    def fails(rows):
        raise ValueError(f"{rows}")

    with pytest.raises(oc.errors.MechanismError):
        carol(costing(0.125, fails))
    assert carol.privacy_loss() == 0.125


def test_what_is_no_limit():
    with pytest.raises(InvalidTypeError, match="^a limit has no data of its own"):
        a_limit()([1, 2, 3])
    for taken in (
        lambda: oc.c.make_limited(a_limit(), 1, 0.5, label="again"),
        lambda: oc.make_concurrent_filter(a_limit(), 1, 0.5),
        lambda: dp.t.make_user_transformation(*SPACE, *SPACE, len, lambda d_in: d_in) >> a_limit(),
    ):
        with pytest.raises(InvalidTypeError, match="^odometer has the limit 'alice' already"):
            taken()
    with pytest.raises(InvalidValueError, match="^label must not be empty"):
        a_limit(label="")
    with pytest.raises(InvalidValueError, match="^label .* without NUL"):
        a_limit(label="a\0b")
    with pytest.raises(InvalidTypeError, match="^label"):
        a_limit(label=1)
    with pytest.raises(InvalidValueError, match="^d_out"):
        a_limit(float("inf"))
    with pytest.raises(InvalidTypeError, match="^orders must be left out"):
        a_limit(orders=[2.0])
    with pytest.raises(SpaceMismatchError, match="output_measure"):
        opened()(a_limit(measure=ZCDP))
    assert "limit          = 'alice', 0.5 at d_in=1" in repr(a_limit())
