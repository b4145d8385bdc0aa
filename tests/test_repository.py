"""Files at the root of the repository say the same as pyproject.toml."""

import os
import re
import subprocess
from pathlib import Path

import pytest
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
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
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


def test_an_extra_does_not_allow_what_another_does_not():
    bounds = {one.name: lowest(one) for one in requirements()}
    for lines in PROJECT["optional-dependencies"].values():
        for one in map(Requirement, lines):
            if one.specifier and one.name in bounds:
                assert lowest(one) == bounds[one.name], one


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


def test_the_workflow_is_the_script_that_anybody_can_run():
    commands = [step["run"] for step in JOB["steps"] if "run" in step]
    assert commands == [".ci/run"]
    assert [step["run"] for step in OLDER["steps"] if "run" in step] == [
        ".ci/older ${{ matrix.opendp }}"
    ]
    assert f">={min(OLDER['strategy']['matrix']['opendp'])}," in PROJECT["dependencies"][0]
    assert [step["run"] for step in NIGHTLY["steps"] if "run" in step] == [".ci/nightly"]
    for script in ("run", "older", "nightly", "coverage"):
        path = ROOT / ".ci" / script
        assert os.access(path, os.X_OK)
        subprocess.run(["bash", "-n", str(path)], check=True)


def test_the_script_begins_with_the_commands_of_the_readme():
    (command,) = re.findall(r"^python3 -m venv .*pytest$", (ROOT / "README.md").read_text(), re.M)
    assert command in (ROOT / ".ci" / "run").read_text().splitlines()


def test_actions_are_pinned_to_commits():
    for step in JOB["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])
    assert WORKFLOW["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("repository", HOOKS, ids=lambda one: one["repo"])
def test_hooks_are_pinned_to_releases(repository):
    if repository["repo"] != "local":
        assert re.fullmatch(r"v\d+\.\d+\.\d+", repository["rev"])


def test_hooks_format_and_check_as_the_script_does():
    hooks = [hook["id"] for repository in HOOKS for hook in repository["hooks"]]
    assert {"ruff-check", "ruff-format", "mypy", "end-of-file-fixer"} <= set(hooks)


def test_nobody_is_made_up_to_report_to():
    for name in ("SECURITY.md", "CONTRIBUTING.md"):
        assert "@" not in re.sub(r"`[^`]*`|```.*?```", "", (ROOT / name).read_text(), flags=re.S)
