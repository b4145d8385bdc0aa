"""Bad input: each has a clear error; none changes state or charges."""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.guards import check_measurement_on
from opendp_concurrent.errors import (
    BudgetExceededError,
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
)

PURE = dp.max_divergence()


def laplace(space, epsilon=0.25):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def user(space, privacy_map, function=len, measure=PURE):
    return dp.m.make_user_measurement(*space, measure, function, privacy_map, TO="ExtrinsicObject")


def odometer(space, measure=PURE):
    return oc.make_concurrent_odometer(*space, measure)


HANDLES = {
    "odometer": lambda space: odometer(space)([1, 2]),
    "filter": lambda space: oc.make_concurrent_filter(odometer(space), 1, 1.0)([1, 2]),
    "compositor": lambda space: oc.make_concurrent_composition(*space, PURE, 1, [0.5] * 4)([1, 2]),
    "native mode": lambda space: dp.c.make_adaptive_composition(*space, PURE, 1, [9.0])([1, 2])(
        oc.make_concurrent_filter(odometer(space), 1, 1.0)
    ),
}


@pytest.fixture(params=HANDLES)
def handle(request, space):
    """A handle that has launched once, and has answered at d_in = 1."""
    made = HANDLES[request.param](space)
    made(laplace(space))
    made.privacy_loss(1)
    return made


def state(handle):
    return (
        handle.privacy_loss(1),
        handle._session.account.launches,
        handle._session.account.remaining(),
    )


def refused(handle, query, error, match):
    before = state(handle)
    for ask in (handle, handle.invoke):
        with pytest.raises(error, match=match) as caught:
            ask(query)
        assert isinstance(caught.value, ConcurrentError)
    assert state(handle) == before
    return caught.value


def test_an_untracked_odometer_says_at_the_query_which_it_cannot_answer(space):
    root = odometer(space)([1, 2])
    root(user(space, lambda d_in: -5.0))
    with pytest.raises(PrivacyMapError, match="at least 0"):
        root.privacy_loss(1)


def test_an_infinite_loss_never_fits(space):
    root = oc.make_concurrent_filter(odometer(space), 1, 1e308)([1, 2])
    refused(root, user(space, lambda d_in: math.inf), BudgetExceededError, "asked inf")


def test_a_d_in_beyond_the_one_that_it_was_built_for(space):
    for made in (
        oc.make_concurrent_filter(odometer(space), 1, 0.5),
        oc.make_concurrent_composition(*space, PURE, 1, [0.25] * 2),
    ):
        assert made.map(0) == made.map(1) == 0.5
        assert made.check(1, 0.5)
        assert not made.check(1, 0.25)
        with pytest.raises(InvalidValueError, match=r"^d_in \(2\) must be at most 1"):
            made.map(2)
        root = oc.make_concurrent_filter(odometer(space), 2, 5.0)([1])
        refused_at = root.privacy_loss()
        with pytest.raises(PrivacyMapError, match="must be at most 1"):
            root(made)
        assert root.privacy_loss() == refused_at


def test_chains_that_do_not_fit(space):
    inner = odometer(space)
    count = dp.t.make_count(*space)
    with pytest.raises(SpaceMismatchError, match="^input_domain"):
        count >> inner
    metric = dp.t.make_user_transformation(
        *space, space[0], dp.change_one_distance(), lambda rows: rows, lambda d_in: d_in
    )
    with pytest.raises(SpaceMismatchError, match="^input_metric"):
        oc.c.make_chain_ot(inner, metric)
    with pytest.raises(InvalidTypeError, match="^transformation must be"):
        oc.c.make_chain_ot(inner, laplace(space))
    with pytest.raises(InvalidTypeError, match="^postprocessor must be callable"):
        inner >> 3


RENYI = dp.renyi_divergence()


def test_renyi_curves(space):
    line = user(space, lambda d_in: lambda alpha: alpha * d_in / 2, measure=RENYI)
    bad = user(space, lambda d_in: lambda alpha: -alpha, measure=RENYI)
    flat = user(space, lambda d_in: lambda alpha: math.nan, measure=RENYI)
    inner = odometer(space, RENYI)
    with pytest.raises(InvalidTypeError, match="^orders must be given"):
        oc.make_concurrent_filter(inner, 1, lambda alpha: alpha)
    with pytest.raises(InvalidTypeError, match="^orders must be given"):
        oc.make_concurrent_composition(*space, RENYI, 1, [lambda alpha: alpha])
    with pytest.raises(InvalidTypeError, match="^d_out must be a function"):
        oc.make_concurrent_filter(inner, 1, 1.0, orders=[2])
    with pytest.raises(InvalidValueError, match=r"^d_out\(2\)"):
        oc.make_concurrent_filter(inner, 1, lambda alpha: -1.0, orders=[2])
    root = oc.make_concurrent_filter(inner, 1, lambda alpha: 1.2 * alpha, orders=[2, 8])([1, 2])
    root(line)
    for query in (bad, flat):
        with pytest.raises(PrivacyMapError, match="at least 0"):
            root(query)
    broken = user(space, lambda d_in: lambda alpha: 1 / 0, measure=RENYI)
    with pytest.raises(PrivacyMapError, match="division by zero"):
        root(broken)
    root(line)
    with pytest.raises(BudgetExceededError):
        root(line)
    assert root.privacy_loss()(8) == 8.0
    assert root.privacy_loss()(5) == 8.0  # the next order of the grid
    assert root.privacy_loss()(9) == math.inf
    with pytest.raises(InvalidValueError, match="alpha"):
        root.privacy_loss()(1.0)
    compositor = oc.make_concurrent_composition(
        *space, RENYI, 1, [lambda alpha: alpha / 2] * 2, orders=[2, 8]
    )
    child = compositor([1, 2])
    child(line)
    child(line)
    with pytest.raises(BudgetExceededError):
        child(line)
    assert compositor.map(1)(2) == 2.0


def test_a_measurement_on_another_space_stands_in_no_other(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(4.0)
    assert check_measurement_on("inner", count, *space) is count
    other = dp.vector_domain(dp.atom_domain(T=float)), dp.hamming_distance()
    with pytest.raises(SpaceMismatchError, match=r"inner\.input_domain"):
        check_measurement_on("inner", count, other[0], space[1])
    with pytest.raises(SpaceMismatchError, match=r"inner\.input_metric"):
        check_measurement_on("inner", count, space[0], other[1])
