"""No public name is missing from the catalogue, and nothing in it is refused by everything."""

import pytest
from opendp.mod import Odometer

from .catalogue import (
    DOORS,
    PLAIN,
    PUBLIC,
    REFUSALS,
    SUBJECTS,
    TAKES_ODOMETERS,
    WRAPPERS,
    Kind,
    Recipe,
    names_covered,
)

TAGS = {"ANSWER", "QUERY"}


def test_each_public_name_is_in_the_catalogue_once():
    assert sorted({*names_covered(), *PLAIN}) == sorted({*PUBLIC, *TAGS})
    assert not names_covered() & set(PLAIN)


def test_what_makes_or_chains_is_a_subject_or_a_wrapper():
    """A name is not explained away: only what builds no mechanism is plain."""
    makers = {name for name in PUBLIC if name.startswith(("make_", "then_"))}
    assert makers <= names_covered()
    assert all(kind.isalpha() for kind in PLAIN.values())


def test_one_public_name_is_one_thing():
    for group in DOORS:
        for name in group.__all__:
            if name in PUBLIC:
                assert getattr(group, name) is PUBLIC[name], name


def test_names_in_the_catalogue_are_unique():
    for things in (SUBJECTS, WRAPPERS):
        names = [one.name for one in things]
        assert len(set(names)) == len(names)
    assert {one.name for one in WRAPPERS} >= TAKES_ODOMETERS


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
def test_a_subject_answers_its_own_query(subject):
    case = subject.build()
    talk = case.open()
    if case.continual:
        assert talk.update(3) == 0
    talk.answer()
    assert isinstance(case.what, Odometer) == (case.kind is Kind.ODOMETER)


def opens(recipe):
    cases = recipe.cases()
    try:
        return cases is not None and cases[-1].open() is not None
    except REFUSALS:
        return False


def test_each_wrapper_takes_some_subjects():
    """Else the laws would say nothing of it."""
    taken = {one.name: any(opens(Recipe((one,), inner)) for inner in SUBJECTS) for one in WRAPPERS}
    assert all(taken.values()), taken
