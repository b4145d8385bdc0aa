"""Indexed composition [VW21], [HSTVVXZ23, Algorithm 1]: a message names its mechanism."""

import math

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)

QUERY, ANSWER = oc.c.QUERY, oc.c.ANSWER
PURE = dp.max_divergence()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
DATA = [1, 2, 4]
T = oc.TradeoffFunction


def numbered(name="m", measure=PURE, d_mid=0.25):
    """A deterministic mechanism that remembers all it was asked; raises on 'bad'."""

    def function(rows):
        asked = []

        def transition(query):
            if query == "bad":
                raise ValueError("a query that the mechanism refuses")
            asked.append(query)
            return name, sum(rows), tuple(asked)

        return dp.new_queryable(transition)

    return dp.m.make_user_measurement(
        *SPACE, measure, function, lambda d_in: d_mid, TO="ExtrinsicObject"
    )


def laplace(epsilon=0.25):
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def indexed(*measurements, measure=PURE, **keywords):
    return oc.c.make_indexed_composition(*SPACE, measure, 1, list(measurements), **keywords)


def filter_(d_out=10.0):
    return oc.make_concurrent_filter(oc.make_concurrent_odometer(*SPACE, PURE), 1, d_out)


# --- losses ----------------------------------------------------------------------------------

LOSSES = {
    "pure": (lambda: PURE, (0.25, 0.5), 0.75),
    "approximate": (lambda: dp.approximate(PURE), ((0.25, 1e-6), (0.5, 0.0)), (0.75, 1e-6)),
    "zcdp": (dp.zero_concentrated_divergence, (0.25, 0.5), 0.75),
    "fixed renyi": (lambda: oc.fixed_renyi_divergence(8.0), (0.25, 0.5), 0.75),
    "tcdp": (
        lambda: oc.truncated_concentrated_divergence(4.0),
        (oc.TruncatedConcentrated(0.25, 8.0), oc.TruncatedConcentrated(0.5, 16.0)),
        oc.TruncatedConcentrated(0.75, 8.0),
    ),
    "gdp": (oc.gaussian_tradeoff, (3.0, 4.0), 5.0),
    "f-DP": (
        oc.tradeoff,
        (T.pure(0.25), T.gaussian(0.5)),
        T.pure(0.25).compose(T.gaussian(0.5)),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_is_that_of_the_compositor(name):
    make_measure, losses, total = LOSSES[name]
    measurements = [numbered(measure=make_measure(), d_mid=loss) for loss in losses]
    composed = indexed(*measurements, measure=make_measure())
    compositor = oc.make_concurrent_composition(*SPACE, make_measure(), 1, losses)
    assert composed.map(1) == compositor.map(1) == total
    assert composed.check(1, total)
    assert composed.output_measure == make_measure()


def test_renyi_curves_need_orders():
    measure = dp.renyi_divergence()
    measurements = [
        numbered(measure=measure, d_mid=lambda alpha: 0.25 * alpha),
        numbered(measure=measure, d_mid=lambda alpha: 0.5 * alpha),
    ]
    with pytest.raises(InvalidTypeError, match="^orders must be given"):
        indexed(*measurements, measure=measure)
    composed = indexed(*measurements, measure=measure, orders=[2.0, 8.0])
    assert composed.map(1).values == (1.5, 6.0)
    queryable = composed(DATA)
    assert queryable((0, "q")) == ("m", 7, ("q",))
    with pytest.raises(InvalidTypeError, match="^orders must be left out"):
        indexed(numbered(), orders=[2.0])


def test_the_loss_is_at_the_d_in_it_was_built_for():
    at_two = oc.c.make_indexed_composition(*SPACE, PURE, 2, [laplace(), laplace()])
    assert at_two.map(2) == at_two.map(1) == 1.0
    with pytest.raises(InvalidValueError, match=r"^d_in \(3\) must be at most 2"):
        at_two.map(3)


# --- indexed ---------------------------------------------------------------------------------


def test_each_message_goes_to_the_one_at_its_index():
    queryable = indexed(numbered("a"), numbered("b"), numbered("c"))(DATA)
    assert queryable((2, "x")) == ("c", 7, ("x",))
    assert queryable((0, "y")) == ("a", 7, ("y",))
    assert queryable((2, "z")) == ("c", 7, ("x", "z"))
    assert queryable((1, None)) == ("b", 7, (None,))


@given(script=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=12))
def test_any_interleaving_leads_each_conversation_as_if_alone(script):
    mechanisms = [numbered(name) for name in "abc"]
    queryable = indexed(*mechanisms)(DATA)
    alone = [mechanism(DATA) for mechanism in mechanisms]
    for index, query in script:
        assert queryable((index, query)) == alone[index](query)


def test_releases_and_filters_are_composed_too():
    queryable = indexed(laplace(), filter_(0.5), numbered())(DATA)
    assert queryable((0, "q")) == queryable((0, "r"))
    child = queryable((1, numbered("child")))
    assert child("q") == ("child", 7, ("q",))
    with pytest.raises(BudgetExceededError):
        queryable((1, laplace(0.5)))
    assert queryable((2, "q")) == ("m", 7, ("q",))


def test_the_same_measurement_twice_is_two_mechanisms():
    one = numbered()
    queryable = indexed(one, one)(DATA)
    assert [queryable((i, "q")) for i in (0, 1)] == [("m", 7, ("q",))] * 2


def test_one_that_raises_leaves_the_others():
    queryable = indexed(numbered("a"), numbered("b"))(DATA)
    with pytest.raises(OpenDPException, match="refuses"):
        queryable((0, "bad"))
    assert queryable((1, "q")) == ("b", 7, ("q",))
    assert queryable((0, "q")) == ("a", 7, ("q",))


@pytest.mark.parametrize("index", [-1, 2, 10**30])
def test_an_index_out_of_range(index):
    queryable = indexed(numbered(), numbered())(DATA)
    with pytest.raises(InvalidValueError, match="^the index .* must be from 0 to 1"):
        queryable((index, "q"))
    assert queryable((0, "q")) == ("m", 7, ("q",))


@pytest.mark.parametrize(
    "message",
    [None, 0, "0q", (), (0,), (0, "q", "r"), [0, "q"], (0.0, "q"), (True, "q"), ("0", "q")],
)
def test_a_message_that_is_no_pair(message):
    queryable = indexed(numbered(), numbered())(DATA)
    with pytest.raises(InvalidTypeError, match="must be a pair"):
        queryable(message)
    assert queryable((1, "q")) == ("m", 7, ("q",))


def test_under_approximate_zcdp_there_is_one_at_a_time():
    measure = dp.approximate(dp.zero_concentrated_divergence())
    one = numbered(measure=measure, d_mid=(0.1, 1e-9))
    assert indexed(one, measure=measure)(DATA)((0, "q")) == ("m", 7, ("q",))
    with pytest.raises(UnsupportedMeasureError, match="open question"):
        indexed(one, one, measure=measure)


@pytest.mark.parametrize("bad", [None, 7, {"a": 1}, iter([])])
def test_what_is_no_sequence_of_measurements(bad):
    with pytest.raises(InvalidTypeError, match="^measurements must be a sequence of measurem"):
        oc.c.make_indexed_composition(*SPACE, PURE, 1, bad)


def test_one_measurement_is_no_sequence():
    with pytest.raises(InvalidTypeError, match="^measurements must be a sequence of measurem"):
        oc.c.make_indexed_composition(*SPACE, PURE, 1, numbered())


@pytest.mark.parametrize("bad", [None, 7, len, "m"])
def test_an_element_that_is_no_measurement_is_named(bad):
    with pytest.raises(InvalidTypeError, match=r"^measurements\[1\] must be a measurement"):
        oc.c.make_indexed_composition(*SPACE, PURE, 1, [numbered(), bad])


def test_no_measurements():
    with pytest.raises(InvalidValueError, match="must have at least one"):
        indexed()


def test_a_measurement_on_another_space_or_measure_is_refused():
    real = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    other = real >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    zcdp = numbered(measure=dp.zero_concentrated_divergence())
    for measurement, name in ((other, "input_domain"), (zcdp, "output_measure")):
        with pytest.raises(SpaceMismatchError, match=rf"^measurements\[1\].{name} does not"):
            indexed(numbered(), measurement)


def test_a_map_that_returns_no_loss_is_refused():
    with pytest.raises(InvalidValueError, match=r"^d_mids\[1\]"):
        indexed(numbered(), numbered(d_mid=math.nan))


# --- parents ---------------------------------------------------------------------------------


def test_it_is_launched_as_one_child():
    composed = indexed(numbered("a"), numbered("b"))
    query = (0, "q"), (1, "q")
    for parent in (
        filter_(),
        oc.make_concurrent_odometer(*SPACE, PURE),
        oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5]),
    ):
        root = parent(DATA)
        child = root(composed)
        assert root.privacy_loss(1) == 0.5
        assert [child(one)[0] for one in query] == ["a", "b"]
        assert root.privacy_loss(1) == 0.5


