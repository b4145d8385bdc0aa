"""What every wrapper keeps: the privacy map, the parents it may have, and the secrets."""

import itertools
import threading

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, HaltedError

PURE = dp.max_divergence()
APPROXIMATE_ZCDP = dp.approximate(dp.zero_concentrated_divergence())
SMALL = (0.001, 1e-9)
SECRET = 314159265
DATA = [SECRET, 1, 2]


def identity(state, tag, message):
    return state, tag, message


WRAPPERS = {
    "interactive": oc.c.make_interactive,
    "bounded": lambda measurement: oc.c.make_bounded_interactive(measurement, 1000),
    "postprocessing": lambda measurement: oc.c.make_interactive_postprocessing(
        measurement, identity
    ),
    "twice": lambda measurement: oc.c.make_interactive(
        oc.c.make_interactive_postprocessing(measurement, identity)
    ),
}


@pytest.fixture(params=WRAPPERS)
def wrap(request):
    return WRAPPERS[request.param]


def asking(space, measure=PURE, d_mid=0.25):
    """An interactive measurement that counts its queries."""

    def function(rows):
        asked = itertools.count(1)
        return dp.new_queryable(lambda query: (next(asked), query))

    return dp.m.make_user_measurement(
        *space, measure, function, lambda d_in: d_mid, TO="ExtrinsicObject"
    )


def laplace(space, epsilon=0.25):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def filter_(space, d_out=10.0, measure=PURE, **keywords):
    odometer = oc.make_concurrent_odometer(*space, measure)
    return oc.make_concurrent_filter(odometer, 1, d_out, **keywords)


# --- make_interactive ------------------------------------------------------------------------


def test_a_release_is_made_once_and_given_again(space):
    runs = []
    measurement = dp.m.make_user_measurement(
        *space, PURE, lambda rows: runs.append(1) or len(runs), lambda d_in: 0.5, TO=int
    )
    queryable = oc.c.make_interactive(measurement)(DATA)
    assert runs == [1]
    assert [queryable(message) for message in (None, "x", 7, measurement)] == [1] * 4
    assert runs == [1]


def test_a_random_release_is_the_same_each_time(space):
    queryable = oc.c.make_interactive(laplace(space, 1e-3))(DATA)
    assert len({queryable(number) for number in range(50)}) == 1
    assert len({oc.c.make_interactive(laplace(space, 1e-3))(DATA)(0) for _ in range(50)}) > 1


def test_an_interactive_measurement_answers_as_before(space):
    queryable = oc.c.make_interactive(asking(space))(DATA)
    assert [queryable(query) for query in "ab"] == [(1, "a"), (2, "b")]


def test_none_is_a_release(space):
    measurement = dp.m.make_user_measurement(
        *space, PURE, lambda rows: None, lambda d_in: 0.0, TO="ExtrinsicObject"
    )
    assert oc.c.make_interactive(measurement)(DATA)("q") is None


# --- what is wrapped -------------------------------------------------------------------------


def test_a_refusal_keeps_its_type_and_values(space, wrap):
    queryable = wrap(filter_(space, 1.0))(DATA)
    queryable(laplace(space, 0.5))
    with pytest.raises(BudgetExceededError) as refused:
        queryable(laplace(space, 0.75))
    assert (refused.value.spent, refused.value.remaining) == (0.5, 0.5)
    assert isinstance(queryable(laplace(space, 0.5)), int)


def test_children_of_a_wrapped_filter_run_side_by_side(space):
    """One child waits for an event that the other sets."""
    queryable = oc.c.make_interactive(filter_(space))(DATA)
    begun, done = threading.Event(), threading.Event()

    def transition(query):
        if query == "wait":
            begun.set()
            return done.wait(timeout=30)
        assert begun.wait(timeout=30)
        done.set()
        return True

    child = dp.m.make_user_measurement(
        *space,
        PURE,
        lambda rows: dp.new_queryable(transition),
        lambda d_in: 0.25,
        TO="ExtrinsicObject",
    )
    children = [queryable(child) for _ in range(2)]
    answers = [None, None]

    def work(number):
        answers[number] = children[number](["wait", "set"][number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert answers == [True, True]


# --- parents ---------------------------------------------------------------------------------


def test_it_halts_with_the_filter_that_launched_it(space, wrap):
    root = filter_(space, 1.0, halt=True)(DATA)
    child = root(wrap(asking(space)))
    with pytest.raises(BudgetExceededError):
        root(laplace(space, 5.0))
    with pytest.raises(HaltedError):
        child("q")


# --- sequential ------------------------------------------------------------------------------


def test_a_native_sequential_compositor_closes_it(space, wrap):
    root = dp.c.make_adaptive_composition(*space, APPROXIMATE_ZCDP, 1, [SMALL] * 2)(DATA)
    older = root(wrap(asking(space, APPROXIMATE_ZCDP, SMALL)))
    assert older("q") == (1, "q")
    newer = root(wrap(asking(space, APPROXIMATE_ZCDP, SMALL)))
    assert newer("q") == (1, "q")
    with pytest.raises(Exception, match="sequentiality"):
        older("q")


# --- threads and secrets ---------------------------------------------------------------------


def test_one_queryable_answers_from_many_threads(space, wrap):
    queryable, seen = wrap(asking(space))(DATA), []

    def work():
        for number in range(100):
            seen.append(queryable(number)[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 401))
