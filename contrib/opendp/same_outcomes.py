"""Run OpenDP's tests without and with a plugin of pytest, and compare them test by test.

    python contrib/opendp/same_outcomes.py CLONE [PLUGIN]

CLONE is a clone of OpenDP, at the version that is installed or near it. The plugin is a module; by
default it is this package, so that it is imported before any test is. Tests and doctests run with a
copy of the installed OpenDP, whose native library need not be built.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from shutil import copytree, ignore_patterns
from xml.etree import ElementTree

import opendp

ADDRESS = re.compile(r"0x[0-9a-f]+")  # in names of tests, of their arguments
OPTIONS = (
    *("-c", ".pytest.ini", "-o", "filterwarnings=ignore", "-p", "no:cacheprovider", "-q"),
    "--continue-on-collection-errors",
)


def outcomes(folder, *plugin):
    """Return the outcome of each test, by its name, and print the last line of the run."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", *OPTIONS, *plugin, f"--junitxml={report}"]
    path = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
    settings = os.environ | {"PYTHONPATH": path, "RUST_BACKTRACE": "0"}
    done = subprocess.run(
        [*command, "test", "src"], cwd=folder, env=settings, capture_output=True, text=True
    )
    print(" ".join(plugin) or "without", "\n ", done.stdout.splitlines()[-1])
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = ADDRESS.sub("", f"{case.get('classname')}::{case.get('name')}")
        kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found.setdefault(name, []).append(", ".join(kinds) or "passed")
    return found


def main(clone, plugin="opendp_concurrent"):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "python"
        copytree(Path(clone) / "python", folder, ignore=ignore_patterns("src"))
        copytree(Path(opendp.__file__).parent, folder / "src" / "opendp")
        without, with_it = outcomes(folder), outcomes(folder, "-p", plugin)
    for one in (without, with_it):
        print(dict(Counter(outcome for several in one.values() for outcome in several)))
    differ = [one for one in without.keys() | with_it if without.get(one) != with_it.get(one)]
    for one in sorted(differ):
        print(f"{one}: {without.get(one)}, and with {plugin}: {with_it.get(one)}")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main(*sys.argv[1:])
