"""Means and variances from noisy sums: intervals have the truth whenever the noise is within it."""

from fractions import Fraction
from math import isnan, sqrt

import duckdb
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.tables.moments import Moments

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
    noise = data.draw(
        st.lists(
            st.integers(-accuracy, accuracy), min_size=known.order + 1, max_size=known.order + 1
        )
    )
    noisy = [one + off for one, off in zip(known.integers(*sums(values)), noise, strict=True)]
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


@pytest.fixture(scope="module")
def visits():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visits AS SELECT range % 500 AS person, range % 90 AS age, "
        "['north', 'south'][1 + range % 2] AS region, range % 7 * 0.5e0 AS hours FROM range(1200)"
    )
    schema = {"person": int, "age": int, "region": str, "hours": float}
    return oc.tables.scan(connection, "visits", schema, unit="person")


def context(visits, loss):
    return oc.concurrent_context(
        data=visits,
        privacy_unit=oc.tables.unit_of(units=1),
        privacy_loss=loss,
        split_evenly_over=9,
    )


LOSSES = {"laplace": {"epsilon": 4e3}, "gaussian": {"rho": 1e6}}


@pytest.mark.parametrize("noise", LOSSES)
def test_a_summary_prints_the_shares_of_the_loss(visits, noise):
    asked = context(visits, dp.loss_of(**LOSSES[noise])).query().truncate(3)
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


def test_a_mean_needs_noise(visits):
    asked = context(visits, dp.loss_of(epsilon=1.0))
    query = asked.query().truncate(3).mean("age", (0, 89))
    with pytest.raises(InvalidTypeError, match=r"laplace\(\) or gaussian\(\)"):
        query.release()
    with pytest.raises(InvalidTypeError, match="given together"):
        asked.query().truncate(3).mean("age", (0, 89), by="region")
    assert asked.current_privacy_loss() == []


@pytest.mark.parametrize("statistic", VALUES)
def test_of_nobody_nothing_is_known(statistic):
    known = Moments(-4, 20, 0.5, True, VALUES[statistic], "l1")
    found = known.estimate([0] * (known.order + 1), 0.0, statistic)
    assert isnan(found.value)
    least, most = {"mean": (-2, 10), "variance": (0, 36), "stdev": (0, 6)}[statistic]
    assert (found.lower, found.upper) == (least, most)
