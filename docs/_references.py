"""What pages refer to exists, and each public name is documented: else a build with ``-W`` fails.

Papers are cited by keys that the code knows. The map of theorems names code and tests. Each
constructor, accumulator and cast has one proof, whose fields name code and tests.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

import opendp_concurrent as oc
from opendp_concurrent._checks import REFERENCES
from opendp_concurrent.composition.casts import conversions

LOG = logging.getLogger(__name__)
ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "opendp_concurrent"
KEY = re.compile(r"\b[A-Z][A-Za-z]{1,8}[0-9]{2}\b")
CODE = re.compile(r"([\w/-]+\.py): ([\w.]+)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
FACES = ("c", "m", "t", "accumulators", "fdp", "measures")
PACKAGES = ("extend", "handles", "ledger", "plot", "serving", "verify")
COUNTS = {"launches_admitted"}  # it promises nothing
PROVEN = {name for face in (oc.c, oc.m, oc.t) for name in face.__all__ if name.startswith("make_")}
PROVEN |= set(oc.accumulators.__all__) - COUNTS
PROVEN |= {f"{source} to {target}" for source, target in conversions()}


def unknown_keys(text):
    """Keys of papers in square brackets that nobody knows."""
    inside = " ".join(re.findall(r"\[[^\]]*\]", text))
    return [f"[{key}] is no paper" for key in KEY.findall(inside) if key not in REFERENCES]


@cache
def names(path):
    """What a module defines: functions, classes and their members, and what is assigned."""
    found = set()

    def visit(body, prefix=""):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update(prefix + one.id for one in targets if isinstance(one, ast.Name))

    visit(ast.parse(path.read_text(encoding="utf-8")).body)
    return found


def lost(text):
    """Whether a literal of the map of theorems leads nowhere."""
    for pattern, root in ((TEST, ROOT), (CODE, PACKAGE)):
        if found := pattern.fullmatch(text):
            path = root / found[1]
            return not (path.is_file() and found[2] in names(path))
    if text.startswith("python benchmarks/"):
        return not (ROOT / text.split()[1]).is_file()
    return ".py" in text or "::" in text


def of_the_map(tree):
    for one in tree.findall(nodes.literal):
        text = " ".join(one.astext().split())
        if lost(text):
            yield f"{text} does not exist"


def fields_of(section):
    lists = [one for one in section.children if isinstance(one, nodes.field_list)]
    for field in (one for listed in lists for one in listed):
        yield field[0].astext(), " ".join(field[1].astext().split()).split(", ")


def of_proofs(tree, proven):
    for section in tree.findall(nodes.section):
        fields = dict(fields_of(section))
        if "Proves" not in fields:
            continue
        for field, root in (("Code", PACKAGE), ("Tests", ROOT)):
            paths = [root / path for path in fields.get(field, [])]
            if not paths or not all(path.is_file() for path in paths):
                yield f"{field} of {fields['Proves']} are {fields.get(field)}"
        proven.update(fields["Proves"])
        known = [path for path in fields.get("Code", []) if (PACKAGE / path).is_file()]
        dotted = [path[:-3].replace("/", ".").removesuffix(".__init__") for path in known]
        modules = [import_module(f"opendp_concurrent.{one}") for one in dotted]
        for name in fields["Proves"]:
            if name not in PROVEN and not any(hasattr(one, name) for one in (oc.c, oc.m, *modules)):
                yield f"{name} is proven, but is nowhere"


def of_the_glossary(tree):
    listed = {}
    for item in tree.findall(nodes.list_item):
        links = [one for one in item.findall(nodes.reference) if one.astext() not in REFERENCES]
        text = item.astext()
        if text.startswith("[") and links:
            title = " ".join(links[0].astext().split())
            listed[text[1:].partition("]")[0]] = title, links[0]["refuri"]
    if listed != {key: tuple(known) for key, known in REFERENCES.items()}:
        yield "the papers are not those of the code, with their titles and links"


def undocumented(objects):
    """Public names that the reference does not have; a face need not repeat the top."""
    for module in ("", *FACES, *PACKAGES):
        public = getattr(oc, module) if module else oc
        for name in set(public.__all__) - (set(oc.__all__) if module in FACES else set()):
            full = ".".join(filter(None, ("opendp_concurrent", module, name)))
            if not isinstance(getattr(public, name), type(ast)) and full not in objects:
                yield full


def check(app, env):
    """Read all pages, also those that have not changed."""
    proven = Counter()
    for page in sorted(env.found_docs):
        tree = env.get_doctree(page)
        wrong = unknown_keys(tree.astext())
        if page.startswith("theory-map/"):
            wrong += of_the_map(tree)
        if page.startswith("proofs/"):
            wrong += of_proofs(tree, proven)
        if page == "glossary":
            wrong += of_the_glossary(tree)
        for one in wrong:
            LOG.warning(one, location=page)
    for path in [*PACKAGE.rglob("*.py"), *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.inc")]:
        for one in unknown_keys(path.read_text(encoding="utf-8")):
            LOG.warning("%s: %s", path, one)
    if missing := sorted(PROVEN - set(proven)):
        LOG.warning("no proof of %s", missing)
    if twice := sorted(name for name, number in proven.items() if number > 1):
        LOG.warning("more than one proof of %s", twice)
    if missing := sorted(undocumented(env.domains["py"].objects)):
        LOG.warning("the reference lacks %s", missing)


def setup(app):
    app.connect("env-check-consistency", check)
