"""Gradients are clipped exactly, and what cannot be used adds nothing."""

import logging
import math
import warnings

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.training.gradients import LOGGER, NoisySum

dp.enable_features("contrib", "honest-but-curious")
STEPS = 2**24


def steps(noisy, returned):
    return noisy._steps(lambda row: returned, None)


@given(
    arrays(float, 5, elements=st.floats(allow_nan=False, allow_infinity=False)),
    st.sampled_from([1e-300, 1e-3, 1.0, math.pi, 1e300]),
)
def test_no_gradient_is_longer_than_the_grid_says(values, norm):
    found = steps(NoisySum(5, norm, 1.0), values)
    assert sum(int(one) ** 2 for one in found) <= STEPS**2
    with np.errstate(over="ignore"):
        length = math.hypot(*(values / norm).tolist())
    if length <= 1 - 1e-9:  # only rounded, toward zero
        assert np.all(np.abs(found) <= np.abs(values / norm * STEPS) * (1 + 1e-12))
        assert np.all(np.abs(found - values / norm * STEPS) <= 1 + 1e-6)
    elif math.isfinite(length):
        assert np.linalg.norm(found) >= STEPS - 4


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_equal_numbers_and_one_large_one_are_clipped(size):
    for values in (np.full(size, 1e200), np.eye(1, size)[0] * 1e308, np.full(size, 5e-324)):
        found = steps(NoisySum(size, 1.0, 1.0), values)
        assert sum(int(one) ** 2 for one in found) <= STEPS**2


def test_numbers_are_rounded_toward_zero():
    found = steps(NoisySum(3, 1.0, 1.0), np.array([0.9, -0.9, 1.5]) / STEPS)
    assert found.tolist() == [0, 0, 1]


def test_a_rounded_length_above_the_grid_is_made_shorter(monkeypatch):
    root = np.sqrt
    monkeypatch.setattr(np, "sqrt", lambda square: root(square) * (1 - 1e-6))  # a wrong length
    found = steps(NoisySum(2, 1.0, 1.0), [3.0, 4.0])
    assert STEPS - 100 <= math.hypot(*found.tolist()) <= STEPS


@pytest.mark.parametrize(
    "returned", [math.nan, [1.0, math.inf], [1.0], [[1.0, 2.0, 3.0]], None, "12", [1 + 2j, 1]]
)
def test_what_is_no_gradient_is_told_of_an_example_and_is_nothing_for_a_row(returned, caplog):
    noisy = NoisySum(2, 1.0, 1e-3)
    with pytest.raises(InvalidValueError, match=r"2 finite numbers .* nothing was charged"):
        noisy.tried(lambda row: returned, 0.0)
    with caplog.at_level(logging.WARNING, LOGGER):
        answer = noisy.release(lambda row: returned if row else [1.0, 0.0], [0, 77.25, 0])
    assert np.allclose(answer, [2.0, 0.0], atol=0.05)
    assert "1 rows" in caplog.text
    assert "77.25" not in caplog.text


def test_whatever_a_gradient_raises_is_nothing_but_an_interrupt():
    noisy = NoisySum(2, 1.0, 1e-3)

    def gradient(row):
        raise row

    assert np.allclose(noisy.release(gradient, [ValueError("x"), SystemExit(2)]), 0, atol=0.05)
    with pytest.raises(KeyboardInterrupt):
        noisy.release(gradient, [KeyboardInterrupt("a row")])


def test_a_gradient_is_clipped_as_a_copy(monkeypatch):
    """Not in the memory of the function, which another thread may fill for its own row."""
    largest, memory = np.max, np.ones(2)

    def changed(values):
        found = largest(values)
        memory[:] = 1e9, math.nan
        return found

    monkeypatch.setattr(np, "max", changed)
    total = steps(NoisySum(2, 1.0, 1.0), memory)
    assert math.isnan(memory[1])
    assert sum(int(one) ** 2 for one in total) <= STEPS**2


def test_no_warning_tells_of_a_row():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        NoisySum(1, 1.0, 1.0).release(lambda row: [np.log(row)], [np.float64(0.0), np.float64(2.0)])
        NoisySum(1, 1.0, 1.0).release(lambda row: [row], [1 + 2j])
    assert told == []


class Tensor:
    """As PyTorch's: it must be detached before it is an array."""

    def __init__(self, values, attached=True):
        self.values, self.attached = values, attached

    def detach(self):
        return Tensor(self.values, attached=False)

    def __array__(self, dtype=None, copy=None):
        assert not self.attached
        return np.array(self.values, dtype=dtype)


def test_arrays_of_other_libraries_and_of_any_shape():
    noisy = NoisySum(4, 10.0, 1e-3)
    for returned in (Tensor([[1, 2], [3, 4]]), np.array([1, 2, 3, 4], dtype=np.float32)):
        answer = noisy.release(lambda row, one=returned: one, [0])
        assert np.allclose(answer, [1, 2, 3, 4], atol=0.1)


def test_noise_has_the_scale():
    answer = NoisySum(2000, 2.0, 3.0).release(lambda row: row, [])
    assert abs(answer.std() / 6.0 - 1) < 0.12
    assert abs(answer.mean()) < 1.0
