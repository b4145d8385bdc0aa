"""Interactive children of every kind, interleaved."""

import gc
import weakref

import opendp.prelude as dp
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.mod import OpenDPException, Transformation

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    MessageLimitError,
    ReentrantLaunchError,
    StreamHaltedError,
)
from opendp_concurrent.queryables.child import PARTS, READ, SYNTHESISE, MachineQueryable, answering
from opendp_concurrent.queryables.data import AsTransformation
from opendp_concurrent.queryables.mechanism import Accuracy, describe, of_one

from ..build import APPROXIMATE_ZCDP, DATA, PURE, SPACE, ZCDP, a_filter, an_odometer
from ..build import laplace as released
from .children import filter_, gaussian, laplace, native_compositor, python_queryable


def native_filter(space):
    return dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*space, PURE), 1, 0.75)


CHILDREN = {
    "native compositor": (native_compositor, laplace),
    "native filter": (native_filter, laplace),
    "our compositor": (
        lambda space: oc.make_concurrent_composition(*space, PURE, 1, [0.25] * 3),
        laplace,
    ),
    "our filter": (lambda space: filter_(space, 0.75), laplace),
    "python queryable": (python_queryable, lambda space, epsilon: "query"),
}


@pytest.mark.parametrize("first", CHILDREN)
@pytest.mark.parametrize("second", CHILDREN)
def test_children_of_any_two_kinds_are_interleaved_at_no_cost(space, first, second):
    root = filter_(space)([1] * 20)
    make_one, query_one = CHILDREN[first]
    make_other, query_other = CHILDREN[second]
    one, other = root(make_one(space)), root(make_other(space))
    spent = root.privacy_loss()
    for _ in range(3):
        assert one(query_one(space, 0.25)) is not None
        assert other(query_other(space, 0.25)) is not None
        root.invoke(laplace(space, 1e-9))
    assert root.privacy_loss() == pytest.approx(spent, abs=1e-8)


# --- nesting --------------------------------------------------------------------------------


def test_a_transformation_that_fails_is_paid_for(space):
    def fail(rows):
        raise ValueError("depends on the data")

    bad = dp.t.make_user_transformation(*space, *space, fail, lambda d_in: d_in)
    root = filter_(space, 1.0)([1])
    leaf = root(bad >> oc.make_concurrent_odometer(*space, PURE))
    for spent in (0.25, 0.5):
        with pytest.raises(OpenDPException, match="depends on the data"):
            leaf(laplace(space, 0.25))
        assert root.privacy_loss() == spent


def test_a_native_odometer_is_a_child_that_is_charged_before_it_runs(space):
    """OpenDP's own runs a mechanism, and then adds up its loss: a failure would cost nothing."""
    native = dp.c.make_fully_adaptive_composition(*space, PURE)

    def fail(_):
        raise ValueError("depends on the data")

    failing = dp.m.make_user_measurement(*space, PURE, fail, lambda d_in: 0.25, TO="i32")
    limit = oc.make_concurrent_filter(native, 1, 1.0)([1])
    roots = [filter_(space, 1.0)([1]), oc.make_concurrent_composition(*space, PURE, 1, [1.0])([1])]
    for handle in (limit, *(root(native) for root in roots)):
        assert handle(laplace(space, 0.5)) is not None
        assert handle.privacy_loss(1) == 0.5
    assert roots[0].privacy_loss() == 0.5
    with pytest.raises(OpenDPException, match="depends on the data"):
        limit(failing)
    assert limit.privacy_loss() == 0.75
    with pytest.raises(oc.errors.BudgetExceededError):
        limit(laplace(space, 0.5))
    assert roots[0].describe(native).admitted


def test_a_native_odometer_that_does_not_say_how_it_was_made_is_refused(space):
    native = dp.c.make_fully_adaptive_composition(*space, PURE)
    del native.__opendp_dict__
    with pytest.raises(InvalidTypeError, match="only after it has run"):
        filter_(space)([1])(native)
    with pytest.raises(InvalidTypeError, match="make_concurrent_odometer"):
        oc.make_concurrent_filter(native, 1, 1.0)


SMALL = (0.001, 1e-9)


