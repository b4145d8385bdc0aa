"""Indexed and ordered composition [VW21], [HSTVVXZ23, Algorithm 1], and null queries."""

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


def ordered(*measurements, measure=PURE, **keywords):
    return oc.c.make_ordered_composition(*SPACE, measure, 1, list(measurements), **keywords)


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
@pytest.mark.parametrize("make", [indexed, ordered])
def test_the_loss_is_that_of_the_compositor(make, name):
    make_measure, losses, total = LOSSES[name]
    measurements = [numbered(measure=make_measure(), d_mid=loss) for loss in losses]
    composed = make(*measurements, measure=make_measure())
    compositor = oc.make_concurrent_composition(*SPACE, make_measure(), 1, losses)
    assert composed.map(1) == compositor.map(1) == total
    assert composed.check(1, total)
    assert composed.output_measure == make_measure()


@pytest.mark.parametrize("make", [indexed, ordered])
def test_renyi_curves_need_orders(make):
    measure = dp.renyi_divergence()
    measurements = [
        numbered(measure=measure, d_mid=lambda alpha: 0.25 * alpha),
        numbered(measure=measure, d_mid=lambda alpha: 0.5 * alpha),
    ]
    with pytest.raises(InvalidTypeError, match="^orders must be given"):
        make(*measurements, measure=measure)
    composed = make(*measurements, measure=measure, orders=[2.0, 8.0])
    assert composed.map(1).values == (1.5, 6.0)
    queryable = composed(DATA)
    assert queryable((0, "q") if make is indexed else "q") == ("m", 7, ("q",))
    with pytest.raises(InvalidTypeError, match="^orders must be left out"):
        make(numbered(), orders=[2.0])


@pytest.mark.parametrize("make", [indexed, ordered])
def test_the_loss_is_at_the_d_in_it_was_built_for(make):
    composed = oc.c.make_indexed_composition if make is indexed else oc.c.make_ordered_composition
    at_two = composed(*SPACE, PURE, 2, [laplace(), laplace()])
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


@pytest.mark.parametrize("make", [oc.c.make_indexed_composition, oc.c.make_ordered_composition])
@pytest.mark.parametrize("bad", [None, 7, {"a": 1}, iter([])])
def test_what_is_no_sequence_of_measurements(make, bad):
    with pytest.raises(InvalidTypeError, match="^measurements must be a sequence of measurem"):
        make(*SPACE, PURE, 1, bad)


@pytest.mark.parametrize("make", [oc.c.make_indexed_composition, oc.c.make_ordered_composition])
def test_one_measurement_is_no_sequence(make):
    with pytest.raises(InvalidTypeError, match="^measurements must be a sequence of measurem"):
        make(*SPACE, PURE, 1, numbered())


@pytest.mark.parametrize("make", [oc.c.make_indexed_composition, oc.c.make_ordered_composition])
@pytest.mark.parametrize("bad", [None, 7, len, "m"])
def test_an_element_that_is_no_measurement_is_named(make, bad):
    with pytest.raises(InvalidTypeError, match=r"^measurements\[1\] must be a measurement"):
        make(*SPACE, PURE, 1, [numbered(), bad])


@pytest.mark.parametrize("make", [indexed, ordered])
def test_no_measurements(make):
    with pytest.raises(InvalidValueError, match="must have at least one"):
        make()


@pytest.mark.parametrize("make", [indexed, ordered])
def test_a_measurement_on_another_space_or_measure_is_refused(make):
    real = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    other = real >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    zcdp = numbered(measure=dp.zero_concentrated_divergence())
    for measurement, name in ((other, "input_domain"), (zcdp, "output_measure")):
        with pytest.raises(SpaceMismatchError, match=rf"^measurements\[1\].{name} does not"):
            make(numbered(), measurement)


def test_a_map_that_returns_no_loss_is_refused():
    with pytest.raises(InvalidValueError, match=r"^d_mids\[1\]"):
        indexed(numbered(), numbered(d_mid=math.nan))


# --- ordered ---------------------------------------------------------------------------------


def test_they_are_asked_first_to_last_and_again():
    queryable = ordered(numbered("a"), numbered("b"), numbered("c"))(DATA)
    names = [queryable(number)[0] for number in range(7)]
    assert names == list("abcabca")
    assert queryable(7) == ("b", 7, (1, 4, 7))


def test_a_query_that_is_refused_does_not_pass_the_turn():
    queryable = ordered(numbered("a"), numbered("b"))(DATA)
    with pytest.raises(OpenDPException, match="refuses"):
        queryable("bad")
    assert queryable("q")[0] == "a"
    assert queryable("q")[0] == "b"


def test_turns_of_invocations_are_apart():
    composed = ordered(numbered("a"), numbered("b"))
    assert [composed(DATA)("q")[0] for _ in range(3)] == ["a"] * 3


def test_one_alone_has_every_turn():
    queryable = ordered(numbered())(DATA)
    assert [queryable("q"), queryable("r")] == [("m", 7, ("q",)), ("m", 7, ("q", "r"))]


