"""Error formulas against sums taken one by one."""

import math

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.counters.digits import best_digits
from opendp_concurrent.counters.dyadic import BalancedLeaves, Dyadic
from opendp_concurrent.counters.factors.buffered import buffered, endless
from opendp_concurrent.counters.factors.buffers_table import HORIZONS
from opendp_concurrent.counters.factors.factor_error import (
    decoder,
    mean_square,
    parameters,
    squared_norm,
)
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


PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


def matrices(factor, steps):
    """C and A C^-1, by solving."""
    delta, omega = parameters(factor.buffers)
    first = [1.0, *(np.sum(omega * (1 - delta) ** k) for k in range(steps - 1))]
    whole = np.array(
        [[first[i - j] if i >= j else 0.0 for j in range(steps)] for i in range(steps)]
    )
    return whole, np.linalg.solve(whole.T, np.tril(np.ones((steps, steps))).T).T


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 50, 200])
@pytest.mark.parametrize("unlimited", [False, True])
def test_a_buffered_error_is_that_of_its_matrices(steps, unlimited):
    factor = endless(2**50) if unlimited else buffered(steps)
    encode, decode = matrices(factor, steps)
    norm = factor.norm_squared(50) / 4**50
    rows = np.mean(np.sum(decode**2, axis=1))
    assert oc.m.counter_rmse(steps, endless=unlimited) == pytest.approx(math.sqrt(norm * rows))
    if not unlimited:
        assert norm == pytest.approx(np.sum(encode[:, 0] ** 2))


@pytest.mark.parametrize("exponent", HORIZONS)
def test_errors_in_closed_form_agree_with_steps(exponent):
    """Against sums of the first 2,000 entries, and norms against exact integers."""
    factor = buffered(2**exponent)
    found = parameters(factor.buffers)
    exact = factor.norm_squared(60) / 4**60
    assert squared_norm(*found, 2**exponent) == pytest.approx(exact, rel=1e-12)
    steps = min(2**exponent, 2000)
    lam, factors = decoder(*found)
    entries = np.sum(factors * (1 - lam) ** np.arange(steps)[:, None], axis=1)
    coder = factor.coder(60)
    sums = np.cumsum([coder.decode(int(k == 0) << 60) for k in range(steps)]).astype(float)
    assert entries == pytest.approx(sums * 2.0**-60, rel=1e-9)
    rows = np.mean(np.cumsum(entries**2))
    assert mean_square(*found, steps) == pytest.approx(rows, rel=1e-8)


@pytest.mark.parametrize("steps", [1, 2, 6, 7, 8, 100, 1000])
def test_errors_of_doubling(steps):
    """Each step by itself: j totals, and the nodes of the open epoch."""
    for measure, whole, node in ((ZCDP, 2, lambda j: 2 * j), (PURE, 8, lambda j: 8 * j * j)):
        variances = []
        for step in range(1, steps + 1):
            j = (step + 1).bit_length() - 1
            variances.append(whole * j + node(j) * (step + 1 - 2**j).bit_count())
        expected = math.sqrt(np.mean(variances))
        found = oc.m.counter_rmse(steps, "tree", measure, endless=True)
        assert found == pytest.approx(expected, rel=1e-8)


def test_other_errors():
    height, average = oc.m.counter_nodes(1000, "smooth")
    assert oc.m.counter_rmse(1000, "smooth") == math.sqrt(height * average)
    assert oc.m.counter_rmse(1000, "smooth", PURE) == height * math.sqrt(2 * average)
    assert oc.m.counter_rmse(1000, "square_root") == oc.m.square_root_rmse(1000)
    digits = best_digits(1000)
    nodes = np.mean([digits.nodes(step) for step in range(1, 1001)])
    found = oc.m.counter_rmse(1000, output_measure=PURE)
    assert found == pytest.approx(digits.height * math.sqrt(2 * nodes), rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((100, "digits"), "needs Laplace"),
        ((100, "buffered", PURE), "needs Gaussian"),
        ((0,), "^steps"),
        ((2**62 + 1,), "^steps"),
        ((100, "best"), "^method"),
    ],
)
def test_bad_arguments_of_errors(arguments, match):
    with pytest.raises(InvalidValueError, match=match):
        oc.m.counter_rmse(*arguments)
