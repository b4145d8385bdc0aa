"""Means, variances, quantiles and several answers from noisy sums, and prefix counts below them.

Intervals have the truth whenever the noise is within the accuracy. Errors of the strategies for
prefix counts are compared with published optima.
"""

import math
from fractions import Fraction
from math import isnan, sqrt
from statistics import fmean

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.mechanisms.noise import LaplaceNoise
from opendp_concurrent.tables import moments as prefixes
from opendp_concurrent.tables.aggregates import Joint
from opendp_concurrent.tables.moments import Moments, Strategy, strategy_for
from opendp_concurrent.tables.schema import schema_of

from .pipelines import Data

VALUES = {"mean": 1, "variance": 2, "stdev": 2}


def exact(values):
    """Mean, variance and deviation of numbers, by definition."""
    mean = sum(map(Fraction, values)) / len(values)
    variance = sum((one - mean) ** 2 for one in map(Fraction, values)) / len(values)
    return {"mean": float(mean), "variance": float(variance), "stdev": sqrt(variance)}


def sums(values):
    return len(values), sum(values), sum(one**2 for one in values)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("statistic", VALUES)
@given(st.data())
@settings(deadline=None, max_examples=25)
def test_the_interval_has_the_truth_if_the_noise_is_within_the_accuracy(norm, statistic, data):
    first = data.draw(st.integers(-1000, 1000))
    last = data.draw(st.integers(first + 1, first + 2000))
    values = data.draw(st.lists(st.integers(first, last), min_size=1, max_size=30))
    known = Moments(first, last, 0.5, True, VALUES[statistic], norm)
    accuracy = data.draw(st.sampled_from([0, 1, 50, 10**4, 10**9]))
    noise = st.integers(-accuracy, accuracy)
    noisy = [one + data.draw(noise) for one in known.integers(*sums(values))]
    found = known.estimate(noisy, accuracy, statistic)
    truth = exact([Fraction(one) / 2 for one in values])[statistic]
    slack = 1e-6 * max(1.0, abs(truth))
    assert found.lower - slack <= truth <= found.upper + slack
    assert found.lower - slack <= found.value <= found.upper + slack
    if accuracy == 0:
        assert found.value == pytest.approx(truth, rel=1e-6, abs=1e-6)


