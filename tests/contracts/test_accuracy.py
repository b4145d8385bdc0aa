"""Every mechanism says how large its error is before it runs, and is that accurate.

Each mechanism of ``oc.m`` has an accuracy here, or a reason why it cannot have one. The error of
real answers is within it as often as it says. A run fails by chance with odds below 1e-9.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import binom

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from .catalogue import SUBJECTS, WRAPPERS, Recipe

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TABLE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
SIZED = dp.vector_domain(dp.atom_domain(T=int), size=1000), dp.change_one_distance()
INTEGER = dp.atom_domain(T=int), dp.absolute_distance(T=int)
FLOAT = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=3), dp.l2_distance(T=float)
DATA = [0] * 600 + [2] * 300 + [3] * 100
COUNTS = np.array([600, 0, 300, 100])
ROWS = dp.user_domain("rows", lambda data: True), dp.symmetric_distance()
QUERIES = [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]


@dataclass(frozen=True)
class Stated:
    """A mechanism, and how its error is measured.

    :ivar answers: argument of ``accuracy``
    :ivar error: the largest error of so many answers in one run
    :ivar exact: whether it fails as often as it says, and not less
    :ivar tight: at most so many times the quantile that was measured
    """

    make: Callable[[], Any]
    error: Callable[[Any], float]
    answers: int | None = None
    exact: bool = False
    tight: float | None = None


def of_number(mechanism):
    return abs(mechanism(7) - 7)


def of_vector(mechanism):
    return float(np.abs(np.array(mechanism([1.0, 2.0, 3.0])) - [1.0, 2.0, 3.0]).max())


def of_marginals(mechanism):
    return float(np.abs(mechanism([[1, 1, 0, 1]] * 9) - [9, 9, 0, 9, 9]).max())


def of_batch(mechanism):
    return float(np.abs(mechanism(DATA)(QUERIES).values - np.array(QUERIES) @ COUNTS).max())


def of_weights(mechanism):
    queryable = mechanism(DATA)
    return max(abs(queryable(query).value - np.array(query) @ COUNTS) for query in QUERIES)


def of_threshold(mechanism):
    """Ten answers just below and above the threshold of 500: how far a wrong outcome is from it."""
    queryable, worst = mechanism(DATA), 0.0
    for answer in (480, 520, 490, 470, 485, 495, 475, 465, 510, 500):
        said = queryable(lambda rows, answer=answer: answer)
        if said.outcome is oc.handles.Outcome.EXHAUSTED:
            break
        worst = max(worst, 500 - answer if said else answer - 500)
        if said.value is not None:
            worst = max(worst, abs(said.value - answer))
    return worst


def of_guesses(mechanism):
    queryable, worst = mechanism(DATA), 0.0
    for guess in (590, 610, 580, 560, 640, 555, 600, 605, 570, 650):
        said = queryable((lambda rows: 600, guess))
        if said.outcome is oc.handles.Outcome.EXHAUSTED:
            break
        worst = max(worst, abs(said.value - 600))
    return worst


def stream(upper=1):
    return oc.integer_stream(0, upper), oc.event_presence()


def counter(measure, **more):
    return Stated(
        lambda: oc.m.make_counter(*stream(), measure, 20.0, **more), of_counter, 40, tight=5.0
    )


def window(measure, **more):
    return Stated(
        lambda: oc.m.make_window_counter(*stream(), measure, 20.0, 7, **more),
        of_window,
        40,
        tight=5.0,
    )


def of_counter(mechanism):
    return of_stream(mechanism, lambda items: sum(items))


def of_window(mechanism):
    return of_stream(mechanism, lambda items: sum(items[-7:]))


def of_histogram(mechanism):
    return of_stream(mechanism, lambda items: np.bincount(items, minlength=3), last=2)


def of_stream(mechanism, exact, last=1):
    """The largest error of 40 readings, each after one more item."""
    queryable, worst, items = mechanism([]), 0.0, []
    for item in [1, 0, 1, last] * 10:
        items.append(item)
        queryable.update(item)
        worst = max(worst, float(np.abs(np.array(queryable.read()) - exact(items)).max()))
    return worst


def of_alarm(mechanism):
    """40 queries at sums from 1 to 40, with thresholds around them."""
    queryable, worst = mechanism([]), 0.0
    for step in range(1, 41):
        queryable.update(1)
        threshold = step + 15 * (-1) ** step
        said = queryable(threshold)
        if said.outcome is oc.handles.Outcome.EXHAUSTED:
            break
        worst = max(worst, threshold - step if said else step - threshold)
    return worst


def marginals(measure, **more):
    return Stated(
        lambda: oc.m.make_marginals(*ROWS, measure, 1, 0.5, 4, pairs=[(0, 1)]), of_marginals, **more
    )


def laplace(space=INTEGER, scale=3.0, measure=PURE, **more):
    return lambda: oc.m.make_certified_laplace(*space, scale, measure, **more)


def gaussian(space=FLOAT, scale=3.0, **more):
    return lambda: oc.m.make_certified_gaussian(*space, scale, ZCDP, **more)


def weights():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return oc.m.make_private_multiplicative_weights(*SIZED, ZCDP, 1, 50.0, 4, 3)


STATED = {
    "make_certified_laplace": Stated(laplace(), of_number),
    "make_certified_laplace, floats": Stated(laplace(FLOAT), of_number, exact=True),
    "make_certified_laplace, a coarse grid": Stated(laplace(FLOAT, k=1), of_number),
    "make_certified_laplace, zCDP": Stated(laplace(measure=ZCDP), of_number),
    "make_certified_geometric": Stated(
        lambda: oc.m.make_certified_geometric(*INTEGER, 3.0, PURE), of_number
    ),
    "make_certified_geometric, bounds": Stated(
        lambda: oc.m.make_certified_geometric(*INTEGER, 3.0, PURE, bounds=(0, 20)), of_number
    ),
    "make_certified_gaussian": Stated(gaussian(), of_number, exact=True),
    "make_certified_gaussian, integers": Stated(gaussian(INTEGER), of_number),
    "make_certified_gaussian, vectors": Stated(gaussian(FLOATS), of_vector, exact=True),
    "make_certified_randomized_response_bool": Stated(
        lambda: oc.m.make_certified_randomized_response_bool(0.9, PURE),
        lambda mechanism: float(mechanism(True) is not True),
    ),
    "make_certified_randomized_response": Stated(
        lambda: oc.m.make_certified_randomized_response([0, 1, 2], 0.6, PURE),
        lambda mechanism: float(mechanism(1) != 1),
    ),
    "make_shared_release": Stated(
        lambda: oc.m.make_shared_release(*INTEGER, PURE, 1 / 3),
        lambda mechanism: float(abs(mechanism(10)(1.0 / 3) - 10)),
    ),
    "make_above_threshold": Stated(
        lambda: oc.m.make_above_threshold(*TABLE, PURE, 1, 8.0, 500), of_threshold, 10
    ),
    "make_sparse_vector": Stated(
        lambda: oc.m.make_sparse_vector(*TABLE, PURE, 1, 8.0, 500, 3), of_threshold, 10
    ),
    "make_sparse_vector, with values": Stated(
        lambda: oc.m.make_sparse_vector(
            *TABLE, PURE, 1, 8.0, 500, 3, answer_scale=30.0, refresh=True
        ),
        of_threshold,
        10,
    ),
    "make_sparse_vector, floats": Stated(
        lambda: oc.m.make_sparse_vector(
            *TABLE, PURE, 1, 8.0, 500, 3, answer_scale=30.0, sensitivity=1.0
        ),
        of_threshold,
        10,
    ),
    "make_guess_and_check": Stated(
        lambda: oc.m.make_guess_and_check(*TABLE, PURE, 1, 8.0, 30, 3), of_guesses, 10
    ),
    "make_private_multiplicative_weights": Stated(weights, of_weights, 3),
    "make_projected_queries": Stated(
        lambda: oc.m.make_projected_queries(*SIZED, ZCDP, 1, [0.5], 4), of_batch, 3
    ),
    "make_marginals": marginals(ZCDP),
    "make_marginals, pure": marginals(PURE),
    "make_marginals, Gaussian DP": marginals(oc.gaussian_tradeoff(), exact=True),
}
for measure in (PURE, ZCDP):
    for more in ({}, {"horizon": 40}):
        STATED[f"make_counter, {measure}, {more}"] = counter(measure, **more)
    STATED[f"make_window_counter, {measure}"] = window(measure)
STATED["make_histogram_counter"] = Stated(
    lambda: oc.m.make_histogram_counter(
        oc.category_stream(3), oc.event_presence(), ZCDP, 20.0, horizon=40
    ),
    of_histogram,
    40,
    tight=5.0,
)
STATED["make_alarm"] = Stated(
    lambda: oc.m.make_alarm(*stream(), PURE, 4.0, 1000, max_hits=3), of_alarm, 40
)
NONE = {
    "make_continual": "its author's: the noise is in the author's code",
    "make_individual_filter": "each query has a scale of its own, and people leave without a word",
    "make_table_keys": "whether a key is found is not an error; its users and scale are stated",
}
NAMES = {name.partition(",")[0] for name in STATED}


@cache
def made(name):
    return STATED[name].make()


def test_no_mechanism_escapes():
    public = {name for name in oc.m.__all__ if name.startswith("make_")}
    assert public - NAMES - set(NONE) == set()
    assert not NAMES & set(NONE)


@pytest.mark.parametrize("name", STATED)
def test_the_error_is_within_the_accuracy_as_often_as_it_says(name):
    one = STATED[name]
    # nine answers of ten of above threshold have no error: of 400, one has, but for 10^-20
    mechanism, beta = made(name), 0.2
    runs = 400 if "above" in name else 150 if one.exact else 40
    stated = mechanism.accuracy(beta, answers=one.answers)
    errors = np.array([one.error(mechanism) for _ in range(runs)])
    failed = int(np.sum(errors > stated))
    assert failed <= binom.isf(1e-10, runs, beta)
    if one.exact:
        assert failed >= binom.ppf(1e-10, runs, beta)
    assert errors.max() > 0 or "response" in name  # the errors are measured
    if one.tight is not None:
        assert stated <= one.tight * np.quantile(errors, 1 - beta)


@pytest.mark.parametrize("name", STATED)
def test_more_confidence_and_more_answers_take_a_larger_error(name):
    one = STATED[name]
    mechanism = made(name)

    def stated(beta, answers=one.answers):
        return mechanism.accuracy(beta, answers=answers)

    loose = [stated(beta) for beta in (0.4, 0.2, 0.06)]
    assert loose == sorted(loose)
    assert loose[0] < loose[-1] or "response" in name or "weights" in name
    assert stated(0.05) == mechanism.accuracy(answers=one.answers)
    if one.answers == 10 or name == "make_alarm":
        assert stated(0.05, 9) <= stated(0.05, 10) < stated(0.05, 10**6) < math.inf
    for beta in (0.0, 1.0, -0.1, math.nan, "0.05"):
        with pytest.raises((InvalidValueError, InvalidTypeError), match="^beta"):
            stated(beta)
    for answers in (0, 1.5, "3", 2**63):
        with pytest.raises((InvalidValueError, InvalidTypeError), match="^answers"):
            stated(0.05, answers)


@pytest.mark.parametrize("name", ["make_sparse_vector", "make_projected_queries"])
def test_answers_must_be_given_where_their_number_is_open(name):
    with pytest.raises(InvalidTypeError, match="^answers must be given"):
        made(name).accuracy(0.05)


@pytest.mark.parametrize("name", [*NONE, "make_concurrent_composition"])
def test_what_has_none_says_so(name):
    subject = next(one for one in SUBJECTS if name in one.covers)
    with pytest.raises(InvalidTypeError, match="^the accuracy of .* is not known"):
        subject.build().what.accuracy(0.05, answers=3)


KEEPING = ("interactive", "bounded", "cast to itself", "cast away", "table step")


@pytest.mark.parametrize("wrapper", KEEPING)
@pytest.mark.parametrize("subject", ["above threshold", "guess and check", "projected queries"])
def test_wrappers_that_pass_answers_on_keep_the_accuracy(wrapper, subject):
    one = next(one for one in SUBJECTS if one.name == subject)
    around = next(one for one in WRAPPERS if one.name == wrapper)
    inner, outer = Recipe((around,), one).cases()
    assert outer.what.accuracy(0.1, answers=5) == inner.what.accuracy(0.1, answers=5)


def test_postprocessors_have_no_accuracy():
    one = next(one for one in SUBJECTS if one.name == "above threshold")
    around = next(one for one in WRAPPERS if one.name == "looking on")
    _, outer = Recipe((around,), one).cases()
    with pytest.raises(InvalidTypeError, match="^the accuracy of"):
        outer.what.accuracy(0.1, answers=5)


def test_known_values():
    """Quantiles of the distributions, and OpenDP's own accuracies."""
    assert laplace(FLOAT, 2.0)().accuracy(0.05) == pytest.approx(2 * math.log(20), rel=1e-8)
    assert gaussian(FLOAT, 2.0)().accuracy(0.05) == pytest.approx(2 * 1.959963984540054, rel=1e-8)
    three = gaussian(FLOATS, 2.0)()
    assert three.accuracy(1 - 0.95**3) == pytest.approx(2 * 1.959963984540054, rel=1e-8)
    # P(|X| >= m) = 2 e^(-m/2) / (1 + e^(-1/2)): 0.048 at 7, 0.062 at 6... 6 are exceeded by 7
    beyond = [2 * math.exp(-m / 2) / (1 + math.exp(-0.5)) for m in range(9)]
    least = next(m for m in range(8) if beyond[m + 1] <= 0.05)
    assert laplace(INTEGER, 2.0)().accuracy(0.05) == least == 6
    assert least <= dp.discrete_laplacian_scale_to_accuracy(2.0, 0.05) < least + 1
    weights = np.exp(-(np.arange(-200, 201) ** 2) / 8.0)
    outside = weights[np.abs(np.arange(-200, 201)) > 4].sum() / weights.sum()
    assert outside <= 0.05
    assert gaussian(INTEGER, 2.0)().accuracy(0.05) in (3, 4)
    assert laplace(INTEGER, 0.0)().accuracy(0.05) == 0.0
    assert laplace(INTEGER, 0.01)().accuracy(0.05) == 0.0
