"""What every wrapper keeps: the privacy map, the parents it may have, and the secrets."""

import itertools

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, HaltedError

PURE = dp.max_divergence()
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


def test_an_interactive_measurement_answers_as_before(space):
    queryable = oc.c.make_interactive(asking(space))(DATA)
    assert [queryable(query) for query in "ab"] == [(1, "a"), (2, "b")]


# --- what is wrapped -------------------------------------------------------------------------


def test_a_refusal_keeps_its_type_and_values(space, wrap):
    queryable = wrap(filter_(space, 1.0))(DATA)
    queryable(laplace(space, 0.5))
    with pytest.raises(BudgetExceededError) as refused:
        queryable(laplace(space, 0.75))
    assert (refused.value.spent, refused.value.remaining) == (0.5, 0.5)
    assert isinstance(queryable(laplace(space, 0.5)), int)


def raising(space):
    return dp.m.make_user_measurement(*space, PURE, lambda rows: 1, lambda d_in: -1.0, TO="i32")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (lambda space: laplace(space, 5.0), "asked 5"),
        (lambda space: "nonsense", "must be a measurement"),
        (lambda space: raising(space), "privacy map"),
        (
            lambda space: laplace((dp.vector_domain(dp.atom_domain(T=str)), space[1])),
            "input_domain",
        ),
        (lambda space: oc.make_concurrent_odometer(*space, dp.approximate(PURE)), "output_measure"),
    ],
    ids=["too much", "no query", "no loss", "another space", "another odometer"],
)
def test_a_message_that_is_no_launch_halts(space, message, told):
    """Algorithm 3 halts at anything else than an admitted launch, or a message to a child."""
    root, patient = filter_(space, 1.0, halt=True)(DATA), filter_(space, 1.0)(DATA)
    for one in (root, patient):
        child = one(asking(space))
        assert not one.admits(laplace(space, 5.0))
        with pytest.raises(Exception, match="d_in"):
            one.privacy_loss("no distance")
        assert child("open") == (1, "open")  # a question closes nothing
        with pytest.raises(Exception, match=told):
            one(message(space))
    assert child("still") == (2, "still")
    for query in (laplace(space), "other nonsense"):
        with pytest.raises(HaltedError, match=told) as halted:
            root(query)
        over = told == "asked 5"
        assert (halted.value.spent, halted.value.asked) == ((0.25, 5.0) if over else (None, None))
    assert root.privacy_loss() == 0.25


def test_a_refusal_to_a_mechanism_that_runs_halts_nothing(space):
    """What a mechanism sends while it runs depends on the data, and so would the halt."""
    root, seen = filter_(space, 1.0, halt=True)(DATA), []

    def function(rows):
        with pytest.raises(Exception, match="query") as refused:
            root("nonsense")
        seen.append(refused)
        return 1

    root(dp.m.make_user_measurement(*space, PURE, function, lambda d_in: 0.5, TO="i32"))
    assert len(seen) == 1
    assert isinstance(root(laplace(space)), int)
