"""How a filter of individual budgets behaves, and that its noise has the law that is paid for.

Statistical bounds fail by chance with odds below 1e-10 each; noise is OpenDP's.
"""

import math
import sys

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chi2, gamma, norm

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, ReentrantLaunchError
from opendp_concurrent.mechanisms.individual import NoisySum, make_individual_filter

from ..build import in_threads

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
RENYI = oc.fixed_renyi_divergence(alpha=8.0)
ODDS = 1e-11
SPACE = dp.numpy.array2_domain(T=float, num_columns=2), dp.symmetric_distance()
SECRET = 987654.25


def first(rows):
    return rows[:, 0]


def sure(bound=1.0, per_row=first):
    """A query whose noise is below 0.05, but for odds of e^-50; it costs |v| times 1000."""
    return NoisySum(per_row, bound, 0.001)


def rows_of(*values):
    return np.array([[value, 1.0] for value in values])


def whole(number):
    assert abs(number - round(number, 1)) < 0.05
    return round(number, 1)


# --- the law of the answers -------------------------------------------------------------------


@pytest.mark.parametrize("measure", [PURE, ZCDP, RENYI], ids=str)
def test_noise_has_the_law_that_is_paid_for(measure):
    draws, scale = 1800, 7.0
    queryable = make_individual_filter(*SPACE, measure, 1e6)(rows_of(3.5, -1.0))
    noise = np.array([queryable(NoisySum(first, 5.0, scale)) - 2.5 for _ in range(draws)])
    if measure is PURE:
        law, found = gamma(draws, scale=scale), np.abs(noise).sum()
        middle = math.sqrt(2) * scale * norm.isf(ODDS) / math.sqrt(draws)
    else:
        law, found = chi2(draws, scale=scale**2), np.square(noise).sum()
        middle = scale * norm.isf(ODDS) / math.sqrt(draws)
    assert law.isf(1 - ODDS) <= found <= law.isf(ODDS)
    assert abs(noise.mean()) <= 1.2 * middle
    for wrong in (0.7, 1.4):  # would be seen
        factor = wrong if measure is PURE else wrong**2
        assert not law.isf(1 - ODDS) <= found * factor <= law.isf(ODDS)


def test_people_drop_out_one_by_one_and_nobody_says_so():
    queryable = make_individual_filter(*SPACE, PURE, 3100.0)(rows_of(1.0, 0.5, 0.3))
    answers = [whole(queryable(sure())) for _ in range(12)]
    assert answers == [1.8] * 3 + [0.8] * 3 + [0.3] * 4 + [0.0] * 2
    assert repr(queryable) == "IndividualFilter(open)"


def test_vectors_and_structured_arrays():
    for kind, data, per_row in (
        (int, [1, 2, 3], lambda rows: rows),
        (bool, [True] * 6, lambda rows: rows),
        (float, [1.5, 4.5], lambda rows: rows),
        (str, ["aa", "bbbb"], lambda rows: np.array([len(row) for row in rows], dtype=np.int64)),
    ):
        space = dp.vector_domain(dp.atom_domain(T=kind)), dp.symmetric_distance()
        queryable = make_individual_filter(*space, PURE, 1e5)(data)
        assert whole(queryable(NoisySum(per_row, 10.0, 0.001))) == 6.0
    domain = dp.user_domain("people", lambda data: isinstance(data, np.ndarray))
    people = np.array([(40, 1.0), (50, 2.0)], dtype=[("age", int), ("weight", float)])
    queryable = make_individual_filter(domain, dp.insert_delete_distance(), PURE, 1e6)(people)
    assert whole(queryable(NoisySum(lambda rows: rows["age"], 100.0, 0.001))) == 90.0


def test_nobody():
    queryable = make_individual_filter(*SPACE, PURE, 1e5)(np.zeros((0, 2)))
    assert whole(queryable(sure())) == 0.0


# --- maps and arguments -----------------------------------------------------------------------


