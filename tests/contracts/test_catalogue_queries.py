"""Queries that have a name, through each wrapper around each mechanism that has any."""

import pytest
from opendp.mod import OdometerQueryable, Queryable

from opendp_concurrent.queryables.mechanism import ConcurrentMeasurement, interactive

from .catalogue import REFUSALS, SUBJECTS, WRAPPERS, Recipe, odometer_for
from .laws import (
    a_query_with_a_name_is_its_message,
    against,
    has_map,
    is_measurement,
    names_expected,
    opened,
    same_loss,
)

NAMED = [one for one in SUBJECTS if one.queries]


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda one: one.name)
def test_named_queries(wrapper):
    for subject in NAMED[WRAPPERS.index(wrapper) % 3 :: 3]:
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


# --- what is said of a launch before it happens is what happens ----------------------------------


NAMES = ("composition pure", "above threshold", "native laplace")
INNER = [one for one in SUBJECTS if one.name in NAMES]


def described_against(recipe):
    """Where the description differs from what is launched."""
    cases = recipe.cases()
    if cases is None or not is_measurement(cases[-1]) or not has_map(cases[-1].what, 1):
        return
    whole = cases[-1]
    try:
        root = odometer_for(whole)(whole.data)
        found = root.describe(whole.what, 1)
    except REFUSALS:
        return
    if not same_loss(whole.measure, found.loss, whole.what.map(1)):
        yield f"{recipe}: described at {found.loss}, the map is {whole.what.map(1)}"
    if found.interactive is not interactive(whole.what):
        yield f"{recipe}: described as {found.interactive}"
    if repr(root.privacy_loss(1)) != repr(odometer_for(whole)(whole.data).privacy_loss(1)):
        yield f"{recipe}: charged for a description"
    if opened(whole) is None:
        return
    try:
        answer = root(whole.what)
    except REFUSALS:
        return
    queryable = isinstance(answer, Queryable | OdometerQueryable)
    if found.interactive not in (None, queryable):
        yield f"{recipe}: described as {found.interactive}, returned {type(answer).__name__}"


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
def test_subjects(subject):
    assert list(described_against(Recipe((), subject))) == []


@pytest.mark.parametrize("subject", INNER, ids=lambda one: one.name)
def test_pairs(subject):
    assert [
        one for wrapper in WRAPPERS for one in described_against(Recipe((wrapper,), subject))
    ] == []


def test_it_is_known_for_what_this_package_makes():
    unknown = set()
    for subject in SUBJECTS:
        what = subject.build().what
        if isinstance(what, ConcurrentMeasurement):
            unknown |= {subject.name} if interactive(what) is None else set()
    assert unknown == set()
