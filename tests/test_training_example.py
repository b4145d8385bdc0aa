"""The example of training runs, and what its privacy rests on is true."""

import importlib.util
from math import inf, nan, sqrt
from pathlib import Path

import numpy as np
import pytest

from opendp_concurrent.errors import BudgetExceededError

pytest.importorskip("statsmodels")
PATH = Path(__file__).parents[1] / "docs" / "examples" / "training.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("training_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_units_are_sampled_independently_with_the_rate(example):
    """A false alarm beyond 7 standard deviations: below 3e-12 for each of 4 numbers."""
    n, rounds, rate = 20_003, 10, example.RATE
    drawn = np.array([example.sampler(rate)(n) for _ in range(rounds)])
    assert drawn.shape == (rounds, n)
    size = rounds * n
    assert abs(drawn.sum() - size * rate) <= 7 * sqrt(size * rate)
    for pairs in (drawn[:, 1:] & drawn[:, :-1], drawn[:, 8:] & drawn[:, :-8], drawn[1:] & drawn[0]):
        assert abs(pairs.sum() - pairs.size * rate**2) <= 7 * sqrt(pairs.size * rate**2) + 7
    assert example.sampler(rate)(0).tolist() == []
    assert example.sampler(0.5)(1000).any()


def test_no_row_moves_the_sum_by_more_than_the_grid(example):
    choose = np.random.default_rng(0)
    rows = choose.normal(size=(500, example.WIDTH + 1)) * 10.0 ** choose.integers(-9, 9, (500, 1))
    extreme = [1e308, -1e308, inf, nan, 0.0, 1e-320, 1.0]
    rows[: len(extreme)] = np.array(extreme)[:, None]
    for weights in (np.zeros(example.WIDTH), choose.normal(size=example.WIDTH) * 1e6):
        units = example.gradients(weights, rows)
        assert units.dtype == np.int64
        squares = [sum(int(one) ** 2 for one in row) for row in units]
        assert 0.9 * example.GRID**2 < max(squares) <= example.GRID**2


def test_the_loss_of_training_covers_both_directions(example):
    session = example.training_loss(2.0)
    whole = example.make_training(2.0).map(1)
    assert whole.inverse() == whole
    for epsilon in np.linspace(0.0, 1.5, 13):
        assert session.delta_bounds(epsilon).lower <= whole.delta(epsilon)
    noise = example.training_noise(2.0)
    assert 0.5 <= noise.map(1.0) <= 0.5 * (1 + 1e-9)
    (step,) = session.removed.product.factors
    assert step.size >= noise.map(1.0)


def test_a_model_is_trained_and_queried_within_the_budget(example):
    rows = example.respondents()[::20]
    found = example.analyse(rows)
    assert found["session"] <= found["together"] <= example.EPSILON * (1 + 1e-6)
    assert found["together"] < 0.95 * sum(found["apart"])
    assert found["scale"] < found["scale_apart"]
    assert found["model"].shape == (example.WIDTH,)
    assert len(found["counts"]) == example.COUNTS
    with pytest.raises(BudgetExceededError):
        found["launch"](example.make_training(found["scale"]))
    assert found["launch"].remaining() == ()


def test_a_wrong_model_takes_no_step(example):
    root = example.make_training(2.0, 1)(example.respondents()[:9])
    for wrong in ([nan] * example.WIDTH, [1e9] * example.WIDTH, [0.0]):
        with pytest.raises(Exception, match="models|reshape"):
            root(wrong)
    assert len(root([0.0] * example.WIDTH)) == example.WIDTH
    with pytest.raises(Exception, match="at most 1 models"):
        root([0.0] * example.WIDTH)


@pytest.mark.slow
def test_the_model_is_useful(example):
    """The larger class has .678, and a model without privacy .723."""
    rows = example.respondents()
    assert example.accuracy(example.analyse(rows)["model"], rows) > 0.69
