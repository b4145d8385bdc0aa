"""What requests of the example server cost: launches, refusals, and repeated requests.

    python benchmarks/server.py [--quick] [--json] [--save]

1,000 analysts launch once each, which spends their limits, and then go on asking. A refused request
stores its key, is decided on the ledger, and forgets its key: it must not cost more than a launch.
It is measured with few charges in the ledger, and with 100,000 more (20,000 with ``--quick``). A
repeated request gets its stored answer. All requests are sent to the server's function for
launches, one at a time, without HTTP. The files are in a new folder on the disk of temporary files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

os.environ["RUST_BACKTRACE"] = "0"

import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")
PATH = Path(__file__).parents[1] / "docs" / "examples" / "server.py"
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ANALYSTS, PREPAID = 1000, 10_000


def example() -> Any:
    """Return the module of the example."""
    specification = importlib.util.spec_from_file_location("server_example", PATH)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["server_example"] = module
    specification.loader.exec_module(module)
    return module


class Analysts:
    """The analysts of a server, and their requests."""

    def __init__(self, folder: Path) -> None:
        self.example = example()
        names = [f"analyst {number}" for number in range(ANALYSTS)]
        tokens = {one: hashlib.sha256(one.encode()).hexdigest() for one in names}
        limits = dict.fromkeys(names, 1.0)
        settings = self.example.Settings(folder, [1, 2, 3], tokens, limits, cap=1e6)
        self.names, self.server = names, self.example.Server(settings)
        self._query = oc.serialize(SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0))

    def ask(self, count: int, key: str) -> tuple[float, int]:
        """Return the requests per second, and how many were refused."""
        refused, start = 0, time.perf_counter()
        for number in range(count):
            name = self.names[number % len(self.names)]
            order = self.example.Order(key=key, query=self._query)
            handle = partial(self.server.handles.get, name)
            try:
                self.server.launch(name, "/launch", handle, order)
            except oc.errors.BudgetExceededError:
                refused += 1
        return count / (time.perf_counter() - start), refused

    def charge(self, count: int) -> None:
        """Add charges to the ledger, with labels as others have them."""
        cheap = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1e6)
        for number in range(count // PREPAID):
            with oc.labelled(f"somebody/{number}: "):
                self.server.cap.prepaid(cheap, PREPAID)


def main() -> None:
    """Measure, print, report."""
    options = parser(__doc__).parse_args()
    print_machine()
    with tempfile.TemporaryDirectory() as home:
        analysts, count = Analysts(Path(home) / "kept"), 200 if options.quick else ANALYSTS
        launched, none = analysts.ask(ANALYSTS, "launch")
        again, _ = analysts.ask(count, "launch")
        refused, all_of_them = analysts.ask(count, "more")
        assert (none, all_of_them) == (0, count)
        analysts.charge(20_000 if options.quick else 100_000)
        later, _ = analysts.ask(count, "later")
        charges = analysts.server.ledger.summary().launches
        analysts.server.close()
    print_table(
        f"{ANALYSTS:,} analysts: requests per second, one at a time",
        ["request", "charges in the ledger", "per second"],
        [
            ["launched", ANALYSTS, launched],
            ["repeated, with a stored answer", ANALYSTS, again],
            ["refused", ANALYSTS, refused],
            ["refused", charges, later],
        ],
    )
    figures = {
        "launches_per_second": launched,
        "repeated_per_second": again,
        "refused_over_launched": refused / launched,
        "refused_over_launched_later": later / launched,
    }
    targets = {
        "refused_over_launched": ("at least", 0.5),
        "refused_over_launched_later": ("at least", 0.5),
    }
    report(figures, targets, {}, options)


if __name__ == "__main__":
    main()
