"""Children of a sequential measure: the next launch closes them, wherever they hide."""

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

from opendp_concurrent.errors import BudgetExceededError, ClosedChildError

from .children import filter_, gaussian, native_compositor, python_queryable

APPROXIMATE_ZCDP = dp.approximate(dp.zero_concentrated_divergence())


def sequential(space, d_out=(50.0, 1e-3)):
    return filter_(space, d_out, APPROXIMATE_ZCDP)


SMALL = (0.001, 1e-9)


def test_a_refused_launch_closes_nothing(space):
    root = sequential(space, (0.01, 1e-6))([1] * 20)
    child = root(native_compositor(space, APPROXIMATE_ZCDP, SMALL))
    with pytest.raises(BudgetExceededError):
        root(gaussian(space, scale=0.1))
    child(gaussian(space))


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
