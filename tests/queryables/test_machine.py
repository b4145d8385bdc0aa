"""Handles of interactive mechanisms: what their exceptions hold, and who may ask when."""

import contextvars
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    LimitMismatchError,
    MechanismError,
    ReentrantLaunchError,
)
from opendp_concurrent.queryables.child import forget_frames
from opendp_concurrent.queryables.mechanism import interactive

from ..build import (
    APPROXIMATE,
    DATA,
    PURE,
    SPACE,
    ZCDP,
    a_filter,
    a_limit,
    an_odometer,
    costing,
    laplace,
    opened,
)

SECRET = 31337
ROWS = [SECRET] * 100


def test_a_query_may_not_ask_its_own_mechanism_from_a_context_of_its_own():
    handle = oc.m.make_above_threshold(*SPACE, PURE, 1, 1e-3, 0)(ROWS)
    inner = []

    def query(rows):
        try:
            inner.append(contextvars.Context().run(handle, len))
        except ReentrantLaunchError as error:
            inner.append(error)
        return len(rows)

    assert handle(query)
    assert [type(one) for one in inner] == [ReentrantLaunchError]
    assert handle(len).outcome is oc.handles.Outcome.EXHAUSTED


def test_a_thread_waits_for_its_turn():
    begun, done = threading.Event(), threading.Event()
    handle = oc.m.make_sparse_vector(*SPACE, PURE, 1, 1e-3, 0, 10)(ROWS)
    answers = []

    def slow(rows):
        begun.set()
        assert done.wait(timeout=10)
        return len(rows)

    first = threading.Thread(target=lambda: answers.append(handle(slow)))
    second = threading.Thread(target=lambda: answers.append(handle(len)))
    first.start()
    assert begun.wait(timeout=10)
    second.start()
    second.join(timeout=0.2)
    assert second.is_alive()
    done.set()
    first.join(timeout=10)
    second.join(timeout=10)
    assert [bool(answer) for answer in answers] == [True, True]


def test_frames_of_causes_and_contexts_are_forgotten():
    def chain():
        try:
            try:
                raise ValueError("one")
            except ValueError as error:
                raise TypeError("two") from error
        except TypeError:
            raise RuntimeError("three")  # noqa: B904

    with pytest.raises(RuntimeError) as caught:
        chain()
    forget_frames(caught.value)
    error = caught.value
    while error is not None:
        assert error.__traceback__ is None
        error = error.__cause__ or error.__context__


# --- 0.1.0 charged what a privacy map said at the first launch, or what an attribute said --------


class Knob:
    """A measurement whose scale, and with it its map, changes."""

    def __init__(self, epsilon=0.1):
        self.epsilon = epsilon
        self.measurement = costing(lambda d_in: self.epsilon * d_in, lambda rows: self.epsilon)


def test_the_price_that_is_compared_is_the_price_that_is_charged():
    """A map that tells a small loss once, and a large one then."""
    answers = iter([0.25, 1e6] * 50)
    fickle, root = costing(lambda d_in: next(answers)), a_filter()(DATA)
    child = root(an_odometer())
    assert (root.privacy_loss(), child.privacy_loss(1)) == (0.0, 0.0)
    child(fickle)
    assert (root.privacy_loss(), child.privacy_loss(1)) == (0.25, 0.25)
    with pytest.raises(BudgetExceededError):
        child(fickle)


def test_maps_of_opendp_are_read_once(monkeypatch):
    from opendp_concurrent.queryables import mechanism as offer

    read, real = [], offer.read_map
    monkeypatch.setattr(offer, "read_map", lambda one, d_in: (read.append(one), real(one, d_in))[1])
    root = a_filter()(DATA)
    count = laplace(0.01)
    for _ in range(5):
        root(count)
    assert len(read) == 1
    knob = Knob(0.01)
    for _ in range(5):
        root(knob.measurement)
    assert len(read) == 6
    prices = [price for price, _ in root._session.account.store.prices]
    assert len(set(map(id, prices))) == 2  # equal prices are kept once


@pytest.mark.parametrize("asked", [(), (3,)])
def test_an_odometer_that_is_asked_late_has_the_loss_of_the_launch(asked):
    knob = Knob()
    root = an_odometer()(DATA)
    for d_in in asked:
        root.privacy_loss(d_in)
    child = root(an_odometer())
    knob.epsilon = 1e6
    child(knob.measurement)
    knob.epsilon = 0.1
    for handle in (root, child):
        assert handle.privacy_loss(asked[0] if asked else 1) == 1e6 * (asked[0] if asked else 1)


