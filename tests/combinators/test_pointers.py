"""What was checked and priced could be made to point to something else before it was run."""

import ctypes

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, InvalidValueError

dp.enable_features("contrib", "honest-but-curious")

PURE = dp.max_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ROWS = [1, 2, 3]
CHEAP, DEAR = 1e12, 1e-9  # scales


@pytest.fixture
def point():
    """Lets one object point to what another points to, until the end: both are freed once."""
    before = []

    def to(one, other):
        before.append((one, ctypes.cast(one, ctypes.c_void_p).value))
        one.contents = other.contents

    yield to
    for one, address in reversed(before):
        kind = type(one)._type_
        one.contents = kind.from_address(address)


def count(scale):
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale)


def is_exact(answer):
    """Under noise of scale 10^12 this is so with probability below 10^-11."""
    return abs(answer - len(ROWS)) <= 2


def in_parallel(one):
    by_half = oc.c.by_values({"a": range(10)})
    parallel = oc.c.make_parallel_composition(*SPACE, by_half, {"a": one})
    return lambda: parallel(ROWS)("a"), parallel


def interactive(one):
    wrapped = oc.c.make_interactive(one)
    return lambda: wrapped(ROWS)(None), wrapped


def casted(one):
    wrapped = oc.c.cast(one, dp.zero_concentrated_divergence())
    return lambda: wrapped(ROWS), wrapped


def indexed(one):
    wrapped = oc.c.make_indexed_composition(*SPACE, PURE, 1, [one, one])
    return lambda: wrapped(ROWS)((0, None)), wrapped


@pytest.mark.parametrize("build", [in_parallel, interactive, casted, indexed])
def test_what_was_wrapped_stays_what_it_was(build, point):
    one, other = count(CHEAP), count(DEAR)
    ask, wrapped = build(one)
    price = wrapped.map(1)
    point(one, other)
    assert wrapped.map(1) == price < 1e-6
    assert not is_exact(ask())


def test_a_measurement_that_changes_while_it_is_priced_is_run_as_it_was(point):
    ran = []

    def user(name, loss):
        return dp.m.make_user_measurement(*SPACE, PURE, lambda rows: ran.append(name) or 0, loss)

    def loss(d_in):
        if not ran:
            point(one, other)  # while its map is read, or from a thread
        return 1e-9

    one, other = user("cheap", loss), user("dear", lambda d_in: 1e6)
    budget = oc.make_concurrent_filter(oc.make_concurrent_odometer(*SPACE, PURE), 1, 1.0)(ROWS)
    budget(one)
    assert ran == ["cheap"]
    assert budget.privacy_loss() == 1e-9
    with pytest.raises(BudgetExceededError):
        budget(one)  # which is another one now, and is priced as that


def test_the_transformation_of_an_odometer_stays_what_it_was(point):
    once = dp.t.make_user_transformation(*SPACE, *SPACE, lambda rows: rows, lambda d_in: d_in)
    often = dp.t.make_user_transformation(
        *SPACE, *SPACE, lambda rows: rows * 1000, lambda d_in: d_in * 1000
    )
    chained = once >> oc.make_concurrent_odometer(*SPACE, PURE)
    point(once, often)
    root = oc.make_concurrent_filter(chained, 1, 2.0)(ROWS)
    assert abs(root(count(1.0)) - 3) < 100  # not 3000


def test_a_query_to_a_sparse_vector_is_asked_as_it_was_checked(point):
    vector = oc.m.make_above_threshold(*SPACE, PURE, 1, scale=1.0, threshold=1000.0)(ROWS)
    query = SPACE >> dp.t.then_count()
    assert vector(query).outcome is oc.m.Outcome.BELOW
    moves = dp.t.make_user_transformation(
        *SPACE,
        dp.atom_domain(T=int),
        dp.absolute_distance(T=int),
        lambda rows: 10**6 * len(rows),
        lambda d_in: 10**6 * d_in,
    )
    point(query, moves)
    with pytest.raises(InvalidValueError, match="sensitivity of the query"):
        vector(query)


def test_the_stability_map_of_a_query_is_read_at_each_query():
    factor = [1]
    query = dp.t.make_user_transformation(
        *SPACE,
        dp.atom_domain(T=int),
        dp.absolute_distance(T=int),
        lambda rows: factor[0] * len(rows),
        lambda d_in: factor[0] * d_in,
    )
    vector = oc.m.make_above_threshold(*SPACE, PURE, 1, scale=1.0, threshold=1000.0)(ROWS)
    assert vector(query).outcome is oc.m.Outcome.BELOW
    factor[0] = 10**6
    with pytest.raises(InvalidValueError, match="sensitivity of the query"):
        vector(query)


def test_what_a_stream_transformation_does_is_no_attribute():
    pairs = oc.record_stream("pairs", lambda pair: type(pair) is tuple)
    once = oc.t.make_bounded_contributions(pairs, oc.user_presence(), oc.integer_stream(0, 1), 1)
    once.start = lambda: lambda pair: pair[1]  # all items of a user
    counter = once >> oc.m.then_counter(PURE, 1e-3)
    once.start = lambda: lambda pair: pair[1]
    queryable = counter([])
    queryable.update_all([("ann", 1)] * 50)
    assert abs(queryable(None) - 1) < 1
