"""What users may import: documented, in pairs of make and then, and in the reference once."""

import importlib
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
    f"opendp_concurrent.{name}" for name in ("handles", "ledger", "plot", "serving", "verify")
]
GROUPS = [
    "opendp_concurrent.c",
    "opendp_concurrent.m",
    "opendp_concurrent.t",
    "opendp_concurrent.accumulators",
    "opendp_concurrent.fdp",
    "opendp_concurrent.measures",
]
ROOMS = [name.partition(".")[2] for name in (*GROUPS, *EXTRAS, "opendp_concurrent.tables")]
DOCUMENTING = (
    *("module", "currentmodule", "automodule"),
    *("autoclass", "autodata", "autoexception", "autofunction"),
)
TAGS = ("ANSWER", "QUERY")
PUBLIC = [
    (module, name)
    for module in ("opendp_concurrent", *GROUPS, *EXTRAS)
    for name in importlib.import_module(module).__all__
    if not ismodule(getattr(importlib.import_module(module), name)) and name not in TAGS
]


@over(PUBLIC)
def test_a_public_name_has_an_example(module, name):
    public = getattr(importlib.import_module(module), name)
    if module in EXTRAS and isclass(public):
        return  # what their functions return, shown there
    assert ":example:" in getdoc(public)


def begins_with_a_space(constructor):
    return list(signature(constructor).parameters)[:2] == ["input_domain", "input_metric"]


@pytest.mark.parametrize("group", [oc.c, oc.m, oc.t], ids=["c", "m", "t"])
def test_each_constructor_on_a_space_has_its_then_and_no_other_has(group):
    made = {name: vars(group)[name] for name in group.__all__ if name.startswith("make_")}
    assert made
    assert all(isfunction(one) for one in made.values())
    expected = {f"then_{name[5:]}" for name, one in made.items() if begins_with_a_space(one)}
    assert {name for name in group.__all__ if name.startswith("then_")} == expected


def test_dir_lists_public_names_only():
    assert dir(oc) == sorted(oc.__all__)


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
                all_of_it = getattr(importlib.import_module(name), "__all__", [])
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
        group = importlib.import_module(module)
        here = {name for name in group.__all__ if not ismodule(getattr(group, name))}
        first = here - (set(oc.__all__) if module in GROUPS else set())
        assert sorted(name for found, name in LISTED if found == module) == sorted(first), module


@pytest.mark.parametrize("name", ROOMS)
def test_dir_of_a_room_lists_public_names_only(name):
    room = getattr(oc, name)
    assert dir(room) == sorted(room.__all__)
    assert all(hasattr(room, one) for one in room.__all__)


@pytest.mark.parametrize(
    ("room", "wrong", "right"),
    [
        ("", "make_concurrent_filtr", "make_concurrent_filter"),
        ("", "make_counter", "m.make_counter"),
        ("", "basic", "accumulators.basic"),
        ("", "make_sparse_vektor", "m.make_sparse_vector"),
        ("", "ledgr", "ledger"),
        ("c", "make_limitd", "c.make_limited"),
        ("m", "make_sparse_vectr", "m.make_sparse_vector"),
        ("m", "make_stream_clamp", "t.make_stream_clamp"),
        ("c", "make_privacy_filter", "c.make_concurrent_filter"),
        ("c", "make_fully_adaptive_composition", "c.make_concurrent_odometer"),
        ("t", "then_wher", "t.then_where"),
        ("accumulators", "advancd", "accumulators.advanced"),
        ("fdp", "TradeofFunction", "fdp.TradeoffFunction"),
        ("handles", "ChildQueriable", "handles.ChildQueryable"),
        ("measures", "groop_tcdp", "measures.group_tcdp"),
        ("tables", "scann", "tables.scan"),
        ("ledger", "open_leger", "ledger.open_ledger"),
        ("plot", "plot_sesion", "plot.plot_session"),
        ("serving", "AnswrStore", "serving.AnswerStore"),
        ("verify", "worst_los", "verify.worst_loss"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest_one(room, wrong, right):
    place = re.escape(f"opendp_concurrent.{right}")
    with pytest.raises(AttributeError, match=rf"no attribute '{wrong}'; did you mean {place}\?$"):
        getattr(getattr(oc, room) if room else oc, wrong)


def test_a_name_that_is_like_no_other_is_answered_without_one():
    for room in (oc, oc.c, oc.fdp):
        for name in ("unheard_of", "__wrapped__", "_make_counter"):
            with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
                getattr(room, name)


def test_the_version_is_that_of_the_distribution():
    assert oc.__version__ == version("opendp-concurrent")