# --- opening a limit again: the same handle, under the same terms --------------------------------


def test_opening_again_gives_the_same_handle_and_keeps_the_terms():
    root = opened()
    made = a_limit()
    alice = root(made)
    alice(costing(0.25))
    assert root(made) is alice
    assert root(a_limit()) is alice
    for name, other in {"d_out": a_limit(0.75), "d_in": a_limit(d_in=2)}.items():
        with pytest.raises(LimitMismatchError, match=f"^{name} of the limit 'alice' does not") as e:
            root(other)
        assert (e.value.name, e.value.limit) == (name, ("alice",))
    measured = opened((1.0, 1e-6), APPROXIMATE)
    measured(a_limit((0.5, 1e-6), measure=APPROXIMATE))
    slack = oc.accumulators.advanced(1e-7)
    with pytest.raises(LimitMismatchError, match="^accumulator of the limit 'alice'"):
        measured(a_limit((0.5, 1e-6), measure=APPROXIMATE, accumulator=slack))
    with pytest.raises(InvalidValueError, match="another postprocessors than the limit 'alice'"):
        root(oc.c.make_chain_po(str, made))
    turned = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows, lambda d_in: d_in)
    with pytest.raises(InvalidValueError, match="another transformation than the limit"):
        root(oc.c.make_limited(turned >> an_odometer(), 1, 0.5, label="alice"))
    team = root(a_limit(0.5, "team"))
    inner = team(a_limit(0.5, "alice"))
    assert inner is not alice
    with pytest.raises(LimitMismatchError, match="of the limit 'team' > 'alice'"):
        team(a_limit(0.25, "alice"))
    assert root.privacy_loss() == 0.25


def test_threads_that_open_one_limit_share_it():
    root = opened()
    with ThreadPoolExecutor(8) as threads:
        handles = list(threads.map(lambda _: root(a_limit()), range(64)))
    assert len(set(map(id, handles))) == 1


# --- what a handle says of a launch before it happens, without charging or running it ------------


@pytest.mark.parametrize("halt", [False, True])
def test_nothing_is_run_charged_or_halted(halt):
    ran = []

    def user(loss):
        return costing(loss, lambda rows: ran.append(rows) or len(rows))

    root = opened(halt=halt)
    for loss in (0.25, 0.25, 1.0, 1.5, float("inf")):
        for _ in range(3):
            found = root.describe(user(loss))
            assert found.admitted == root.admits(user(loss)) == (loss <= 1.0)
            assert found.interactive is None
    assert (ran, root.privacy_loss(), root.remaining()) == ([], 0.0, 1.0)
    assert "0 launches" in repr(root)
    assert root(user(1.0)) == 3


def test_an_ancestor_refuses_for_a_child():
    root = opened()
    child = root(an_odometer())
    assert child.admits(laplace(1.0))
    root(laplace(0.5))
    assert not child.admits(laplace(1.0))
    found = child.describe(laplace(1.0), d_in=1)
    assert found.refusal.account == ("filter",)
    assert (found.loss, child.privacy_loss(1)) == (1.0, 0.0)


def test_a_compositor_may_be_given_its_own_d_in():
    made = oc.make_concurrent_composition(*SPACE, PURE, 2, [0.5, 1.0])([1, 2, 3])
    assert made.describe(laplace(), d_in=2) == made.describe(laplace())
    assert made.describe(laplace()).loss == 0.5
    for d_in in (0, 1, 3, -1, float("nan"), "1", True):
        with pytest.raises((InvalidTypeError, ValueError)):
            made.describe(laplace(), d_in=d_in)
    assert made.privacy_loss() == 0.0