def test_a_pair_is_a_message_like_any_other():
    assert ordered(numbered("a"), numbered("b"))(DATA)((1, "q")) == ("a", 7, ((1, "q"),))


# --- null queries ----------------------------------------------------------------------------


def test_a_null_query_does_not_reach_the_mechanism():
    queryable = oc.c.make_null_query_extension(numbered())(DATA)
    assert [queryable((0, anything)) for anything in (None, "q", "bad")] == [None] * 3
    assert queryable((1, "q")) == ("m", 7, ("q",))
    assert queryable((0, "r")) is None
    assert queryable((1, "s")) == ("m", 7, ("q", "s"))


def test_a_null_query_extension_has_the_same_loss():
    assert oc.c.make_null_query_extension(laplace()).map(3) == laplace().map(3) == 0.75


@pytest.mark.parametrize("message", [None, 1, (1,), (1, 2, 3), [1, "q"], (True, "q"), ("1", "q")])
def test_a_null_query_extension_takes_pairs(message):
    queryable = oc.c.make_null_query_extension(numbered())(DATA)
    with pytest.raises(InvalidTypeError, match="must be a pair"):
        queryable(message)
    assert queryable((1, "q")) == ("m", 7, ("q",))


@pytest.mark.parametrize("flag", [-1, 2])
def test_a_null_query_extension_takes_zero_or_one(flag):
    queryable = oc.c.make_null_query_extension(numbered())(DATA)
    with pytest.raises(InvalidValueError, match="must be from 0 to 1"):
        queryable((flag, "q"))


# --- [VW21, Lemma 2] -------------------------------------------------------------------------


def in_order(turn_and_message, tag, message):
    """Simulates indexed composition on the ordered composition of null-query extensions.

    Everybody whose turn it is not is asked nothing.
    """
    count, turn, wanted = turn_and_message
    if tag is QUERY:
        wanted = message
    elif turn == wanted[0]:
        return (count, (turn + 1) % count, None), ANSWER, message
    else:
        turn = (turn + 1) % count
    here = turn == wanted[0]
    return (count, turn, wanted), QUERY, (1, wanted[1]) if here else (0, None)


@given(
    count=st.integers(1, 4),
    script=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=10),
)
def test_ordered_composition_of_null_query_extensions_is_as_general(count, script):
    mechanisms = [numbered(str(number)) for number in range(count)]
    concurrent = indexed(*mechanisms)
    extended = ordered(*map(oc.c.make_null_query_extension, mechanisms))
    simulating = oc.c.make_interactive_postprocessing(
        extended, in_order, initial_state=(count, 0, None), max_asks=count
    )
    assert simulating.map(1) == concurrent.map(1)
    one, other = concurrent(DATA), simulating(DATA)
    for index, query in script:
        assert one((index % count, query)) == other((index % count, query))


@given(script=st.lists(st.integers(0, 9), max_size=9))
def test_indexed_composition_is_at_least_as_general(script):
    """The other direction: who asks in turn only counts."""
    mechanisms = [numbered(name) for name in "abc"]
    one, other = ordered(*mechanisms)(DATA), indexed(*mechanisms)(DATA)
    for number, query in enumerate(script):
        assert one(query) == other((number % 3, query))


# --- parents ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [indexed, ordered])
def test_it_is_launched_as_one_child(make):
    composed = make(numbered("a"), numbered("b"))
    query = ((0, "q"), (1, "q")) if make is indexed else ("q", "q")
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


@pytest.mark.parametrize("make", [indexed, ordered])
def test_it_is_launched_under_a_native_compositor(make):
    root = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5] * 2)(DATA)
    children = [root(make(numbered("a"), numbered("b"))) for _ in range(2)]
    query = ((0, "q"), (1, "q")) if make is indexed else ("q", "q")
    assert [child(one)[0] for one in query for child in children] == list("aabb")
    if make is indexed:
        with pytest.raises(InvalidValueError, match="^the index"):
            children[0]((2, "q"))


def test_chained_with_a_transformation_by_then():
    tail = dp.t.make_user_transformation(
        *SPACE, *SPACE, function=lambda rows: rows[1:], stability_map=lambda d_in: d_in
    )
    for then in (oc.c.then_indexed_composition, oc.c.then_ordered_composition):
        chained = tail >> then(PURE, 1, [numbered("a"), numbered("b")])
        assert chained.map(1) == 0.5
        message = (0, "q") if then is oc.c.then_indexed_composition else "q"
        assert chained(DATA)(message) == ("a", 6, ("q",))


def test_nested():
    inner = indexed(numbered("a"), numbered("b"))
    queryable = indexed(inner, numbered("c"))(DATA)
    assert queryable((0, (1, "q"))) == ("b", 7, ("q",))
    assert queryable((1, "q")) == ("c", 7, ("q",))
    assert indexed(inner, numbered("c")).map(1) == 0.75


def test_repr_shows_no_data():
    for composed in (indexed(numbered()), ordered(numbered())):
        for thing in (composed, composed([271828182])):
            assert "271828182" not in repr(thing)
