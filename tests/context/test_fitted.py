"""Scales and thresholds that are left for a context to find."""

import inspect

import opendp.context
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures import composition_measure
from opendp_concurrent.queryables.mechanism import read_map

from ..build import PURE, SPACE

MOST = 100
FEW = 9
DATA = [1, 2, 3, 4, 5]
UNIT = dp.unit_of(contributions=1)
INTS = SPACE[0]
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False))


@pytest.fixture
def builds(monkeypatch):
    """How often each constructor of a context has been called."""
    counts = dict.fromkeys(opendp.context.constructors, 0)

    def counted(name, constructor):
        def call(*args, **kwargs):
            counts[name] += 1
            return constructor(*args, **kwargs)

        call.__signature__ = inspect.signature(constructor)
        return call

    counting = {
        name: (counted(name, constructor), partial)
        for name, (constructor, partial) in opendp.context.constructors.items()
    }
    monkeypatch.setattr(opendp.context, "constructors", counting)
    return counts


def query(loss, make=oc.concurrent_context, data=DATA, domain=INTS, unit=UNIT):
    return make(data, unit, loss, domain=domain, split_evenly_over=1).query()


OPENDPS = [
    *((dp.loss_of(epsilon=1e-9), "laplace"), (dp.loss_of(epsilon=0.3), "geometric")),
    *(((PURE, 41.7), "laplace"), (dp.loss_of(rho=0.37), "laplace")),
    *((dp.loss_of(rho=loss), "gaussian") for loss in (1e-12, 0.37)),
    (dp.loss_of(epsilon=1.1, delta=1e-7), "gaussian"),
    (dp.loss_of(epsilon=0.7, delta=1e-7), "laplace"),
    (dp.loss_of(rho=0.2, delta=1e-7), "gaussian"),
]


@pytest.mark.parametrize(("loss", "noise"), OPENDPS)
def test_the_scale_is_the_one_that_opendp_finds(builds, loss, noise):
    measure, d_out = loss
    found = getattr(query(loss).count(), noise)().resolve()
    assert builds[noise] <= FEW
    assert found.output_measure == measure
    assert found.check(1, d_out)
    theirs = getattr(query(loss, dp.Context.compositor).count(), noise)()
    scales = []

    def listening(number, make=theirs._chain.partial):
        scales.append(number)
        return make(number)

    theirs._chain.partial = listening
    theirs.resolve()
    assert found.param == scales[-1]


OURS = [{"mu": 0.4}, {"epsilon": 1.3, "alpha": 8.0}, {"rho": 0.5, "omega": 8.0}]
OURS.append({"tradeoff": oc.TradeoffFunction.gaussian(0.8)})


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "geometric"])
@pytest.mark.parametrize("loss", OURS, ids=lambda loss: "-".join(loss))
def test_noise_under_measures_of_this_package(builds, loss, noise):
    measure, d_out = oc.loss_of(**loss)
    rule = oc.accumulators.residue(0.8) if "tradeoff" in loss else None
    context = oc.concurrent_context(DATA, UNIT, (measure, d_out), domain=INTS, accumulator=rule)
    made = context.query(**loss).count()
    found = getattr(made, noise)().resolve()
    most = MOST if "tradeoff" in loss else 2 * FEW
    assert 0 < builds[noise if noise == "geometric" else f"certified_{noise}"] <= most
    at_most = composition_measure(measure).at_most
    assert at_most(found.map(1), d_out)
    assert not at_most(getattr(made, noise)(found.param * (1 - 1e-6)).resolve().map(1), d_out)


def test_a_probability_is_found(builds):
    loss = dp.loss_of(epsilon=1.0)
    made = query(loss, data=True, domain=dp.atom_domain(T=bool), unit=dp.unit_of(local=True))
    found = made.randomized_response_bool().resolve()
    assert found.param == pytest.approx(0.7310585786300048, rel=1e-12)
    assert found.map(1) <= 1.0
    assert builds["randomized_response_bool"] <= MOST


@pytest.fixture
def accepted(monkeypatch):
    """The owner accepts the δ of OpenDP's thresholds."""
    monkeypatch.setattr("opendp_concurrent._opendp.advisories.ACCEPTED", {2922})


def test_a_scale_beside_a_threshold_is_found_from_epsilon(builds, accepted):
    loss = dp.loss_of(epsilon=1.0, delta=1e-6)
    found = query(loss).count_by().laplace_threshold(threshold=50).resolve()
    assert found.map(1)[0] == found.param == 1.0
    assert builds["laplace_threshold"] <= MOST


def test_a_threshold_beside_a_scale_is_found_from_delta(builds, accepted):
    """OpenDP's own context raises."""
    loss = dp.loss_of(epsilon=1.0, delta=1e-6)
    found = query(loss).count_by().laplace_threshold(2.0).resolve()
    less = query(loss).count_by().laplace_threshold(2.0, found.param - 1).resolve()
    assert read_map(found, 1)[1] <= 1e-6 < read_map(less, 1)[1]
    assert type(found.param) is int
    assert builds["laplace_threshold"] <= MOST


def test_the_search_keeps_to_bounds_and_types():
    made = query(dp.loss_of(epsilon=0.5)).count().laplace()
    assert made.param(bounds=(1.0, 3.0)) == made.param(T=float) == 2.0
    assert query(dp.loss_of(epsilon=0.3)).count().laplace().param(T=int) == 4
    with pytest.raises(InvalidValueError, match=r"^the loss at d_in \(1\) is above d_out \(0.5\)"):
        made.release(bounds=(0.5, 1.0))
    with pytest.raises(InvalidValueError, match=r"is below d_out \(0.5\) .* pass the parameter"):
        made.release(bounds=(2.5, 3.0))


def test_what_no_number_mends_is_raised_as_it_is():
    made = query(dp.loss_of(epsilon=1.0), data=[1.0], domain=FLOATS)
    with pytest.raises(dp.OpenDPException, match="scale|bound|sensitivity|domain|metric"):
        made.laplace().release()


def test_a_measurement_that_passes_is_the_one_that_is_launched(builds):
    """A constructor that makes something else the next time cannot spend more than was checked."""
    context = oc.concurrent_context(DATA, UNIT, dp.loss_of(epsilon=1.0), domain=INTS)
    made = context.query(epsilon=0.5).count().laplace()
    seen = set()

    def fickle(scale, make=made._chain.partial):
        again = scale in seen
        seen.add(scale)
        return make(scale / 2 if again else scale)

    made._chain.partial = fickle
    made.release()
    assert context.current_privacy_loss() == 0.5


def test_a_query_needs_a_loss_or_a_scale():
    context = oc.concurrent_context(DATA, UNIT, dp.loss_of(epsilon=1.0), domain=INTS)
    with pytest.raises(InvalidTypeError, match="^the query has neither a privacy loss nor a scale"):
        context.query().count().laplace().release()
