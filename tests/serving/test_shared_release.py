"""Shared releases: the constructor, what is charged, what is free, and who may ask when."""

import gc
import math
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    MechanismError,
    NativeConstructorError,
    ReentrantLaunchError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.serving import levels as chain
from opendp_concurrent.serving import shared_release as queryable
from opendp_concurrent.serving.levels import Chain

from ..build import PURE, ZCDP, costing, opened

BOTH = dp.approximate(PURE)
ROWS = [1, 2, 3]
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
INTEGERS = dp.vector_domain(dp.atom_domain(T=int))


def shared(space, measure=PURE, *ceiling):
    return space >> dp.t.then_count() >> oc.m.then_shared_release(measure, *ceiling)


def counting(space, function):
    """A release of a count by a function of one's own."""
    own = dp.t.make_user_transformation(*space, *WHOLE, function, lambda d_in: d_in)
    return own >> oc.m.then_shared_release(PURE)


def filtered(space, d_out=1.0, measure=PURE, accumulator=None, rows=ROWS):
    return opened(d_out, measure, accumulator, space=space, data=rows)


@pytest.mark.parametrize(
    ("measure", "loss"), [(PURE, 0.75), (BOTH, (0.75, 0.0)), (ZCDP, 0.75 * math.tanh(0.375))]
)
def test_a_ceiling_is_paid_once(space, measure, loss):
    made = shared(space, measure, 0.75)
    assert made.map(1) == pytest.approx(loss)
    root = opened(made.map(1), measure)
    release = root(made)
    answers = {level: release(level) for level in (0.25, 0.75, 0.5)}
    assert {level: release(level) for level in answers} == answers
    assert root.privacy_loss() == made.map(1)
    with pytest.raises(InvalidValueError, match="at most 0.75, the ceiling"):
        release(0.8)
    assert release(0.75) == answers[0.75]


def test_a_ceiling_costs_what_laplace_noise_of_its_scale_costs(space):
    for measure in (ZCDP, oc.tradeoff(), dp.renyi_divergence()):
        ours = oc.m.make_shared_release(*WHOLE, measure, 0.5).map(3)
        noise = oc.m.make_certified_laplace(*WHOLE, 2.0, measure).map(3)
        if measure == dp.renyi_divergence():
            ours, noise = ours(4.0), noise(4.0)
        assert ours == noise
    assert oc.m.make_shared_release(*WHOLE, PURE, 0.5).accuracy(0.05) == 6.0


@pytest.mark.parametrize(
    ("measure", "levels"),
    [
        (oc.gaussian_tradeoff(), (0.5, 2.0)),
        (oc.fixed_renyi_divergence(4.0), (0.25, 1.0)),
        (oc.truncated_concentrated_divergence(8.0), (0.25, 1.0)),
        (dp.renyi_divergence(), (0.25, 1.0)),
    ],
    ids=str,
)
def test_gaussian_noise_under_the_relatives_of_zcdp(space, measure, levels):
    root = oc.make_concurrent_odometer(*space, measure)([1, 2, 3])
    release = root(shared(space, measure))
    coarse, fine = map(release, levels)
    assert release(levels[0]) == coarse != "an answer"
    assert release(levels[1]) == fine
    both = root.privacy_loss(1)
    one = oc.m.make_certified_gaussian(*WHOLE, (0.5 / levels[1]) ** 0.5, measure).map(1)
    if measure == dp.renyi_divergence():
        both, one = both(4.0), one(4.0)
    if isinstance(both, oc.TruncatedConcentrated):
        both, one = both.rho, one.rho
    assert both == pytest.approx(one)


