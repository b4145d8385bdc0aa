"""Shares of losses that are fixed up front."""

import pytest

from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures.sums import Planned, ScalarSum


def test_a_plan_consumes_whole_shares_in_their_order():
    plan = Planned((0.5, 0.25, 1.0), 0, ScalarSum())
    assert not plan.exhausted
    assert plan.after(0.1).loss == 0.5
    assert plan.after(0.1, 2).remaining() == (1.0,)
    assert plan.after(0.0, 3).exhausted
    assert plan.after(0.1).within(0.5)
    assert not plan.after(0.1, 2).within(0.5)
    assert plan.after(0.1, 2).to_record() == [2, ScalarSum().after(0.75).to_record()]
    with pytest.raises(InvalidValueError, match="^all 3 d_mids are used"):
        plan.after(0.0, 4)