def test_it_is_launched_under_a_native_compositor():
    root = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5] * 2)(DATA)
    children = [root(indexed(numbered("a"), numbered("b"))) for _ in range(2)]
    query = (0, "q"), (1, "q")
    assert [child(one)[0] for one in query for child in children] == list("aabb")
    with pytest.raises(InvalidValueError, match="^the index"):
        children[0]((2, "q"))


def test_chained_with_a_transformation_by_then():
    tail = dp.t.make_user_transformation(
        *SPACE, *SPACE, function=lambda rows: rows[1:], stability_map=lambda d_in: d_in
    )
    chained = tail >> oc.c.then_indexed_composition(PURE, 1, [numbered("a"), numbered("b")])
    assert chained.map(1) == 0.5
    assert chained(DATA)((0, "q")) == ("a", 6, ("q",))


def test_nested():
    inner = indexed(numbered("a"), numbered("b"))
    queryable = indexed(inner, numbered("c"))(DATA)
    assert queryable((0, (1, "q"))) == ("b", 7, ("q",))
    assert queryable((1, "q")) == ("c", 7, ("q",))
    assert indexed(inner, numbered("c")).map(1) == 0.75


def test_repr_shows_no_data():
    composed = indexed(numbered())
    for thing in (composed, composed([271828182])):
        assert "271828182" not in repr(thing)
