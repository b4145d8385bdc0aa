"""The laws of the catalogue, on wrappers around wrappers around each kind of subject.

There are too many for all of them, so they are drawn, the same ones each time.
"""

import random

import pytest

from .catalogue import WRAPPERS, Recipe
from .laws import PAIR_LAWS, against
from .test_catalogue_pairs import FEW

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
