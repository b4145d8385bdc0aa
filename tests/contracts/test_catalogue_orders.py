"""Two orders of nesting give the same answers and the same loss, where theory says so."""

import pytest

from .catalogue import SUBJECTS, WRAPPERS, Recipe
from .laws import DETERMINISTIC, against, commutes, the_order_of_nesting_does_not_matter

NESTED = [one for one in WRAPPERS if commutes(one)]
INNER = [one for one in SUBJECTS if one.name in DETERMINISTIC]
FEW = [one for one in INNER if one.name.endswith(" pure")]


def found(wrapper, subjects):
    return [
        one
        for other in NESTED
        for subject in subjects
        for one in against(the_order_of_nesting_does_not_matter, Recipe((wrapper, other), subject))
    ]


@pytest.mark.parametrize("wrapper", NESTED, ids=lambda one: one.name)
def test_the_order_of_two_does_not_matter(wrapper):
    assert found(wrapper, FEW) == []


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", NESTED, ids=lambda one: one.name)
def test_the_order_of_two_does_not_matter_under_other_measures(wrapper):
    assert found(wrapper, [one for one in INNER if one not in FEW]) == []
