"""How a filter of individual budgets behaves, and that its noise has the law that is paid for.

Statistical bounds fail by chance with odds below 1e-10 each; noise is OpenDP's.
"""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.stats import chi2, gamma, norm

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, ReentrantLaunchError
from opendp_concurrent.measures.opendp import NoiseLoss
from opendp_concurrent.mechanisms.individual import Bank, NoisySum, Price, make_individual_filter

from ..build import PURE, ZCDP, in_threads

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
    queryable = opened(3100.0, 1.0, 0.5, 0.3)
    answers = [whole(queryable(sure())) for _ in range(12)]
    assert answers == [1.8] * 3 + [0.8] * 3 + [0.3] * 4 + [0.0] * 2
    assert repr(queryable) == "IndividualFilter(open)"


def opened(d_out, *values):
    return make_individual_filter(*SPACE, PURE, d_out)(rows_of(*values))


def test_vectors_and_structured_arrays():
    for kind, data, per_row in (
        (int, [1, 2, 3], lambda rows: rows),
        (bool, [True] * 6, lambda rows: rows),
        (str, ["aa", "bbbb"], lambda rows: np.array([len(row) for row in rows], dtype=np.int64)),
    ):
        space = dp.vector_domain(dp.atom_domain(T=kind)), dp.symmetric_distance()
        queryable = make_individual_filter(*space, PURE, 1e5)(data)
        assert whole(queryable(NoisySum(per_row, 10.0, 0.001))) == 6.0
    domain = dp.user_domain("people", lambda data: isinstance(data, np.ndarray))
    people = np.array([(40, 1.0), (50, 2.0)], dtype=[("age", int), ("weight", float)])
    queryable = make_individual_filter(domain, dp.insert_delete_distance(), PURE, 1e6)(people)
    assert whole(queryable(NoisySum(lambda rows: rows["age"], 100.0, 0.001))) == 90.0
    assert whole(make_individual_filter(*SPACE, PURE, 1e5)(np.zeros((0, 2)))(sure())) == 0.0


def test_the_map():
    for measure, power in ((PURE, 1), (ZCDP, 2), (RENYI, 2)):
        made = make_individual_filter(*SPACE, measure, 0.1)
        assert (made.map(0), made.map(1)) == (0.0, 0.1)
        assert 0.1 * 3**power <= made.map(3) == pytest.approx(0.1 * 3**power, rel=1e-15)
        assert made.check(1, 0.1)
        assert not made.check(1, 0.09999)
        for bad in (-1, 1.5, True):
            with pytest.raises((InvalidTypeError, InvalidValueError)):
                made.map(bad)
    assert repr(made) == "IndividualFilter(FixedRenyiDivergence(alpha=8.0), d_out=0.1)"


def test_a_query_is_checked_before_rows_are_looked_at():
    seen, queryable = [], opened(1.0, 1.0)

    def per_row(rows):
        seen.append(rows)
        return rows[:, 0]

    for query in (per_row, SPACE[0], (per_row, 1.0, 1.0)):
        with pytest.raises(InvalidTypeError, match="^the query must be a NoisySum"):
            queryable(query)
    with pytest.raises(InvalidValueError, match=r"^scale \(0.5\) must be at least 1.0 for bound"):
        queryable(NoisySum(per_row, 1.0, 0.5))
    assert seen == []
    queryable(NoisySum(per_row, 1.0, 1.0))  # nothing was charged


def test_a_function_of_rows_may_not_ask_its_own_filter():
    queryable = opened(1000.0, 1.0)
    with pytest.raises(ReentrantLaunchError):
        queryable(NoisySum(lambda rows: queryable(sure()) or rows[:, 0], 1.0, 0.001))
    assert whole(queryable(sure())) == 1.0


def test_threads_do_not_pay_twice_or_too_little():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        queryable, found = opened(20_100.0, 1.0, 0.5), []
        in_threads(lambda _: found.extend(whole(queryable(sure())) for _ in range(8)), range(8))
        assert sorted(found, reverse=True) == [1.5] * 20 + [0.5] * 20 + [0.0] * 24
    finally:
        sys.setswitchinterval(interval)


def test_refusals_are_the_same_for_all_data_and_states():
    said = set()
    for values in ((), (1.0,), (SECRET, 2.0, 3.0), (9.0,) * 70_000):
        data = np.array([[value, 1.0] for value in values]).reshape(-1, 2)
        queryable = make_individual_filter(*SPACE, PURE, 1.0)(data)
        for _ in range(3):
            queryable(NoisySum(first, 1.0, 1.0))
            said.add(repr(queryable))
            for query in (NoisySum(first, 1.0, 0.5), NoisySum(lambda rows: rows, 1.0, 1.0), 5):
                with pytest.raises((InvalidTypeError, InvalidValueError)) as caught:
                    queryable(query)
                assert caught.value.__context__ is None
                said.add(str(caught.value))
    assert len(said) == 4


