"""Indexed composition [VW21], [HSTVVXZ23, Algorithm 1]: a message names its mechanism."""

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    FiniteCommunicationError,
    InvalidTypeError,
    InvalidValueError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)

from ..build import APPROXIMATE, DATA, PURE, RENYI, SPACE, ZCDP, costing


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

    return costing(lambda d_in: d_mid, function, measure)


def indexed(*measurements, measure=PURE, **keywords):
    return oc.c.make_indexed_composition(*SPACE, measure, 1, list(measurements), **keywords)


# --- losses ----------------------------------------------------------------------------------


def test_at_a_delta_it_is_the_optimal_composition():
    measure = APPROXIMATE
    rounds = [numbered(measure=measure, d_mid=(0.02, 0.0))] * 200
    assert indexed(*rounds, measure=measure).map(1) == (pytest.approx(4.0), 0.0)
    fixed = oc.make_concurrent_composition(*SPACE, measure, 1, [(0.02, 0.0)] * 200, delta=1e-6)
    found = indexed(*rounds, measure=measure, delta=1e-6).map(1)
    assert found == fixed.map(1)
    assert found == (pytest.approx(1.2013, abs=1e-2), 1e-6)


def test_renyi_curves_need_orders():
    first = numbered(measure=RENYI, d_mid=lambda alpha: 0.25 * alpha)
    measurements = [first, numbered(measure=RENYI, d_mid=lambda alpha: 0.5 * alpha)]
    with pytest.raises(InvalidTypeError, match="^orders must be given"):
        indexed(*measurements, measure=RENYI)
    composed = indexed(*measurements, measure=RENYI, orders=[2.0, 8.0])
    assert composed.map(1).values == (1.5, 6.0)
    queryable = composed(DATA)
    assert queryable((0, "q")) == ("m", 6, ("q",))
    with pytest.raises(InvalidTypeError, match="^orders must be left out"):
        indexed(numbered(), orders=[2.0])


# --- indexed ---------------------------------------------------------------------------------


@given(script=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=12))
def test_any_interleaving_leads_each_conversation_as_if_alone(script):
    mechanisms = [numbered(name) for name in "abc"]
    queryable = indexed(*mechanisms)(DATA)
    alone = [mechanism(DATA) for mechanism in mechanisms]
    for index, query in script:
        assert queryable((index, query)) == alone[index](query)


@pytest.mark.parametrize("index", [-1, 2, 10**30])
def test_an_index_out_of_range(index):
    queryable = indexed(numbered(), numbered())(DATA)
    with pytest.raises(InvalidValueError, match="^the index .* must be from 0 to 1"):
        queryable((index, "q"))
    assert queryable((0, "q")) == ("m", 6, ("q",))


@pytest.mark.parametrize(
    "message",
    [None, 0, "0q", (), (0,), (0, "q", "r"), [0, "q"], (0.0, "q"), (True, "q"), ("0", "q")],
)
def test_a_message_that_is_no_pair(message):
    queryable = indexed(numbered(), numbered())(DATA)
    with pytest.raises(InvalidTypeError, match="must be a pair"):
        queryable(message)
    assert queryable((1, "q")) == ("m", 6, ("q",))


def test_a_measurement_on_another_space_or_measure_is_refused():
    real = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    other = real >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    zcdp = numbered(measure=ZCDP)
    for measurement, name in ((other, "input_domain"), (zcdp, "output_measure")):
        with pytest.raises(SpaceMismatchError, match=rf"^measurements\[1\].{name} does not"):
            indexed(numbered(), measurement)


# --- on a stream -----------------------------------------------------------------------------


def bits():
    return oc.integer_stream(0, 1), oc.event_presence()


def counter(measure):
    noise = measure if measure in (PURE, ZCDP) else PURE
    made = oc.m.make_counter(*bits(), noise, scale=2.0)
    return oc.c.cast(made, measure)


def with_a_delta():
    return oc.c.cast(counter(ZCDP), APPROXIMATE, delta=1e-6)


@pytest.mark.parametrize("measure", [PURE, ZCDP, APPROXIMATE], ids=str)
def test_each_update_goes_to_all_and_their_losses_add_up(measure):
    one = counter(measure)
    made = oc.c.make_indexed_composition(*bits(), measure, 1, [one, one])
    assert made.map(1) == oc.make_concurrent_composition(*bits(), measure, 1, [one.map(1)] * 2).map(
        1
    )
    queryable = made([])
    queryable.update_all([1, 0, 1] * 100)
    assert all(abs(queryable((index, None)) - 200) < 190 for index in (0, 1))


def test_on_a_stream_each_is_asked_for_a_bound_before_the_charge():
    def indexed(*parts):
        return oc.c.make_indexed_composition(*bits(), APPROXIMATE, 1, parts)

    alone = with_a_delta()
    unbounded, bounded = indexed(alone, alone), oc.c.make_bounded_interactive(alone, 9)
    mapped = oc.t.make_stream_map(*bits(), bits()[0], lambda item: item) >> unbounded
    odometer = oc.make_concurrent_odometer(*bits(), APPROXIMATE)
    budget = oc.make_concurrent_filter(odometer, 1, (99.0, 0.5))
    root, stream = budget([]), oc.c.make_concurrent_continual(budget, max_messages=9)([])
    for launch in (root, lambda one: one([])):
        for one in (unbounded, mapped, indexed(unbounded)):
            with pytest.raises(FiniteCommunicationError):
                launch(one)
    assert root.privacy_loss() == (0.0, 0.0)
    whole = (oc.c.make_bounded_interactive(one, 9) for one in (unbounded, mapped))
    for child in map(root, (indexed(bounded, bounded), *whole)):
        child.update(1)
        assert child((1, None)) is not None
    child = stream(unbounded)
    stream.update(1)
    assert child((1, None)) is not None


def test_an_update_to_one_mechanism_is_one_to_its_own_handle():
    """Algorithm 3 of [HSV25]: each mechanism has a stream of its own."""
    root = oc.make_concurrent_composition(*bits(), PURE, 1, [counter(PURE).map(1)] * 2)([])
    first, second = root(counter(PURE)), root(counter(PURE))
    first.update_all([1] * 300)
    assert abs(first.read() - 300) < 190
    assert abs(second.read()) < 190


def test_two_on_a_stream_are_refused_under_approximate_zcdp():
    measure = dp.approximate(ZCDP)
    with pytest.raises(UnsupportedMeasureError, match="static data"):
        oc.c.make_indexed_composition(*bits(), measure, 1, [counter(measure)] * 2)