def test_the_map():
    for measure, power in ((PURE, 1), (ZCDP, 2), (RENYI, 2)):
        made = make_individual_filter(*SPACE, measure, 0.1)
        assert made.map(0) == 0.0
        assert made.map(1) == 0.1
        assert made.map(3) >= 0.1 * 3**power
        assert made.map(3) == pytest.approx(0.1 * 3**power, rel=1e-15)
        assert made.check(1, 0.1)
        assert not made.check(1, 0.09999)
        for bad in (-1, 1.5, True, "1", None):
            with pytest.raises((InvalidTypeError, InvalidValueError)):
                made.map(bad)
    assert repr(made) == "IndividualFilter(FixedRenyiDivergence(alpha=8.0), d_out=0.1)"


def test_a_query_is_checked_before_rows_are_looked_at():
    seen = []

    def per_row(rows):
        seen.append(rows)
        return rows[:, 0]

    queryable = make_individual_filter(*SPACE, PURE, 1.0)(rows_of(1.0))
    for query in (per_row, "sum", None, SPACE[0], (per_row, 1.0, 1.0)):
        with pytest.raises(InvalidTypeError, match="^the query must be a NoisySum"):
            queryable(query)
    with pytest.raises(InvalidValueError, match=r"^scale \(0.5\) must be at least 1.0 for bound"):
        queryable(NoisySum(per_row, 1.0, 0.5))
    assert seen == []
    queryable(NoisySum(per_row, 1.0, 1.0))  # nothing was charged


def test_a_function_that_raises_costs_nothing():
    queryable = make_individual_filter(*SPACE, PURE, 1000.0)(rows_of(*[1.0] * 100_000))
    calls = []

    def late(rows):
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("late")
        return rows[:, 0]

    with pytest.raises(KeyError, match="late"):
        queryable(NoisySum(late, 1.0, 0.001))
    with pytest.raises(InvalidTypeError, match="^per_row must return"):
        queryable(NoisySum(lambda rows: rows, 1.0, 0.001))
    assert whole(queryable(sure())) == 100_000.0
    assert whole(queryable(sure())) == 0.0


def test_a_function_of_rows_may_not_ask_its_own_filter():
    queryable = make_individual_filter(*SPACE, PURE, 1000.0)(rows_of(1.0))

    def nested(rows):
        queryable(sure())
        return rows[:, 0]

    with pytest.raises(ReentrantLaunchError):
        queryable(NoisySum(nested, 1.0, 0.001))
    assert whole(queryable(sure())) == 1.0


def test_threads_do_not_pay_twice_or_too_little():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        queryable, found = make_individual_filter(*SPACE, PURE, 20_100.0)(rows_of(1.0, 0.5)), []
        in_threads(lambda _: found.extend(whole(queryable(sure())) for _ in range(8)), range(8))
        assert sorted(found, reverse=True) == [1.5] * 20 + [0.5] * 20 + [0.0] * 24
    finally:
        sys.setswitchinterval(interval)


# --- nothing of the data ----------------------------------------------------------------------


def test_refusals_are_the_same_for_all_data_and_states():
    said = set()
    for data in (rows_of(), rows_of(1.0), rows_of(SECRET, 2.0, 3.0), rows_of(*[9.0] * 70_000)):
        data = data.reshape(-1, 2)
        queryable = make_individual_filter(*SPACE, PURE, 1.0)(data)
        for _ in range(3):
            queryable(NoisySum(first, 1.0, 1.0))
            messages = []
            for query in (
                NoisySum(first, 1.0, 0.5),
                NoisySum(lambda rows: rows, 1.0, 1.0),
                NoisySum(lambda rows: rows[:, 0].tolist(), 1.0, 1.0),
                5,
            ):
                with pytest.raises((InvalidTypeError, InvalidValueError)) as caught:
                    queryable(query)
                assert caught.value.__context__ is None
                messages.append(str(caught.value))
            said.add(tuple(messages))
            said.add(repr(queryable))
    assert len(said) == 2
