"""The laws of the catalogue, on each wrapper around each subject."""

import random

import pytest

from .catalogue import SUBJECTS, WRAPPERS, Recipe
from .laws import DETERMINISTIC, PAIR_LAWS, against, commutes, the_order_of_nesting_does_not_matter

# one of each kind, and both ways to compose; the others are slow
FEW = tuple(
    next(one for one in SUBJECTS if one.name == name)
    for name in (
        "release pure",
        "probe pure",
        "probe approximate zCDP",
        "composition pure",
        "composition approximate zCDP",
        "native queryable pure",
        "above threshold",
        "odometer",
    )
)


def found(law, wrappers, subjects):
    return [one for subject in subjects for one in against(law, Recipe(wrappers, subject))]


@pytest.mark.parametrize("law", PAIR_LAWS, ids=lambda one: one.__name__)
def test_subjects(law):
    assert found(law, (), SUBJECTS) == []


@pytest.mark.parametrize("law", PAIR_LAWS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda one: one.name)
def test_pairs(law, wrapper):
    """Each wrapper meets each subject, and each law each of both, but not all three together."""
    first = (PAIR_LAWS.index(law) + WRAPPERS.index(wrapper)) % 4
    assert found(law, (wrapper,), FEW[first::4]) == []


@pytest.mark.slow
@pytest.mark.parametrize("law", PAIR_LAWS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda one: one.name)
def test_all_pairs(law, wrapper):
    assert found(law, (wrapper,), SUBJECTS) == []


# --- the laws of the catalogue, on wrappers around wrappers around each kind of subject ----------


DRAWN = {2: 150, 3: 250}


def drawn(subject, depth):
    """Recipes of so many wrappers that can be built."""
    generator = random.Random(f"{subject.name} {depth}")
    recipes = {}
    for _ in range(20 * DRAWN[depth]):
        if len(recipes) == DRAWN[depth]:
            break
        wrappers = tuple(generator.choices(WRAPPERS, k=depth))
        recipe = Recipe(wrappers, subject)
        if str(recipe) not in recipes and recipe.cases() is not None:
            recipes[str(recipe)] = recipe
    return recipes.values()


@pytest.mark.slow
@pytest.mark.parametrize("depth", DRAWN)
@pytest.mark.parametrize("subject", FEW, ids=lambda one: one.name)
def test_wrappers_of_wrappers(subject, depth):
    recipes = drawn(subject, depth)
    assert len(recipes) > 20
    assert [one for recipe in recipes for law in PAIR_LAWS for one in against(law, recipe)] == []


# --- two orders of nesting give the same answers and the same loss, where theory says so ---------


NESTED = [one for one in WRAPPERS if commutes(one)]
INNER = [one for one in SUBJECTS if one.name in DETERMINISTIC]
(ON_STREAM,) = (one for one in INNER if one.name == "probe pure")
ON_ROWS = [one for one in INNER if one.name.endswith(" pure") and one is not ON_STREAM]


def found_of_two(wrapper, subjects_of):
    return [
        one
        for other in NESTED
        for subject in subjects_of(other)
        for one in against(the_order_of_nesting_does_not_matter, Recipe((wrapper, other), subject))
    ]


@pytest.mark.parametrize("wrapper", NESTED, ids=lambda one: one.name)
def test_the_order_of_two_does_not_matter(wrapper):
    """Around what is on a stream, and one of the others in turn."""

    def subjects(other):
        turn = NESTED.index(wrapper) + NESTED.index(other)
        return ON_STREAM, ON_ROWS[turn % len(ON_ROWS)]

    assert found_of_two(wrapper, subjects) == []


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", NESTED, ids=lambda one: one.name)
def test_the_order_of_two_does_not_matter_around_any(wrapper):
    assert found_of_two(wrapper, lambda other: INNER) == []
