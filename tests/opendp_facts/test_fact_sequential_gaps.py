"""How far OpenDP's sequentiality reaches, and the three ways around it.

They are: an object that is no native queryable, a launch that fails, and another thread.
"""

import threading

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

PURE = dp.max_divergence()
SEQUENTIAL = dp.approximate(dp.zero_concentrated_divergence())
CLOSED = "only the most recent release from the parent compositor may be interacted with"
FREE = (0.0, 0.0)
TRIVIAL = dp.atom_domain(T=bool), dp.discrete_distance()


def echo():
    return dp.new_queryable(lambda query: query)


def in_another_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def assert_closed(child, query="asked"):
    with pytest.raises(OpenDPException, match=CLOSED):
        child(query)


@pytest.fixture
def free(user):
    """Make a measurement of no loss from a function."""
    return lambda function=len: user(function, FREE, SEQUENTIAL)


@pytest.fixture
def root(space):
    return dp.c.make_adaptive_composition(*space, SEQUENTIAL, 1, [FREE] * 4)([1])


# --- what is reached --------------------------------------------------------------------------


def test_a_queryable_that_another_measurement_returned_is_closed_in_a_dict(root, free):
    inner = free(lambda rows: echo())
    child = root(free(lambda rows: {"q": inner(rows)}))["q"]
    assert child("asked") == "asked"
    root(free())
    assert_closed(child)


def test_a_queryable_that_was_never_returned_is_closed(root, free):
    kept = []
    root(free(lambda rows: kept.append(echo())))
    assert kept[0]("asked") == "asked"
    root(free())
    assert_closed(kept[0])


def test_the_next_launch_closes_queryables_of_every_measure(space, user, laplace, free):
    """Made on a trivial space without loss, so that a runner of launches needs no data."""
    pure = dp.c.make_adaptive_composition(*space, PURE, 1, [1.0] * 2)
    odometer = dp.c.make_fully_adaptive_composition(*space, PURE)
    root = dp.c.make_adaptive_composition(*TRIVIAL, SEQUENTIAL, d_in=1, d_mids=[FREE] * 2)(True)

    def visit(function):
        return user(function, FREE, SEQUENTIAL, space=TRIVIAL)

    children = root(visit(lambda _: (pure([1]), odometer([1]), echo())))
    queries = laplace(), laplace(), "asked"
    for child, query in zip(children, queries, strict=True):
        child(query)
    root(visit(lambda _: None))
    for child, query in zip(children, queries, strict=True):
        assert_closed(child, query)


# --- what is not ------------------------------------------------------------------------------


def fail(rows):
    raise ValueError("depends on the data")


def test_a_launch_that_fails_closes_nothing(root, free):
    child = root(free(lambda rows: echo()))
    with pytest.raises(OpenDPException, match="depends on the data"):
        root(free(fail))
    assert child("asked") == "asked"


def test_what_a_failed_launch_made_is_never_closed(root, free):
    """OpenDP begins to enforce sequentiality on what a launch made when the launch succeeds."""
    kept = []

    def make_and_fail(rows):
        kept.append(echo())
        fail(rows)

    with pytest.raises(OpenDPException, match="depends on the data"):
        root(free(make_and_fail))
    child = root(free(lambda rows: echo()))
    assert kept[0]("asked") == child("asked") == kept[0]("asked") == "asked"
    root(free())
    assert_closed(child)
    assert kept[0]("asked") == "asked"


def test_a_launch_that_returns_its_failure_closes_what_one_that_raises_does_not(root, free):
    """So a runner of launches should carry failures out as answers."""
    failure, kept = ValueError("depends on the data"), []

    def make_and_return_failure(rows):
        kept.append(echo())
        return failure

    child = root(free(lambda rows: echo()))
    assert root(free(make_and_return_failure)) is failure
    assert_closed(child)
    assert kept[0]("asked") == "asked"
    root(free())
    assert_closed(kept[0])


def test_what_a_launch_makes_in_another_thread_is_never_closed(root, free):
    """What wraps queryables is kept in a variable of the thread."""
    kept = []
    root(free(lambda rows: in_another_thread(lambda: kept.append(echo()))))
    root(free())
    assert kept[0]("asked") == "asked"
