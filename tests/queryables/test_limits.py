"""Opening a limit again: the same handle, under the same terms."""

from concurrent.futures import ThreadPoolExecutor

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, LimitMismatchError

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()
APPROXIMATE = dp.approximate(PURE)


def odometer(measure=PURE, accumulator=None):
    return oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)


def capped(d_out=1.0, measure=PURE):
    return oc.make_concurrent_filter(odometer(measure), 1, d_out)([1, 2, 3])


def limit(d_out=0.5, label="alice", measure=PURE, accumulator=None, d_in=1):
    return oc.c.make_limited(odometer(measure, accumulator), d_in, d_out, label=label)


def costing(loss):
    return dp.m.make_user_measurement(
        *SPACE, PURE, len, lambda d_in: d_in * loss, TO="ExtrinsicObject"
    )


def test_opening_again_gives_the_same_handle_and_keeps_the_terms():
    root = capped()
    made = limit()
    alice = root(made)
    alice(costing(0.25))
    assert root(made) is alice
    assert root(limit()) is alice
    for name, other in {
        "d_out": limit(0.75),
        "d_in": limit(d_in=2),
    }.items():
        with pytest.raises(LimitMismatchError, match=f"^{name} of the limit 'alice' does not") as e:
            root(other)
        assert (e.value.name, e.value.limit) == (name, ("alice",))
    measured = capped((1.0, 1e-6), APPROXIMATE)
    measured(limit((0.5, 1e-6), measure=APPROXIMATE))
    slack = oc.accumulators.advanced(1e-7)
    with pytest.raises(LimitMismatchError, match="^accumulator of the limit 'alice'"):
        measured(limit((0.5, 1e-6), measure=APPROXIMATE, accumulator=slack))
    with pytest.raises(InvalidValueError, match="another postprocessors than the limit 'alice'"):
        root(oc.c.make_chain_po(str, made))
    turned = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows, lambda d_in: d_in)
    with pytest.raises(InvalidValueError, match="another transformation than the limit"):
        root(oc.c.make_limited(turned >> odometer(), 1, 0.5, label="alice"))
    team = root(limit(0.5, "team"))
    inner = team(limit(0.5, "alice"))
    assert inner is not alice
    with pytest.raises(LimitMismatchError, match="of the limit 'team' > 'alice'"):
        team(limit(0.25, "alice"))
    assert root.privacy_loss() == 0.25


def test_threads_that_open_one_limit_share_it():
    root = capped()
    with ThreadPoolExecutor(8) as threads:
        handles = list(threads.map(lambda _: root(limit()), range(64)))
    assert len(set(map(id, handles))) == 1