def test_what_is_handed_out_is_known():
    compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5])
    stream = oc.integer_stream(0, 1), oc.event_presence()
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    native = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5])
    spawned = dp.c.make_fully_adaptive_composition(*SPACE, PURE)
    for measurement, expected in (
        (laplace(), False),
        (SPACE >> dp.t.then_count() >> oc.m.then_certified_laplace(1.0, PURE), False),
        (oc.m.make_certified_laplace(*whole, 1.0, PURE), False),
        (dp.c.make_approximate(laplace()), False),
        (dp.c.make_composition([laplace(), laplace()]), False),
        (oc.c.cast(laplace(), ZCDP), False),
        (oc.c.make_private_selection(laplace(), mean_runs=2), False),
        (oc.c.make_interactive(laplace()), True),
        (compositor, True),
        (oc.c.cast(compositor, ZCDP), True),
        (SPACE >> dp.t.then_cast_default(TOA=int) >> compositor, True),
        (dp.c.make_approximate(compositor), True),
        (dp.c.make_composition([laplace(), compositor]), True),
        (a_filter(), True),
        (oc.m.make_counter(*stream, PURE, scale=1.0), True),
        (oc.m.make_above_threshold(*SPACE, PURE, 1, scale=1.0, threshold=1), True),
        (native, True),
        (dp.c.make_privacy_filter(spawned, 1, 1.0), True),
        (oc.c.cast(native, ZCDP), True),
        (costing(1.0), None),
        (dp.c.make_composition([laplace(), costing(1.0)]), None),
        (compositor >> (lambda queryable: queryable), None),
        (laplace() >> (lambda answer: answer), False),
    ):
        assert interactive(measurement) is expected, measurement


# --- refusals for public reasons came out as failed mechanisms, and one with advice of no use ----

COUNT = SPACE >> dp.t.then_count()


def root():
    return opened(1e3, opaque_errors=True)


def sensitive():
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    return dp.t.make_user_transformation(*SPACE, *space, len, lambda d_in: 5 * d_in)


REFUSED = {
    "sensitivity": (sensitive, "the sensitivity of the query"),
    "a vector answer": (lambda: SPACE >> dp.t.then_clamp((0, 1)), "must have one number"),
    "no query": (lambda: 7, "must be a transformation"),
    "a tuple": (lambda: (1, 2, 3), "found a tuple of length 3"),
    "a threshold": (lambda: (COUNT, "five"), "^threshold must be a number"),
}
SPARSE = oc.m.make_sparse_vector(*SPACE, PURE, 1, scale=2.0, threshold=1e6, max_hits=2)


def twice(measurement):
    return oc.c.make_bounded_interactive(oc.c.make_interactive(measurement), 100)


@pytest.mark.parametrize("wrap", [lambda of: of, oc.c.make_interactive, twice])
@pytest.mark.parametrize("name", REFUSED)
def test_a_query_of_a_sparse_vector_is_refused_in_its_own_words(caplog, name, wrap):
    make, said = REFUSED[name]
    account = root()
    queryable = account(wrap(SPARSE))
    spent = account.privacy_loss()
    with (
        caplog.at_level(logging.ERROR, "opendp_concurrent.measurements"),
        pytest.raises(ConcurrentError, match=said) as refusal,
    ):
        queryable(make())
    assert type(refusal.value) is not MechanismError
    assert caplog.text == ""  # nothing has failed
    assert account.privacy_loss() == spent
    assert queryable(COUNT).outcome is oc.handles.Outcome.BELOW


def test_a_guess_and_an_individual_price_are_refused_likewise():
    checker = oc.m.make_guess_and_check(
        *SPACE, PURE, 1, scale=4.0, tolerance=2.0, max_hits=2, answer_scale=8.0
    )
    for query in (7, (sensitive(), 3.0)):
        with pytest.raises(ConcurrentError, match="message must be a pair|sensitivity"):
            root()(checker)(query)
    filtered = oc.m.make_individual_filter(*SPACE, PURE, d_out=1.0)
    queryable = root()(filtered)
    with pytest.raises(ConcurrentError, match="^scale .* must be at least"):
        queryable(oc.handles.NoisySum(lambda rows: rows, bound=10.0, scale=1.0))
    with pytest.raises(ConcurrentError, match="must be a NoisySum"):
        queryable(7)
    with pytest.raises(MechanismError):
        queryable(oc.handles.NoisySum(lambda rows: np.ones(1), bound=1.0, scale=10.0))


def test_a_key_of_no_part_is_refused_likewise():
    part = COUNT >> dp.m.then_laplace(scale=4.0)
    parallel = oc.c.make_parallel_composition(*SPACE, oc.c.by_values({"a": [1]}), {"a": part})
    with pytest.raises(ConcurrentError, match="must be a key of measurements"):
        root()(parallel)["b"]
