"""What users may import: documented, in pairs of make and then, and in the reference once."""

import re
from importlib.metadata import version
from inspect import getdoc, isclass, isfunction, ismodule, signature
from pathlib import Path

import pytest
from opendp.context import constructors

import opendp_concurrent as oc

from . import rst
from .over import over

ROOT = Path(__file__).parent.parent
EXTRAS = [
    f"opendp_concurrent.{name}"
    for name in ("extend", "handles", "ledger", "plot", "serving", "verify")
]
GROUPS = [
    "opendp_concurrent.c",
    "opendp_concurrent.m",
    "opendp_concurrent.t",
    "opendp_concurrent.accumulators",
    "opendp_concurrent.fdp",
    "opendp_concurrent.measures",
    "opendp_concurrent.mechanisms",
    "opendp_concurrent.streams",
]
ROOMS = [name.partition(".")[2] for name in (*GROUPS, *EXTRAS, "opendp_concurrent.tables")]


def public(name):
    return oc if name == "opendp_concurrent" else getattr(oc, name.partition(".")[2])


DOCUMENTING = (
    *("module", "currentmodule", "automodule"),
    *("autoclass", "autodata", "autoexception", "autofunction"),
)
TAGS = ("ANSWER", "QUERY")
PUBLIC = [
    (module, name)
    for module in ("opendp_concurrent", *GROUPS, *EXTRAS)
    for name in public(module).__all__
    if not ismodule(getattr(public(module), name)) and name not in TAGS
]


@over(PUBLIC)
def test_a_public_name_has_an_example(module, name):
    found = getattr(public(module), name)
    if module in EXTRAS and isclass(found):
        return  # what their functions return, shown there
    assert ":example:" in getdoc(found)


def begins_with_a_space(constructor):
    return list(signature(constructor).parameters)[:2] == ["input_domain", "input_metric"]


@pytest.mark.parametrize("group", [oc.c, oc.m, oc.t], ids=["c", "m", "t"])
def test_each_constructor_on_a_space_has_its_then_and_no_other_has(group):
    made = {name: vars(group)[name] for name in group.__all__ if name.startswith("make_")}
    assert made
    assert all(isfunction(one) for one in made.values())
    expected = {f"then_{name[5:]}" for name, one in made.items() if begins_with_a_space(one)}
    assert {name for name in group.__all__ if name.startswith("then_")} == expected


def test_a_constructor_has_its_own_name_in_a_context():
    for group in (oc.c, oc.m, oc.t):
        for name in group.__all__:
            if name.startswith("then_"):
                made, _ = constructors[name[5:]]
                kept = [cell.cell_contents for cell in made.__closure__]
                assert vars(group)["make_" + name[5:]] in kept


def listed(tree):
    """Names that a page of the reference documents with their modules, as often as it does."""
    current = None
    for one in rst.directives_of(tree, *DOCUMENTING):
        name = one["argument"].partition("(")[0]
        if one["name"] in ("module", "currentmodule", "automodule"):
            current = name
            if one["name"] == "automodule" and "members" in one["options"]:
                all_of_it = getattr(public(name), "__all__", [])
                members = re.findall(r"\w+", one["options"]["members"] or "") or all_of_it
                without = re.findall(r"\w+", one["options"].get("exclude-members", ""))
                yield from ((name, member) for member in members if member not in without)
        else:
            module, _, short = name.rpartition(".")
            yield module or current, short


LISTED = [
    one for path in sorted((ROOT / "docs" / "api").rglob("*.rst")) for one in listed(rst.page(path))
]


def test_the_reference_has_each_public_name_once():
    for module in ("opendp_concurrent", *GROUPS, *EXTRAS):
        group = public(module)
        here = {name for name in group.__all__ if not ismodule(getattr(group, name))}
        first = here - (set(oc.__all__) if module in GROUPS else set())
        assert sorted(name for found, name in LISTED if found == module) == sorted(first), module


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_has_its_public_names(name):
    room = getattr(oc, name)
    assert all(hasattr(room, one) for one in room.__all__)
    with pytest.raises(AttributeError):
        room.unheard_of  # noqa: B018


def test_the_version_is_that_of_the_distribution():
    assert oc.__version__ == version("opendp-concurrent")
