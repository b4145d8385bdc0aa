"""Any measurement as a question on a stream: on which rows it runs, and what it costs."""

from fractions import Fraction

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.errors import (
    BudgetExceededError,
    InterruptedHandleError,
    InvalidTypeError,
    StreamError,
    StreamHaltedError,
    UnsupportedMeasureError,
)

from ..build import APPROXIMATE, APPROXIMATE_ZCDP, PURE, a_filter, costing
from ..build import SPACE as ROWS

ITEMS = oc.integer_stream(0, 9), oc.event_presence()
COUNT = ROWS >> dp.t.then_count()
NOISY = COUNT >> dp.m.then_laplace(scale=0.01)
LISTS = dp.user_domain("lists", lambda rows: isinstance(rows, list))


def budget(space=ROWS, d_in=1, d_out=1000.0, measure=PURE):
    return a_filter(d_out, measure, d_in=d_in, space=space)


def on_stream(measurement, space=ITEMS):
    return oc.c.make_on_stream(*space, measurement)([])


def own(function, space=ROWS, loss=1.0):
    """A mechanism without noise, to see on which rows it runs."""
    return costing(loss, function, space=space)


SEEN = own(list)


def test_each_launch_runs_on_the_rows_so_far_and_is_charged_as_on_data():
    stream = on_stream(budget(d_out=250.0))
    stream.update_all([1, None, 2])
    assert abs(stream(NOISY) - 2) < 1
    stream.update(3)
    assert abs(stream(NOISY) - 3) < 1
    assert stream.privacy_loss() == 200.0 == 2 * NOISY.map(1)
    assert not stream.admits(NOISY)
    with pytest.raises(BudgetExceededError):
        stream(NOISY)
    assert (stream.privacy_loss(), stream.remaining()) == (200.0, 50.0)


@pytest.mark.parametrize("rows", [ROWS, (ROWS[0], dp.insert_delete_distance())])
@pytest.mark.parametrize(("metric", "factor"), [(oc.event_presence, 1), (oc.event_change, 2)])
def test_an_event_is_as_many_rows_as_it_changes(rows, metric, factor):
    made = oc.c.make_on_stream(ITEMS[0], metric(), own(list, rows))
    assert [made.map(d_in) for d_in in (0, 1, 3)] == [0.0, factor, 3 * factor]


def test_other_distances_and_what_lists_of_items_are_not_are_refused():
    events = own(list, (LISTS, oc.event_presence()))
    hamming = own(list, (ROWS[0], dp.hamming_distance()))
    for space, made in (
        (ITEMS, hamming),
        (ITEMS, events),
        ((ITEMS[0], oc.user_presence()), events),
    ):
        with pytest.raises(InvalidTypeError, match="distance of the rows"):
            oc.c.make_on_stream(*space, made)
    for domain in (
        dp.vector_domain(dp.atom_domain(T=int), size=3),
        dp.vector_domain(dp.atom_domain(bounds=(0, 8))),
        dp.vector_domain(dp.atom_domain(T=str)),
    ):
        with pytest.raises(InvalidTypeError, match="lists of any length"):
            oc.c.make_on_stream(*ITEMS, own(len, (domain, ROWS[1])))


def test_a_record_that_is_no_row_is_left_out_and_nothing_is_said(recwarn):
    records = oc.record_stream("anything", lambda record: True), oc.event_presence()
    stream = on_stream(budget(), records)
    stream.update_all([1, "two", 3.5, None, 2**40, 4])
    assert stream(SEEN) == [1, 4]
    assert not recwarn.list


def test_users_are_bounded_before_or_are_those_of_the_measurement():
    pairs = oc.record_stream("pairs", lambda pair: True), oc.user_presence()
    bounded = oc.t.make_bounded_contributions(*pairs, ITEMS[0], 2)
    made = bounded >> oc.c.make_on_stream(*ITEMS, budget(d_in=4))
    assert made.map(2) == 1000.0
    with pytest.raises(Exception, match="at most 4"):
        made.map(3)
    stream = made([])
    stream.update_all([("a", 1), ("a", 2), ("a", 3), ("b", 4)])
    assert stream(SEEN) == [1, 2, 4]

    by_user = own(lambda rows: len({user for user, _ in rows}), (LISTS, oc.user_presence()))
    made = oc.c.make_on_stream(*pairs, by_user)
    assert made.map(3) == 3.0
    stream = made([])
    stream.update_all([("a", 1), ("a", 2), ("b", 4)])
    assert stream.read() == 2


def test_a_question_is_asked_once_of_the_rows_at_its_first_query():
    question = on_stream(SEEN)
    question.update(1)
    assert question.read() == [1]
    question.update(2)
    assert question.read() == [1]
    with pytest.raises(StreamHaltedError):
        question.update(10)
    with pytest.raises(StreamHaltedError):
        question.read()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_question_that_fails_is_not_run_again(error):
    """What it raises is an answer: a second run would cost as much again."""
    runs = []

    def fail(rows):
        runs.append(len(rows))
        raise error

    question = on_stream(own(fail))
    for refused in ((OpenDPException, KeyboardInterrupt), (StreamError, InterruptedHandleError)):
        question.update(1)
        with pytest.raises(refused):
            question(None)
    assert runs == [1]


