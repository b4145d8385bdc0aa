"""What is said about how to cite agrees: references.py, cite.rst and CITATION.cff."""

import re
from importlib.metadata import version
from pathlib import Path

from docutils import nodes

from opendp_concurrent.references import REFERENCES

from . import rst

ROOT = Path(__file__).parent.parent
ENTRY = re.compile(r"@(\w+)\{(\w+),\n(.*?)\n\}", re.DOTALL)
FIELD = re.compile(r"(\w+) += \{(.*?)\},?(?=\n +\w+ += |$)", re.DOTALL)


def entries():
    """BibTeX entries of cite.rst, by their keys: kind and fields."""
    blocks = rst.page(ROOT / "docs" / "cite.rst").findall(nodes.literal_block)
    text = "\n".join(one.astext() for one in blocks if one.get("argument") == "bibtex")
    return {
        key: (kind, {name: " ".join(value.split()) for name, value in FIELD.findall(fields)})
        for kind, key, fields in ENTRY.findall(text)
    }


def cff_field(name):
    """Values of a field in CITATION.cff, unquoted, in order."""
    text = (ROOT / "CITATION.cff").read_text()
    return [value.strip('"') for value in re.findall(rf"^[ -]*{name}: (.*)$", text, re.MULTILINE)]


def test_cite_has_an_entry_for_every_reference_and_no_other():
    assert set(entries()) - {"opendp_concurrent"} == set(REFERENCES)


def test_entries_have_titles_and_links_of_the_references():
    for key, (_, fields) in entries().items():
        if key in REFERENCES:
            title, link = REFERENCES[key]
            assert fields["title"].strip("{}").replace("\\&", "&") == title, key
            assert fields["url"] == link, key
            assert re.fullmatch(r"(19|20)\d\d", fields["year"]), key


def test_a_link_to_arxiv_is_not_later_than_its_year():
    for key, (_, fields) in entries().items():
        found = re.search(r"arxiv\.org/abs/(\d\d)\d\d\.", fields.get("url", ""))
        if found:
            assert 2000 + int(found[1]) <= int(fields["year"]), key


def test_version_and_title_are_those_of_the_package():
    kind, package = entries()["opendp_concurrent"]
    assert kind == "software"
    assert [package["version"]] * 2 == cff_field("version")
    assert version("opendp-concurrent").split(".dev")[0] == package["version"]
    title = re.sub(r"[{}\\]", "", package["title"])
    assert cff_field("title")[:2] == [title, title]
    assert package["author"] == "{The opendp\\_concurrent developers}"
    assert package["year"] in cff_field("year")
    assert "doi" not in package  # none was assigned
    assert "url" not in package


def test_papers_of_the_citation_file_are_references():
    known = {link: title for title, link in REFERENCES.values()}
    titles, links = cff_field("title")[2:], cff_field("url")
    assert [known[link] for link in links] == titles


def test_years_of_the_citation_file_are_those_of_cite():
    keys = {link: key for key, (_, link) in REFERENCES.items()}
    years = [entries()[keys[link]][1]["year"] for link in cff_field("url")]
    assert cff_field("year")[1:] == years
