"""What users may import: with an example, and in pairs of make and then."""

from inspect import getdoc, isclass, isfunction, ismodule, signature

import pytest
from opendp.context import constructors

import opendp_concurrent as oc

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


def public(name):
    return oc if name == "opendp_concurrent" else getattr(oc, name.partition(".")[2])


TAGS = ("ANSWER", "QUERY")
PUBLIC = [
    (module, name)
    for module in ("opendp_concurrent", *GROUPS, *EXTRAS)
    for name in public(module).__all__
    if not ismodule(getattr(public(module), name)) and name not in TAGS
]


def test_a_public_name_has_an_example():
    without = []
    for module, name in PUBLIC:
        found = getattr(public(module), name)
        shown_by_functions = module in EXTRAS and isclass(found)  # which return it
        if not shown_by_functions and ":example:" not in getdoc(found):
            without.append((module, name))
    assert without == []


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