def test_what_the_constructor_refuses(space):
    floats = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    with pytest.raises(InvalidTypeError, match="input_domain .* must be of integers"):
        oc.m.make_shared_release(*floats, PURE)
    with pytest.raises(NativeConstructorError):
        oc.m.make_shared_release(INTEGERS, dp.l2_distance(T=int), PURE)
    with pytest.raises(NativeConstructorError):
        oc.m.make_shared_release(*space, PURE)  # rows are no query
    with pytest.raises(UnsupportedMeasureError, match="ceiling must be given under f-DP"):
        oc.m.make_shared_release(*WHOLE, oc.tradeoff())
    with pytest.raises(UnsupportedMeasureError, match="not offered for vectors of integers"):
        oc.m.make_shared_release(INTEGERS, dp.l2_distance(T=float), oc.gaussian_tradeoff())
    for ceiling in (2.0**-31, 2.0**21, 0.0, -1.0, math.nan):
        with pytest.raises(InvalidValueError, match="ceiling"):
            oc.m.make_shared_release(*WHOLE, PURE, ceiling)


def test_a_release_has_no_bound_of_its_own(space):
    made = shared(space, PURE)
    for bound in (
        lambda: oc.make_concurrent_filter(made, 1, 1.0),
        lambda: oc.c.make_limited(made, 1, 1.0, label="a"),
    ):
        with pytest.raises(InvalidTypeError, match="shared release"):
            bound()


# --- the handle -----------------------------------------------------------------------------------


def test_all_levels_cost_what_the_finest_one_costs(space):
    root = filtered(space, 2.0)
    release = root(shared(space))
    assert root.privacy_loss() == release.finest == 0.0
    first = {level: release(level) for level in (0.25, 1.0, 0.5, 0.125, 0.75)}
    assert root.privacy_loss() == release.privacy_loss(1) == release.finest == 1.0
    assert {level: release(level) for level in first} == first
    assert (root.privacy_loss(), release.privacy_loss(2)) == (1.0, 2.0)
    assert "finest=1.0" in repr(release)


def test_the_sensitivity_of_the_query_counts(space):
    total = space >> dp.t.then_clamp((-3, 4)) >> dp.t.then_sum()
    root = filtered(space, 3.0)
    release = root(total >> oc.m.then_shared_release(PURE))
    release(0.5)
    assert root.privacy_loss() == 2.0
    with pytest.raises(BudgetExceededError, match=r"spent 2 of 3, asked 2, remaining 1"):
        release(1.0)
    release(0.75)
    assert root.remaining() == 0.0


def test_a_level_that_is_refused_costs_nothing_and_the_coarser_ones_stay(space):
    root = filtered(space)
    release = root(shared(space))
    answers = release(0.5), release(0.25)
    with pytest.raises(BudgetExceededError):
        release(1.25)
    assert (root.privacy_loss(), release.finest) == (0.5, 0.5)
    release(1.0)
    assert root.remaining() == 0.0  # and with no budget left:
    assert (release(0.5), release(0.25)) == answers
    assert isinstance(release(0.7), int)
    assert root(shared(space))(0.5) == answers[0]


def test_others_of_the_same_query_get_the_same_release(space):
    root = filtered(space, 4.0)
    release = root(shared(space))
    assert root(shared(space)) is release
    assert root(oc.deserialize(oc.serialize(shared(space)))) is release
    other = space >> dp.t.then_clamp((0, 2)) >> dp.t.then_count()
    assert root(other >> oc.m.then_shared_release(PURE)) is not release
    odometer = oc.make_concurrent_odometer(*space, PURE)
    limit = root(oc.c.make_limited(odometer, 1, 1.0, label="team"))
    assert limit(shared(space)) is not release  # which other accounts pay for
    assert limit(shared(space)) is limit(shared(space))
    assert filtered(space)(shared(space)) is not release  # other data
    unknown = counting(space, len)
    assert root(unknown) is not root(unknown)


def test_a_list_that_is_changed_later_makes_no_other_query_equal(space):
    """OpenDP's record of a query has the list that was passed, not a copy."""
    edges, made = [0, 9], []
    for more in ([], [3], [2]):
        edges[1:1] = more
        bins = space >> dp.t.then_find_bin(edges) >> dp.t.then_count_distinct()
        made.append(bins >> oc.m.then_shared_release(PURE))
    asked = list(map(filtered(space, 99.0), made))
    assert len(set(map(id, asked))) == 3
    assert [release(30.0) for release in asked] == [1, 2, 3]


