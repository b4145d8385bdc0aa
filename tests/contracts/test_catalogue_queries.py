"""Queries that have a name, through each wrapper around each mechanism that has any."""

import pytest

from .catalogue import SUBJECTS, WRAPPERS, Recipe
from .laws import a_query_with_a_name_is_its_message, against, names_expected, opened

NAMED = [one for one in SUBJECTS if one.queries]


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda one: one.name)
def test_named_queries(wrapper):
    for subject in NAMED[WRAPPERS.index(wrapper) % 2 :: 2]:
        assert against(a_query_with_a_name_is_its_message, Recipe((wrapper,), subject)) == []


def test_wrappers_that_pass_messages_on_pass_on_the_names():
    """The law is no empty one: so many handles must have a name."""
    passed, none = set(), set()
    for wrapper in WRAPPERS:
        for subject in NAMED:
            recipe = Recipe((wrapper,), subject)
            cases = recipe.cases()
            if cases is not None and opened(cases[-1]) is not None:
                (passed if names_expected(recipe, cases) else none).add(wrapper.name)
                break
    assert len(passed) > 30
    assert none == {one.name for one in WRAPPERS if one.protocol}
