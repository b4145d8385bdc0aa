"""Pages of the docs as trees of nodes: docutils reads them, without Sphinx.

What only Sphinx knows becomes a plain node. A role is an ``inline`` with the role's name as class.
A directive is a :class:`Directive` around what it contains, or a ``literal_block`` of its code.
"""

import re
from functools import cache
from unittest.mock import patch

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive as Stub
from docutils.parsers.rst import directives, roles

SETTINGS = {
    "doctitle_xform": False,  # the title stays a section as any other
    "docinfo_xform": False,
    "report_level": 5,
    "halt_level": 3,
    "file_insertion_enabled": True,
    "syntax_highlight": "none",
}
CODE = ("code", "code-block", "literalinclude")
KEY = re.compile(r"\b[A-Z][A-Za-z]{1,8}[0-9]{2}\b")


class Directive(nodes.General, nodes.Element):
    """What a directive says: ``name``, ``argument``, ``options``, ``lines``."""


class _AnyOption(dict):
    """Every option is known, and is kept as it is written."""

    def __bool__(self):
        return True

    def __getitem__(self, name):
        return directives.unchanged


class _Any(Stub):
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = _AnyOption()

    def run(self):
        said = {
            "name": self.name,
            "argument": " ".join(self.arguments),
            "options": self.options,
            "lines": list(self.content),
        }
        if self.name in CODE:
            text = "\n".join(self.content)
            return [nodes.literal_block(text, text, **said)]
        node = Directive("\n".join(self.content), **said)
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def _role(name, rawtext, text, lineno, inliner, options=None, content=()):
    return [nodes.inline(rawtext, text, classes=[name])], []


def parse(text, path=None):
    """The tree of a text; a page is included by its path from that of ``path``."""
    directive, role = directives.directive, roles.role

    def any_directive(name, language, document):
        found, messages = (None, []) if name in CODE else directive(name, language, document)
        return found or _Any, messages

    def any_role(name, language, lineno, reporter):
        found, messages = role(name, language, lineno, reporter)
        return found or _role, messages

    with (
        patch.object(directives, "directive", any_directive),
        patch.object(roles, "role", any_role),
    ):
        return publish_doctree(
            text + RELEASE,
            source_path=None if path is None else str(path),
            settings_overrides=SETTINGS,
        )


RELEASE = "\n\n.. |release| replace:: 0\n"  # Sphinx defines it


@cache
def page(path):
    """The tree of a page of the docs."""
    return parse(path.read_text(encoding="utf-8"), path)


def directives_of(tree, *names):
    """Directives of these names, in their order."""
    return [one for one in tree.findall(Directive) if one["name"] in names]


def said(node):
    """The text of a node in one line."""
    return " ".join(node.astext().split())


def literals(node):
    """What is written as literal text, each in one line."""
    return [said(one) for one in node.findall(nodes.literal)]


def cited(text):
    """Keys of papers that are named in square brackets."""
    return KEY.findall(" ".join(re.findall(r"\[[^\]]*\]", text)))