@pytest.mark.parametrize(
    "accumulator",
    [
        oc.accumulators.advanced(1e-7),
        oc.accumulators.zcdp(1e-7),
        oc.accumulators.any_time(1e-7),
        oc.accumulators.either(oc.accumulators.basic(), oc.accumulators.zcdp(1e-7)),
    ],
)
def test_steps_are_refused_where_their_sum_is_no_bound(space, accumulator):
    root = filtered(space, (9.0, 1e-6), BOTH, accumulator)
    with pytest.raises(UnsupportedMeasureError, match="basic.*pass ceiling"):
        root(shared(space, BOTH))
    assert root.privacy_loss() == (0.0, 0.0)
    below = root(shared(space, BOTH, 0.5))
    spent = root.privacy_loss()
    assert isinstance(below(0.25), int)
    assert isinstance(below(0.5), int)
    assert root.privacy_loss() == spent > (0.0, 0.0)


def test_an_inner_account_must_add_up_by_the_plain_sum_as_well(space):
    odometer = oc.make_concurrent_odometer(*space, BOTH, accumulator=oc.accumulators.advanced(1e-7))
    root = filtered(space, (1.0, 1e-6), BOTH)
    limit = root(oc.c.make_limited(odometer, 1, (1.0, 1e-6), label="a"))
    with pytest.raises(UnsupportedMeasureError):
        limit(shared(space, BOTH))
    root(shared(space, BOTH))(0.5)
    assert root.privacy_loss() == (0.5, 0.0)
    compositor = oc.make_concurrent_composition(*space, PURE, 1, [0.5, 0.5])(ROWS)
    with pytest.raises(UnsupportedMeasureError):
        compositor(shared(space))


def test_under_zcdp_steps_are_launches(space):
    root = filtered(space, 0.5, ZCDP)
    release = root(shared(space, ZCDP))
    answers = [release(share / 20) for share in range(1, 11)]
    assert 0.5 * (1 - 1e-9) < root.privacy_loss() <= 0.5
    assert [release(share / 20) for share in range(1, 11)] == answers
    with pytest.raises(InvalidValueError, match="below that of the first answer"):
        release(0.01)
    with pytest.raises(BudgetExceededError):
        release(0.51)


def test_what_does_not_fit_is_refused(space):
    root = filtered(space)
    for wrong in ((INTEGERS, dp.l1_distance(T=int)), WHOLE):
        with pytest.raises(SpaceMismatchError):
            root(oc.m.make_shared_release(*wrong, PURE))  # no transformation from the rows
    with pytest.raises(SpaceMismatchError):
        root(shared(space, ZCDP))
    release = root(shared(space))
    for level in (0.0, -1, "1", 1e-12):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="level"):
            release(level)
    assert root.privacy_loss() == 0.0


def test_a_mechanism_that_runs_may_not_ask(space):
    root = filtered(space)
    release = root(shared(space))
    release(0.25)
    nosy = costing(0.25, lambda rows: release(0.125 if len(rows) > 2 else 0.0625))
    with pytest.raises(ReentrantLaunchError):
        root(nosy)


@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=str)
def test_two_threads_pay_for_the_finer_level_once(space, measure):
    root = filtered(space, 50.0, measure)
    release = root(shared(space, measure))
    release(0.25)
    asked = [1 + index % 8 for index in range(64)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(release, asked))
    assert 8.0 * (1 - 1e-9) < root.privacy_loss() <= 8.0
    if measure == PURE:
        assert len(set(zip(asked, answers, strict=True))) == 8
    else:  # those between are means of what was launched before
        assert len({one for level, one in zip(asked, answers, strict=True) if level == 8}) == 1


def test_two_threads_that_open_at_once_get_one_release(space, monkeypatch):
    root, both, opening = filtered(space, 50.0), Barrier(2, timeout=60), queryable._open

    def together(*arguments):
        made = opening(*arguments)
        both.wait()
        return made

    monkeypatch.setattr(queryable, "_open", together)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: root(shared(space)), range(2))
    assert one is other


