"""What an import of the package changes in OpenDP, against the list in the docs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import opendp.prelude as dp
import pytest
from opendp import mod

import opendp_concurrent as oc

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "for-opendp.rst"


def listed(title):
    """Return what the first column of the table of a section names."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n{title}\n---")[1].partition("\n---")[0]
    rows = re.findall(r"^   \* - (.*)$", section, re.MULTILINE)
    return [one for row in rows for one in re.findall("``(.+?)``", row)]


@pytest.fixture(scope="module")
def changes():
    command = [sys.executable, str(ROOT / "tests" / "changes.py")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}  # with all of OpenDP, also what needs sklearn
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=env
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_the_comparison_sees_opendp(changes):
    assert changes["objects"] > 1000
    assert changes["nothing"] == []


def test_an_import_changes_what_the_docs_list_and_no_more(changes):
    assert changes["import"] == sorted(listed("What an import changes"))


def test_install_changes_what_it_says_and_uninstall_undoes_it(changes):
    assert changes["told"] == listed("What install changes")
    assert changes["install"] == sorted(changes["import"] + changes["told"])
    assert changes["uninstall"] == changes["import"]


@pytest.fixture
def made(space):
    return oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [0.5])


def test_deserialize_knows_this_package_from_install_to_uninstall(space, made):
    message, original = dp.serialize(made), mod._deserialization_hook
    with pytest.raises(ModuleNotFoundError):
        dp.deserialize(message)
    assert oc.install() == oc.install()
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    try:
        assert dp.deserialize(message).map(1) == 0.5
        assert dp.deserialize(dp.serialize(count)).map(1) == 0.5
    finally:
        oc.uninstall()
    oc.uninstall()
    assert mod._deserialization_hook is original
