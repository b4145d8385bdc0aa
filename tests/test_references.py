"""Every paper that is cited is known by its key, in the code and in the glossary."""

import re
from pathlib import Path

from opendp_concurrent.references import REFERENCES

ROOT = Path(__file__).parent.parent
TEXTS = [*(ROOT / "opendp_concurrent").rglob("*.py"), *(ROOT / "docs").glob("*.rst")]


def test_cited_keys_are_known():
    for path in TEXTS:
        text = " ".join(re.findall(r"\[[^\]]*\]", path.read_text()))
        for key in re.findall(r"\b[A-Z][A-Za-z]{1,8}[0-9]{2}\b", text):
            assert key in REFERENCES, (path, key)


def test_the_glossary_lists_them():
    glossary = (ROOT / "docs" / "glossary.rst").read_text()
    for key, (_, link) in REFERENCES.items():
        assert f"[{key}]" in glossary
        assert link in glossary
