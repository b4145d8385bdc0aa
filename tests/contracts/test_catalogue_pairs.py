"""The laws of the catalogue, on each wrapper around each subject."""

import pytest

from .catalogue import SUBJECTS, WRAPPERS, Recipe
from .laws import PAIR_LAWS, against

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
