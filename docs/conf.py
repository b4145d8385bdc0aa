import re
import sys
from importlib.metadata import version as _version
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

from opendp_concurrent.references import REFERENCES

sys.path.insert(0, str(Path(__file__).parent))  # for _results

project = "opendp_concurrent"
copyright = "The opendp_concurrent developers"
author = "The opendp_concurrent developers"
release = _version("opendp-concurrent")
extensions = [
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "myst_nb",
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
    "logo": {"text": "opendp_concurrent"},  # without the release, which is too long for a phone
}
html_title = f"opendp_concurrent {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "getting-started": [], "for-opendp": []}
exclude_patterns = ["_build"]
autodoc_typehints = "none"
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


def _handles_are_not_constructed(app, what, name, obj, options, signature, returned):
    return ("", returned) if what == "class" and ".handles." in name else None


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


def _names_are_short(app, doctree):
    """Show names as they are imported: ``import opendp_concurrent as oc``."""
    for node in doctree.findall(addnodes.desc_addname):
        name = node.astext()
        if name.startswith("opendp_concurrent."):
            node[:] = [nodes.Text(f"oc.{name.removeprefix('opendp_concurrent.')}")]


def setup(app):
    app.connect("autodoc-process-docstring", _then_is_short)
    app.connect("autodoc-process-signature", _handles_are_not_constructed)
    app.connect("doctree-read", _link_papers)
    app.connect("doctree-read", _names_are_short)
