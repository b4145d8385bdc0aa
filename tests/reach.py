"""Lines of code that a reader of a part of the package must know: ``python tests/reach.py``.

A module counts without blank lines, comments and docstrings. A part reaches what it imports, also
inside functions, and the packages of what it imports. The public face, the ``__init__`` of the
whole package, does not count.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import grimp

TOP = "opendp_concurrent"
PACKAGE = Path(__file__).parents[1] / TOP
WITHOUT_CODE = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
)
SWAP_INS = (
    "combinators.concurrent_composition",
    "combinators.concurrent_filter",
    "combinators.concurrent_odometer",
    "combinators.loss_of",
    "accumulators",
)
# what a part may reach, in lines of code: lower these when it reaches less, and never raise them
LAWS = {"accounts": (("accounts",), 1800), "swap-ins": (SWAP_INS, 7000)}
# rooms that a part must not reach
APART = {
    "accounts": (("accounts",), ("measures", "accumulators", "exact", "native", "ledger")),
    "swap-ins": (SWAP_INS, ("fdp", "tradeoffs", "truncated", "ledger", "tables", "blocks")),
    "fdp": (("fdp",), ("measures", "sums", "accumulators", "accounts", "native")),
    "ledger": (("ledger",), ("blocks", "tables", "parallel", "queryables", "fdp")),
}
LOOSE = 0.08  # the largest share of parameters that are annotated with Any or object
PRIVATE = 10  # places that read a private attribute of another module, or of OpenDP


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(TOP, exclude_type_checking_imports=True)


def path_of(module: str) -> Path:
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def code_lines(module: str) -> int:
    source = path_of(module).read_text()
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in WITHOUT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def below(module: str) -> set[str]:
    return {module, *graph().find_descendants(module)}


def reached(parts: tuple[str, ...]) -> set[str]:
    """Modules that are imported when the parts are imported."""
    found: set[str] = set()
    waiting = [one for part in parts for one in below(f"{TOP}.{part}")]
    while waiting:
        module = waiting.pop()
        if module in found or module == TOP:
            continue
        found.add(module)
        waiting += [*graph().find_modules_directly_imported_by(module), module.rpartition(".")[0]]
    return found


def size(modules: set[str]) -> int:
    return sum(map(code_lines, modules))


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "(face)"


@cache
def nodes_of(module: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path_of(module).read_text())))


def parameters() -> list[str]:
    """The annotation of each parameter but the first one of a method, if it is a name."""
    found = []
    for module in graph().modules:
        for node in nodes_of(module):
            if isinstance(node, ast.FunctionDef):
                for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                    if one.arg not in ("self", "cls"):
                        kind = one.annotation
                        if isinstance(kind, ast.BinOp) and ast.unparse(kind.right) == "None":
                            kind = kind.left
                        found.append(getattr(kind, "id", ""))
    return found


def annotated(module: str) -> set[str]:
    """Names in the annotations of a module's parameters."""
    found = set()
    for node in nodes_of(module):
        if isinstance(node, ast.arg) and node.annotation is not None:
            found |= {one.id for one in ast.walk(node.annotation) if isinstance(one, ast.Name)}
    return found


OF_NAMED_TUPLES = ("_replace", "_fields")  # which Python documents


def is_private(name: object) -> bool:
    private = isinstance(name, str) and name.startswith("_") and not name.startswith("__")
    return private and name not in OF_NAMED_TUPLES


def private_reads() -> list[str]:
    """Where an attribute is read that is private, and that the module does not set itself."""
    found = []
    for module in graph().modules:
        nodes = nodes_of(module)
        own = {one.attr for one in nodes if isinstance(one, ast.Attribute) and stores(one)}
        own |= {one.target.id for one in nodes if isinstance(one, ast.AnnAssign) and stores(one)}
        own |= {one.name for one in nodes if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
        own |= {one.value for one in nodes if isinstance(one, ast.Constant) and slot(one)}
        for node in nodes:
            by_name = isinstance(node, ast.Call) and getattr(node.func, "id", "") in BY_NAME
            if by_name and any(is_private(getattr(one, "value", "")) for one in node.args):
                found.append(f"{module}:{node.lineno}")
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
                owner = node.value.func if isinstance(node.value, ast.Call) else node.value
                if getattr(owner, "id", "") not in ("self", "cls", "super", "_native"):
                    found.append(f"{module}:{node.lineno}")
    return found


BY_NAME = ("getattr", "attrgetter")


def stores(node: ast.Attribute | ast.AnnAssign) -> bool:
    """Whether an attribute is set here, or a field is declared."""
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name)
    return isinstance(node.ctx, ast.Store)


def slot(node: ast.Constant) -> bool:
    """Whether a text may be the name of a slot."""
    return is_private(node.value)


def main() -> None:
    rooms: Counter[str] = Counter()
    for module in graph().modules:
        rooms[room(module)] += code_lines(module)
    print(", ".join(f"{name} {lines}" for name, lines in rooms.most_common()))
    for name, (parts, most) in LAWS.items():
        print(f"{name}: {size(reached(parts))} lines, at most {most}")
    print(f"all: {sum(rooms.values())} lines")
    share = sum(one in ("Any", "object") for one in parameters()) / len(parameters())
    print(f"Any or object: {share:.1%} of parameters, at most {LOOSE:.0%}")
    print(f"private reads: {len(private_reads())}, at most {PRIVATE}")


if __name__ == "__main__":
    main()
