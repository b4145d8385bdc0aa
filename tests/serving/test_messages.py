"""What a message costs and is compared with, what cannot be sent, and what JSON has for answers."""

import json

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, SpaceMismatchError
from opendp_concurrent.serving import as_json
from opendp_concurrent.serving import values as calls

from ..build import APPROXIMATE, PURE, SPACE, ZCDP, a_filter, an_odometer

OTHER = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
DATA = [1, 2, 30]
UNIT = dp.unit_of(contributions=1)


@pytest.fixture(autouse=True)
def _dp_deserialize_knows_this_package():
    oc.install()
    yield
    oc.uninstall()


def many(count):
    """A message with an optimal composition of distinct losses, which is not built here."""
    made = oc.make_concurrent_composition(*SPACE, APPROXIMATE, 1, [(0.1, 0.0)], delta=1e-6)
    tree = json.loads(oc.serialize(made))
    losses = [{"__tuple__": [0.01 + index * 1e-6, 0.0]} for index in range(count)]
    tree["__kwargs__"]["d_mids"] = losses
    return json.dumps(tree)


def test_cells_add_up_over_a_message():
    one = json.loads(many(33))  # 64 losses are allowed
    assert oc.deserialize(json.dumps(one)) is not None
    with pytest.raises(InvalidValueError, match="too many cells"):
        oc.deserialize(json.dumps([one, one]))


def test_trusted_messages_are_not_limited():
    text = many(66)
    with pytest.raises(InvalidValueError, match="too many cells"):
        oc.deserialize(text)
    assert dp.deserialize(text).map(1)[1] == 1e-6
    narrow, wide = (
        oc.m.make_certified_geometric(*WHOLE, 1.0, ZCDP, bounds=(0, 2**most)) for most in (16, 20)
    )
    assert dp.deserialize(dp.serialize(wide)).map(1) == wide.map(1)
    assert oc.deserialize(dp.serialize(narrow)).map(1) == narrow.map(1)
    with pytest.raises(InvalidValueError, match="bounds must be at most"):
        oc.deserialize(dp.serialize(wide))


# --- what is expected -----------------------------------------------------------------------------


def count(space=SPACE, scale=4.0):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


MESSAGES = {
    "chain": lambda space: count(space),
    "cast": lambda space: oc.c.cast(count(space), PURE),
    "compositor": lambda space: oc.make_concurrent_composition(*space, PURE, 1, [0.5]),
    "filter": lambda space: a_filter(space=space),
    "list": lambda space: dp.c.make_composition([count(space), count(space)]),
    "sparse vector": lambda space: oc.m.make_sparse_vector(*space, PURE, 1, 8.0, 5, 3),
    "odometer": lambda space: oc.make_concurrent_odometer(*space, PURE),
    "selection": lambda space: oc.c.make_interactive(count(space)),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_another_space_or_measure_is_refused(name):
    right, wrong = (oc.serialize(MESSAGES[name](space)) for space in (SPACE, OTHER))
    made = oc.deserialize(right, space=SPACE, output_measure=PURE)
    assert (made.input_domain, made.input_metric, made.output_measure) == (*SPACE, PURE)
    with pytest.raises(SpaceMismatchError, match="^input_domain does not match"):
        oc.deserialize(wrong, space=SPACE, output_measure=PURE)
    with pytest.raises(SpaceMismatchError, match="^input_metric does not match"):
        oc.deserialize(right, space=(SPACE[0], dp.change_one_distance()))
    with pytest.raises(SpaceMismatchError, match="^output_measure does not match"):
        oc.deserialize(right, output_measure=ZCDP)


@pytest.mark.parametrize(
    ("made", "measure"),
    [
        (lambda: dp.c.make_pureDP_to_zCDP(count()), ZCDP),
        (lambda: oc.c.cast(count(), ZCDP), ZCDP),
        (lambda: dp.c.make_approximate(count()), APPROXIMATE),
        (lambda: oc.c.make_private_selection(oc.c.cast(count(), ZCDP), mean_runs=4), None),
    ],
)
def test_the_measure_after_a_cast_is_compared(made, measure):
    measure = made().output_measure if measure is None else measure
    text = oc.serialize(made())
    assert oc.deserialize(text, space=SPACE, output_measure=measure).output_measure == measure
    with pytest.raises(SpaceMismatchError, match="^output_measure"):
        oc.deserialize(text, output_measure=oc.gaussian_tradeoff())


def test_the_space_is_compared_before_anything_else_is_built(monkeypatch):
    text, seen = many(2), []
    assert oc.deserialize(text).map(1)
    key = (calls.MODULE, "make_concurrent_composition")
    table = {**calls.table(), key: lambda **given: seen.append(given)}
    monkeypatch.setattr(calls, "table", lambda: table)
    with pytest.raises(SpaceMismatchError):
        oc.deserialize(text, space=OTHER)
    with pytest.raises(SpaceMismatchError):
        oc.deserialize(text, output_measure=PURE)
    assert not seen
    with pytest.raises(SpaceMismatchError):
        oc.deserialize(text, space=SPACE, output_measure=APPROXIMATE)  # as is what was made
    assert len(seen) == 1


# --- what dp.serialize wrote as {"__version__": ...}, with no error and no content ----------------


def not_restored():
    stream, odometer, bounded = (
        (oc.integer_stream(0, 1), oc.event_presence()),
        an_odometer(),
        a_filter(),
    )
    return {
        "postprocessed odometer": odometer >> str,
        "stream map": oc.t.make_stream_map(*stream, stream[0], lambda item: item),
        "partial": oc.then_concurrent_composition(PURE, 1, [0.5]),
        "odometer handle": odometer(DATA),
        "filter handle": bounded(DATA),
        "compositor handle": oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5])(DATA),
        "counter handle": oc.m.make_counter(*stream, PURE, scale=1.0)([]),
        "in a list": [bounded(DATA)],
        "in a pair": (bounded(DATA), 1),
    }


