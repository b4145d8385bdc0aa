"""An error of a launch says whether the launch is charged, on every handle, and it is true."""

import inspect
import sqlite3

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import errors
from opendp_concurrent.errors import ConcurrentError, charged
from opendp_concurrent.ledger import create_ledger
from opendp_concurrent.ledger.store import Store
from opendp_concurrent.queryables import session as sessions

from ..build import (
    APPROXIMATE_ZCDP,
    DATA,
    PURE,
    SPACE,
    a_filter,
    an_odometer,
    costing,
    laplace,
    opened,
)

KINDS = [
    one
    for one in vars(errors).values()
    if inspect.isclass(one) and issubclass(one, ConcurrentError)
]
NEVER = {  # raised by launches only, and only before a charge
    "BlockExceededError",
    "BudgetExceededError",
    "DataSourceError",
    "HaltedError",
    "KeyReusedError",
    "LedgerMismatchError",
    "LimitMismatchError",
    "AdvisoryError",
    "FiniteCommunicationError",
    "PrivacyMapError",
    "SharesUsedError",
    "UnregisteredError",
}
ALWAYS = {"TooFewRowsError"}  # raised by what reads a release, which has been charged


class Place:
    """A handle to launch on, what its root has spent, and whether it is inside a native one."""

    def __init__(self, launch, spent=None, *, foreign_known=True, measure=PURE):
        self.launch, self.spent = launch, spent or launch.privacy_loss
        self.foreign_known, self.measure = foreign_known, measure


def odometer(opaque):
    return an_odometer(opaque_errors=opaque)


def alone(opaque):
    root = odometer(opaque)(DATA)
    return Place(root, lambda: root.privacy_loss(1))


def composition(opaque):
    options = {"opaque_errors": True} if opaque else {}
    return Place(oc.make_concurrent_composition(*SPACE, PURE, 1, [0.125] * 8, **options)(DATA))


def below(opaque, query, **options):
    """What is launched on a filter, which pays."""
    root = opened(opaque_errors=opaque, **options)
    return Place(root(query), root.privacy_loss)


def limit(opaque, **options):
    made = oc.c.make_limited(odometer(opaque), 1, 0.5, label="a")
    return below(opaque, made, **options)


def block(opaque):
    by = oc.c.by_key(lambda row: row % 2)
    root = oc.c.make_block_filter(odometer(opaque), 1, 1.0, blocks=by, keys=[0, 1])(DATA)
    return Place(lambda query: root([0, 1], query), lambda: root.privacy_loss(1))


def sequential(opaque):
    return Place(
        opened((1.0, 1e-6), APPROXIMATE_ZCDP, opaque_errors=opaque), measure=APPROXIMATE_ZCDP
    )


def in_opendps(opaque):
    outer = dp.c.make_adaptive_composition(*SPACE, PURE, 1, [1.0])(DATA)
    handle = outer(a_filter(opaque_errors=opaque))
    return Place(handle, lambda: handle.privacy_loss(1), foreign_known=False)


PLACES = {
    "a filter": lambda opaque, ledger: Place(opened(opaque_errors=opaque)),
    "an odometer": lambda opaque, ledger: alone(opaque),
    "a composition": lambda opaque, ledger: composition(opaque),
    "a limit": lambda opaque, ledger: limit(opaque),
    "a child odometer": lambda opaque, ledger: below(opaque, odometer(opaque)),
    "a child filter": lambda opaque, ledger: Place(opened()(a_filter(0.5, opaque_errors=opaque))),
    "a block": lambda opaque, ledger: block(opaque),
    "sequential": lambda opaque, ledger: sequential(opaque),
    "on a ledger": lambda opaque, ledger: Place(opened(opaque_errors=opaque, ledger=ledger())),
    "a limit on a ledger": lambda opaque, ledger: limit(opaque, ledger=ledger()),
    "in a composition of OpenDP's": lambda opaque, ledger: in_opendps(opaque),
}


def fails(error):
    def function(_):
        raise error

    return function


def on_its_measure(place, function):
    loss = 0.125 if place.measure == PURE else (lambda d: (0.125 * d * d, 0.0))
    return costing(loss, function, place.measure)


def failing(place, error):
    """A measurement that runs and raises."""
    return on_its_measure(place, fails(error))


def refused(place):
    """What is refused before it runs, by its name."""
    measure = place.measure
    other = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    yield "no measurement", 7
    yield "a partial", dp.m.then_laplace(scale=1.0)
    yield "another space", other >> dp.t.then_count() >> dp.m.then_laplace(scale=8.0)
    yield "another measure", SPACE >> dp.t.then_count() >> dp.m.then_gaussian(scale=8.0)
    yield "a broken map", costing(lambda d_in: 1 / 0, measure=measure)
    yield "too expensive", costing(100.0 if measure == PURE else (100.0, 0.0), measure=measure)
    native = dp.c.make_fully_adaptive_composition(*SPACE, measure)
    del native.__opendp_dict__
    yield "a native odometer of unknown kind", native


