"""Every paper that is cited is known by its key: in the code, and on every page of the docs."""

from pathlib import Path

from docutils import nodes

from opendp_concurrent._checks import REFERENCES

from . import rst

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "opendp_concurrent").rglob("*.py"))
PAGES = sorted((ROOT / "docs").rglob("*.rst"))
PLAIN = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.inc"))]


def unknown(text):
    return [key for key in rst.cited(text) if key not in REFERENCES]


def test_keys_that_the_code_cites_are_known():
    assert {path: found for path in MODULES if (found := unknown(path.read_text()))} == {}


def test_keys_that_pages_cite_are_known():
    found = {path: unknown(rst.said(rst.page(path))) for path in PAGES}
    found |= {path: unknown(path.read_text()) for path in PLAIN}
    assert {path: keys for path, keys in found.items() if keys} == {}


def glossary():
    """The papers of the glossary: key, title and link, in their order."""
    for item in rst.page(ROOT / "docs" / "glossary.rst").findall(nodes.list_item):
        links = list(item.findall(nodes.reference))
        if rst.said(item).startswith("[") and links:
            key = rst.said(item)[1:].partition("]")[0]
            yield key, rst.said(links[0]), links[0]["refuri"]


def test_the_glossary_has_their_titles_and_links_and_no_other_keys():
    listed = {key: (title, link) for key, title, link in glossary()}
    assert listed == {key: tuple(known) for key, known in REFERENCES.items()}
