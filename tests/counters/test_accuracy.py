"""Error formulas against sums taken one by one."""

import math

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.counters.dyadic import BalancedLeaves, Dyadic
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 100, 1000, 4096])
def test_the_tree(horizon):
    height, average = oc.m.counter_nodes(horizon)
    assert height == math.floor(math.log2(horizon)) + 1
    ones = [bin(step).count("1") for step in range(1, horizon + 1)]
    assert average == pytest.approx(np.mean(ones), rel=1e-12)


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 100, 1000])
def test_smooth(horizon):
    height, average = oc.m.counter_nodes(horizon, "smooth")
    leaves = BalancedLeaves(horizon)
    assert height == leaves.height
    sums, nodes = Dyadic(leaves), []
    for _ in range(horizon):
        sums.add(1)
        nodes.append(len(sums.sums))
    assert average == pytest.approx(np.mean(nodes), rel=1e-12)
    assert max(nodes) <= height


def test_what_the_papers_say():
    assert oc.m.counter_nodes(1024)[0] == 11
    assert oc.m.counter_nodes(2**10 - 1)[1] == pytest.approx(5.0, rel=2e-3)
    assert oc.m.counter_nodes(1000, "smooth")[0] == 7
    assert oc.m.square_root_rmse(1_000_000) == pytest.approx(5.302347, abs=1e-6)


@pytest.mark.parametrize("horizon", [1, 2, 3, 16, 50])
def test_the_square_root_is_that_of_its_matrix(horizon):
    """B with B B the prefix sums: variance of a row times the norm of the columns."""
    first = [1.0]
    for k in range(1, horizon):
        first.append(first[-1] * (1 - 1 / (2 * k)))
    root = np.array(
        [[first[i - j] if i >= j else 0.0 for j in range(horizon)] for i in range(horizon)]
    )
    assert np.allclose(root @ root, np.tril(np.ones((horizon, horizon))))
    column = np.max(np.sum(root**2, axis=0))
    rows = np.mean(np.sum(root**2, axis=1))
    assert oc.m.square_root_rmse(horizon) == pytest.approx(math.sqrt(rows * column), rel=1e-12)


@pytest.mark.parametrize("call", [oc.m.counter_nodes, oc.m.square_root_rmse])
def test_bad_horizons(call):
    with pytest.raises(InvalidValueError, match="^horizon"):
        call(0)
    with pytest.raises(InvalidTypeError, match="^horizon"):
        call(1.5)
    with pytest.raises(InvalidValueError, match="^method"):
        oc.m.counter_nodes(5, "best")