@pytest.fixture
def ledger(tmp_path):
    return lambda: create_ledger(tmp_path / "budget.db", "survey")


@pytest.fixture(params=PLACES)
def build(request, ledger):
    return lambda opaque=False: PLACES[request.param](opaque, ledger)


def raised(place, query):
    with pytest.raises(BaseException) as found:  # noqa: PT011
        place.launch(query)
    return found.value


def test_a_refusal_says_that_nothing_is_charged(build, request):
    place = build()
    before = place.spent()
    for name, query in refused(place):
        if name == "too expensive" and "[an odometer]" in request.node.name:
            continue
        error = raised(place, query)
        assert isinstance(error, ConcurrentError), name
        assert (error.charged, charged(error)) == (False, False), name
        assert place.spent() == before, name


FAILURES = {
    "a foreign error": KeyError("no"),
    "a refusal of ours": errors.BudgetExceededError(0.0, 1.0, 0.5),
    "another of ours": errors.InvalidValueError("no"),
    "one that says otherwise": errors.LedgerError("nothing was charged"),
    "an interrupt": KeyboardInterrupt(),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("opaque", [False, True])
def test_a_failed_mechanism_says_that_it_is_charged(build, name, opaque):
    place = build(opaque)
    before, error = place.spent(), FAILURES[name]
    error.charged = False
    found = raised(place, failing(place, error))
    known = charged(found)
    assert place.spent() != before
    if isinstance(found, ConcurrentError) or place.foreign_known:
        assert known is True, found
    else:  # OpenDP may raise another exception instead
        assert known is not False, found
    assert opaque is False or isinstance(found, (errors.MechanismError, KeyboardInterrupt))
    del error.charged


def test_a_launch_from_within_a_mechanism_is_not_charged_and_the_mechanism_is(build):
    place, inner = build(), []

    def launch(_):
        try:
            place.launch(failing(place, KeyError()))
        except Exception as error:
            inner.append(charged(error))
            raise

    outer = raised(place, on_its_measure(place, launch))
    assert inner == [False]
    assert isinstance(outer, errors.ReentrantLaunchError)
    assert charged(outer) is True


def test_a_postprocessor_that_fails_after_the_charge_says_so():
    chained = an_odometer() >> fails(KeyError("no"))
    root = oc.make_concurrent_filter(chained, 1, 1.0)(DATA)
    with pytest.raises(KeyError) as found:
        root(laplace(0.125))
    assert charged(found.value) is True
    assert root.privacy_loss() == 0.125


def test_one_exception_that_is_raised_twice_is_told_each_time():
    error = RuntimeError("no")
    root = opened()

    def run(function):
        with pytest.raises(RuntimeError) as found:
            function()
        assert found.value is error
        return charged(error)

    chained = oc.make_concurrent_filter(an_odometer() >> fails(error), 1, 1.0)(DATA)
    assert charged(error) is None
    assert run(lambda: chained(laplace(0.125))) is True
    original = sessions.Session.price
    try:
        sessions.Session.price = lambda self, query: fails(error)(query)
        assert run(lambda: root(laplace(0.125))) is False  # before the charge
    finally:
        sessions.Session.price = original


@pytest.mark.parametrize("kind", KINDS)
def test_each_error_says_what_it_knows_wherever_it_comes_from(kind):
    known = dict.fromkeys(NEVER, False) | dict.fromkeys(ALWAYS, True)
    assert kind.charged is known.get(kind.__name__)


# --- ledgers -------------------------------------------------------------------------------------

WHEN = {"BEGIN IMMEDIATE": False, "INSERT INTO": False, "UPDATE": False, "COMMIT": None}


@pytest.mark.parametrize("at", WHEN)
@pytest.mark.parametrize("path", ["on a ledger", "a limit on a ledger"])
@pytest.mark.parametrize("done", [False, True])
def test_a_ledger_that_fails_says_what_is_known(monkeypatch, ledger, at, path, done):
    """``done``: the statement was executed, and only its answer was lost."""
    place = PLACES[path](False, ledger)
    place.launch(laplace(0.125))
    take = Store._take

    def taken(self):
        driver, used = take(self)
        execute = driver.execute

        def run(text, *values):
            if text.startswith(at):
                if done:
                    execute(text, *values)
                raise sqlite3.OperationalError("disk I/O error")
            return execute(text, *values)

        driver.execute = run
        return driver, used

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_take", taken)
        error = raised(place, laplace(0.125))
    assert isinstance(error, errors.LedgerError)
    assert (charged(error), error.charged) == (WHEN[at], WHEN[at])
    assert place.spent() == (0.25 if done and at == "COMMIT" else 0.125)


def test_a_closed_ledger_says_that_nothing_is_charged(ledger):
    made = ledger()
    root = opened(ledger=made)
    made.close()
    with pytest.raises(errors.LedgerError) as found:
        root(laplace(0.125))
    assert charged(found.value) is False
