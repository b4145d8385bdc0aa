"""The δ of thresholds against sums of their own, and which constructors the fence recognises."""

from math import exp, expm1, inf, log1p, nextafter

import numpy as np
import opendp.prelude as dp
import pytest

from opendp_concurrent.errors import AdvisoryError
from opendp_concurrent.native import opendp as _native
from opendp_concurrent.native.advisories.known import ACCEPTED
from opendp_concurrent.native.opendp import measurement_map, transformation_map

SYMMETRIC, ORDERED = dp.symmetric_distance(), dp.insert_delete_distance()
NAN = float("nan")


def counts(T=int, lp=1):
    value = dp.atom_domain(T=T, nan=False) if T in (float, "f32") else dp.atom_domain(T=T)
    domain = dp.map_domain(dp.atom_domain(T=str), value)
    if lp == 2:
        return domain, dp.l02inf_distance(dp.absolute_distance(T=float))
    return domain, dp.l01inf_distance(dp.absolute_distance(T=T))


def laplace_mass(scale, threshold):
    """Return the probability that discrete Laplace noise is at least the threshold."""
    total = 1.0 + 2.0 * sum(exp(-n / scale) for n in range(1, 4000))
    return sum(exp(-n / scale) for n in range(threshold, 4000)) / total


def gaussian_mass(scale, threshold):
    weights = {n: exp(-n * n / (2 * scale * scale)) for n in range(-400, 401)}
    return sum(weights[n] for n in range(threshold, 401)) / sum(weights.values())


@pytest.mark.parametrize("threshold", [2, 3, 5, 12, 40])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.7])
@pytest.mark.parametrize("d_in", [(1, 1, 1), (3, 3, 1), (4, 6, 2)])
def test_the_delta_of_laplace_thresholds_is_exact(scale, threshold, d_in):
    made = dp.m.make_laplace_threshold(*counts(), scale, threshold)
    groups, _, largest = d_in
    if threshold == largest:  # the next lower threshold is below the sensitivity
        with pytest.raises(dp.OpenDPException, match="must not be smaller"):
            measurement_map(made, d_in)
        return
    epsilon, delta = measurement_map(made, d_in)
    true = -expm1(groups * log1p(-laplace_mass(scale, threshold - largest)))
    assert epsilon == made.map(d_in)[0]
    assert true * (1 - 1e-9) - 1e-15 <= delta <= true * (1 + 1e-9) + 1e-15
    assert made.map(d_in)[1] < true or true < 1e-12


@pytest.mark.parametrize("threshold", [3, 6, 20])
@pytest.mark.parametrize("scale", [0.7, 1.0, 4.0])
def test_the_delta_of_gaussian_thresholds_is_a_bound(scale, threshold):
    made = dp.m.make_gaussian_threshold(*counts(lp=2), scale, threshold)
    d_in = (2, 2**0.5, 1.0)
    true = 1.0 - (1.0 - gaussian_mass(scale, threshold - 1)) ** 2
    assert made.map(d_in)[0] == measurement_map(made, d_in)[0]
    assert true <= measurement_map(made, d_in)[1]
    assert made.map(d_in)[1] <= measurement_map(made, d_in)[1]


def test_a_gaussian_threshold_is_above_opendp_s_delta():
    made = dp.m.make_gaussian_threshold(*counts(lp=2), 0.7, 3)
    assert made.map((1, 1.0, 1.0))[1] < gaussian_mass(0.7, 2)


@pytest.mark.parametrize("k", [-3, 0, 2])
def test_floats_on_a_grid_have_the_delta_of_their_steps(k):
    """A value of at most 8 is at most 8 after it is rounded to the grid."""
    step, d_in = 2.0**k, (1, 8.0, 8.0)
    made = dp.m.make_laplace_threshold(*counts(float), 16.0, 64.0, k=k)
    true = laplace_mass(16.0 / step, int(56.0 / step))
    delta = measurement_map(made, d_in)[1]
    assert true * (1 - 1e-9) <= delta <= true * (1 + 1e-9)
    assert made.map(d_in)[1] < delta


@pytest.mark.parametrize(("T", "kind"), [(float, np.float64), ("f32", np.float32)])
@pytest.mark.parametrize("k", [None, -20, 1])
@pytest.mark.parametrize("threshold", [5.0, 64.3, 1e6, 1e30])
def test_the_next_lower_threshold_is_below_by_a_step(T, kind, k, threshold, monkeypatch):
    """It is read from the constructor that makes the corrected map."""
    made = dp.m.make_laplace_threshold(*counts(T), 1.0, threshold, k=k)
    given = []
    original = dp.m.make_laplace_threshold
    monkeypatch.setattr(
        "opendp.measurements.make_laplace_threshold",
        lambda **kwargs: given.append(kwargs["threshold"]) or original(**kwargs),
    )
    measurement_map(made, (1, 1.0, 1.0))
    smallest = 2.0 ** ({float: -1074, "f32": -149}[T] if k is None else k)
    assert kind(given[0]) < kind(threshold)
    assert float(kind(given[0])) <= float(kind(threshold)) - smallest or smallest < 1e-30
    assert given[0] >= nextafter(threshold - 2 * smallest, -inf) * (1 - 1e-6)


