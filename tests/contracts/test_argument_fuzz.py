"""No argument of a public callable crashes, hangs, is charged for, or is taken for what it is not.

A short sample here; every hostile value for every argument with ``-m slow``.
"""

import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import arguments
import fuzz
import hostile  # noqa: F401 (read by the others when they need it)

sys.path.pop(0)


def test_no_public_callable_escapes():
    known = set(arguments.CASES) | arguments.NO_ARGUMENTS
    assert arguments.public_callables() - known == set()


TRIED = arguments.public_callables() - arguments.NO_ARGUMENTS


def test_no_argument_escapes():
    known = defaultdict(set)
    for title, case in arguments.CASES.items():
        known[title.partition(", ")[0]].update(case.arguments)
    missing = {name: (arguments.arguments_of(name) or set()) - known[name] for name in TRIED}
    assert {name: those for name, those in missing.items() if those} == {}


def test_the_valid_calls_are_valid():
    for case in arguments.CASES.values():
        given = {name: valid for name, (valid, _) in case.arguments.items()}
        handle = () if case.fresh is None else (case.fresh(),)
        case.call(*handle, **given)


def told(plan):
    return "\n".join(" | ".join(one) for one in fuzz.run(plan))


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_hostile_values(seed):
    assert told(fuzz.plan_sample(seed, 3)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_hostile_value_for_every_argument(part):
    assert told(fuzz.plan_all()[part::8]) == ""


FAULTS = {
    "named": None,
    "raw": "raw TypeError",
    "nameless": "does not name x",
    "accepted": "accepted",
    "exit": "let out SystemExit",
    "charged": "charged: 0 became 1",
    "memory": "MemoryError",
    "crash": "ended: SIGABRT",
    "hang": "more than",
    "raw, again": "raw TypeError",
}


def test_each_fault_is_noticed_and_the_next_call_made(monkeypatch):
    monkeypatch.setitem(os.environ, "FUZZ_SECONDS", "4")
    found = {name: what for name, _, _, what in fuzz.run([(name, "x", "nan") for name in FAULTS])}
    assert found.keys() == {name for name, what in FAULTS.items() if what}
    assert all(FAULTS[name] in what for name, what in found.items())
