"""Files at the root of the repository say the same as pyproject.toml."""

import re
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.version import Version

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings it
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
JOB, OLDER, NIGHTLY = WORKFLOW["jobs"].values()
MATRIX = JOB["strategy"]["matrix"]
TOOLS = {"import-linter", "mypy", "ruff"}  # which check the code, and are not run by it


def requirements():
    """What the package and its tests import, with what is allowed of it."""
    extras = PROJECT["optional-dependencies"]
    listed = [*PROJECT["dependencies"], *extras["demo"], *extras["test"], *extras["spark"]]
    found = {line: Requirement(line) for line in listed}.values()
    return [one for one in found if one.specifier and one.name not in TOOLS]


def lowest(requirement):
    (bound,) = (one.version for one in requirement.specifier if one.operator == ">=")
    return Version(bound)


def test_lower_bounds_are_those_of_the_project():
    lines = (ROOT / ".ci" / "lower-bounds.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    found = {name: Version(version) for name, version in pinned.items()}
    bounds = {one.name: lowest(one) for one in requirements()}
    assert found.pop("opendp") > bounds.pop("opendp")  # the core on older ones: .ci/older
    assert found == bounds


def test_the_workflow_runs_every_python_that_the_project_names():
    pythons = [
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if re.search(r":: Python :: 3\.\d+$", line)
    ]
    assert MATRIX["python"] == pythons
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    assert MATRIX["constraint"] == [""]
    assert MATRIX["include"] == [{"python": pythons[0], "constraint": ".ci/lower-bounds.txt"}]