def test_a_charge_stays_when_the_query_fails_and_no_level_is_noted(space):
    root, runs = filtered(space), []

    def fail_once(rows):
        runs.append(len(rows))
        if len(runs) == 1:
            raise ValueError("on purpose")
        return len(rows)

    release = root(counting(space, fail_once))
    with pytest.raises(Exception, match="on purpose"):
        release(0.25)
    assert (root.privacy_loss(), release.finest) == (0.25, 0.0)
    release(0.25)
    release(0.5)
    assert root.privacy_loss() == 0.75
    assert runs == [3, 3]  # the exact answer is computed once


def test_an_interrupt_leaves_a_charge_and_a_release_that_goes_on(space):
    def slow(rows):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)
        return len(rows)

    root = filtered(space)
    release = root(counting(space, slow))
    for spent in (0.25, 0.5):
        with pytest.raises(KeyboardInterrupt):
            release(0.25)
        assert (root.privacy_loss(), release.finest) == (spent, 0.0)


def test_a_postprocessor_is_applied_to_each_answer(space):
    root = filtered(space)
    release = root(shared(space) >> (lambda answer: f"about {answer}"))
    assert release(0.5).startswith("about")
    assert release(0.25).startswith("about")
    assert release(0.5) == release(0.5)
    assert root.privacy_loss() == 0.5


def test_accuracy_is_known_before_a_level_is_asked(space):
    release = filtered(space, 10.0)(shared(space))
    assert release.accuracy(0.5) == 6.0
    assert release.accuracy(1.0, 1e-6) == 14.0
    assert release.accuracy(1.0, 1e-6, answers=100) > 14.0
    assert release.finest == 0.0
    errors = [abs(filtered(space)(shared(space))(1.0) - 3) for _ in range(99)]
    assert sum(one > release.accuracy(1.0) for one in errors) < 20


@pytest.mark.parametrize("measure", [PURE, ZCDP])
def test_the_answer_of_one_analyst_is_not_that_of_another(measure):
    """A list that is returned may be changed."""
    metric = dp.l1_distance(T=int) if measure == PURE else dp.l2_distance(T=float)
    pair = dp.vector_domain(dp.atom_domain(T=int), size=2), metric
    made = oc.m.make_shared_release(*pair, measure)
    release = filtered(pair, 5.0, measure, rows=[5, 6])(made)
    first = release(0.5)
    before = list(first)
    first[0] = 10**9
    assert release(0.5) == before


@pytest.mark.parametrize("ceiling", [(), (1.0,)])
def test_levels_that_are_free_are_limited(space, ceiling, monkeypatch):
    """Each of them keeps noise for each coordinate, and costs nothing."""
    monkeypatch.setattr(chain, "MOST", 3)
    release = filtered(space, 2.0)(shared(space, PURE, *ceiling))
    known = {level: release(level) for level in (1.0, 0.25, 0.5)}
    with pytest.raises(InvalidValueError, match=r"level \(0.625\) must be .* one is 0.5"):
        release(0.625)
    assert {level: release(level) for level in known} == known
    if not ceiling:  # a finer level is paid
        release(1.5)
        assert release.finest == 1.5


def test_a_release_that_nobody_holds_is_forgotten_unless_it_was_paid(space):
    """It costs nothing to open one, so any number could be opened."""
    root = filtered(space)
    for refused in (2.0, 3.0):
        with pytest.raises(BudgetExceededError):
            root(shared(space))(refused)
    opened = root._session.shared["releases"]
    gc.collect()  # a handle refers to itself
    assert len(opened.by_making) == 0
    answer = root(shared(space))(0.5)
    assert len(opened.by_making) == len(opened.paid) == 1
    assert root(shared(space))(0.5) == answer
    assert root.privacy_loss() == 0.5


def test_a_draw_that_fails_at_a_free_level_is_hidden_if_errors_are(space, monkeypatch):
    def fail(self, level):
        raise ZeroDivisionError("12345")

    odometer = oc.make_concurrent_odometer(*space, PURE, opaque_errors=True)
    release = oc.make_concurrent_filter(odometer, 1, 1.0)(ROWS)(shared(space))
    release(0.5)
    monkeypatch.setattr(Chain, "at", fail)
    with pytest.raises(MechanismError) as hidden:
        release(0.25)
    assert "12345" not in str(hidden.value)
