"""Native queryables: which are closed by what, made in Python, and one query at a time."""

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
