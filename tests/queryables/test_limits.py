"""Opening a limit again: the same handle, under the same terms."""

from concurrent.futures import ThreadPoolExecutor

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, LimitMismatchError

from ..build import APPROXIMATE, SPACE, a_limit, an_odometer, costing, opened


def test_opening_again_gives_the_same_handle_and_keeps_the_terms():
    root = opened()
    made = a_limit()
    alice = root(made)
    alice(costing(0.25))
    assert root(made) is alice
    assert root(a_limit()) is alice
    for name, other in {"d_out": a_limit(0.75), "d_in": a_limit(d_in=2)}.items():
        with pytest.raises(LimitMismatchError, match=f"^{name} of the limit 'alice' does not") as e:
            root(other)
        assert (e.value.name, e.value.limit) == (name, ("alice",))
    measured = opened((1.0, 1e-6), APPROXIMATE)
    measured(a_limit((0.5, 1e-6), measure=APPROXIMATE))
    slack = oc.accumulators.advanced(1e-7)
    with pytest.raises(LimitMismatchError, match="^accumulator of the limit 'alice'"):
        measured(a_limit((0.5, 1e-6), measure=APPROXIMATE, accumulator=slack))
    with pytest.raises(InvalidValueError, match="another postprocessors than the limit 'alice'"):
        root(oc.c.make_chain_po(str, made))
    turned = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows, lambda d_in: d_in)
    with pytest.raises(InvalidValueError, match="another transformation than the limit"):
        root(oc.c.make_limited(turned >> an_odometer(), 1, 0.5, label="alice"))
    team = root(a_limit(0.5, "team"))
    inner = team(a_limit(0.5, "alice"))
    assert inner is not alice
    with pytest.raises(LimitMismatchError, match="of the limit 'team' > 'alice'"):
        team(a_limit(0.25, "alice"))
    assert root.privacy_loss() == 0.25


def test_threads_that_open_one_limit_share_it():
    root = opened()
    with ThreadPoolExecutor(8) as threads:
        handles = list(threads.map(lambda _: root(a_limit()), range(64)))
    assert len(set(map(id, handles))) == 1