# --- the exact loss of whole conversations, over neighbours, with queries that adapt to answers ---
#
# Laplace: the log-ratio of a transcript is a sum of rational numbers. Its supremum is reached among
# answers between the sums and one step beyond. Gaussian: moments of the discrete Gaussian are
# summed with 40 digits, far into the tails. Wrong variants of the bank are caught by the same.
LAPLACE, GAUSSIAN = NoiseLoss(1, Fraction(1)), NoiseLoss(2, Fraction(1, 2))
REACH = 3  # values at the bound are charged exactly
EXACT = mpf(10) ** -30


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(40):
        yield


class Reference:
    """The definition, in fractions of the budget and pure Python."""

    def __init__(self, people, loss):
        self.left, self.loss = [Fraction(1)] * people, loss

    def cost(self, value, scale, d_out):
        return self.loss.of(Fraction(value), scale) / Fraction(d_out)

    def charge(self, values, scale, d_out):
        costs = [self.cost(value, scale, d_out) for value in values]
        pays = self.pays(costs)
        paid = [cost if pay else 0 for cost, pay in zip(costs, pays, strict=True)]
        self.left = [left - one for left, one in zip(self.left, paid, strict=True)]
        return sum(value for value, p in zip(values, pays, strict=True) if p)

    def pays(self, costs):
        return [cost <= left for cost, left in zip(costs, self.left, strict=True)]


class Vectorised:
    """The bank itself."""

    def __init__(self, people, loss):
        self.bank, self.loss = Bank(people), loss

    def charge(self, values, scale, d_out):
        price = Price.in_steps(REACH, scale, self.loss, d_out)
        numbers = np.array(values, dtype=np.int64)
        return self.bank.charge(lambda part: numbers[part], price)


class Refunds(Reference):
    """Gives back what was paid."""

    def charge(self, values, scale, d_out):
        before = self.left
        total = super().charge(values, scale, d_out)
        self.left = before
        return total


class Overdraws(Reference):
    """Lets people with too little left take part for what they have."""

    def charge(self, values, scale, d_out):
        total = super().charge(values, scale, d_out)
        self.left = [max(Fraction(0), left) for left in self.left]
        return total

    def pays(self, costs):
        return [left > 0 for left in self.left]


class Gangs(Reference):
    """Leaves everybody out as soon as one cannot pay: a decision on other people's rows."""

    def pays(self, costs):
        return [all(super().pays(costs))] * len(costs)


WRONG = Refunds, Overdraws, Gangs
RIGHT = Reference, Vectorised


class Pair:
    """Two banks on neighbours, in the same conversation."""

    def __init__(self, kind, rows, others, loss, d_out, history=()):
        self.kind, self.rows, self.others = kind, rows, others
        self.loss, self.d_out, self.history = loss, d_out, history

    def sums(self, query):
        """Sums of ``query`` on both, after the history."""
        answers = []
        for rows in (self.rows, self.others):
            bank = self.kind(len(rows), self.loss)
            for column, scale in (*self.history, query):
                total = bank.charge([row[column] for row in rows], scale, self.d_out)
            answers.append(total)
        return answers

    def then(self, query):
        history = (*self.history, query)
        return Pair(self.kind, self.rows, self.others, self.loss, self.d_out, history)


def worst_log_ratio(pair, strategy, rounds, answers=()):
    """Supremum over transcripts of |log-ratio|, as (most, least); exact."""
    if rounds == 0:
        return Fraction(0), Fraction(0)
    query = strategy(answers)
    one, other = pair.sums(query)
    scale, following, highs, lows = Fraction(query[1]), pair.then(query), [], []
    for answer in range(min(one, other, -1) - 1, max(one, other, 1) + 2):
        step = Fraction(abs(answer - other) - abs(answer - one)) / scale
        high, low = worst_log_ratio(following, strategy, rounds - 1, (*answers, answer))
        highs.append(step + high)
        lows.append(step + low)
    return max(highs), min(lows)


def pure_loss(*arguments):
    high, low = worst_log_ratio(*arguments)
    return max(high, -low)


def weights(scale, at):
    return mp.exp(-(mpf(at) ** 2) / (2 * mpf(scale) ** 2))


