"""What every wrapper keeps: the privacy map, the parents it may have, and the secrets."""

import copy
import itertools
import pickle
import threading

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    ClosedChildError,
    HaltedError,
    InvalidTypeError,
)

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


def gaussian(space, scale=100.0):
    return dp.c.make_approximate(space >> dp.t.then_count() >> dp.m.then_gaussian(scale=scale))


def filter_(space, d_out=10.0, measure=PURE, **keywords):
    odometer = oc.make_concurrent_odometer(*space, measure)
    return oc.make_concurrent_filter(odometer, 1, d_out, **keywords)


# --- the privacy map -------------------------------------------------------------------------

LOSSES = {
    "pure": (lambda: PURE, 0.5),
    "approximate": (lambda: dp.approximate(PURE), (0.5, 1e-6)),
    "zcdp": (dp.zero_concentrated_divergence, 0.5),
    "approximate zcdp": (lambda: APPROXIMATE_ZCDP, (0.5, 1e-6)),
    "fixed renyi": (lambda: oc.fixed_renyi_divergence(8.0), 0.5),
    "tcdp": (
        lambda: oc.truncated_concentrated_divergence(4.0),
        oc.TruncatedConcentrated(0.5, 8.0),
    ),
    "gdp": (oc.gaussian_tradeoff, 0.5),
    "f-DP": (oc.tradeoff, oc.TradeoffFunction.laplace(0.5)),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("interactive", [True, False], ids=["interactive", "release"])
def test_the_privacy_map_stays_under_every_measure(space, wrap, name, interactive):
    make_measure, loss = LOSSES[name]
    measurement = dp.m.make_user_measurement(
        *space,
        make_measure(),
        (lambda rows: dp.new_queryable(lambda query: query)) if interactive else len,
        lambda d_in: loss,
        TO="ExtrinsicObject",
    )
    wrapped = wrap(measurement)
    assert wrapped.map(1) == measurement.map(1) == loss
    assert wrapped.check(1, loss)
    assert wrapped.input_space == measurement.input_space
    assert wrapped.output_measure == measurement.output_measure
    assert wrapped(DATA)("q") == ("q" if interactive else len(DATA))


def test_the_privacy_map_stays_at_every_distance(space, wrap):
    measurement = laplace(space)
    wrapped = wrap(measurement)
    for d_in in (0, 1, 2, 7):
        assert wrapped.map(d_in) == measurement.map(d_in)


def test_a_renyi_curve_stays(space, wrap):
    measurement = oc.c.make_zCDP_to_RDP(space >> dp.t.then_count() >> dp.m.then_gaussian(scale=2.0))
    for alpha in (1.5, 2.0, 8.0):
        assert wrap(measurement).map(1)(alpha) == measurement.map(1)(alpha)


def test_a_privacy_profile_stays(space, wrap):
    measurement = dp.c.make_zCDP_to_approxDP(
        space >> dp.t.then_count() >> dp.m.then_gaussian(scale=2.0)
    )
    assert wrap(measurement).map(1).epsilon(1e-6) == measurement.map(1).epsilon(1e-6)


def test_the_map_of_a_compositor_stays(space, wrap):
    for make in (oc.make_concurrent_composition, dp.c.make_adaptive_composition):
        assert wrap(make(*space, PURE, 1, [0.25, 0.5])).map(1) == 0.75
    assert wrap(filter_(space, 0.7)).map(1) == 0.7


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


@pytest.mark.parametrize("bad", [None, 7, "text", len, dp.max_divergence])
def test_what_is_no_measurement(wrap, bad):
    with pytest.raises(InvalidTypeError, match="^measurement must be a measurement, found"):
        wrap(bad)


def test_an_odometer_is_no_measurement(space, wrap):
    for odometer in (
        oc.make_concurrent_odometer(*space, PURE),
        dp.c.make_fully_adaptive_composition(*space, PURE),
    ):
        with pytest.raises(InvalidTypeError, match="^measurement must be a measurement, found"):
            wrap(odometer)


# --- what is wrapped -------------------------------------------------------------------------

HOSTS = {
    "native compositor": lambda space: dp.c.make_adaptive_composition(*space, PURE, 1, [0.25] * 3),
    "native filter": lambda space: dp.c.make_privacy_filter(
        dp.c.make_fully_adaptive_composition(*space, PURE), 1, 0.75
    ),
    "our compositor": lambda space: oc.make_concurrent_composition(*space, PURE, 1, [0.25] * 3),
    "our filter": lambda space: filter_(space, 0.75),
}


@pytest.mark.parametrize("host", HOSTS)
def test_mechanisms_are_launched_through_the_wrapper(space, wrap, host):
    queryable = wrap(HOSTS[host](space))(DATA)
    assert isinstance(queryable(laplace(space)), int)
    one, other = queryable(asking(space)), queryable(asking(space))
    assert [one("q"), other("q"), one("q")] == [(1, "q"), (1, "q"), (2, "q")]
    with pytest.raises(OpenDPException, match=r"budget|refuses|out of queries"):
        queryable(laplace(space))


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


def test_under_our_filter_odometer_and_compositor(space, wrap):
    measurement = wrap(asking(space))
    parents = {
        "filter": filter_(space),
        "odometer": oc.make_concurrent_odometer(*space, PURE),
        "compositor": oc.make_concurrent_composition(*space, PURE, 1, [0.25] * 2),
    }
    for parent in parents.values():
        root = parent(DATA)
        one, other = root(measurement), root(measurement)
        assert root.privacy_loss(1) == 0.5
        assert [one("q"), other("q"), one("q")] == [(1, "q"), (1, "q"), (2, "q")]
        assert root.privacy_loss(1) == 0.5


def test_under_a_child_odometer_it_is_charged_everywhere(space, wrap):
    root = filter_(space, 0.5)(DATA)
    leaf = root(oc.make_concurrent_odometer(*space, PURE))
    child = leaf(wrap(asking(space)))
    assert (leaf.privacy_loss(1), root.privacy_loss()) == (0.25, 0.25)
    assert child("q") == (1, "q")
    leaf(wrap(laplace(space)))
    with pytest.raises(BudgetExceededError):
        leaf(wrap(laplace(space)))


def test_it_halts_with_the_filter_that_launched_it(space, wrap):
    root = filter_(space, 1.0, halt=True)(DATA)
    child = root(wrap(asking(space)))
    with pytest.raises(BudgetExceededError):
        root(laplace(space, 5.0))
    with pytest.raises(HaltedError):
        child("q")


def test_under_native_parents(space, wrap):
    for parent in (
        dp.c.make_adaptive_composition(*space, PURE, d_in=1, d_mids=[0.5] * 3),
        dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*space, PURE), 1, 5.0),
    ):
        root = parent(DATA)
        one, other = root(wrap(asking(space))), root(wrap(asking(space)))
        assert [one("q"), other("q"), one("q")] == [(1, "q"), (1, "q"), (2, "q")]
        inner = root(wrap(filter_(space, 0.5)))
        assert isinstance(inner(laplace(space)), int)
        with pytest.raises(BudgetExceededError):
            inner(laplace(space, 0.5))