def test_negative_thresholds_and_zero():
    release = dp.m.make_laplace_threshold(*counts(), 1.0, -5)
    mirrored = dp.m.make_laplace_threshold(*counts(), 1.0, 5)
    assert measurement_map(release, (1, 1, 1)) == measurement_map(mirrored, (1, 1, 1))
    with pytest.raises(dp.OpenDPException):
        measurement_map(dp.m.make_laplace_threshold(*counts(), 1.0, 0), (1, 1, 1))


TEXTS = dp.vector_domain(dp.atom_domain(T=str)), SYMMETRIC


def counted(threshold=5):
    return dp.t.make_count_by(*TEXTS) >> dp.m.then_laplace_threshold(1.0, threshold)


RIGHT = laplace_mass(1.0, 4)
NESTED = {
    "chain": counted,
    "postprocessed": lambda: counted() >> len,
    "twice": lambda: counted() >> len >> str,
    "composed": lambda: dp.c.make_composition([counted() >> len, counted(50) >> len]),
    "composed again": lambda: dp.c.make_composition(
        [dp.c.make_composition([counted() >> len]) >> len]
    ),
    "noise": lambda: (
        dp.t.make_count_by(*TEXTS)
        >> dp.m.then_noise_threshold(dp.approximate(dp.max_divergence()), 1.0, 5)
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_a_threshold_is_corrected_inside_of_combinators(name):
    made = NESTED[name]()
    assert made.map(1)[1] < RIGHT * 0.5
    assert measurement_map(made, 1)[1] >= RIGHT
    assert measurement_map(_native.pinned(made), 1) == measurement_map(made, 1)


def test_a_cast_of_a_curve_is_corrected():
    gaussian = dp.t.make_count_by(*TEXTS, TV="i32") >> dp.m.then_laplace_threshold(1.0, 5)
    curve = dp.c.make_fixed_approxDP_to_approxDP(gaussian)
    fixed = dp.c.make_fix_delta(curve, RIGHT * 0.9)
    assert fixed.map(1)[0] == 1.0
    assert measurement_map(fixed, 1)[0] == inf


def test_the_corrected_measurement_answers_as_before():
    """Keys are released at the rate of the corrected δ: 1,339 of 100,000; 7 deviations around."""
    users = [str(number) for number in range(100_000)]
    rate = len(counted()(users)) / len(users)
    right = measurement_map(counted(), 1)[1]
    assert abs(rate - right) < 7 * (right / len(users)) ** 0.5
    assert rate > 2 * counted().map(1)[1]


# --- refusals ---------------------------------------------------------------------------------

FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), SYMMETRIC
INTS = dp.vector_domain(dp.atom_domain(T=int)), SYMMETRIC
SCALAR = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
SCORES = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
PURE = dp.max_divergence()
SUM = dp.t.then_clamp((0.0, 1.0)), dp.t.then_sum()
NOISE = dp.m.then_laplace(scale=1.0)


def user(function, space=FLOATS, output=FLOATS):
    return dp.t.make_user_transformation(*space, *output, function, lambda d: d)


def mean(rows):
    return sum(rows) / len(rows) if rows else NAN


def each_nan(rows):
    return [NAN for _ in rows]


def by_row(function=each_nan):
    sized = dp.vector_domain(dp.atom_domain(T=float, nan=False, bounds=(0.0, 1.0)))
    return user(function, output=(sized, SYMMETRIC))


def own(rows):
    return rows


own.__module__ = "opendp.extras.anything"


def of_python():
    return dp.m.make_user_measurement(*SCALAR, PURE, lambda arg: 1.0 if arg else 2.0, float)


def by_a_filter():
    return dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*SCALAR, PURE), 1.0, 1.0)


def tree(head):
    return head >> dp.t.then_b_ary_tree(leaf_count=2, branching_factor=2)


