"""What an import of the package, and a command on a ledger, load besides OpenDP."""

import json
import subprocess
import sys

import pytest

import opendp_concurrent as oc

HEAVY = {
    "matplotlib",
    "opendp.prelude",
    "pandas",
    "polars",
    "pyarrow",
    "scipy.fft",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
}


def loaded(code, *arguments):
    """Return the modules that ``code`` loads, in a process that has what OpenDP's contexts need."""
    program = (
        "import json, sys, opendp.context; before = set(sys.modules)\n"
        f"{code}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(result.stdout.splitlines()[-1]))


def test_the_import_loads_no_heavy_module():
    found = loaded("import opendp_concurrent")
    assert "opendp_concurrent.contexts.context" in found
    assert found & HEAVY == set()


def test_the_import_registers_constructors_and_chains():
    found = loaded(
        "import opendp_concurrent\n"
        "from opendp.mod import Transformation\n"
        "assert 'above_threshold' in opendp.context.constructors\n"
        "assert hasattr(Transformation.__rshift__, '__wrapped__')"
    )
    assert "opendp_concurrent" in found


def test_a_command_on_a_ledger_loads_the_database_and_no_other_heavy_module(tmp_path):
    pytest.importorskip("sqlalchemy")
    address = str(tmp_path / "budgets.db")
    oc.ledger.create_ledger(address, "survey").close()
    found = loaded(
        "from opendp_concurrent.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0",
        *("ledger", "show", address),
    )
    assert found & HEAVY == {"sqlalchemy"}
    assert "opendp_concurrent.demo" not in found
