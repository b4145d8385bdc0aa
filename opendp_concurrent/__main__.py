"""``python -m opendp_concurrent``: the demonstration, a command on a ledger, or a script.

The demonstration compares what the same budget buys here, and with OpenDP's constructors and plain
noise: launches are counted, errors are computed from formulas, and times are measured.
"""

import os
import sys
import time
from importlib import import_module
from math import sqrt
from pathlib import Path
from runpy import run_path
from typing import Any

EPSILON, DELTA, EACH, RHO = 1.0, 1e-6, 0.01, 0.5
QUERIES, SURE, LAUNCHES = 1000, 0.95, 1000
ARRIVALS = 6366  # as many as there are respondents in the survey of docs/examples/survey.rst


def main() -> None:
    """Run the demonstration, a command on a ledger, or a script that is written for OpenDP.

    ``run script.py`` runs a script as ``python script.py`` does, within :func:`.swapped_in`.

    Only the one that runs is imported: a command needs neither ``opendp.prelude`` nor the extras
    of OpenDP, which take most of a second to import, or two with scikit-learn.
    """
    if sys.argv[1:2] == ["ledger"]:
        try:
            command = import_module("opendp_concurrent.ledger.command")
        except ImportError as error:  # it names the extra
            sys.exit(str(error))
        sys.exit(command.main(sys.argv[2:]))
    if sys.argv[1:2] == ["run"]:
        _run(sys.argv[2:])
    elif sys.argv[1:]:
        sys.exit(f"{__doc__}\nusage: opendp-concurrent [ledger COMMAND ... | run SCRIPT ...]")
    else:
        demonstrate()


def _run(arguments: list[str]) -> None:
    if not arguments or not Path(arguments[0]).is_file():
        sys.exit("run needs the path of a script: python -m opendp_concurrent run script.py")
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    with import_module("opendp_concurrent.context.swapped").swapped_in():
        run_path(arguments[0], run_name="__main__")


# --- the demonstration ---------------------------------------------------------------------------


def demonstrate() -> None:
    """Print what the same budget buys here, and with OpenDP's constructors and plain noise."""
    os.environ["RUST_BACKTRACE"] = "0"  # OpenDP turns it on; each of its errors then costs 50 ms
    dp, oc = import_module("opendp.prelude"), import_module("opendp_concurrent")
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    zcdp, pure, d_out = dp.zero_concentrated_divergence(), dp.max_divergence(), (EPSILON, DELTA)
    rules = oc.accumulators.best_rule(d_out, [(EACH, 0.0)]), oc.accumulators.basic()
    best, basic = (oc.accumulators.launches_admitted(one, d_out, [(EACH, 0.0)]) for one in rules)
    each = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / EACH)
    rho = dp.c.make_pureDP_to_zCDP(each).map(1)

    def converted(number: int) -> float:
        """The ε at δ that OpenDP derives from ρ."""
        whole = dp.c.make_adaptive_composition(*space, zcdp, 1, [number * rho])
        fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(whole), DELTA)
        epsilon: float = fixed.map(1)[0]
        return epsilon

    fits = dp.binary_search(lambda number: converted(number) <= EPSILON, bounds=(1, 1000))
    above = oc.m.make_above_threshold(
        *space, zcdp, d_in=1, scale=2.0, query_scale=2.0, threshold=0, monotone=True
    )
    judged = oc.mechanisms.sparse_vector_accuracy(2.0, 2.0, QUERIES, beta=1 - SURE)
    floats = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    scale = sqrt(QUERIES / (2 * above.map(1)))
    noised = oc.m.make_certified_gaussian(*floats, scale, zcdp).accuracy(1 - SURE, answers=QUERIES)
    one = 1 / sqrt(2 * RHO)
    counter = one * oc.streams.counter_rmse(ARRIVALS)
    added, fresh = one * sqrt((ARRIVALS + 1) / 2), one * sqrt(ARRIVALS)

    def seconds(make_odometer: Any, make_filter: Any) -> float:
        count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
        root = make_filter(make_odometer(*space, pure), 1, 2.0 * LAUNCHES)([1, 2, 3])
        begin = time.perf_counter()
        for _ in range(LAUNCHES):
            root(count)
        return time.perf_counter() - begin

    ours = seconds(oc.make_concurrent_odometer, oc.make_concurrent_filter)
    native = seconds(dp.c.make_fully_adaptive_composition, dp.c.make_privacy_filter)
    rows: list[tuple[str, ...]] = [
        ("with the same privacy budget", "here", "plain"),
        (f"queries of epsilon = {EACH} that fit in (1, 1e-6)", f"{best}", f"{basic}"),
        (f"  plain: OpenDP's filter. Its zCDP filter, converted at the end, admits {fits}",),
        (
            f"largest error of {QUERIES:,} comparisons with a threshold",
            f"{judged:.0f}",
            f"{noised:.0f}",
        ),
        (f"  with probability {SURE}, at rho = {above.map(1):g}. plain: noise on each count",),
        (
            f"typical error of a count after each of {ARRIVALS:,} arrivals",
            f"{counter:.1f}",
            f"{added:.1f}",
        ),
        (f"  at rho = {RHO}. plain: noise on each arrival; with noise on each count {fresh:.1f}",),
        (f"seconds for {LAUNCHES:,} launches", f"{ours:.2f}", f"{native:.2f}"),
        ("  plain: OpenDP's filter",),
    ]
    for what, *figures in rows:
        print(f"{what:<54}{''.join(f'{figure:>9}' for figure in figures)}".rstrip())


if __name__ == "__main__":
    main()
