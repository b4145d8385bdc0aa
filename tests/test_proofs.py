"""Every constructor has one proof, and what a proof refers to exists.

That a proof is right is for a reader to check; this finds proofs that are missing, and references
that a change has left behind.
"""

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from docutils import nodes

import opendp_concurrent as oc
from opendp_concurrent.references import REFERENCES

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

LINES = re.compile(r"\b[Ll]ines?\s+(\d+(?:(?:\s*-\s*|,\s*|\s+and\s+|\s+to\s+|,\s+and\s+)\d+)*)")


PAGE = """Title
=====

make_one
--------

:Proves: make_one, make_two
:Code: a.py
:Tests: tests/a.py,
        tests/b.py

.. code-block:: none
   :linenos:

   def one():
       line 9 of another page

       return

**Proof.** By line 1, lines 3-5, and lines 2 and
4.

Part
~~~~

Nothing.

make_three
----------

:Proves: make_three

Line 2 is there, line 7 is not.
"""


def pseudocode(node):
    return [one for one in node.findall(nodes.literal_block) if one.get("argument") == "none"]


@dataclass(frozen=True)
class Section:
    """A heading whose own text has fields, and what follows it up to the next of its level."""

    page: str
    node: nodes.section

    @property
    def title(self):
        return self.node[0].astext()

    @property
    def fields(self):
        lists = [one for one in self.node.children if isinstance(one, nodes.field_list)]
        return {field[0].astext(): rst.said(field[1]) for one in lists for field in one}

    def field(self, name):
        listed = self.fields.get(name, "")
        return [one.strip() for one in listed.split(",")] if listed else []

    @property
    def numbers(self):
        """How many lines the pseudocode has; the longest, if there are several."""
        numbered = (one for one in pseudocode(self.node) if "linenos" in one["options"])
        return max((len(one["lines"]) for one in numbered), default=0)

    def has_part(self, name):
        """Whether a paragraph, or something strong in one, begins with a word."""
        parts = (nodes.paragraph, nodes.strong, nodes.title, nodes.term, nodes.field_name)
        found = self.node.findall(lambda one: isinstance(one, parts))
        return any(one.astext().startswith(name) for one in found)


def sections_of(path):
    sections = [Section(path.name, node) for node in rst.page(path).findall(nodes.section)]
    # a page, or a part of it, whose proofs are in its own sections has no fields itself
    return [one for one in sections if "Proves" in one.fields]


SECTIONS = [section for path in PAGES for section in sections_of(path)]
each_section = over((section,) for section in SECTIONS)


def test_every_constructor_and_every_rule_has_one_proof():
    proven = [name for section in SECTIONS for name in section.field("Proves")]
    assert sorted((CONSTRUCTORS | RULES) - set(proven)) == []
    assert sorted({name for name in proven if proven.count(name) > 1}) == []


def test_the_rules_are_found():
    assert {"basic", "advanced", "any_time", "zcdp", "renyi", "either", "from_rule"} <= RULES
    assert {"ladder", "residue", "best_rule"} <= RULES
    assert len(CONSTRUCTORS) > 40


def test_every_page_is_in_the_index():
    index = rst.page(ROOT / "docs" / "proofs" / "index.rst")
    assert set(rst.entries_of(index)) == {path.stem for path in PAGES} - {"index"}


def test_every_field_is_in_a_section_of_its_own():
    for path in PAGES:
        names = [field[0].astext() for field in rst.page(path).findall(nodes.field)]
        fields = names.count("Proves")
        assert fields == sum(section.page == path.name for section in SECTIONS), path.name


@each_section
def test_what_is_proven_exists(section):
    modules = [
        import_module("opendp_concurrent." + path[:-3].replace("/", ".").removesuffix(".__init__"))
        for path in section.field("Code")
    ]
    for name in section.field("Proves"):
        public = {*CONSTRUCTORS, *RULES, *oc.c.__all__, *oc.m.__all__}
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


@each_section
def test_a_proof_has_its_parts(section):
    for part in ("Precondition", "Statement", "Proof"):
        assert section.has_part(part), part
    assert section.numbers > 0


def lines_referred_to(section):
    prose = rst.prose(section.node)
    return [int(one) for found in LINES.finditer(prose) for one in re.findall(r"\d+", found[1])]


@each_section
def test_lines_that_are_referred_to_exist(section):
    assert all(1 <= one <= section.numbers for one in lines_referred_to(section))


def test_what_is_read_of_a_page(tmp_path):
    page = tmp_path / "page.rst"
    page.write_text(PAGE, encoding="utf-8")
    first, second = sections_of(page)
    assert first.field("Proves") == ["make_one", "make_two"]
    assert first.field("Tests") == ["tests/a.py", "tests/b.py"]
    assert first.numbers == 4  # an empty line counts
    assert lines_referred_to(first) == [1, 3, 5, 2, 4]
    assert second.field("Proves") == ["make_three"]
    assert lines_referred_to(second) == [2, 7]
    assert second.numbers == 0


@over((path,) for path in PAGES)
def test_cited_keys_are_known(path):
    for key in rst.cited(rst.said(rst.page(path))):
        assert key in REFERENCES, key


@over((path,) for path in PAGES)
def test_pseudocode_has_line_numbers(path):
    for block in pseudocode(rst.page(path)):
        assert "linenos" in block["options"]
