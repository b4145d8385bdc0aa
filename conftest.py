"""What examples may rely on: ``dp`` and ``oc`` in docstrings, and noisy numbers that differ."""

import atexit
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

# a ledger waits for the disk at each commit: in memory, tests need a third of the time
if (
    "TMPDIR" not in os.environ
    and os.path.isdir(_memory := "/dev/shm")
    and shutil.disk_usage(_memory).free > 2**30
):
    os.environ["TMPDIR"] = tempfile.tempdir = _memory

# not in this process, but in those that tests start: OpenDP would import scikit-learn in each
if (_light := str(Path(__file__).parent / "tests" / "light")) not in os.getenv("PYTHONPATH", ""):
    _known = _light, str(Path(__file__).parent), os.getenv("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _known))
if _light in sys.path:
    sys.path.remove(_light)

# where no code may be compiled next to its source, each process of a test would compile all of it
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None) and "PYTHONPYCACHEPREFIX" not in os.environ:
    _compiled, _owner = tempfile.mkdtemp(prefix="compiled"), os.getpid()
    os.environ["PYTHONPYCACHEPREFIX"] = _compiled
    # not at the end of a fork
    atexit.register(lambda: os.getpid() == _owner and shutil.rmtree(_compiled, ignore_errors=True))

# before NumPy is imported: threads of several test processes would wait for each other's cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.measures import registry

NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


def _with_any_noise(want):
    """Allow other numbers, but not in a last column of accuracies, which has no noise."""
    head, *rows = want.splitlines(keepends=True) or [""]
    if not (rows and head.split()[-1:] == ["accuracy"]):
        return NUMBER.sub("...", want)
    ends = [row.rpartition(" ") for row in rows]
    return head + "".join(NUMBER.sub("...", row + space) + last for row, space, last in ends)


@pytest.fixture(autouse=True)
def _examples(request):
    if isinstance(request.node, pytest.DoctestItem):
        dp.enable_features("contrib", "honest-but-curious")
        request.node.dtest.globs.update(dp=dp, oc=oc)
        for example in request.node.dtest.examples:
            if re.search(r"#.*\bnoisy\b", example.source):  # it shows one of many answers
                example.want = _with_any_noise(example.want)
        known = dict(registry._KNOWN)
        yield
        registry._KNOWN.clear()  # a measure of an example has lost the names that it uses
        registry._KNOWN.update(known)
    else:
        yield