# --- re-entrance ----------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [PURE, APPROXIMATE_ZCDP], ids=["pure", "approximate zCDP"])
@pytest.mark.parametrize("ours", [True, False], ids=["ours", "native"])
def test_a_measurement_may_query_its_own_child_while_it_is_launched(space, measure, ours):
    pure = measure is PURE
    share = 0.25 if pure else SMALL
    query = laplace(space, 0.25) if pure else gaussian(space)
    make = oc.make_concurrent_composition if ours else dp.c.make_adaptive_composition
    inner = make(*space, measure, d_in=1, d_mids=[share] * 2)
    root = filter_(space, 100.0 if pure else (1.0, 1e-3), measure)([1] * 20)
    assert isinstance(root(inner >> (lambda child: child(query) + child(query))), int)
    assert root.privacy_loss() == inner.map(1)


@pytest.mark.parametrize("measure", [PURE, APPROXIMATE_ZCDP], ids=["pure", "approximate zCDP"])
def test_a_running_mechanism_cannot_launch_on_its_own_account(space, measure):
    share, query = (0.25, laplace(space, 0.25)) if measure is PURE else (SMALL, gaussian(space))
    root = filter_(space, 1.0 if measure is PURE else (1.0, 1e-3), measure)([1] * 20)
    caught = []

    def function(rows):
        try:
            root(query)
        except ReentrantLaunchError as error:
            caught.append(error)
        return 1

    bad = dp.m.make_user_measurement(*space, measure, function, lambda d_in: share)
    assert root(bad) == 1
    assert len(caught) == 1
    assert root.privacy_loss() == share
    root(query)


def test_a_childs_transition_cannot_launch_on_the_account_that_paid(space):
    root = filter_(space, 1.0)([1] * 20)

    def function(rows):
        return dp.new_queryable(lambda query: root(laplace(space, 0.25)))

    bad = dp.m.make_user_measurement(*space, PURE, function, lambda d_in: 0.25)
    child = root(bad)
    with pytest.raises(ReentrantLaunchError):
        child("now")
    assert root.privacy_loss() == 0.25


def test_handles_are_collected_and_take_the_data_with_them(space):
    root = filter_(space)([1] * 20)
    root(native_compositor(space))
    dead = weakref.ref(root), weakref.ref(root._session.token)
    del root
    gc.collect()
    assert [one() for one in dead] == [None, None]


# --- sessions and their handles: how they are opened, asked, shown, and what they refuse ----------


def test_an_owner_hears_at_once_of_a_transformation_that_fails():
    def refuse(rows):
        raise ValueError("these rows cannot be transformed")

    failing = dp.t.make_user_transformation(*SPACE, *SPACE, refuse, lambda d_in: d_in)
    odometer = failing >> oc.make_concurrent_odometer(*SPACE, PURE)
    for made in (odometer, oc.make_concurrent_filter(odometer, 1, 1.0)):
        with pytest.raises(dp.OpenDPException, match="cannot be transformed"):
            made([1, 2])


@pytest.mark.parametrize("d_in", ["one", -1, 1.5, None, [1]])
def test_a_distance_that_a_native_child_cannot_use_is_named(space, d_in):
    native = dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*space, PURE), 1, 1.0)
    child = oc.make_concurrent_odometer(*space, PURE)([1, 2])(native)
    with pytest.raises(InvalidTypeError, match=r"d_in \(.*\) cannot be used by the native child"):
        child.privacy_loss(d_in)
    assert child.privacy_loss(1) == 0.0


@pytest.mark.parametrize("then", [lambda: dp.m.then_laplace(scale=1.0), dp.t.then_count])
def test_a_then_constructor_that_is_not_chained_is_told_apart(space, then):
    root = oc.make_concurrent_odometer(*space, PURE)([1, 2])
    for launch in (root, oc.c.make_interactive, lambda one: root.loss_after([one], 1)):
        with pytest.raises(InvalidTypeError, match="chain it: input_space >> then_"):
            launch(then())
    assert root.privacy_loss(1) == 0.0


