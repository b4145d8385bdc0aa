"""The handle of a shared release: what is charged, what is free, and who may ask when."""

import gc
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


def shared(space, measure=PURE, *ceiling):
    return space >> dp.t.then_count() >> oc.m.then_shared_release(measure, *ceiling)


def filtered(space, d_out=1.0, measure=PURE, accumulator=None, rows=ROWS):
    return opened(d_out, measure, accumulator, space=space, data=rows)


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
    mine = dp.t.make_user_transformation(
        *space, dp.atom_domain(T=int), dp.absolute_distance(T=int), len, lambda d_in: d_in
    )
    unknown = mine >> oc.m.then_shared_release(PURE)
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
    for wrong in (
        (dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)),
        (
            dp.atom_domain(T=int),
            dp.absolute_distance(T=int),
        ),
    ):
        with pytest.raises(SpaceMismatchError):
            root(oc.m.make_shared_release(*wrong, PURE))  # no transformation from the rows
    with pytest.raises(SpaceMismatchError):
        root(shared(space, ZCDP))
    release = root(shared(space))
    for level, error in (
        (0.0, InvalidValueError),
        (-1, InvalidValueError),
        ("1", InvalidTypeError),
    ):
        with pytest.raises(error, match="level"):
            release(level)
    with pytest.raises(InvalidValueError, match="2\\^-30"):
        release(1e-12)
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


def failing_once(space):
    """A count that fails at its first run."""
    runs = []

    def function(rows):
        runs.append(len(rows))
        if len(runs) == 1:
            raise ValueError("on purpose")
        return len(rows)

    made = dp.t.make_user_transformation(
        *space, dp.atom_domain(T=int), dp.absolute_distance(T=int), function, lambda d_in: d_in
    )
    return made >> oc.m.then_shared_release(PURE), runs


def test_a_charge_stays_when_the_query_fails_and_no_level_is_noted(space):
    root = filtered(space)
    made, runs = failing_once(space)
    release = root(made)
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

    made = dp.t.make_user_transformation(
        *space, dp.atom_domain(T=int), dp.absolute_distance(T=int), slow, lambda d_in: d_in
    )
    root = filtered(space)
    release = root(made >> oc.m.then_shared_release(PURE))
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
    far = sum(
        abs(filtered(space)(shared(space))(1.0) - 3) > release.accuracy(1.0) for _ in range(99)
    )
    assert far < 20


@pytest.mark.parametrize("measure", [PURE, ZCDP])
def test_the_answer_of_one_analyst_is_not_that_of_another(measure):
    """A list that is returned may be changed."""
    vectors = dp.vector_domain(dp.atom_domain(T=int), size=2)
    metric = dp.l1_distance(T=int) if measure == PURE else dp.l2_distance(T=float)
    release = filtered((vectors, metric), 5.0, measure, rows=[5, 6])(
        oc.m.make_shared_release(vectors, metric, measure)
    )
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
