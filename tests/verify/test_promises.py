"""No analyst exceeds what any measure and rule of the package promises."""

import random

import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.accounts.rule import Within
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures import KNOWN, OURS

PROMISES = verify.promises()
PAIRS = 40  # menus and budgets for each promise


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
def test_no_analyst_exceeds_a_promise(promise):
    generator = random.Random(promise.name)  # seeded; no privacy hangs on it
    outcomes = []
    for _ in range(PAIRS):
        unit = generator.choice([0.2, 0.25, 0.5])
        epsilons = [unit * multiple for multiple in generator.sample([1, 2, 3, 4, 5], 2)]
        outcomes += promise.check(epsilons, generator.choice([0.8, 1.0, 1.5, 2.0, 3.0]))
    assert len(outcomes) >= PAIRS
    assert max(outcome.excess for outcome in outcomes) <= 1e-12


def test_every_measure_and_rule_is_held_against_analysts():
    assert len(PROMISES) * PAIRS >= 500
    names = [promise.name.split(", ") for promise in PROMISES]
    families = {name[0] for name in names}
    assert families == {*(known.family for known in KNOWN), *OURS}
    for rule in (
        "basic",
        "advanced",
        "zcdp",
        "renyi",
        "either",
        "best_rule",
        "from_rule",
        "ladder",
        "residue",
    ):
        assert any(rule in name for name in names)
        assert rule in oc.__all__


@pytest.mark.parametrize("index", range(len(PROMISES)), ids=lambda one: PROMISES[one].name)
def test_a_rule_that_admits_too_much_is_noticed(index):
    """The same analysts, against the same rules with more budget than is promised."""
    loose = 2.5 if PROMISES[index].name.endswith("advanced") else 1.6  # it has most to spare
    promise = verify.promises(loosened=loose)[index]
    menus = [([0.25, 0.5], 1.0), ([0.5, 1.0], 1.5), ([0.3, 0.6], 1.5), ([0.2, 1.0], 2.5)]
    outcomes = [one for epsilons, budget in menus for one in promise.check(epsilons, budget)]
    assert max(outcome.excess for outcome in outcomes) > 1e-3


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
def test_no_analyst_of_many_small_launches_exceeds_a_promise(promise):
    assert max(outcome.excess for outcome in promise.check([0.1, 0.3], 1.2)) <= 1e-12


def test_a_launch_that_costs_nothing_and_tells_something_raises():
    class Never:
        def admits(self, state, d_mid):
            return state

    start = oc.basic().start((0.0, 0.0))
    with pytest.raises(InvalidValueError, match="admitted at no cost, so without an end"):
        verify.worst_analyst(verify.response_menu(1.0), start, Never(), 0.5)
    with pytest.raises(InvalidValueError, match="admitted at no cost, so without an end"):
        verify.worst_renyi(verify.response_menu(1.0), start, Never(), 2.0)
    leak = verify.Item("leak", (0.0, 0.0), verify.FiniteMechanism((1, 0), (0, 1)))
    with pytest.raises(InvalidValueError, match="'leak' is admitted at no cost"):
        verify.worst_analyst([leak], start, Within((1.0, 0.0)), 0.5)
    idle = verify.Item("idle", (0.0, 0.0), verify.FiniteMechanism((0.5, 0.5), (0.5, 0.5)))
    menu = [idle, *verify.response_menu(1.0)]
    found = verify.worst_analyst(menu, start, Within((1.0, 0.0)), 0.5)
    assert found.delta == pytest.approx(verify.randomized_response(1.0).delta(0.5))
