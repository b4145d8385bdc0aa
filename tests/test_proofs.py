"""Every constructor has one proof, and what a proof refers to exists.

That a proof is right is for a reader to check; this finds proofs that are missing, and references
that a change has left behind.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from docutils import nodes

import opendp_concurrent as oc
from opendp_concurrent.composition.casts import conversions

from . import rst
from .over import over

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "opendp_concurrent"
PAGES = sorted((ROOT / "docs" / "proofs").glob("*.rst"))
NOT_RULES = {"launches_admitted"}  # counts, and promises nothing

CONSTRUCTORS = {
    name for group in (oc.c, oc.m, oc.t) for name in group.__all__ if name.startswith("make_")
}
RULES = set(oc.accumulators.__all__) - NOT_RULES
CONVERSIONS = {f"{source} to {target}" for source, target in conversions()}


@dataclass(frozen=True)
class Section:
    """A heading whose own text has fields, and what follows it up to the next of its level."""

    node: nodes.section

    @property
    def fields(self):
        lists = [one for one in self.node.children if isinstance(one, nodes.field_list)]
        return {field[0].astext(): rst.said(field[1]) for one in lists for field in one}

    def field(self, name):
        listed = self.fields.get(name, "")
        return [one.strip() for one in listed.split(",")] if listed else []


def sections_of(path):
    sections = [Section(node) for node in rst.page(path).findall(nodes.section)]
    # a page, or a part of it, whose proofs are in its own sections has no fields itself
    return [one for one in sections if "Proves" in one.fields]


SECTIONS = [section for path in PAGES for section in sections_of(path)]
each_section = over((section,) for section in SECTIONS)


def test_every_constructor_rule_and_conversion_has_one_proof():
    proven = [name for section in SECTIONS for name in section.field("Proves")]
    assert sorted((CONSTRUCTORS | RULES | CONVERSIONS) - set(proven)) == []
    assert sorted({name for name in proven if proven.count(name) > 1}) == []


@each_section
def test_what_is_proven_exists(section):
    modules = [
        import_module("opendp_concurrent." + path[:-3].replace("/", ".").removesuffix(".__init__"))
        for path in section.field("Code")
    ]
    for name in section.field("Proves"):
        public = {*CONSTRUCTORS, *RULES, *CONVERSIONS, *oc.c.__all__, *oc.m.__all__}
        assert name in public or any(hasattr(module, name) for module in modules), name


@each_section
def test_code_and_tests_exist(section):
    assert section.field("Code")
    assert section.field("Tests")
    for path in section.field("Code"):
        assert (PACKAGE / path).is_file(), path
    for path in section.field("Tests"):
        assert path.startswith("tests/"), path
        assert (ROOT / path).is_file(), path
