"""A limit on contributions holds across a save and a resume, in any nesting; items are not lost."""

from dataclasses import replace
from itertools import combinations, permutations

import pytest

import opendp_concurrent as oc

from .catalogue import REFUSALS, SUBJECTS, WRAPPERS, Recipe, Wrapper, after, users

LIMIT = 2
PROBE = next(one for one in SUBJECTS if one.name == "probe pure")
LEFT_OUT = ("resumable", "bounded contributions", "cast away", "cast at delta", "profile to fDP")
OTHERS = tuple(
    one
    for one in WRAPPERS
    if one.name not in LEFT_OUT and "DP_to" not in one.name and "OpenDP" not in one.name
)


def resumable(checkpoint):
    return Wrapper(
        "resumable",
        None,
        (),
        lambda case: replace(case, what=oc.c.make_resumable(case.what, checkpoint)),
    )


def limited(case):
    """At most two items of each user."""
    bounded = oc.t.make_bounded_contributions(*users(), case.space[0], LIMIT)
    return after(case, bounded >> case.what, [], lambda item: ("ann", item))


CONTRIBUTIONS = Wrapper("limited", None, (), limited)
RESUMABLE = "resumable"


def launched(layers, saved):
    """A life of the mechanism, or None if something on the way refuses."""
    checkpoint = oc.c.Checkpoint(saved)
    wrappers = [resumable(checkpoint) if one is RESUMABLE else one for one in layers]
    cases = Recipe(tuple(wrappers), PROBE).cases()
    if cases is None:
        return None
    try:
        return cases[0].seen, cases[-1].open(), checkpoint
    except REFUSALS:
        return None


def two_lives(layers):
    """The items of the innermost probe after a save and a resume; None if that is refused."""
    life = launched(layers, None)
    if life is None:
        return None
    seen, talk, checkpoint = life
    took = [talk.update(7) for _ in range(LIMIT)]
    try:
        saved = checkpoint.save()
    except REFUSALS:
        return None
    if None in took:
        return None
    life = launched(layers, saved)
    if life is None:
        return None
    seen, talk, _ = life
    took = [talk.update(8) for _ in range(3)]
    return None if None in took else seen.probes[-1].items


def against(layers):
    items = two_lives(layers)
    if items is None:
        return
    name = " ( ".join(one if one is RESUMABLE else one.name for one in layers)
    contributed = [one for one in items if one is not None]
    if CONTRIBUTIONS in layers and len(contributed) > LIMIT:
        yield f"{name}: a user with limit {LIMIT} contributed {contributed}"
    if contributed[:LIMIT] != [7] * LIMIT:
        yield f"{name}: after the resume the items are {items}"


def found(many):
    return [one for layers in many for one in against(layers)]


def test_a_mechanism_that_is_resumed_goes_on():
    """With a transformation that remembers nothing, too, before it or inside."""
    went_on = [7, 7, 8, 8, 8]
    assert two_lives((RESUMABLE,)) == went_on
    clamp = next(one for one in WRAPPERS if one.name == "stream clamp")
    assert went_on in (two_lives((clamp, RESUMABLE)), two_lives((RESUMABLE, clamp)))


@pytest.mark.parametrize("other", OTHERS, ids=lambda one: one.name)
def test_one_more_in_any_place(other):
    assert found(permutations((CONTRIBUTIONS, RESUMABLE, other))) == []


@pytest.mark.parametrize("other", OTHERS, ids=lambda one: one.name)
def test_items_are_not_lost_in_any_place(other):
    assert found(permutations((RESUMABLE, other))) == []


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS, ids=lambda one: one.name)
def test_two_more_in_any_place(other):
    pairs = [pair for pair in combinations(OTHERS, 2) if pair[0] is other]
    assert [
        one for pair in pairs for one in found(permutations((CONTRIBUTIONS, RESUMABLE, *pair)))
    ] == []


def test_a_limit_holds_without_a_resume():
    """The probes tell what they should."""
    cases = Recipe((CONTRIBUTIONS,), PROBE).cases()
    talk = cases[-1].open()
    assert [talk.update(7) for _ in range(4)] == [0] * 4
    assert cases[0].seen.probes[0].items == [7, 7, None, None]