def test_a_chain_is_told_from_its_first_part_to_its_last(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    assert describe(count) == "count >> laplace(scale=2.0)"


def test_an_odometer_has_no_d_in_to_leave_out():
    """Under a user's metric None would be a distance, and later launches would be read there."""
    space = dp.user_domain("own", lambda _: True), dp.user_distance("own")
    root = oc.make_concurrent_odometer(*space, PURE)([1])
    for read in (root.privacy_loss, root.risk, lambda: root.loss_after([])):
        with pytest.raises(InvalidTypeError, match="d_in"):
            read()
    root(dp.m.make_user_measurement(*space, PURE, lambda _: 1, lambda d: d / 2))
    assert root.privacy_loss(1) == 0.5


@pytest.mark.parametrize("rows", [True, False])
def test_queries_of_contexts_stand_for_transformations(rows):
    data = [1, 2, 3] if rows else pl.LazyFrame({"n": [1, 2, 3]})
    context = oc.concurrent_context(
        data=data,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        domain=SPACE[0] if rows else None,
    )
    query = context.query(epsilon=0.5)
    assert isinstance(query, AsTransformation)
    count = query.count() if rows else query.select(pl.len())
    assert isinstance(count.as_transformation(), Transformation)
    assert count.as_transformation().map(1) == 1
    if rows:
        with pytest.raises(InvalidTypeError, match="^the query must be a transformation"):
            count.laplace(scale=4.0).as_transformation()


# --- ``read()``, ``synthetic()`` and ``[key]`` are the queries that their messages are ------------

COUNTER = oc.m.make_counter(oc.integer_stream(0, 1), oc.event_presence(), PURE, scale=50.0)


def told(machine=lambda query: query):
    """A handle of a machine that answers with what it is sent."""
    return answering(MachineQueryable, READ | SYNTHESISE | PARTS)(machine, "Told")


def test_a_method_sends_its_message():
    handle, key = told(), object()
    assert handle.read() is None
    assert handle.synthetic() == "synthetic"
    assert handle[key] is key


def test_a_handle_by_keys_does_not_list_them():
    """Python would else ask for 0, 1, ... until one is refused, and so open those parts."""
    handle = told()
    with pytest.raises(TypeError, match="not iterable"):
        iter(handle)
    with pytest.raises(TypeError, match="not iterable"):
        assert 0 in handle
    with pytest.raises(TypeError):
        len(handle)


def test_a_method_takes_its_turn_and_is_closed_as_the_message_is():
    def ask_itself(query):
        handle.read()

    handle = told(ask_itself)
    with pytest.raises(ReentrantLaunchError):
        handle.read()
    stopped = COUNTER([])
    with pytest.raises(StreamHaltedError):
        stopped.update(7)
    with pytest.raises(StreamHaltedError):
        stopped.read()


def test_a_limit_counts_methods_as_messages():
    counter = oc.c.make_bounded_interactive(COUNTER, 3)([])
    counter.update(1)
    counter.read()
    counter(None)
    with pytest.raises(MessageLimitError):
        counter.read()
    synthetic = oc.c.make_bounded_interactive(
        oc.m.make_private_multiplicative_weights(
            *SPACE, ZCDP, 1, 0.5, universe=4, queries=100, size=10_000
        ),
        1,
    )([0, 1, 2, 3] * 2500)
    synthetic.synthetic()
    with pytest.raises(MessageLimitError):
        synthetic.synthetic()
    parts = oc.c.make_parallel_composition(
        *SPACE, oc.c.by_values({"low": range(9)}), {"low": released()}
    )
    handle = oc.c.make_bounded_interactive(parts, 1)([1, 2])
    handle["low"]
    with pytest.raises(MessageLimitError):
        handle["low"]


@given(st.floats(1e-12, 0.999), st.integers(1, 10**6))
def test_all_answers_fail_with_beta_if_each_fails_on_its_own(beta, answers):
    each = of_one(lambda failing: failing)(beta, answers)
    assert 1 - (1 - each) ** answers == pytest.approx(beta, rel=1e-6, abs=1e-9)
    assert beta / answers <= each * (1 + 1e-12)
    assert each <= beta * (1 + 1e-12)


def test_the_number_of_answers_is_that_of_a_release_or_must_be_given():
    bound = lambda beta, answers: answers / beta  # noqa: E731
    assert Accuracy("Laplace", 1.0, bound, 4).at(0.5, None) == 8.0
    assert Accuracy("Laplace", 1.0, bound, 4).at(0.5, 3) == 6.0
    with pytest.raises(InvalidTypeError, match="^answers must be given"):
        Accuracy("Laplace", 1.0, bound).at(0.5, None)


@pytest.mark.parametrize(
    "made",
    [
        an_odometer(),
        a_filter(),
        oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5]),
    ],
    ids=["odometer", "filter", "composition"],
)
def test_invoke_is_a_call(made):
    assert isinstance(made.invoke(DATA).invoke(laplace(SPACE, 0.25)), int)
