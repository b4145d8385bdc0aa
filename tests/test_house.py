"""Who may import what. The layers are in pyproject.toml, for import-linter."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "opendp_concurrent"
FILES = {path.relative_to(PACKAGE): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def parsed(path):
    return list(ast.walk(ast.parse(path.read_text())))


def imports(file):
    """Return the files that a file imports: modules, and doors of packages."""
    found = set()
    for node in parsed(FILES[file]):
        if isinstance(node, ast.ImportFrom) and node.level:
            origin = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for name in [origin / one.name for one in node.names] + [origin]:
                found |= {Path(f"{name}.py"), name / "__init__.py"} & FILES.keys()
    return found - {file, Path("__init__.py")}


@cache
def graph():
    return {file: imports(file) for file in FILES if file != Path("__init__.py")}


def room(file):
    return file.parts[0].removesuffix(".py")


def test_nobody_imports_a_module_inside_another_package():
    assert not {
        (str(file), str(other))
        for file, others in graph().items()
        for other in others
        if len(other.parts) > 1 and room(other) != room(file) and other.name != "__init__.py"
    }


def test_no_files_import_each_other():
    done = set()

    def visit(file, path):
        assert file not in path, [*map(str, path), str(file)]
        if file not in done:
            for other in graph()[file]:
                if other != file.parent / "__init__.py":
                    visit(other, (*path, file))
            done.add(file)

    for file in graph():
        visit(file, ())


def picture():
    """Return each room with the rooms that it needs, without those that these need anyway."""
    rooms = {room(file) for file in graph()}
    direct = {one: set() for one in rooms}
    for file, others in graph().items():
        direct[room(file)] |= {room(other) for other in others} - {room(file)}

    def below(one):
        return direct[one].union(*(below(other) for other in direct[one]))

    lines = []
    for one in sorted(rooms, key=lambda one: (-len(below(one)), one)):
        needed = direct[one] - set().union(*(below(other) for other in direct[one]))
        lines.append(f"{one:<12} -> {', '.join(sorted(needed))}".rstrip(" ->"))
    return "\n".join(lines)


def test_the_map_in_contributing_is_that_of_the_imports():
    assert picture() in (ROOT / "CONTRIBUTING.md").read_text()


def outside(path):
    for node in parsed(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_one_package_knows_opendps_private_names():
    assert {"_opendp"} == {
        room(file)
        for file, path in FILES.items()
        for name in outside(path)
        if name.startswith("opendp.") and any(part.startswith("_") for part in name.split("."))
    }


def test_noise_comes_from_opendp_only():
    for path in FILES.values():
        for name in outside(path):
            assert not name.startswith(("random", "numpy.random", "secrets")), path
