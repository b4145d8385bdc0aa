"""A mapping of which a copy is cheap."""

from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.ledger.records.shelves import Shelves

CHANGES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 600), st.integers()), max_size=60)


@given(CHANGES)
def test_copies_are_dictionaries_that_do_not_change_each_other(changes):
    mappings, models = [Shelves()], [{}]
    for which, key, value in changes:
        which %= len(mappings)
        if value % 3 == 0:
            mappings.append(Shelves(mappings[which]))
            models.append(dict(models[which]))
        mappings[which].put(key, value)
        models[which][key] = value
    for mapping, model in zip(mappings, models, strict=True):
        assert len(mapping) == len(model)
        assert all(mapping.get(key) == model.get(key) for key in range(601))


def test_a_change_to_a_copy_copies_one_shelf():
    before = Shelves()
    for key in range(10**4):
        before.put(key, key)
    after = Shelves(before)
    after.put(7, "seven")
    after.put(7 + 256, "another on this shelf")
    shared = [one is other for one, other in zip(before._shelves, after._shelves, strict=True)]
    assert shared.count(False) == 1
    assert (before.get(7), after.get(7)) == (7, "seven")


def test_a_value_is_added_once_and_to_one_copy():
    one = Shelves()
    assert one.add("a", 1)
    two = Shelves(one)
    assert not two.add("a", 2)
    assert two.add("b", 3)
    assert (one.get("a"), two.get("a"), one.get("b"), len(one), len(two)) == (1, 1, None, 1, 2)
