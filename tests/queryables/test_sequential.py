"""Children of a sequential measure: the next launch closes them, wherever they hide."""

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, ClosedChildError

from .children import filter_, gaussian, laplace, native_compositor, python_queryable

PURE = dp.max_divergence()
APPROXIMATE_ZCDP = dp.approximate(dp.zero_concentrated_divergence())


def sequential(space, d_out=(50.0, 1e-3)):
    return filter_(space, d_out, APPROXIMATE_ZCDP)


SMALL = (0.001, 1e-9)
SEQUENTIAL_CHILDREN = {
    "native compositor": (
        lambda space: native_compositor(space, APPROXIMATE_ZCDP, SMALL),
        gaussian,
    ),
    "our compositor": (
        lambda space: oc.make_concurrent_composition(*space, APPROXIMATE_ZCDP, 1, [SMALL] * 3),
        gaussian,
    ),
    "our filter": (lambda space: sequential(space, SMALL), gaussian),
    "python queryable": (
        lambda space: python_queryable(space, APPROXIMATE_ZCDP, SMALL),
        lambda space: "query",
    ),
}


@pytest.mark.parametrize("kind", SEQUENTIAL_CHILDREN)
def test_under_approximate_zcdp_the_newest_child_works_and_older_ones_are_closed(space, kind):
    make, query = SEQUENTIAL_CHILDREN[kind]
    root = sequential(space)([1] * 20)
    older = root(make(space))
    older(query(space))
    newer = root(make(space))
    assert newer(query(space)) is not None
    with pytest.raises(ClosedChildError, match="open question") as closed:
        older(query(space))
    assert "2309.05901" in str(closed.value)
    assert newer(query(space)) is not None
    root(gaussian(space))
    with pytest.raises(ClosedChildError):
        newer(query(space))


def test_a_refused_launch_closes_nothing(space):
    root = sequential(space, (0.01, 1e-6))([1] * 20)
    child = root(native_compositor(space, APPROXIMATE_ZCDP, SMALL))
    with pytest.raises(BudgetExceededError):
        root(gaussian(space, scale=0.1))
    child(gaussian(space))


def test_a_native_queryable_that_hides_in_a_dictionary_is_closed_too(space):
    inner = python_queryable(space, APPROXIMATE_ZCDP, SMALL)
    hiding = dp.m.make_user_measurement(
        *space, APPROXIMATE_ZCDP, lambda rows: {"hidden": inner(rows)}, lambda d_in: SMALL
    )
    root = sequential(space)([1] * 20)
    hidden = root(hiding)["hidden"]
    assert hidden(1) == (1, 1)
    root(gaussian(space))
    with pytest.raises(ClosedChildError):
        hidden(2)


def test_a_launch_that_fails_closes_older_children_and_what_it_made_itself(space):
    inner = python_queryable(space, APPROXIMATE_ZCDP, SMALL)
    leaked = []

    def hide(rows):
        return {"hidden": inner(rows)}

    def fail(rows):
        leaked.append(inner(rows))
        raise ValueError("after it has made a child")

    def free(function):
        return dp.m.make_user_measurement(*space, APPROXIMATE_ZCDP, function, lambda d_in: SMALL)

    root = sequential(space)([1] * 20)
    hidden = root(free(hide))["hidden"]
    assert hidden(1) == (1, 1)
    with pytest.raises(OpenDPException, match="after it has made a child"):
        root(free(fail))
    with pytest.raises(ClosedChildError):
        hidden(2)
    root(gaussian(space))
    with pytest.raises(OpenDPException, match="sequentiality"):
        leaked[0](1)


def test_ours_are_listed_in_a_native_composition(space):
    pair = dp.c.make_composition([filter_(space, 0.5), laplace(space, 0.25)])
    assert pair.map(1) == 0.75
    handle, release = pair([1] * 20)
    assert isinstance(handle(laplace(space, 0.5)), int)
    assert isinstance(release, int)


def test_grandchildren_are_closed_with_their_parent(space):
    root = sequential(space)([1] * 20)
    ours = root(oc.make_concurrent_composition(*space, APPROXIMATE_ZCDP, 1, [SMALL] * 3))
    grandchild = ours(python_queryable(space, APPROXIMATE_ZCDP, SMALL))
    assert grandchild("q") is not None
    root(gaussian(space))
    for closed in (lambda: grandchild("q"), lambda: ours(gaussian(space))):
        with pytest.raises(ClosedChildError):
            closed()


def test_many_launches_need_more_than_one_native_compositor(space):
    root = sequential(space)([1] * 20)
    small = gaussian(space, 1e4)
    older = root(python_queryable(space, APPROXIMATE_ZCDP, SMALL))
    for _ in range(200):
        assert isinstance(root(small), int)
    with pytest.raises(ClosedChildError):
        older("q")
    newest = root(python_queryable(space, APPROXIMATE_ZCDP, SMALL))
    assert newest("q") == (1, "q")


def test_an_odometer_of_approximate_zcdp_hosts_an_interactive_child(space):
    root = oc.make_concurrent_odometer(*space, APPROXIMATE_ZCDP)([1] * 20)
    child = root(native_compositor(space, APPROXIMATE_ZCDP, SMALL))
    assert isinstance(child(gaussian(space)), int)
    leaf = root(oc.make_concurrent_odometer(*space, APPROXIMATE_ZCDP))
    child(gaussian(space))
    leaf(gaussian(space))
    with pytest.raises(ClosedChildError):
        child(gaussian(space))


def test_ours_are_closed_by_a_native_sequential_compositor_as_native_ones_are(space):
    parent = native_compositor(space, APPROXIMATE_ZCDP, (1.0, 1e-6))([1] * 20)
    ours = parent(sequential(space, (0.5, 1e-7)))
    grandchild = ours(python_queryable(space, APPROXIMATE_ZCDP, SMALL))
    assert isinstance(ours(gaussian(space)), int)
    with pytest.raises(ClosedChildError):
        grandchild("q")
    parent(gaussian(space))
    with pytest.raises(Exception, match="sequentiality"):
        ours(gaussian(space))


def test_a_pure_filter_cast_into_a_native_sequential_compositor_is_closed(space):
    cast = dp.c.make_approximate(dp.c.make_pureDP_to_zCDP(filter_(space, 0.5)))
    parent = native_compositor(space, APPROXIMATE_ZCDP, (1.0, 1e-6))([1] * 20)
    ours = parent(cast)
    assert isinstance(ours(laplace(space, 0.25)), int)
    parent(gaussian(space))
    with pytest.raises(Exception, match="sequentiality"):
        ours(laplace(space, 0.25))


def test_a_python_measurement_cannot_smuggle_our_handle_past_a_native_wrapper(space):
    inner = filter_(space, 0.5)
    smuggling = dp.m.make_user_measurement(
        *space, APPROXIMATE_ZCDP, lambda rows: [inner(rows)], lambda d_in: (0.5, 0.0)
    )
    parent = native_compositor(space, APPROXIMATE_ZCDP, (1.0, 1e-6))([1] * 20)
    (ours,) = parent(smuggling)
    assert isinstance(ours(laplace(space, 0.125)), int)
    parent(gaussian(space))
    with pytest.raises(Exception, match="sequentiality"):
        ours(laplace(space, 0.125))
