"""Every constructor has one proof, and what a proof refers to exists.

That a proof is right is for a reader to check; this finds proofs that are missing, and references
that a change has left behind.
"""

import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

import opendp_concurrent as oc
from opendp_concurrent.references import REFERENCES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "opendp_concurrent"
PAGES = sorted((ROOT / "docs" / "proofs").glob("*.rst"))
NOT_RULES = {"launches_admitted"}  # counts, and promises nothing

CONSTRUCTORS = {
    name for group in (oc.c, oc.m, oc.t) for name in group.__all__ if name.startswith("make_")
}
RULES = set(oc.accumulators.__all__) - NOT_RULES

HEADING = re.compile(r"^(?P<title>\S.*)\n(?P<line>([=\-~^\"'])\3+)$", re.MULTILINE)
FIELD = r"^:{}:[ ]*(?P<body>.*(?:\n[ ]+\S.*)*)"
PSEUDOCODE = re.compile(
    r"^\.\. code-block:: none\n(?P<options>(?:[ ]+:.*\n)*)\n(?P<body>(?:[ ]+.*\n|\n)+)",
    re.MULTILINE,
)
LINES = re.compile(r"\b[Ll]ines?\s+(\d+(?:(?:\s*-\s*|,\s*|\s+and\s+|\s+to\s+|,\s+and\s+)\d+)*)")
KEY = re.compile(r"\b[A-Z][A-Za-z]{1,8}[0-9]{2}\b")


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


@dataclass(frozen=True)
class Section:
    """A heading and what follows it, up to the next of its level or above."""

    page: str
    title: str
    text: str

    def field(self, name):
        found = re.search(FIELD.format(name), self.text, re.MULTILINE)
        return [one.strip() for one in found["body"].split(",")] if found else []

    @property
    def numbers(self):
        """How many lines the pseudocode has; the longest, if there are several."""
        lengths = [0]
        for found in PSEUDOCODE.finditer(self.text):
            if ":linenos:" in found["options"]:
                lengths.append(len(found["body"].rstrip().split("\n")))
        return max(lengths)


def sections_of(path):
    text = path.read_text(encoding="utf-8") + "\n"
    headings = [one for one in HEADING.finditer(text) if len(one["line"]) >= len(one["title"])]
    levels = list(dict.fromkeys(one["line"][0] for one in headings))
    sections = []
    for index, one in enumerate(headings):
        level = levels.index(one["line"][0])
        ends = [
            later.start()
            for later in headings[index + 1 :]
            if levels.index(later["line"][0]) <= level
        ]
        body = text[one.end() : min(ends, default=len(text))]
        sections.append(Section(path.name, one["title"], body))
    # a page, or a part of it, whose proofs are in its own sections has no fields itself
    return [each for each in sections if each.text.count("\n:Proves:") == 1]


SECTIONS = [section for path in PAGES for section in sections_of(path)]
# of nested headings around one proof, the innermost
SECTIONS = [
    one
    for one in SECTIONS
    if not any(
        other is not one and other.page == one.page and other.text in one.text for other in SECTIONS
    )
]
each_section = pytest.mark.parametrize(
    "section", SECTIONS, ids=lambda section: f"{section.page}-{section.title}"
)


def test_every_constructor_and_every_rule_has_one_proof():
    proven = [name for section in SECTIONS for name in section.field("Proves")]
    assert sorted((CONSTRUCTORS | RULES) - set(proven)) == []
    assert sorted({name for name in proven if proven.count(name) > 1}) == []


def test_the_rules_are_found():
    assert {"basic", "advanced", "zcdp", "renyi", "either", "from_rule"} <= RULES
    assert {"ladder", "residue", "best_rule"} <= RULES
    assert len(CONSTRUCTORS) > 40


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "proofs" / "index.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([a-z-]+)$", index, re.MULTILINE))
    assert listed == {path.stem for path in PAGES} - {"index"}


def test_every_field_is_in_a_section():
    for path in PAGES:
        fields = path.read_text(encoding="utf-8").count("\n:Proves:")
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
        assert re.search(rf"^(\*\*)?{part}", section.text, re.MULTILINE) or (
            f"**{part}" in section.text
        ), part
    assert section.numbers > 0


def lines_referred_to(section):
    prose = PSEUDOCODE.sub("\n", section.text)
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


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_cited_keys_are_known(path):
    text = path.read_text(encoding="utf-8")
    for key in KEY.findall(" ".join(re.findall(r"\[[^\]]*\]", text))):
        assert key in REFERENCES, key


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pseudocode_has_line_numbers(path):
    for found in PSEUDOCODE.finditer(path.read_text(encoding="utf-8") + "\n"):
        assert ":linenos:" in found["options"]
