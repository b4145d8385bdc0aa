"""dp.serialize of a measurement returned ``{"__version__": ...}``, with no error and no content."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError

from ..build import PURE, SPACE

DATA = [1, 2, 30]
UNIT = dp.unit_of(contributions=1)
STREAM = oc.integer_stream(0, 1), oc.event_presence()


@pytest.fixture(autouse=True)
def _dp_deserialize_knows_this_package():
    oc.install()
    yield
    oc.uninstall()


def not_restored():
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    bounded = oc.make_concurrent_filter(odometer, 1, 1.0)
    compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.5])
    counter = oc.m.make_counter(*STREAM, PURE, scale=1.0)
    return {
        "postprocessed odometer": odometer >> str,
        "stream map": oc.t.make_stream_map(*STREAM, STREAM[0], lambda item: item),
        "partial": oc.then_concurrent_composition(PURE, 1, [0.5]),
        "odometer handle": odometer(DATA),
        "filter handle": bounded(DATA),
        "compositor handle": compositor(DATA),
        "counter handle": counter([]),
        "in a list": [bounded(DATA)],
        "in a pair": (bounded(DATA), 1),
    }


@pytest.mark.parametrize("name", not_restored())
def test_what_cannot_be_restored_is_not_serialised(name):
    with pytest.raises(InvalidTypeError, match="dp.serialize cannot serialise"):
        dp.serialize(not_restored()[name])


def make_contexts():
    losses = {
        "pure": dp.loss_of(epsilon=1.0),
        "zcdp": dp.loss_of(rho=0.5),
        "approximate": dp.loss_of(epsilon=1.0, delta=1e-7),
    }
    each = {"pure": {"epsilon": 0.5}, "zcdp": {"rho": 0.25}}
    each["approximate"] = {"epsilon": 0.5, "delta": 1e-8}
    for name, loss in losses.items():
        for split in ({"split_by_weights": [1, 3]}, {}):
            yield name, loss, split, {} if split else each[name]


@pytest.mark.parametrize("make", [dp.Context.compositor, oc.concurrent_context])
@pytest.mark.parametrize(("name", "loss", "split", "asked"), list(make_contexts()))
def test_a_query_goes_from_a_client_to_a_server(make, name, loss, split, asked):
    client = make(data=[0], privacy_unit=UNIT, privacy_loss=loss, **split)
    query = client.query(**asked).clamp((0, 10)).sum()
    query = query.laplace() if name == "pure" else query.gaussian()
    measurement = query.resolve()
    message = dp.serialize(measurement)

    server = make(data=DATA, privacy_unit=UNIT, privacy_loss=loss, **split)
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
    terms = {
        "privacy_unit": UNIT,
        "privacy_loss": dp.loss_of(epsilon=1.0),
        "split_evenly_over": 1,
    }
    client = oc.concurrent_context(data=pl.LazyFrame({"a": [0]}), **terms)
    plan = client.query().select(dp.len()).polars_plan.serialize()
    server = oc.concurrent_context(data=pl.LazyFrame({"a": DATA}), **terms)
    assert server.deserialize_polars_plan(plan).release().collect().shape == (1, 1)
