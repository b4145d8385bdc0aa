"""No argument of a public callable crashes, hangs, is charged for, or is taken for what it is not.

A short sample here; every hostile value for every argument with ``-m slow``.
"""

import inspect
import json
import os
import sys
from collections import defaultdict
from copy import copy
from pathlib import Path

import pytest

from opendp_concurrent._checks import Guard, kind_of, refused_by
from opendp_concurrent.errors import ConcurrentError
from opendp_concurrent.serving import AnswerStore

sys.path.insert(0, str(Path(__file__).parent))

import arguments
import fuzz
import hostile  # noqa: F401 (read by the others when they need it)

sys.path.pop(0)
AGREED = Path(__file__).parent / "guards.json"


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
        for one in handle:
            if isinstance(one, AnswerStore):
                one.close()


GUARDED = {
    name: found
    for name in sorted(TRIED)
    if (found := arguments.guards_at(name)) and "," not in name
}


def kinds():
    return {
        name: {argument: kind_of(one) for argument, one in found.items()}
        for name, found in GUARDED.items()
    }


def test_what_is_checked_of_each_argument_is_what_was_agreed():
    """Run this file to write them anew; a reviewer reads which became looser."""
    assert kinds() == json.loads(AGREED.read_text())


@pytest.mark.parametrize("name", GUARDED)
def test_each_call_is_refused_what_its_guard_says(name):
    case = arguments.CASES[name]
    handle = () if case.fresh is None else (case.fresh(),)
    valid = {argument: value for argument, (value, _) in case.arguments.items()}
    for argument, guard in GUARDED[name].items():
        for value in refused_by(guard):
            if argument in valid and not (value is None and kind_of(guard).startswith("None")):
                with pytest.raises(ConcurrentError, match=argument):
                    case.call(*handle, **valid | {argument: copy(value)})


BASES = {
    "bool": {"flag"},
    "int": {"count", "integer", "whole"},
    "str": {"text", "nothing hostile"},
    "float": {"finite", "non_negative", "order", "positive", "probability", "real"},
}


@pytest.mark.parametrize("name", GUARDED)
def test_annotations_and_guards_agree(name):
    for argument, guard in GUARDED[name].items():
        given = inspect.signature(arguments.public(name)).parameters[argument].annotation
        kinds = BASES.get(given.removesuffix(" | None"))
        kind = kind_of(guard).removeprefix("None or ")
        assert kinds is None or not isinstance(guard, Guard) or kind in kinds, argument
        assert given.endswith("| None") == kind_of(guard).startswith("None"), argument


ASKED = {(name, one) for name, found in GUARDED.items() for one in found if refused_by(found[one])}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hostile_values(seed):
    assert fuzz.run(fuzz.plan_sample(seed)) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_hostile_value_for_every_argument(part):
    assert fuzz.run(fuzz.plan_all()[part::8]) == []


FAULTS = {
    "crash": "ended: SIGABRT",
    "hang": "more than",
    "named": None,
    "raw": "raw TypeError",
    "nameless": "does not name x",
    "accepted": "accepted",
    "exit": "let out SystemExit",
    "charged": "charged: 0 became 1",
    "memory": "MemoryError",
}


def test_faults_are_noticed_and_hostile_values_are_none(monkeypatch):
    """After each fault the next call is made, up to the values of which no guard says anything."""
    faults = [(name, "x", "nan") for name in FAULTS if name not in fuzz.ENDS]
    found = fuzz.run([*faults, *fuzz.plan_sample(1, ASKED)])  # one process: it imports everything
    monkeypatch.setitem(os.environ, "FUZZ_SECONDS", "1")
    found += fuzz.run([(name, "x", "nan") for name in fuzz.ENDS])
    noticed = {name: what for name, _, _, what in found if name in FAULTS}
    assert [one for one in found if one[0] not in FAULTS] == []
    assert noticed.keys() == {name for name, what in FAULTS.items() if what}
    assert all(FAULTS[name] in what for name, what in noticed.items())


if __name__ == "__main__":
    AGREED.write_text(json.dumps(kinds(), indent=1) + "\n")