def test_a_mechanism_that_keeps_its_rows_does_not_see_them_grow():
    """One list for data and mechanism would make its later answers exact: see the proof."""
    kept = []
    spy = own(lambda rows: kept.append(rows) or len(rows), (LISTS, ROWS[1]))
    stream = on_stream(budget((LISTS, ROWS[1])))
    for step in range(3):
        stream.update(step)
        assert stream(spy) == step + 1
    assert kept == [[0], [0, 1], [0, 1, 2]]


def repeating(rows):
    """The mechanism of the proof: its noise is drawn once, here as -5."""
    return dp.new_queryable(lambda query: len(rows) - 5, Q="ExtrinsicObject", A="ExtrinsicObject")


@pytest.mark.parametrize("wrap", [lambda one: one, oc.c.make_interactive])
def test_interactive_mechanisms_stay_with_the_rows_of_their_launch(wrap):
    stream = on_stream(budget((LISTS, ROWS[1])))
    stream.update(1)
    child = stream(wrap(own(repeating, (LISTS, ROWS[1]))))
    assert child(0) == -4
    stream.update_all([1] * 5)
    assert child(0) == -4


def sparse_vector(**keywords):
    return oc.m.make_sparse_vector(
        *ROWS, PURE, d_in=1, scale=0.01, query_scale=0.01, threshold=10, max_hits=3, **keywords
    )


@pytest.mark.parametrize("query", [COUNT, len])
@pytest.mark.parametrize("nested", [False, True])
def test_a_sparse_vector_sees_the_rows_so_far(query, nested):
    stream = on_stream(budget(d_out=10_000.0) if nested else sparse_vector())
    ask = stream(sparse_vector()) if nested else stream
    assert not ask(query)
    stream.update_all([1] * 20)
    assert ask(query)


def test_a_monotone_sparse_vector_stays_with_the_rows_of_its_first_query():
    stream = on_stream(sparse_vector(monotone=True))
    assert not stream(COUNT)
    stream.update_all([1] * 20)
    assert not stream(COUNT)


FEW = dp.vector_domain(dp.atom_domain(bounds=(0, 9))), dp.symmetric_distance()
CLAMP = dp.t.make_clamp(*ROWS, (0, 9))
PLAN = oc.make_concurrent_composition(*ROWS, PURE, 1, [100.0] * 3)
COMPOSITIONS = [
    (CLAMP >> oc.make_concurrent_composition(*FEW, PURE, 1, [100.0] * 3), FEW),
    (oc.make_concurrent_filter(CLAMP >> oc.make_concurrent_odometer(*FEW, PURE), 1, 300.0), FEW),
    (oc.c.make_bounded_interactive(PLAN, 10), ROWS),
    (oc.c.cast(PLAN, APPROXIMATE), ROWS),
]


@pytest.mark.parametrize(("made", "space"), COMPOSITIONS, ids=lambda one: str(one)[:40])
def test_launches_of_every_composition_run_on_the_rows_so_far(made, space):
    stream = on_stream(made)
    for step in (1, 2):
        stream.update(step)
        assert stream(own(list, space)) == list(range(1, step + 1))
    below = stream(oc.make_concurrent_composition(*space, PURE, 1, [50.0] * 2))
    stream.update(3)
    assert below(own(list, space)) == [1, 2, 3]


def test_a_question_is_a_child_of_a_stream(make_stream):
    root = make_stream(ITEMS, 20.0)([])
    root.update(7)
    child = root(oc.c.make_on_stream(*ITEMS, budget(d_out=10.0)))
    root.update_all([1, 2])
    assert child(SEEN) == [1, 2]  # since its launch, as all children
    assert root.privacy_loss() == 10.0
    with pytest.raises(InvalidTypeError):
        child(oc.handles.Update(3))


def test_compositions_under_approximate_zcdp_and_odometers_are_refused():
    with pytest.raises(UnsupportedMeasureError):
        on_stream(budget(d_out=(1.0, 0.1), measure=APPROXIMATE_ZCDP))
    with pytest.raises(InvalidTypeError):
        on_stream(oc.make_concurrent_odometer(*ROWS, PURE))


def test_no_adversary_who_chooses_rows_by_answers_exceeds_the_filter():
    """Two randomized responses to whether there is a row, one of them launched after an answer."""
    tape = verify.Tape()

    def response(rows):
        truth = Fraction(3, 4)
        return tape.draw((truth, 1 - truth) if rows else (1 - truth, truth))

    loss = float(verify.randomized_response(1.0986122886681098).epsilon())
    launch = own(response, (LISTS, ROWS[1]), loss=loss)
    made = oc.c.make_on_stream(*ITEMS, budget((LISTS, ROWS[1]), d_out=2 * loss))
    moves = [
        verify.Move("launch", lambda handle: handle(launch)),
        verify.Move("event", lambda handle: handle.update(1), lambda handle: handle.update(None)),
        verify.Move("step", lambda handle: handle.update(None)),
    ]

    def allowed(history):
        return [one for one in moves if one.name != "event" or "event" not in dict(history)]

    law = verify.Played(tape, lambda side: made([]), allowed, refusals=(BudgetExceededError,))
    assert law.worst_loss(4).ratio == 9
