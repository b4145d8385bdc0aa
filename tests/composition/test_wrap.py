"""What every wrapper keeps: the privacy map, the parents it may have, and the secrets."""

import itertools

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError

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


def test_a_release_is_made_once_and_given_again(space):
    runs = []
    measurement = dp.m.make_user_measurement(
        *space, PURE, lambda rows: runs.append(1) or len(runs), lambda d_in: 0.5, TO=int
    )
    queryable = oc.c.make_interactive(measurement)(DATA)
    assert runs == [1]
    assert [queryable(message) for message in (None, "x", 7, measurement)] == [1] * 4
    assert runs == [1]


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