SIZED = dp.vector_domain(dp.atom_domain(T=int), size=3)
BITS = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
REFUSED = {
    "mean of a user": (2935, lambda: user(mean, output=SCALAR) >> NOISE),
    "row function": (2935, lambda: by_row() >> dp.t.then_sum() >> NOISE),
    "before a composition": (
        2935,
        lambda: user(mean, output=SCALAR) >> dp.c.make_composition([SCALAR >> NOISE] * 2),
    ),
    "Gaussian": (2935, lambda: user(mean, output=SCALAR) >> dp.m.then_gaussian(scale=1.0)),
    "after an imputation": (
        2935,
        lambda: (FLOATS >> dp.t.then_impute_constant(0.0)) >> user(mean, output=SCALAR) >> NOISE,
    ),
    "a clamp, which raises on NaN": (2935, lambda: user(each_nan) >> SUM[0] >> SUM[1] >> NOISE),
    "a function of OpenDP after it": (
        2935,
        lambda: user(each_nan) >> by_row(own) >> SUM[1] >> NOISE,
    ),
    "noisy max, which raises on NaN": (
        2935,
        lambda: user(each_nan, output=SCORES) >> dp.m.then_noisy_max(PURE, scale=1.0),
    ),
    "OpenDP's compositor, which prices by itself": (
        2935,
        lambda: (
            user(mean, output=SCALAR) >> dp.c.make_adaptive_composition(*SCALAR, PURE, 1.0, [1.0])
        ),
    ),
    "OpenDP's filter": (2935, lambda: user(mean, output=SCALAR) >> by_a_filter()),
    "a measurement of Python": (2935, lambda: user(mean, output=SCALAR) >> of_python()),
    "bits": (2930, lambda: dp.m.make_randomized_response_bitvec(*BITS, f=0.5)),
    "tree of data": (2925, lambda: tree((SIZED, dp.l1_distance(T=int))) >> NOISE),
}
ALLOWED = {
    "clamped sum": lambda: FLOATS >> SUM[0] >> SUM[1] >> NOISE,
    "imputed": lambda: by_row() >> dp.t.then_impute_constant(0.5) >> SUM[0] >> SUM[1] >> NOISE,
    "dropped": lambda: user(each_nan) >> dp.t.then_drop_null() >> SUM[0] >> SUM[1] >> NOISE,
    "a function of OpenDP": lambda: by_row(own) >> SUM[1] >> NOISE,
    "integers": lambda: (
        user(len, output=(dp.atom_domain(T=int), dp.absolute_distance(T=int))) >> NOISE
    ),
    "data": lambda: SCALAR >> NOISE,
    "tree of counts": lambda: (
        tree(INTS >> dp.t.then_count_by_categories([1, 2, 3], null_category=False)) >> NOISE
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_measurement_with_a_known_fault_is_refused(name, monkeypatch):
    issue, make = REFUSED[name]
    made, d_in = make(), 1
    with pytest.raises(AdvisoryError, match=f"opendp#{issue}, a known fault of OpenDP") as caught:
        measurement_map(made, d_in)
    assert caught.value.reference == f"opendp#{issue}"
    with pytest.raises(AdvisoryError):
        measurement_map(_native.pinned(made), d_in)
    monkeypatch.setattr("opendp_concurrent.native.advisories.known.ACCEPTED", {issue})
    assert measurement_map(made, d_in) == made.map(d_in)


@pytest.mark.parametrize("name", ALLOWED)
def test_ordinary_pipelines_pass(name):
    made = ALLOWED[name]()
    d_in = 1.0 if name == "data" else 1
    assert measurement_map(made, d_in) == made.map(d_in)


STABLE = {
    "bounded": (2926, lambda: dp.t.make_metric_bounded(SIZED, ORDERED)),
    "resized": (
        2927,
        lambda: dp.t.make_resize(INTS[0], ORDERED, 3, constant=0, MO="InsertDeleteDistance"),
    ),
    "resized in order": (
        2927,
        lambda: dp.t.make_resize(*INTS, 3, constant=0, MO="InsertDeleteDistance"),
    ),
    "data that may be NaN": (2935, lambda: user(mean, output=SCALAR)),
}


@pytest.mark.parametrize("name", STABLE)
def test_a_transformation_with_a_known_fault_is_refused(name):
    issue, make = STABLE[name]
    with pytest.raises(AdvisoryError, match=f"opendp#{issue}"):
        transformation_map(make(), 2)


def test_unordered_distances_pass():
    for made in (
        dp.t.make_metric_bounded(SIZED, SYMMETRIC),
        dp.t.make_resize(*INTS, 3, constant=0),
        dp.t.make_resize(INTS[0], ORDERED, 3, constant=0, MO="SymmetricDistance"),
    ):
        assert transformation_map(made, 2) == made.map(2)


def test_an_answer_that_is_read_by_this_package_may_be_a_float():
    assert transformation_map(user(mean, output=SCALAR), 1, flows=False) == 1


def test_a_message_without_record_is_not_looked_into():
    """The docs say so: an object without OpenDP's record is believed."""
    made = counted()
    del made.__opendp_dict__
    assert measurement_map(made, 1) == made.map(1)


def test_nothing_is_accepted_at_first():
    assert set() == ACCEPTED
