"""What is said of a launch before it happens is what happens."""

import pytest
from opendp.mod import OdometerQueryable, Queryable

from opendp_concurrent.queryables.mechanism import ConcurrentMeasurement, interactive

from .catalogue import REFUSALS, SUBJECTS, WRAPPERS, Recipe, odometer_for
from .laws import has_map, is_measurement, opened, same_loss

NAMES = ("composition pure", "above threshold", "native laplace")
INNER = [one for one in SUBJECTS if one.name in NAMES]


def against(recipe):
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
    assert list(against(Recipe((), subject))) == []


@pytest.mark.parametrize("subject", INNER, ids=lambda one: one.name)
def test_pairs(subject):
    assert [one for wrapper in WRAPPERS for one in against(Recipe((wrapper,), subject))] == []


def test_it_is_known_for_what_this_package_makes():
    unknown = set()
    for subject in SUBJECTS:
        what = subject.build().what
        if isinstance(what, ConcurrentMeasurement):
            unknown |= {subject.name} if interactive(what) is None else set()
    assert unknown == set()
