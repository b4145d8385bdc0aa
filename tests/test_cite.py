"""What is said about how to cite agrees: references.py, cite.rst and CITATION.cff."""

import re
from importlib.metadata import version
from pathlib import Path

import yaml
from docutils import nodes

from opendp_concurrent._checks import REFERENCES

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
