"""Under approximate zCDP free children interleave, and exclusive ones are alone."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, ClosedChildError, InvalidValueError

from ..build import APPROXIMATE_ZCDP, PURE, SPACE, an_odometer, costing
from .children import filter_, gaussian, native_compositor, python_queryable


def uniform(space, d_out=(50.0, 1e-3)):
    return filter_(space, d_out, APPROXIMATE_ZCDP)


SMALL = (0.001, 1e-9)
FREE = {
    "our compositor": (
        lambda space: oc.make_concurrent_composition(*space, APPROXIMATE_ZCDP, 1, [SMALL] * 9),
        gaussian,
    ),
    "our filter": (lambda space: uniform(space, SMALL), gaussian),
    "our compositor, postprocessed": (
        lambda space: FREE["our compositor"][0](space) >> (lambda handle: handle),
        gaussian,
    ),
    "our compositor, wrapped": (
        lambda space: oc.c.make_bounded_interactive(FREE["our compositor"][0](space), 99),
        gaussian,
    ),
    "no delta": (
        lambda space: python_queryable(space, APPROXIMATE_ZCDP, (0.001, 0.0)),
        lambda space: "query",
    ),
    "a pure mechanism": (
        lambda space: oc.c.cast(python_queryable(space, PURE, 0.001), APPROXIMATE_ZCDP),
        lambda space: "query",
    ),
    "approximate DP": (
        lambda space: oc.c.cast(
            python_queryable(space, dp.approximate(PURE), (0.001, 1e-9)), APPROXIMATE_ZCDP
        ),
        lambda space: "query",
    ),
}
EXCLUSIVE = {
    "native compositor": (
        lambda space: native_compositor(space, APPROXIMATE_ZCDP, SMALL, k=9),
        gaussian,
    ),
    "python queryable": (
        lambda space: python_queryable(space, APPROXIMATE_ZCDP, SMALL),
        lambda space: "query",
    ),
    "wrapped": (
        lambda space: oc.c.make_bounded_interactive(
            python_queryable(space, APPROXIMATE_ZCDP, SMALL), 99
        ),
        lambda space: "query",
    ),
    "cast": (
        lambda space: oc.c.cast(python_queryable(space, APPROXIMATE_ZCDP, SMALL), APPROXIMATE_ZCDP),
        lambda space: "query",
    ),
    "in a parallel part": (
        lambda space: oc.c.make_parallel_composition(
            *space,
            oc.c.by_key(lambda row: row),
            {1: python_queryable(space, APPROXIMATE_ZCDP, SMALL)},
        ),
        lambda space: 1,
    ),
}
FREE_KINDS = pytest.mark.parametrize("free", FREE)
EXCLUSIVE_KINDS = pytest.mark.parametrize("exclusive", EXCLUSIVE)


def opened(space, root, *kinds):
    """Launch what makes each kind, in order, and return functions that ask the children."""
    asks = []
    for kind in kinds:
        make, query = {**FREE, **EXCLUSIVE}[kind]
        child = root(make(space))
        asks.append(lambda child=child, query=query: child(query(space)))
    return asks


@FREE_KINDS
def test_free_children_interleave(space, free):
    root = uniform(space)([1] * 20)
    children = opened(space, root, free, free, "our filter", "no delta")
    for ask in children * 2 + children[::-1]:
        assert ask() is not None
        assert isinstance(root(gaussian(space)), int)


@FREE_KINDS
@EXCLUSIVE_KINDS
def test_an_answer_of_another_child_closes_an_exclusive_one_and_free_ones_go_on(
    space, exclusive, free
):
    root = uniform(space)([1] * 20)
    paused, alone = opened(space, root, free, exclusive)
    assert [alone(), alone()] != [None, None]  # it answers as long as nothing else does
    assert paused() is not None
    with pytest.raises(ClosedChildError, match="only as a whole"):
        alone()
    assert paused() is not None


@EXCLUSIVE_KINDS
@pytest.mark.parametrize("launch", ["release", *FREE, *EXCLUSIVE])
def test_any_launch_closes_an_exclusive_child(space, exclusive, launch):
    root = uniform(space)([1] * 20)
    older = opened(space, root, exclusive)[0]
    older()
    if launch == "release":
        answer = root(gaussian(space))
        newest = [lambda: answer]
    else:
        newest = opened(space, root, launch)
    with pytest.raises(ClosedChildError) as closed:
        older()
    assert "2309.05901" in str(closed.value)
    assert newest[0]() is not None


@EXCLUSIVE_KINDS
def test_a_limit_and_a_nested_compositor_are_in_the_tree(space, exclusive):
    """The analyst may not hold an exclusive child below one handle, and ask below another."""
    root = uniform(space)([1] * 20)
    odometer = oc.make_concurrent_odometer(*space, APPROXIMATE_ZCDP)
    many = oc.make_concurrent_composition(*space, APPROXIMATE_ZCDP, 1, [(0.1, 1e-7)] * 9)
    branches = [
        root,
        root(odometer),
        root(oc.c.make_limited(odometer, 1, (1.0, 1e-6), label="a")),
        root(many),
        root(oc.make_concurrent_composition(*space, APPROXIMATE_ZCDP, 1, [(1.0, 1e-6)]))(many),
    ]
    for place, branch in enumerate(branches):
        alone = opened(space, branch, exclusive)[0]
        alone()
        branches[place - 1](gaussian(space))
        with pytest.raises(ClosedChildError):
            alone()


def test_a_cast_filter_of_another_measure_is_in_the_tree(space):
    root = uniform(space)([1] * 20)
    pure = root(oc.c.cast(filter_(space, 0.5), APPROXIMATE_ZCDP))
    queryable = pure(python_queryable(space))
    alone = opened(space, root, "python queryable")[0]
    alone()
    queryable("an answer below another account")
    with pytest.raises(ClosedChildError):
        alone()


def test_a_frame_is_collected_once_and_closes_an_exclusive_child():
    import polars as pl

    frame = pl.LazyFrame({"x": [1] * 20})
    domain = dp.lazyframe_domain([dp.series_domain("x", dp.atom_domain(T="i64"))])
    space = dp.with_margin(domain, dp.polars.Margin(by=[], max_length=100)), dp.symmetric_distance()
    plan = dp.m.make_private_lazyframe(
        *space, APPROXIMATE_ZCDP, frame.select(dp.len()), global_scale=100.0
    )
    root = uniform(space)(frame)
    released = root(plan)
    alone = opened(space, root, "python queryable")[0]
    alone()
    released.collect()
    with pytest.raises(ClosedChildError):
        alone()


def test_what_has_no_delta_at_one_d_in_only_is_not_read_at_another(space):
    """Beside others, its δ at d_in = 1 was 0. At d_in = 2 it would be approximate as a whole."""

    def queryable():
        return dp.m.make_user_measurement(
            *space,
            APPROXIMATE_ZCDP,
            lambda rows: dp.new_queryable(lambda query: query),
            lambda d_in: (0.001 * d_in, 1e-9 * (d_in > 1)),
            TO="ExtrinsicObject",
        )

    root = oc.make_concurrent_odometer(*space, APPROXIMATE_ZCDP)([1] * 20)
    first, second = root(queryable()), root(queryable())
    assert first(1) == second(1) == first(1)
    assert root.privacy_loss(1) == (0.002, 0.0)
    with pytest.raises(InvalidValueError, match="d_in"):
        root.privacy_loss(2)

    root = oc.make_concurrent_odometer(*space, APPROXIMATE_ZCDP)([1] * 20)
    root.privacy_loss(2)  # from now on it excludes others
    first, second = root(queryable()), root(queryable())
    assert second(1) == 1
    with pytest.raises(ClosedChildError):
        first(1)
    assert root.privacy_loss(2) == (0.004, 2e-9)


def test_threads_share_no_lock_and_an_exclusive_child_is_alone(space):
    """One child answers while another one is in the middle of an answer."""
    root = uniform(space)([1] * 20)
    inside, released = threading.Event(), threading.Event()

    def wait(query):
        inside.set()
        assert released.wait(60)
        return query

    waiting = root(
        dp.m.make_user_measurement(
            *space,
            APPROXIMATE_ZCDP,
            lambda rows: dp.new_queryable(wait),
            lambda d_in: (0.001, 0.0),
            TO="ExtrinsicObject",
        )
    )
    other = opened(space, root, "our compositor")[0]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(waiting, "slow")
        assert inside.wait(60)
        assert other() is not None
        assert isinstance(root(gaussian(space)), int)
        released.set()
        assert answer.result() == "slow"


def test_a_refused_launch_closes_nothing(space):
    root = uniform(space, (0.01, 1e-6))([1] * 20)
    child = root(native_compositor(space, APPROXIMATE_ZCDP, SMALL))
    with pytest.raises(BudgetExceededError):
        root(gaussian(space, scale=0.1))
    child(gaussian(space))


def test_a_launch_closes_older_children_wherever_they_are_and_if_it_fails_its_own(space):
    inner = python_queryable(space, APPROXIMATE_ZCDP, SMALL)
    leaked = []

    def hide(rows):
        return {"hidden": inner(rows)}

    def fail(rows):
        leaked.append(inner(rows))
        raise ValueError("after it has made a child")

    def free(function):
        return dp.m.make_user_measurement(*space, APPROXIMATE_ZCDP, function, lambda d_in: SMALL)

    root = uniform(space)([1] * 20)
    hidden = root(free(hide))["hidden"]
    assert hidden(1) == (1, 1)
    with pytest.raises(OpenDPException, match="after it has made a child"):
        root(free(fail))
    with pytest.raises(ClosedChildError):
        hidden(2)
    root(gaussian(space))
    with pytest.raises(OpenDPException, match="sequentiality"):
        leaked[0](1)

    root(free(lambda rows: {"kept elsewhere": leaked.append(inner(rows))}))
    assert leaked[1](1) == (1, 1)
    root(gaussian(space))
    with pytest.raises(OpenDPException, match="sequentiality"):
        leaked[1](2)


def test_ours_are_closed_by_a_native_sequential_compositor_as_native_ones_are(space):
    parent = native_compositor(space, APPROXIMATE_ZCDP, (1.0, 1e-6))([1] * 20)
    ours = parent(uniform(space, (0.5, 1e-7)))
    grandchild = ours(python_queryable(space, APPROXIMATE_ZCDP, SMALL))
    assert isinstance(ours(gaussian(space)), int)
    with pytest.raises(ClosedChildError):
        grandchild("q")
    parent(gaussian(space))
    with pytest.raises(Exception, match="sequentiality"):
        ours(gaussian(space))


def test_approximate_renyi_of_one_order_obeys_the_same_rule(space):
    measure, loss = oc.approximate_renyi_divergence(alpha=4.0), (0.5, 1e-7)
    root = filter_(space, (50.0, 1e-3), measure)([1, 2, 3])
    release = dp.m.make_user_measurement(*space, measure, len, lambda d_in: loss, TO="i32")
    free = root(oc.make_concurrent_composition(*space, measure, 1, [loss] * 9))
    whole = root(python_queryable(space, measure, loss))
    assert free(release) == 3
    with pytest.raises(ClosedChildError):
        whole("query")
    assert free(release) == 3
    assert root.privacy_loss() == pytest.approx((10 * 0.5, 10e-7))
    assert root.risk().advantage < 1.0
    left = (1e-6 - 1e-7) / (1 - 1e-7)
    exact = 0.5 + math.log(3 / 4) - (math.log(left) + math.log(4)) / 3
    epsilon, delta = oc.c.cast(release, dp.approximate(PURE), delta=1e-6).map(1)
    assert delta == 1e-6
    assert exact <= epsilon * (1 + 1e-15)
    assert epsilon == pytest.approx(exact, rel=1e-12)


# --- 0.1.0 left a handle open that a mechanism had made in a thread, when the next launch began ---


def user(function, loss=SMALL):
    """What has a δ and is the user's excludes all others."""
    return costing(lambda d_in: loss, function, APPROXIMATE_ZCDP)