@given(st.lists(st.floats(-1.0, 5.0), min_size=1, max_size=30), st.sampled_from(list(VALUES)))
@settings(deadline=None)
def test_the_interval_is_about_rounding_too(values, statistic):
    step = 0.25
    known = Moments(-4, 20, step, False, VALUES[statistic], "l1")
    rounded = [round(one / step) for one in values]
    found = known.estimate(known.integers(*sums(rounded)), 0.0, statistic)
    truth = exact(values)[statistic]
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.sampled_from(["l1", "l2"]))
def test_no_value_adds_more_than_the_map_says(first, width, norm):
    last = first + width
    for order in (1, 2):
        known = Moments(first, last, 1.0, True, order, norm)
        for value in {first, last, known.middle, first + width // 3}:
            row = known.integers(1, value, value**2)
            pairs = zip(row, known.per_row, strict=True)
            assert all(abs(one) <= most for one, most in pairs)


@pytest.mark.parametrize(("norm", "power"), [("l1", 1), ("l2", 2)])
def test_the_shares_are_the_best_for_a_mean_that_may_be_anywhere(norm, power):
    """By a search over the weight of the count."""
    known = Moments(0, 10**6, 1.0, True, 1, norm)

    def error(weight):  # of a sum with noise of the size of the map, and of the count
        scale = sum(one**power for one in (known.reach, weight)) ** (1 / power)
        return scale * sqrt(1 + (known.reach / weight) ** 2 / 3)

    best = min(range(10**5, 10**6, 500), key=error)
    assert known.weights[1] == pytest.approx(best, rel=1e-2)
    assert error(known.weights[1]) <= error(best) * (1 + 1e-6)


@pytest.mark.parametrize("statistic", VALUES)
def test_of_nobody_nothing_is_known(statistic):
    known = Moments(-4, 20, 0.5, True, VALUES[statistic], "l1")
    found = known.estimate([0] * (known.order + 1), 0.0, statistic)
    assert isnan(found.value)
    least, most = {"mean": (-2, 10), "variance": (0, 36), "stdev": (0, 6)}[statistic]
    assert (found.lower, found.upper) == (least, most)


# --- several answers in one launch ----------------------------------------------------------------

SCHEMA = {"person": int, "age": int, "hours": float, "zone": str}
ROWS = [(p, p % 90, p % 7 * 0.5, "ab"[p % 2]) for p in range(2000)]
LOSSES = {"laplace": {"epsilon": 1e4}, "gaussian": {"rho": 1e7}}


@pytest.fixture(scope="module")
def visits(on_duckdb):
    return on_duckdb.load(Data.of(SCHEMA, "person", ROWS))


def context(table, loss):
    unit = oc.tables.unit_of(units=1)
    return oc.concurrent_context(table, unit, dp.loss_of(**loss), split_evenly_over=9)


@pytest.mark.parametrize("noise", LOSSES)
def test_a_summary_prints_the_shares_of_the_loss(visits, noise):
    asked = context(visits, LOSSES[noise]).query().truncate(3)
    for statistic, parts in (("mean", 2), ("variance", 3), ("stdev", 3)):
        said = getattr(getattr(asked, statistic)("age", (0, 89)), noise)().summarize(0.05)
        shares = dict(said.shares)
        assert list(shares) == ["squares", "sum", "count"][-parts:]
        assert sum(shares.values()) == pytest.approx(1.0)
        assert all(f"share of {one}" in repr(said) for one in shares)
        if statistic == "mean":  # a row adds at most 45 to the sum around the middle
            ((total, of),) = ((one / 9, name) for name, one in LOSSES[noise].items())
            own = 3 * 45 / said.scale if of == "epsilon" else (3 * 45 / said.scale) ** 2 / 2
            assert shares["sum"] == pytest.approx(own / total, rel=1e-3)
    assert asked.count().laplace().summarize().shares == ()


@pytest.mark.parametrize("noise", LOSSES)
def test_several_answers_by_group_are_one_frame(visits, noise):
    few = context(visits, LOSSES[noise]).query().truncate(1)
    by = {"by": "zone", "keys": ["b", "a", "nobody"]}
    query = few.select(
        n=few.count(**by),
        age=few.mean("age", (0, 89), **by),
        s=few.sum(**by, column="age", bounds=(0, 89)),
    )
    frame = getattr(query, noise)().release(frame="polars")
    assert frame.columns == [
        *("zone", "n", "n_lower", "n_upper", "age", "age_lower", "age_upper"),
        *("s", "s_lower", "s_upper"),
    ]
    assert frame["n"].to_list() == pytest.approx([1000, 1000, 0], abs=2)
    truth = [fmean(row[1] for row in ROWS if row[3] == zone) for zone in "ba"]
    assert frame["age"].to_list()[:2] == pytest.approx(truth, rel=1e-2)
    assert math.isnan(frame["age"][2])


def test_answers_have_equal_shares():
    schema = schema_of({"p": int, "age": int, "big": int}, "p")
    answers = [
        oc.tables.Answer("count"),
        oc.tables.Answer("sum", "big", (0, 10**6)),
        oc.tables.Answer("mean", "age", (0, 120)),
    ]
    for norm in ("l1", "l2"):
        joint, power = Joint.of(schema, answers, norm), {"l1": 1, "l2": 2}[norm]
        shares, at = [], 0
        for part in joint.parts:
            own = joint.per_row[at : at + len(part.per_row)]
            at += len(own)
            shares.append(sum(one**power for one in own) ** (1 / power))
        assert max(shares) <= 17 / 16 * min(shares)


@pytest.mark.parametrize("noise", LOSSES)
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_quantiles_by_group(visits, noise, alpha):
    few = context(visits, LOSSES[noise]).query().truncate(1)
    query = few.quantile("age", range(90), alpha, by="zone", keys=["a", "b"])
    for zone, one in zip("ab", getattr(query, noise)().release(), strict=True):
        ages = [row[1] for row in ROWS if row[3] == zone]
        truth = max(c for c in range(90) if sum(a < c for a in ages) <= alpha * len(ages))
        assert one.lower <= truth <= one.upper
        assert abs(one.value - truth) <= 2


def test_what_does_not_fit_together_is_refused_before_the_charge(visits):
    made = context(visits, {"epsilon": 1.0})
    few = made.query().truncate(1)
    by = {"by": "zone", "keys": ["a"]}
    wrong = {
        "columns must be": lambda: few.select(),
        "n must be a count": lambda: few.select(n=few.count().laplace()),
        "m must be a count": lambda: few.select(m=few.median("age", range(9))),
        "q must be a count": lambda: few.select(q=few.quantile("age", range(9), **by)),
        "o must be a count": lambda: few.select(o=made.query().truncate(1).count()),
        "x must be a count": lambda: few.select(x="age"),
        "must have the by": lambda: few.select(a=few.count(), b=few.count(**by)),
        r"laplace\(\) or gaussian\(\)": lambda: few.mean("age", (0, 89)).release(),
        "keys must be given together": lambda: few.mean("age", (0, 89), by="zone"),
        "given together": lambda: few.quantile("age", range(9), by="zone"),
        "increasing": lambda: few.quantile("age", [2, 1], **by),
        "at most 1000": lambda: few.quantile("age", range(1001), **by),
        "laplace": lambda: few.select(n=few.count()).release(),
    }
    for message, ask in wrong.items():
        with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
            ask()
    assert made.current_privacy_loss() == []


# --- prefix counts --------------------------------------------------------------------------------

OPTIMA = {8: 1.494414, 16: 1.6909, 64: 2.1010}  # by 13 iterations or a descent over all matrices


@pytest.mark.parametrize("cells", OPTIMA)
def test_gaussian_strategies_are_near_the_optimum(cells):
    found = strategy_for(cells, "l2").error("l2")
    assert 0.999 * OPTIMA[cells] <= found <= 1.01 * OPTIMA[cells]


@pytest.mark.parametrize(("cells", "most"), [(16, 4.0), (64, 5.85), (90, 6.38)])
def test_laplace_strategies_are_better_than_a_noisy_histogram(cells, most):
    flat = Strategy.of(np.eye(cells, dtype=np.int64)).error("l1")
    assert flat == pytest.approx(sqrt((cells + 1) / 2))
    assert sqrt(2) * strategy_for(cells, "l1").error("l1") <= most * sqrt(2)
    assert strategy_for(cells, "l1").error("l1") < flat


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("cells", [1, 2, 3, 17, 40])
def test_prefix_counts_come_back_exactly(norm, cells):
    strategy = strategy_for(cells, norm)
    counts = [(7 * i) % 11 for i in range(cells)]
    back = strategy.prefixes @ np.array(strategy.combine(counts), dtype=float)
    assert back == pytest.approx(np.cumsum(counts), abs=1e-6)
    assert strategy.matrix.dtype == np.int64
    columns = np.abs(strategy.matrix).T.tolist()
    norms = strategy.per_row
    assert norms.l1 == max(map(sum, columns))
    assert norms.l2_squared == max(sum(one * one for one in column) for column in columns)
    assert norms.linf == max(map(max, columns))


def test_large_counts_are_combined_exactly():
    strategy = strategy_for(9, "l2")
    counts = [2**60 + i for i in range(9)]
    assert strategy.combine(counts) == (strategy.matrix.astype(object) @ counts).tolist()


@pytest.mark.parametrize("laplace", [True, False])
def test_tails_hold(laplace):
    noise, weights, scale = LaplaceNoise(4.0, 1024), np.array([1.0, -0.5, 0.25, 0.0]), 4.0
    rng = np.random.default_rng(1)
    runs = 4000
    drawn = (
        np.array([noise.draw() for _ in range(4 * runs)]).reshape(runs, 4)
        if laplace
        else rng.normal(0, scale, (runs, 4))
    )
    for alpha in (0.5, 0.1, 0.01):
        most = prefixes._tail(weights, laplace, scale, alpha)
        assert (np.abs(drawn @ weights) > most).mean() <= alpha
    assert prefixes._tail(0 * weights, laplace, scale, 0.1) == 0.0


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_intervals_have_the_quantile(norm):
    cuts, strategy = list(range(0, 50, 2)), strategy_for(26, norm)
    rng, missed, widths = np.random.default_rng(2), 0, []
    counts = rng.integers(0, 30, 26).tolist()
    below = np.cumsum(counts)
    truth = cuts[int(np.nonzero(below[:-1] <= 0.3 * below[-1])[0][-1])]
    scale = 3.0 * (sqrt(strategy.per_row.l2_squared) if norm == "l2" else strategy.per_row.l1)
    exact = np.array(strategy.combine(counts))
    for _ in range(300):
        draw = (
            rng.laplace(0, scale, len(exact)) if norm == "l1" else rng.normal(0, scale, len(exact))
        )
        noisy = np.rint(exact + draw).astype(int).tolist()
        (found,) = strategy.quantiles(noisy, cuts, 0.3, (norm == "l1", scale), 0.1)
        missed += not found.lower <= truth <= found.upper
        assert found.lower <= found.value <= found.upper
        widths.append(found.upper - found.lower)
    assert missed <= 30
    assert np.mean(widths) < 30
    (sure,) = strategy.quantiles(exact.tolist(), cuts, 0.3, (norm == "l1", 1e-9), 0.1)
    assert sure.value == sure.lower == sure.upper == truth
