"""0.2.0 closed the lookup of all parts if Ctrl-C came during one of them."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

from ..moments import interrupted_at

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()
ROWS = [1, 2, 3, 4]


def parts():
    pair = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5, 0.5])
    by = oc.c.by_values({"a": range(3), "b": range(3, 10)})
    return oc.c.make_parallel_composition(*SPACE, by, {"a": pair, "b": pair})(ROWS)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("opened", [False, True])
def test_an_interrupted_lookup_closes_nothing_else(opened):
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    moment, kept = 1, []
    while True:
        handle = parts()
        if opened:
            assert handle["a"] is handle["a"]
        came = interrupted_at(moment, handle.__getitem__, "a", kept=kept)
        assert isinstance(handle["b"](count), int)
        assert isinstance(handle["a"](count), int)
        if not came:
            break
        moment += 1
    assert len(kept) > 5