class Holder:
    def __init__(self, handle):
        self.handle = handle


def refuse(one):
    raise TypeError("this descriptor does not apply")


class Odd(Holder):
    """As an array of JAX: one name of its slots cannot be read."""

    __slots__ = ()


Odd.__slots__, Odd.__weakref__ = ("__weakref__",), property(refuse)


def array(handle):
    found = np.empty(1, dtype=object)
    found[0] = handle
    return found


HIDING = {
    "itself": (lambda handle: handle, lambda answer: answer),
    "list": (lambda handle: [1, [handle]], lambda answer: answer[1][0]),
    "dictionary": (lambda handle: {"a": (handle,)}, lambda answer: answer["a"][0]),
    "closure": (lambda handle: lambda query: handle(query), lambda answer: answer),
    "default": (lambda handle: lambda query, h=handle: h(query), lambda answer: answer),
    "method": (lambda handle: handle.__call__, lambda answer: answer),
    "object": (Holder, lambda answer: answer.handle),
    "odd object": (Odd, lambda answer: answer.handle),
    "array": (array, lambda answer: answer[0]),
}
QUERY = user(len)


SHARES = *SPACE, APPROXIMATE_ZCDP, 1, [SMALL] * 5
NATIVE, ODOMETER = dp.c.make_adaptive_composition(*SHARES), an_odometer(APPROXIMATE_ZCDP)
INSIDE = {
    "launched": lambda rows: ODOMETER(rows)(NATIVE),  # a child that another compositor handed out
    "compositor": oc.make_concurrent_composition(*SHARES),
    "odometer": ODOMETER,
    "native": NATIVE,
    "machine": oc.c.make_interactive(QUERY),
}


def in_a_thread(function, rows):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, rows).result()


PAIRS = [(hiding, inside) for hiding in HIDING for inside in INSIDE]
PAIRS.remove(("method", "native"))  # a method of OpenDP's own class finds no queryable any more


@pytest.mark.parametrize(("hiding", "inside"), PAIRS)
def test_a_handle_that_was_made_in_a_thread_is_closed_by_the_next_launch(hiding, inside):
    hide, find = HIDING[hiding]
    sneaky = user(lambda rows: hide(in_a_thread(INSIDE[inside], rows)), (0.2, 1e-7))
    root = ODOMETER([1, 2, 3])
    first = find(root(sneaky))
    first(QUERY)
    second = find(root(sneaky))
    with pytest.raises(ClosedChildError):
        first(QUERY)
    second(QUERY)


def test_a_handle_that_a_child_hands_out_later_belongs_to_the_same_launch():
    def serve(rows):
        return dp.new_queryable(lambda query: [in_a_thread(INSIDE["compositor"], rows)])

    child = (root := ODOMETER([1]))(user(serve))
    (late,) = child("please")
    late(QUERY)
    root(QUERY)
    with pytest.raises(ClosedChildError):
        late(QUERY)