def test_in_a_native_composition(space, wrap):
    pair = dp.c.make_composition([wrap(asking(space)), laplace(space, 0.5)])
    assert pair.map(1) == 0.75
    queryable, release = pair(DATA)
    assert queryable("q") == (1, "q")
    assert isinstance(release, int)


def test_behind_a_transformation(space, wrap):
    twice = dp.t.make_user_transformation(
        *space, *space, function=lambda rows: rows * 2, stability_map=lambda d_in: 2 * d_in
    )
    size = dp.m.make_user_measurement(*space, PURE, len, lambda d_in: 0.25 * d_in, TO=int)
    chained = twice >> wrap(size)
    assert chained.map(1) == 0.5
    assert chained(DATA)("q") == 2 * len(DATA)
    root = filter_(space)(DATA)
    assert root(chained)("q") == 2 * len(DATA)
    assert root.privacy_loss() == 0.5


def test_in_casts(space, wrap):
    wrapped, plain = wrap(asking(space)), asking(space)
    for cast in (
        dp.c.make_pureDP_to_zCDP,
        dp.c.make_approximate,
        oc.c.make_pureDP_to_zCDP,
        oc.c.make_pureDP_to_GDP,
        oc.c.make_pureDP_to_fDP,
    ):
        assert cast(wrapped).map(1) == cast(plain).map(1)
        queryable = cast(wrapped)(DATA)
        assert [queryable("q"), queryable("q")] == [(1, "q"), (2, "q")]
        again = wrap(cast(plain))(DATA)
        assert [again("q"), again("q")] == [(1, "q"), (2, "q")]


def test_in_a_context(space, wrap):
    context = oc.concurrent_context(
        data=DATA,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=2,
        domain=space[0],
    )
    child = context(wrap(asking(space)))
    assert child("q") == (1, "q")


# --- sequential ------------------------------------------------------------------------------


def test_under_approximate_zcdp_the_older_is_closed(space, wrap):
    root = filter_(space, (50.0, 1e-3), APPROXIMATE_ZCDP)(DATA)
    measurement = wrap(asking(space, APPROXIMATE_ZCDP, SMALL))
    older = root(measurement)
    assert older("q") == (1, "q")
    newer = root(measurement)
    assert newer("q") == (1, "q")
    with pytest.raises(ClosedChildError, match="open question"):
        older("q")
    assert newer("q") == (2, "q")
    root(gaussian(space))
    with pytest.raises(ClosedChildError):
        newer("q")


def test_a_wrapped_sequential_filter_closes_its_own(space, wrap):
    queryable = wrap(filter_(space, (50.0, 1e-3), APPROXIMATE_ZCDP))(DATA)
    measurement = wrap(asking(space, APPROXIMATE_ZCDP, SMALL))
    older = queryable(measurement)
    newer = queryable(measurement)
    with pytest.raises(ClosedChildError):
        older("q")
    assert newer("q") == (1, "q")


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


def test_repr_shows_no_data(space, wrap):
    measurement = wrap(asking(space))
    queryable = measurement(DATA)
    queryable("q")
    for thing in (measurement, queryable):
        assert str(SECRET) not in repr(thing)
    assert str(SECRET) not in str(vars(queryable))
    assert queryable.__opendp_dict__ == {}
    assert "open" in repr(queryable)


def test_queryables_are_not_pickled_or_copied(space, wrap):
    for queryable in (wrap(asking(space))(DATA), wrap(filter_(space))(DATA)):
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="sensitive"):
                take(queryable)