@pytest.mark.parametrize("name", not_restored())
def test_what_cannot_be_restored_is_not_serialised(name):
    with pytest.raises(InvalidTypeError, match="dp.serialize cannot serialise"):
        dp.serialize(not_restored()[name])


LOSSES = [({"epsilon": 1.0}, {"epsilon": 0.5}), ({"rho": 0.5}, {"rho": 0.25})]
LOSSES.append(({"epsilon": 1.0, "delta": 1e-7}, {"epsilon": 0.5, "delta": 1e-8}))
WEIGHTS = {"split_by_weights": [1, 3]}


@pytest.mark.parametrize("make", [dp.Context.compositor, oc.concurrent_context])
@pytest.mark.parametrize(
    ("loss", "asked", "split"),
    [case for loss, asked in LOSSES for case in ((loss, {}, WEIGHTS), (loss, asked, {}))],
)
def test_a_query_goes_from_a_client_to_a_server(make, loss, asked, split):
    client, server = (make(data, UNIT, dp.loss_of(**loss), **split) for data in ([0], DATA))
    query = client.query(**asked).clamp((0, 10)).sum()
    measurement = (
        query.laplace() if len(loss) == 1 and "epsilon" in loss else query.gaussian()
    ).resolve()
    message = dp.serialize(measurement)
    received = dp.deserialize(message)
    assert received.map(1) == measurement.map(1)
    assert received.input_domain == measurement.input_domain
    assert isinstance(server(received), int)

    # as OpenDP's user guide has it: as the chain of a query on the server
    second = server.query(**asked)
    second._chain = dp.deserialize(message)
    assert isinstance(second.release(), int)


def test_a_polars_plan_goes_from_a_client_to_a_server():
    pl = pytest.importorskip("polars")
    client, server = (
        oc.concurrent_context(
            pl.LazyFrame({"a": data}), UNIT, dp.loss_of(epsilon=1.0), split_evenly_over=1
        )
        for data in ([0], DATA)
    )
    plan = client.query().select(dp.len(signed=True)).polars_plan.serialize()
    assert server.deserialize_polars_plan(plan).release().collect().shape == (1, 1)


# --- what JSON has --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((one, one) for one in (3, True, None, 0.5)),
        *((float(one), one) for one in ("inf", "-inf", "nan")),
        ((1.0, 1e-6), [1.0, 1e-6]),
        ({"a": [1, (2, float("inf"))], 3: None}, {"a": [1, [2, "inf"]], "3": None}),
        (np.array([[1.0, np.inf]]), [[1.0, "inf"]]),
        (np.int32(3), 3),
        (np.float64("nan"), "nan"),
        (np.bool_(True), True),
        (oc.handles.Outcome.BELOW, "BELOW"),
        (oc.TruncatedConcentrated(0.5, 20.0), {"rho": 0.5, "omega": 20.0}),
        (oc.errors.InvalidValueError("why"), "why"),
    ],
)
def test_values(value, expected):
    found = as_json(value)
    assert found == expected
    assert type(found) is type(expected)
    json.dumps(found, allow_nan=False)


def test_what_json_does_not_have_is_refused_without_its_value():
    for value in (
        *(object(), {1, 2}, b"a", int, ValueError("row 7"), [len], np.longdouble(7)),
        *(np.ones(2, np.longdouble), np.array([7], "m8[ns]"), np.complex128(7)),
        np.datetime64(7, "ns"),  # NumPy says that it is the integer 7
    ):
        with pytest.raises(InvalidTypeError, match="no form in JSON") as refused:
            as_json(value)
        assert "7" not in str(refused.value)


def test_what_json_cannot_write_is_refused():
    inside, deep = [], []
    inside.append(inside)
    for _ in range(10_000):
        deep = [deep]
    for value, why in (
        (inside, "contains itself"),
        (deep, "nested too deeply"),
        ({1: 7, "1": 8}, "the same text"),
        (10**5000, "8192 bits"),
        ([-(2**8192)], "8192 bits"),
        (np.broadcast_to(1.0, 10**10), "10,000,000 numbers"),
    ):
        with pytest.raises(InvalidTypeError, match=f"value .*{why}"):
            as_json(value)
    assert json.loads(json.dumps(as_json(2**8192 - 1))) == 2**8192 - 1
