"""A ledger has one entry for what was launched, at what its map says, and none for a refusal."""

from contextlib import suppress

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.ledger import create_ledger

from .catalogue import REFUSALS, SUBJECTS, WRAPPERS, Kind, Recipe, odometer_for
from .laws import bad_queries, has_map, is_measurement, same_loss

NAMES = ("release pure", "probe pure", "composition pure", "native queryable pure")
INNER = [one for one in SUBJECTS if one.name in NAMES]
BUDGET = 1000.0


def against(recipe, path):
    """Where the ledger differs from what was launched."""
    cases = recipe.cases()
    if cases is None or not is_measurement(cases[-1]) or not has_map(cases[-1].what, 1):
        return
    whole = cases[-1]
    if whole.measure != dp.max_divergence():
        return
    with create_ledger(path, dataset=str(recipe)) as ledger:
        bound = oc.make_concurrent_filter(odometer_for(whole), 1, BUDGET, ledger=ledger)
        root = bound(whole.data)
        for name, query in bad_queries(whole):
            with suppress(*REFUSALS):
                root(query)
                yield f"{recipe}: {name} is not refused"
        if ledger.entries():
            yield f"{recipe}: a bad query is in the ledger"
        try:
            child, entries = root(whole.what), 1
        except REFUSALS:
            entries = 0
        else:
            with suppress(*REFUSALS):
                whole.talk(child)
        losses = [one.d_mid for one in ledger.entries()]
        if len(losses) != entries:
            yield f"{recipe}: {losses} in the ledger for {entries} launches"
        if losses and not same_loss(whole.measure, losses[0], whole.what.map(1)):
            yield f"{recipe}: {losses[0]} in the ledger, the map is {whole.what.map(1)}"


@pytest.mark.parametrize("subject", INNER, ids=lambda one: one.name)
def test_a_ledger_has_what_was_launched(subject, tmp_path):
    recipes = [Recipe((), subject), *(Recipe((one,), subject) for one in WRAPPERS)]
    found = []
    for index, recipe in enumerate(recipes):
        found += against(recipe, tmp_path / f"{index}.db")
    assert found == []


def test_kinds_are_covered():
    kinds = {one.kind for one in INNER}
    assert kinds == set(Kind) - {Kind.ODOMETER}
