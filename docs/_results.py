"""Tables of the benchmarks, made from the files that the benchmarks write.

    .. results:: launch_cost

       growth
          time at k = 100,000 / time at k = 1,000

makes a table of the figures that are listed, with their values and targets, and says when and on
what machine they were measured. With ``:tables:`` it adds the tables that the script printed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
MISSING = "no result"


class Results(Directive):
    """Figures of one benchmark; the content says what each of them means."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"tables": directives.flag}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        path = RESULTS / f"{name}.json"
        self.state.document.settings.record_dependencies.add(str(path))
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        content = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, content)
        meanings = {
            item[0].astext(): item[-1].children
            for item in content.findall(nodes.definition_list_item)
        }
        figures = {} if found is None else found["figures"]
        made: list[nodes.Node] = [_said(name, found)]
        if meanings:
            header = ["name", "meaning", *(["measured", "target", "verdict"] if found else [])]
            rows = [
                [nodes.literal(one, one), meaning, *(_cells(figures.get(one)) if found else [])]
                for one, meaning in meanings.items()
            ]
            made.append(_table(header, rows))
        if "tables" in self.options and found is not None:
            for table in found["tables"]:
                made.append(nodes.paragraph("", "", nodes.emphasis(text=table["title"])))
                made.append(_table(table["header"], table["rows"]))
        return made


def _said(name: str, found: dict[str, Any] | None) -> nodes.paragraph:
    if found is None:
        command = f"python benchmarks/{name}.py --save"
        said = "These figures were not measured for this release. To measure them, run "
        return nodes.paragraph("", said, nodes.literal(command, command), nodes.Text("."))
    machine, packages = found["machine"], found["machine"]["packages"]
    quick = ", with --quick" if found["quick"] else ""
    return nodes.paragraph(
        text=f"Measured on {found['date']} at commit {found['commit']}{quick}: "
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"load average {machine['load_average']}, Python {machine['python']}, "
        + ", ".join(f"{name} {version}" for name, version in packages.items())
        + "."
    )


def _cells(figure: dict[str, Any] | None) -> list[str]:
    if figure is None or figure["value"] is None:
        return [MISSING, "" if figure is None else figure.get("target", ""), ""]
    value = figure["value"]
    text = f"{value:,}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:.4g}"
    note = f" ({figure['note']})" if "note" in figure else ""
    verdict = {"MISSED": "missed"}.get(figure.get("verdict", ""), figure.get("verdict", ""))
    return [text + note, figure.get("target", ""), verdict]


def _table(header: list[str], rows: list[list[Any]]) -> nodes.table:
    """Return a table; columns of numbers are as wide as they need, text gets the rest."""
    group = nodes.tgroup("", cols=len(header))
    widest = [max([len(str(one[i])) for one in [header, *rows]]) for i in range(len(header))]
    group += [nodes.colspec(colwidth=max(6, min(40, width))) for width in widest]
    group += nodes.thead("", _row(header))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=["results"])


def _row(cells: list[Any]) -> nodes.row:
    made = nodes.row()
    for cell in cells:
        if isinstance(cell, list):
            content = cell
        else:
            content = [
                nodes.paragraph(
                    "", "", cell if isinstance(cell, nodes.Node) else nodes.Text(str(cell))
                )
            ]
        made += nodes.entry("", *content)
    return made


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
