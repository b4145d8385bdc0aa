import re
import sys
from importlib.metadata import version as _version
from pathlib import Path

import opendp.prelude as dp
from docutils import nodes
from sphinx import addnodes

from opendp_concurrent._checks import REFERENCES

sys.path.insert(0, str(Path(__file__).parent))  # for _results

project = "opendp_concurrent"
copyright = "The opendp_concurrent developers"
author = "The opendp_concurrent developers"
release = _version("opendp-concurrent")
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "myst_nb",
    "_references",
    "_results",
]
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # prompts and output are not copied
copybutton_prompt_is_regexp = True
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
toc_object_entries_show_parents = "hide"
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_nav_level": 2,
    "show_toc_level": 2,
    "footer_end": [],
    "navbar_persistent": ["search-button"],  # the header stays on one line at 1,280 pixels
    "logo": {"text": "opendp_concurrent"},  # without the release, which is too long for a phone
}
html_title = f"opendp_concurrent {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "getting-started": [], "for-opendp": []}
exclude_patterns = ["_build"]
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
viewcode_line_numbers = True
autodoc_member_order = "bysource"
suppress_warnings = ["config.cache"]


def _then_is_short(app, what, name, obj, options, lines):
    """Show a ``then_x`` as what it is: its ``make_x``, less two arguments."""
    module, _, short = name.rpartition(".")
    if short.startswith("then_"):
        make = f"{module}.make_{short.removeprefix('then_')}"
        lines[:] = [
            f":func:`~{make}` without ``input_domain`` and ``input_metric``, for ``>>``.",
            "",
        ]


def _signature(app, what, name, obj, options, signature, returned):
    """Show types without the guards that check them, and no constructor of a handle."""
    if what == "class" and ".handles." in name:
        return "", returned
    return signature and _without_guards(signature), returned


def _without_guards(text):
    """Replace each ``Annotated[x, ...]`` by x."""
    begin = "~typing.Annotated["
    while (start := text.find(begin)) >= 0:
        depth, first, end = 1, None, start + len(begin)
        while depth:
            depth += (text[end] in "[(") - (text[end] in "])")
            if depth == 1 and text[end] == "," and first is None:
                first = text[start + len(begin) : end]
            end += 1
        text = text[:start] + first + text[end:]
    return text


_KEYS = re.compile(rf"\b({'|'.join(REFERENCES)})\b")


def _link_papers(app, doctree):
    """Make the key of a paper a link to it, wherever prose cites it."""
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.reference)):
            continue
        parts = _KEYS.split(str(text))
        if len(parts) > 1:
            text.parent.replace(
                text,
                [
                    _link(part) if odd % 2 else nodes.Text(part)
                    for odd, part in enumerate(parts)
                    if part
                ],
            )


def _link(key):
    title, link = REFERENCES[key]
    return nodes.reference(key, key, refuri=link, reftitle=title, internal=False)


OPENDP = f"https://docs.opendp.org/en/v{_version('opendp')}/api/python/"


def _in_opendp(name):
    """Return where OpenDP documents a name, such as ``dp.c.make_composition``."""
    found = dp
    try:
        for part in name.split(".")[1:]:
            found = getattr(found, part)
    except AttributeError:
        return None
    module = getattr(found, "__module__", None) or ""
    named = getattr(found, "__name__", None) == name.rpartition(".")[2]
    if not (module.startswith("opendp.") and callable(found) and named) or "._" in module:
        return None
    return f"{OPENDP}{module}.html#{module}.{found.__qualname__}"


def _link_opendp(app, doctree):
    """Make a literal that is a name of OpenDP a link to its documentation."""
    for literal in list(doctree.findall(nodes.literal)):
        named = re.fullmatch(r"(dp(?:\.\w+)+)(?:\(.*\))?", literal.astext())
        if named is None or isinstance(literal.parent, (nodes.reference, nodes.title)):
            continue
        address = _in_opendp(re.sub(r"\.then_(?=\w+$)", ".make_", named[1]))
        if address is not None:
            link = nodes.reference("", "", refuri=address, reftitle="OpenDP", internal=False)
            literal.replace_self(link)
            link += literal


def _link_types(app, env, node, content):
    """Link a type of OpenDP in a signature."""
    target = node.get("reftarget", "")
    if not target.startswith("opendp."):
        return None
    module = target.rpartition(".")[0]
    address = f"{OPENDP}{module}.html#{target}"
    return nodes.reference("", "", content, refuri=address, internal=False)


def _names_are_short(app, doctree):
    """Show names as they are imported: ``import opendp_concurrent as oc``."""
    for node in doctree.findall(addnodes.desc_addname):
        name = node.astext()
        if name.startswith("opendp_concurrent."):
            node[:] = [nodes.Text(f"oc.{name.removeprefix('opendp_concurrent.')}")]


def setup(app):
    app.connect("autodoc-process-docstring", _then_is_short)
    app.connect("autodoc-process-signature", _signature)
    app.connect("doctree-read", _link_papers)
    app.connect("doctree-read", _link_opendp)
    app.connect("missing-reference", _link_types)
    app.connect("doctree-read", _names_are_short)
