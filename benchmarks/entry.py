"""What it costs to begin: imports, a command on a ledger, and scales that are left to be found.

    python benchmarks/entry.py [--quick] [--json] [--save]

CPU times are of fresh processes, with bytecode in place: medians of 7. Imports are measured with
the modules that OpenDP's prelude loads by itself: scikit-learn, if it is there, brings SciPy with
it, so that the import of this package looks cheaper. The target is for the dearer case.
"""

from __future__ import annotations

import inspect
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"

import opendp.context
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
UNIT, LOSS = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
IMPORTS = """
import sys, time
sys.modules.update(dict.fromkeys(sys.argv[1:]))
begin = time.process_time()
import opendp.prelude
between = time.process_time()
import opendp_concurrent
print(between - begin, time.process_time() - between)
"""


class Fresh:
    """Runs Python in new processes that share their bytecode."""

    def __init__(self, folder: str, runs: int) -> None:
        self._runs = runs
        self._env = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        self._env.pop("PYTHONDONTWRITEBYTECODE", None)

    def _run(self, arguments: tuple[str, ...]) -> tuple[float, str]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, *arguments], env=self._env, check=True, capture_output=True, text=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout

    def cpu(self, *arguments: str) -> float:
        """CPU seconds of the process."""
        self._run(arguments)
        return median(self._run(arguments)[0] for _ in range(self._runs))

    def imports(self, *without: str) -> tuple[float, float]:
        """CPU seconds of the import of OpenDP's prelude, and of this package after it."""
        arguments = "-c", IMPORTS, *without
        self._run(arguments)
        times = [tuple(map(float, self._run(arguments)[1].split())) for _ in range(self._runs)]
        native, ours = (median(part) for part in zip(*times, strict=True))
        return native, ours


def ledger(folder: str) -> str:
    """A ledger with a hundred charges."""
    address = str(Path(folder) / "budgets.db")
    kept = oc.ledger.create_ledger(address, "survey")
    odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence())
    root = oc.make_concurrent_filter(odometer, 1, 1.0, ledger=kept)([1, 2, 3])
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1000.0)
    for _ in range(100):
        root(count)
    kept.close()
    return address


class Counted:
    """A constructor that counts its calls."""

    def __init__(self, make: Callable) -> None:
        self.make, self.calls, self.__signature__ = make, 0, inspect.signature(make)

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.make(*args, **kwargs)


def in_a_context(context: Callable, loss) -> tuple[int, float]:
    """Builds and seconds for the scale of a count."""
    laplace, partial = opendp.context.constructors["laplace"]
    opendp.context.constructors["laplace"] = counted = Counted(laplace), partial
    try:
        query = context([1, 2, 3], UNIT, loss, split_evenly_over=1).query().count().laplace()
        begin = time.perf_counter()
        query.resolve()
        return counted[0].calls, time.perf_counter() - begin
    finally:
        opendp.context.constructors["laplace"] = laplace, partial


def on_a_frame(context: Callable, module) -> tuple[int, float]:
    """Builds and seconds for the scale of a count of a LazyFrame."""
    import polars

    make = module.make_private_lazyframe
    module.make_private_lazyframe = counted = Counted(make)
    try:
        margins = [dp.polars.Margin(by=(), max_length=1000)]
        frame = polars.LazyFrame({"age": [20, 30]})
        query = context(frame, UNIT, LOSS, split_evenly_over=1, margins=margins).query()
        begin = time.perf_counter()
        query.select(dp.len(signed=True)).resolve()
        return counted.calls, time.perf_counter() - begin
    finally:
        module.make_private_lazyframe = make


def calibrated() -> tuple[int, float]:
    """Builds and seconds for the scale of a hundred launches."""
    scalar = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def make(scale):
        return oc.m.make_certified_gaussian(*scalar, scale, oc.gaussian_tradeoff())

    counted, begin = Counted(make), time.perf_counter()
    oc.c.smallest_scale(counted, d_in=1.0, d_out=0.5, launches=100)
    return counted.calls, time.perf_counter() - begin


def main() -> None:
    options = parser(__doc__).parse_args()
    print_machine()
    estimated = {}
    with tempfile.TemporaryDirectory() as folder:
        fresh = Fresh(folder, 3 if options.quick else 7)
        cases = {"what is installed": (), "no scikit-learn": ("sklearn",)}
        cases["no scikit-learn, Polars, pandas"] = ("sklearn", "polars", "pandas", "pyarrow")
        imports = {name: fresh.imports(*without) for name, without in cases.items()}
        print_table(
            "Imports, CPU milliseconds",
            ["with", "opendp.prelude", "opendp_concurrent adds"],
            [[name, native * 1e3, ours * 1e3] for name, (native, ours) in imports.items()],
        )
        run = "-m", "opendp_concurrent"
        commands = {
            "a bare interpreter": fresh.cpu("-c", ""),
            "import opendp.context": fresh.cpu("-c", "import opendp.context"),
            "import opendp_concurrent": fresh.cpu("-c", "import opendp_concurrent"),
            "import sqlalchemy": fresh.cpu("-c", "import sqlalchemy"),
            "ledger show, 100 charges": fresh.cpu(*run, "ledger", "show", ledger(folder)),
        }
        print_table(
            "Processes, CPU milliseconds",
            ["what", "time"],
            [[name, cpu * 1e3] for name, cpu in commands.items()],
        )

    builds = {
        "count, ε": [
            in_a_context(make, LOSS) for make in (dp.Context.compositor, oc.concurrent_context)
        ],
        "count, Laplace under ρ": [
            in_a_context(make, dp.loss_of(rho=0.5))
            for make in (dp.Context.compositor, oc.concurrent_context)
        ],
        "smallest_scale, μ": [(None, None), calibrated()],
    }
    if find_spec("polars"):
        builds["count of a LazyFrame"] = [
            on_a_frame(dp.Context.compositor, dp.polars),
            on_a_frame(oc.concurrent_context, dp.m),
        ]
    else:
        estimated["scale_builds_max"] = "without LazyFrames"
    print_table(
        "Scales that are left to be found: builds and milliseconds",
        ["what", "OpenDP's context", "ms", "ours", "ms"],
        [
            [name, native, None if native is None else t * 1e3, ours, mine * 1e3]
            for name, ((native, t), (ours, mine)) in builds.items()
        ],
    )
    report(
        {
            "import_added_s": max(ours for _, ours in imports.values()),
            "ledger_show_s": commands["ledger show, 100 charges"],
            "scale_builds_max": max(ours for _, (ours, _) in builds.values()),
        },
        {
            "import_added_s": ("at most", 0.25),
            "ledger_show_s": ("at most", 1.0),
            "scale_builds_max": ("at most", 100),
        },
        estimated,
        options,
    )


if __name__ == "__main__":
    main()
