"""The papers, by the keys that OpenDP's documentation uses for them."""

from __future__ import annotations

import json
from importlib.resources import files

# key: title and link
REFERENCES: dict[str, tuple[str, str]] = {
    key: (title, link)
    for key, (title, link) in json.loads(
        files(__package__).joinpath("references.json").read_text(encoding="utf-8")
    ).items()
}


def cite(key: str, where: str = "") -> str:
    """Render a citation such as ``[VW21, Theorem 1.5] https://...``."""
    _, link = REFERENCES[key]
    return f"[{key}, {where}] {link}" if where else f"[{key}] {link}"