def moment(pair, strategy, rounds, alpha, answers=()):
    """Sum over transcripts of p^alpha q^(1-alpha); tails beyond 20 scales are below 1e-80."""
    if rounds == 0:
        return mpf(1)
    query = strategy(answers)
    one, other = pair.sums(query)
    scale, following = query[1], pair.then(query)
    middle = alpha * one - (alpha - 1) * other
    reach = math.ceil(20 * scale) + abs(middle) + abs(one) + abs(other) + 2
    whole = mp.fsum(weights(scale, at) for at in range(-reach, reach + 1))
    parts, known = [], {}
    for answer in range(-reach, reach + 1):
        kind = max(-1, min(1, answer))  # strategies look at the sign
        if kind not in known:
            known[kind] = moment(following, strategy, rounds - 1, alpha, (*answers, kind))
        p, q = weights(scale, answer - one), weights(scale, answer - other)
        parts.append(p**alpha * q ** (1 - alpha) / whole * known[kind])
    return mp.fsum(parts)


def renyi_loss(pair, strategy, rounds, alpha):
    """Rényi divergence in both directions, over alpha: a bound on rho if at most rho at all."""
    swapped = Pair(pair.kind, pair.others, pair.rows, pair.loss, pair.d_out)
    return max(
        mp.log(moment(one, strategy, rounds, alpha)) / ((alpha - 1) * alpha)
        for one in (pair, swapped)
    )


def sign(answer):
    return (answer > 0) - (answer < 0)


def tree(queries):
    """A strategy that looks at the signs of answers: a query for each string of signs."""

    def strategy(answers):
        return queries[len(answers)][tuple(map(sign, answers))]

    return strategy


def adaptive(column, scale):
    """The column is asked again, or another one, by the sign of the first answer."""
    first = {(): (0, scale)}
    second = {(-1,): (1, scale), (0,): (0, scale), (1,): (0, 2 * scale)}
    third = dict.fromkeys(itertools.product((-1, 0, 1), repeat=2), (column, scale))
    return tree([first, second, third])


ROWS = [(3, 1, 2), (1, -3, 1), (-2, 2, 3)]


@pytest.mark.parametrize("kind", RIGHT)
def test_pure_conversations_lose_at_most_the_budget_and_reach_it(kind):
    shares = [
        pure_loss(Pair(kind, ROWS, others, LAPLACE, d_out), adaptive(column, 2.0), 3)
        / Fraction(d_out)
        for others in itertools.combinations(ROWS, 2)
        for d_out in (1.0, 1.5, 3.0)
        for column in (0, 1, 2)
    ]
    assert max(shares) == 1


@pytest.mark.parametrize("kind", RIGHT)
def test_gaussian_conversations_lose_at_most_the_budget_and_reach_it(kind):
    shares = [
        renyi_loss(Pair(kind, ROWS, others, GAUSSIAN, float(d_out)), adaptive(1, 2.0), 2, alpha)
        / d_out
        for others in itertools.combinations(ROWS, 2)
        for d_out in (mpf(1.125), mpf(2.25))
        for alpha in (2, 5)
    ]
    assert 1 - EXACT < max(shares) <= 1 + EXACT


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_banks_are_caught(wrong):
    assert any(
        pure_loss(Pair(wrong, ROWS, others, LAPLACE, d_out), adaptive(column, 2.0), 3)
        >= Fraction(7, 6) * Fraction(d_out)
        for others in itertools.combinations(ROWS, 2)
        for d_out in (1.0, 1.5, 3.0)
        for column in (0, 1, 2)
    )


@pytest.mark.parametrize("kind", RIGHT)
def test_groups(kind):
    """Two people gone: twice the budget for pure DP, four times for zCDP; both are reached."""
    rows, strategy = [(3, 3, 3)] * 2 + [(1, 0, -1)], adaptive(2, 3.0)
    loss = pure_loss(Pair(kind, rows, rows[2:], LAPLACE, 2.0), strategy, 3)
    assert loss == 4
    rho = renyi_loss(Pair(kind, rows, rows[2:], GAUSSIAN, 0.5), strategy, 2, 2)
    assert abs(rho - 4 * mpf(0.5)) < EXACT


PEOPLE = st.tuples(*[st.integers(-REACH, REACH)] * 3)


@settings(max_examples=30)
@given(data=st.data(), d_out=st.sampled_from([0.5, 1.0, 1.3, 2.0, 4.0]))
def test_no_conversation_loses_more(data, d_out):
    rows = data.draw(st.lists(PEOPLE, min_size=1, max_size=3))
    gone = data.draw(st.integers(1, min(2, len(rows))))
    queries = [
        {
            signs: (data.draw(st.integers(0, 2)), data.draw(st.sampled_from([1.0, 1.7, 3.0, 8.0])))
            for signs in itertools.product((-1, 0, 1), repeat=length)
        }
        for length in range(2)
    ]
    for kind in RIGHT:
        pair = Pair(kind, rows, rows[gone:], LAPLACE, d_out)
        assert pure_loss(pair, tree(queries), 2) <= gone * Fraction(d_out)
