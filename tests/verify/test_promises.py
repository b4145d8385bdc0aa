"""No analyst exceeds what any measure and rule of the package promises."""

import random

import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
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
    names = " ".join(promise.name for promise in PROMISES)
    for family in (*(known.family for known in KNOWN), *OURS):
        assert family in names
    for rule in ("basic", "advanced", "zcdp", "renyi", "either", "best_rule", "from_rule"):
        assert rule in names
        assert rule in oc.__all__


def test_a_promise_that_is_too_small_is_noticed():
    """The same analysts, against a rule that forgets every other launch."""
    from opendp_concurrent.accounts.rule import Within

    class Forgetful:
        def __init__(self, d_out):
            self._rule = Within(d_out)

        def admits(self, state, d_mid):
            accumulator, launched = state
            after = accumulator if launched % 2 else self._rule.admits(accumulator, d_mid)
            return after if isinstance(after, Exception) else (after, launched + 1)

    menu = verify.response_menu(0.5)
    worst = verify.worst_analyst(
        menu, (oc.basic().start((0.0, 0.0)), 0), Forgetful((1.0, 0.0)), 1.0
    )
    assert worst.delta > 0.09
