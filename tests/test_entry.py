"""What an import and a command load besides OpenDP; and the demonstration, as the README has it."""

import json
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.__main__ import main

from .build import APPROXIMATE, SPACE, ZCDP, laplace, opened

HEAVY = {"matplotlib", "opendp.prelude", "pandas", "polars", "pyarrow", "sklearn", "sqlalchemy"}
HEAVY |= {f"scipy.{name}" for name in ("fft", "linalg", "optimize", "sparse", "special", "stats")}


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
    """It registers constructors and chains."""
    found = loaded(
        "import opendp_concurrent, opendp_concurrent.plot\n"
        "from opendp.mod import Transformation\n"
        "assert 'above_threshold' in opendp.context.constructors\n"
        "assert hasattr(Transformation.__rshift__, '__wrapped__')"
    )
    assert "opendp_concurrent.context.context" in found
    assert found & HEAVY == set()


# --- the demonstration ---------------------------------------------------------------------------

QUOTED = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")


def quoted():
    """The comparison in the README."""
    blocks = [block.partition("```")[0] for block in QUOTED.split("```text\n")[1:]]
    (found,) = (block.splitlines() for block in blocks if "\nseconds" in block)
    return found


def figures(start):
    """The two numbers of a line of it."""
    (line,) = (line for line in quoted() if line.startswith(start))
    return [float(one) for one in re.findall(r"[\d.]+", line.removeprefix(start))]


def test_the_demonstration_prints_what_the_readme_quotes(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["opendp-concurrent"])
    main()
    printed = capsys.readouterr().out.splitlines()
    assert len(quoted()) == len(printed) == 9
    for line in quoted():
        assert line.startswith("seconds") or line in printed


def launched(root, query):
    launches = 0
    with suppress(dp.OpenDPException):
        while True:
            root(query)
            launches += 1
    return launches


def test_as_many_counts_are_launched_as_the_readme_says():
    best, basic = figures("queries of epsilon = 0.01 that fit in (1, 1e-6)")
    d_out, query = (1.0, 1e-6), dp.c.make_approximate(laplace(0.01))
    odometer = dp.c.make_fully_adaptive_composition(*SPACE, APPROXIMATE)
    assert launched(dp.c.make_privacy_filter(odometer, 1, d_out)([1]), query) == basic
    rule = oc.accumulators.best_rule(d_out, [(0.01, 0.0)])
    assert launched(opened(d_out, APPROXIMATE, rule), query) == best


def test_the_errors_of_the_readme_are_at_the_same_budget():
    ours, plain = figures("largest error of 1,000 comparisons with a threshold")
    above = oc.m.make_above_threshold(*SPACE, ZCDP, 1, 2.0, 0, query_scale=2.0, monotone=True)
    assert ours == round(oc.mechanisms.sparse_vector_accuracy(2.0, 2.0, 1000, beta=0.05))
    deviation = (1000 / (2 * above.map(1))) ** 0.5
    assert 0.9 < plain / (4.05 * deviation) < 1.1  # about Φ^-1 of 0.95^(1/1000)
    counter, each = figures("typical error of a count after each of 6,366 arrivals")
    assert counter == pytest.approx(oc.streams.counter_rmse(6366), abs=0.05)
    assert each == pytest.approx((6367 / 2) ** 0.5, abs=0.06)
