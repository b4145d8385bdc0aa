"""Saved state of everything that can be resumed: an edited text is refused, and nothing else.

* A text in which one character was changed, or one value replaced, is refused by its digest.
* A text whose digest was computed again, or that an earlier version wrote without one, is read by
  types: what is impossible is refused, and what is resumed raises errors of this package only.
"""

import json
from contextlib import suppress
from hashlib import sha256

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError, InvalidValueError

from .catalogue import REFUSALS, SUBJECTS, WRAPPERS, Kind, Recipe, Role

dp.enable_features("contrib", "honest-but-curious")
VALUES = (
    *(-1, 2**80, -(10**6), 0, 1, 7, 1e300, 0.5, True, None, "x", "1", [], [1], {}, {"a": 1}),
    *(2**62, 2**63, -(2**63) - 1, 2**64, 10**400, [1, 2], [0] * 7, [[1]], [2**63], "0"),
)
EDITS = ("0", "1", "9", "-", ".", " ", '"', "e", "[", "\n")


def resumable():
    """Recipes whose measurement can be resumed, by their names."""
    found = {}
    for subject in SUBJECTS:
        if subject.kind is not Kind.CONTINUAL:
            continue
        inner = subject.build()  # once: each process of the tests looks for them
        for wrappers in ((), *((one,) for one in WRAPPERS if one.name != "resumable")):
            recipe = Recipe(wrappers, subject)
            cases = recipe.around(inner)
            if cases and not cases[-1].top and getattr(cases[-1].what, "resumable", False):
                found[str(recipe)] = recipe
    return found


RECIPES = resumable()
ALONE = [name for name, recipe in RECIPES.items() if not recipe.wrappers]
ONE_EACH = {recipe.wrappers[0].name: name for name, recipe in RECIPES.items() if recipe.wrappers}
COUNTERS = [one.name for one in SUBJECTS if "read" in one.queries]
CASTS = {one.name for one in WRAPPERS if one.role is Role.CAST}


def alike(name):
    """Whether the same code writes and reads it as another one: a probe, whose measure differs."""
    wrappers = {one.name for one in RECIPES[name].wrappers}
    return (name.startswith("probe") and name != "probe pure") or wrappers & CASTS - {"cast away"}


READ = [  # each mechanism, and each wrapper around one of them
    pytest.param(name, marks=pytest.mark.slow) if alike(name) else name
    for name in (*ALONE, *ONE_EACH.values())
]


def launch(recipe, saved=None):
    """A new copy of the mechanism, and its checkpoint; None if it cannot be launched."""
    checkpoint = oc.c.Checkpoint(saved)
    case = recipe.cases()[-1]
    try:
        return oc.c.make_resumable(case.what, checkpoint)(case.data), checkpoint, case
    except REFUSALS:
        if saved is not None:
            raise
        return None


def save(recipe):
    """The text of a mechanism after some steps; None if it cannot be launched by itself."""
    launched = launch(recipe)
    if launched is None:
        return None
    handle, checkpoint, case = launched
    talk = case.talk(handle)
    for item in (1, 0, 1, 1, 0, 1):  # in the middle of an epoch
        talk.update(item)
    return checkpoint.save()


