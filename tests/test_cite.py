"""What is said about how to cite agrees: references.py, cite.rst and CITATION.cff."""

import re
from datetime import date
from importlib.metadata import version
from pathlib import Path

import yaml
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


CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text())


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
    preferred = CFF["preferred-citation"]
    assert CFF["version"] == preferred["version"] == package["version"]
    assert version("opendp-concurrent").split(".dev")[0] == package["version"]
    title = re.sub(r"[{}\\]", "", package["title"])
    assert CFF["title"] == preferred["title"] == title
    assert package["author"] == "{The opendp\\_concurrent developers}"
    assert CFF["authors"] == preferred["authors"] == [{"name": "The opendp_concurrent developers"}]
    assert package["year"] == str(preferred["year"])
    assert "doi" not in package  # none was assigned
    assert "url" not in package


def test_the_citation_file_has_what_its_format_requires():
    """Required by the Citation File Format 1.2.0, or of a fixed set there."""
    assert CFF["cff-version"] == "1.2.0"
    assert CFF["type"] == CFF["preferred-citation"]["type"] == "software"
    assert (ROOT / "LICENSE").read_text().startswith(f"{CFF['license']} License")
    assert isinstance(CFF["date-released"], date)
    assert all(CFF[name] for name in ("message", "title", "authors", "abstract"))
    assert all(isinstance(word, str) for word in CFF["keywords"])
    for one in CFF["references"]:
        assert one["type"] == "article"
        assert isinstance(one["year"], int)
        assert all(person["family-names"] and person["given-names"] for person in one["authors"])


def test_papers_of_the_citation_file_are_those_of_cite():
    keys = {link: key for key, (_, link) in REFERENCES.items()}
    for one in CFF["references"]:
        _, fields = entries()[keys[one["url"]]]
        assert one["title"] == REFERENCES[keys[one["url"]]][0]
        assert str(one["year"]) == fields["year"]
