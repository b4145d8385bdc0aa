import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.queryables.session import Handle

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()


def count():
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=8.0)


def odometer():
    return oc.make_concurrent_odometer(*SPACE, PURE)


HANDLES = {
    "odometer": lambda: odometer()([1, 2, 3]),
    "filter": lambda: oc.make_concurrent_filter(odometer(), 1, 1.0)([1, 2, 3]),
    "compositor": lambda: oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5] * 2)([1, 2, 3]),
    "within a native call": lambda: dp.c.make_adaptive_composition(*SPACE, PURE, 1, [1.0])(
        [1, 2, 3]
    )(oc.make_concurrent_filter(odometer(), 1, 1.0)),
}


@pytest.mark.parametrize("name", HANDLES)
def test_every_handle_launches_by_a_call_and_by_invoke(name):
    handle = HANDLES[name]()
    assert isinstance(handle, Handle)
    assert isinstance(handle(count()), int)
    assert isinstance(handle.invoke(count()), int)
    assert (handle._transport is None) == (name != "within a native call")