def digested(record):
    """The text that somebody writes who knows how."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))[1:-1]
    return f'{{"digest":"{sha256(text.encode()).hexdigest()}",{text}}}'


def leaves(value, path=()):
    """The places of all values that have no parts, and of all that have none left."""
    if isinstance(value, (dict, list)) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in list(pairs):
            yield from leaves(part, (*path, key))
    else:
        yield path


def replaced(record, path, value):
    copy = json.loads(json.dumps(record))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def at(record, path):
    for key in path:
        record = record[key]
    return record


def test_there_is_something_to_save():
    assert len(ALONE) >= 10
    assert len(RECIPES) > 2 * len(ALONE)


@pytest.mark.parametrize("name", READ)
def test_every_edit_of_one_character_is_refused(name):
    saved = save(RECIPES[name])
    if saved is None:
        pytest.skip("it is launched on something")
    accepted = []
    for place in range(len(saved) + 1):
        before, after = saved[:place], saved[place:]
        some = EDITS[place % 3 :: 3]
        for text in (
            before + after[1:],
            *(before + one + after for one in some),
            *(before + one + after[1:] for one in some),
        ):
            if text == saved:
                continue
            try:
                oc.c.Checkpoint(text)
            except InvalidValueError:
                continue
            accepted.append(text)
    assert accepted == []
    for length in range(len(saved)):
        with pytest.raises(InvalidValueError):
            oc.c.Checkpoint(saved[:length])


def edited(record, every=1, without=None):
    """Each leaf replaced by each value: the record, and whether it has impossible steps.

    :param every: how many leaves share the values, each of which another one gets
    :param without: the part of the record that keeps its leaves
    """
    for number, path in enumerate(path for path in leaves(record) if without not in path):
        was = at(record, path)
        counts = path[-1:] == ("steps",) and type(was) is int
        some = VALUES[number % every :: every]
        for value in (*some, *((was + 1, was - 1) if type(was) is int else ())):
            if json.dumps(value) != json.dumps(was):
                yield replaced(record, path, value), counts and value in (-1, 2**80, -(10**6))


@pytest.mark.parametrize("name", READ)
def test_every_replaced_value_is_refused(name):
    saved = save(RECIPES[name])
    if saved is None:
        pytest.skip("it is launched on something")
    whole = json.loads(saved)
    record = {key: value for key, value in whole.items() if key != "digest"}
    assert digested(record) == saved
    for one, _ in edited(record, every=3):
        changed = {**one, "digest": whole["digest"]}
        for text in (
            json.dumps(changed),
            json.dumps(changed, sort_keys=True, separators=(",", ":")),
            saved[:76] + digested(one)[76:],  # in its place, behind the digest
        ):
            with pytest.raises(InvalidValueError):
                oc.c.Checkpoint(text)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READ)
def test_every_replaced_value_with_its_own_digest_or_none_is_read_by_types(name, every):
    """Of a counter without what is in its machine: ``counters/test_prefix.py`` replaces that."""
    recipe = RECIPES[name]
    saved = save(recipe)
    if saved is None:
        pytest.skip("it is launched on something")
    record = {key: value for key, value in json.loads(saved).items() if key != "digest"}
    without = "machine" if recipe.subject.name in COUNTERS and every > 1 else None
    for index, (one, impossible) in enumerate(edited(record, every, without)):
        text = digested(one) if index % 2 else json.dumps({**one, "version": 2})
        lives_by_types(recipe, text, impossible)


def lives_by_types(recipe, text, impossible=False):
    """It is refused, or what is resumed raises errors of this package only, and ends."""
    try:
        handle, checkpoint, case = launch(recipe, fresh(text))
    except InvalidValueError:
        return
    assert not impossible
    talk = case.talk(handle)
    with suppress(ConcurrentError):
        for _ in range(3):
            talk.answer()
            talk.update(1)
        talk.answer()
        checkpoint.save()


_NUMBERS = iter(range(10**9))


def fresh(text):
    """The same state of another mechanism: one state is resumed once in a process."""
    try:
        record = json.loads(text)
    except ValueError:
        return text
    if not isinstance(record, dict) or not isinstance(record.get("lineage"), str):
        return text
    if len(record["lineage"]) != 32:
        return text
    record["lineage"] = f"{next(_NUMBERS):032x}"
    return (
        digested({k: v for k, v in record.items() if k != "digest"})
        if "digest" in record
        else (json.dumps(record))
    )


@pytest.mark.parametrize("name", RECIPES)
def test_what_an_earlier_version_wrote_is_resumed(name):
    """Without a digest, and otherwise the same."""
    recipe = RECIPES[name]
    saved = save(recipe)
    if saved is None:
        pytest.skip("it is launched on something")
    record = {key: value for key, value in json.loads(saved).items() if key != "digest"}
    _, checkpoint, _ = launch(recipe, fresh(json.dumps({**record, "version": 2})))
    again = json.loads(checkpoint.save())
    assert (again["parts"], again["version"]) == (record["parts"], 3)
