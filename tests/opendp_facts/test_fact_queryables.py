"""Native queryables: which are closed by what, made in Python, and one query at a time."""

import threading

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

PURE = dp.max_divergence()
ZCDP = dp.zero_concentrated_divergence()
APPROXIMATE_ZCDP = dp.approximate(ZCDP)
LOSS = (1.0, 1e-6)
FREE = (0.0, 0.0)


@pytest.fixture
def sequential(space):
    def sequential(k=4):
        return dp.c.make_adaptive_composition(*space, APPROXIMATE_ZCDP, 1, [LOSS] * k)

    return sequential


@pytest.fixture
def query(user):
    return user(len, LOSS, APPROXIMATE_ZCDP)


# --- sequentiality ----------------------------------------------------------------------------


def test_native_children_of_approximate_zcdp_are_sequential(sequential, query):
    root = sequential()([1])
    older, newer = root(sequential(1)), root(sequential(1))
    with pytest.raises(OpenDPException, match="sequentiality"):
        older(query)
    assert newer(query) == 1


@pytest.mark.parametrize("hide", [False, True], ids=["returned", "hidden in a dict"])
def test_a_python_queryable_is_closed_by_a_newer_launch(sequential, query, user, hide):
    def launch(rows):
        queryable = dp.new_queryable(lambda query: query)
        return {"q": queryable} if hide else queryable.value

    root = sequential()([1])
    answer = root(user(launch, FREE, APPROXIMATE_ZCDP))
    queryable = answer["q"] if hide else answer
    assert queryable("asked") == "asked"
    root(query)
    with pytest.raises(OpenDPException, match="sequentiality"):
        queryable("asked")


def test_a_python_queryable_is_not_closed_by_a_launch_that_is_refused(sequential, query, user):
    root = sequential()([1])
    queryable = root(user(lambda rows: {"q": dp.new_queryable(len)}, FREE, APPROXIMATE_ZCDP))["q"]
    with pytest.raises(OpenDPException, match="insufficient budget"):
        root(user(len, (2.0, 1e-6), APPROXIMATE_ZCDP))
    assert queryable("asked") == 5


def test_what_is_launched_inside_a_trivial_compositor_is_closed_by_its_next_launch(
    sequential, query, user
):
    trivial = dp.atom_domain(T=bool), dp.discrete_distance()
    tasks = iter([lambda: sequential()([1]), lambda: query([1, 2]), lambda: None])
    visit = user(lambda _: next(tasks)(), FREE, APPROXIMATE_ZCDP, space=trivial)
    root = dp.c.make_adaptive_composition(*trivial, APPROXIMATE_ZCDP, d_in=1, d_mids=[FREE] * 3)(
        True
    )
    child = root(visit)
    assert child(query) == 1
    grandchild = child(sequential(1))
    assert root(visit) == 2
    for closed in (child, grandchild):
        with pytest.raises(OpenDPException, match="sequentiality"):
            closed(query)
    assert root(visit) is None
    with pytest.raises(OpenDPException, match="out of queries"):
        root(visit)


# --- made in Python ---------------------------------------------------------------------------


def test_a_python_queryable_carries_any_object_both_ways():
    received, answer = [], object()

    def transition(query):
        received.append(query)
        return answer

    query = object()
    assert dp.new_queryable(transition)(query) is answer
    assert received[0] is query


def test_a_python_queryable_shows_its_transition_until_that_is_cleared():
    def transition(query):
        return query

    queryable = dp.new_queryable(transition)
    assert queryable.__opendp_dict__["__kwargs__"]["transition"] is transition
    queryable.__opendp_dict__ = {}
    assert queryable("asked") == "asked"


# --- one query at a time ----------------------------------------------------------------------


@pytest.fixture(params=["odometer", "filter", "compositor"])
def root(request, space):
    odometer = dp.c.make_fully_adaptive_composition(*space, PURE)
    return {
        "odometer": odometer,
        "filter": dp.c.make_privacy_filter(odometer, 1, 1.0),
        "compositor": dp.c.make_adaptive_composition(*space, PURE, 1, [0.25] * 4),
    }[request.param]([1])


def test_a_native_queryable_refuses_a_query_while_another_thread_asks(root, user):
    asked, go_on = threading.Event(), threading.Event()

    def wait(rows):
        asked.set()
        go_on.wait(10)

    thread = threading.Thread(target=root, args=(user(wait),))
    thread.start()
    try:
        assert asked.wait(10)
        with pytest.raises(OpenDPException, match="only execute one query at a time"):
            root(user())
    finally:
        go_on.set()
        thread.join()
    assert root(user()) == 1


def test_a_native_queryable_refuses_a_query_of_its_own_launch(root, user):
    with pytest.raises(OpenDPException, match="only execute one query at a time"):
        root(user(lambda rows: root(user())))
