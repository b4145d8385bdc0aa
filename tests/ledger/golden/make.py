"""Write ledgers as the version that is installed does, to be read by all later ones.

    python tests/ledger/golden/make.py FOLDER

``FOLDER`` gets ``closed.db``, with a budget for each measure and each accumulator; ``killed.db``
and ``killed.db-wal``, as a process leaves them that is killed; and ``expected.json``, what they
say. The folders beside this file were written by the version that they are named after: they are
never written again, as no later version could.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.ledger import create_ledger

C, A = getattr(oc, "c", oc), getattr(oc, "accumulators", oc)  # no groups in 0.1.0
F = oc.TradeoffFunction
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE, ZCDP, CURVES = dp.max_divergence(), dp.zero_concentrated_divergence(), dp.renyi_divergence()
APPROXIMATE = dp.approximate(PURE)
FUNCTIONS = {
    "pure": F.pure(0.25),
    "approximate": F.approximate(0.25, 1e-7),
    "gaussian": F.gaussian(0.125),
    "laplace": F.laplace(0.25),
    "discrete laplace": F.discrete_laplace(4.0, 2),
    "discrete gaussian": F.discrete_gaussian(8.0),
    "randomized response": F.randomized_response(0.5625, 2),
    "finite": F.finite([0.25, 0.5, 0.25], [0.5, 0.375, 0.125]),
    "inverse": F.finite([0.25, 0.5, 0.25], [0.5, 0.375, 0.125]).inverse(),
    "product": F.gaussian(0.125).compose(F.laplace(0.25)).compose(F.pure(0.125)),
}


def laplace(scale: float) -> Any:
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


def gaussian(scale: float) -> Any:
    return SPACE >> dp.t.then_count() >> dp.m.then_gaussian(scale=scale)


def of_function(function: Any) -> Any:
    return dp.m.make_user_measurement(*SPACE, oc.tradeoff(), len, lambda _: function)


def budgets() -> dict[str, tuple[Any, ...]]:
    """By name: measure, queries, bound (None for an odometer), accumulator, more arguments."""
    pairs = dp.c.make_approximate(laplace(8.0)), dp.c.make_approximate(laplace(16.0))
    one_order = oc.fixed_renyi_divergence(4.0)
    tcdp = C.make_zCDP_to_tCDP(gaussian(4.0), 32.0)
    to_functions = [C.make_pureDP_to_fDP(laplace(8.0))] * 3
    curves = [C.cast(gaussian(4.0), CURVES)] * 2
    return {
        "pure": (PURE, [laplace(8.0), laplace(10.0)], 1.0, None, {}),
        "pure, é 漢 'quoted'": (PURE, [laplace(8.0)], 1.0, A.basic(), {}),
        "pure, at distance 3": (PURE, [laplace(8.0)], 4.0, None, {"d_in": 3}),
        "approximate": (APPROXIMATE, pairs, (1.0, 1e-9), None, {}),
        "advanced": (APPROXIMATE, pairs, (2.5, 1e-6), A.advanced(1e-7), {}),
        "zcdp": (APPROXIMATE, pairs, (2.5, 1e-6), A.zcdp(1e-7), {}),
        "renyi": (APPROXIMATE, pairs, (2.5, 1e-6), A.renyi(8.0, 1e-7), {}),
        "either": (APPROXIMATE, pairs, (2.5, 1e-6), A.either(A.basic(), A.zcdp(1e-7)), {}),
        "zCDP": (ZCDP, [gaussian(4.0), gaussian(5.0)], 0.5, None, {}),
        "Rényi of one order": (one_order, [C.cast(gaussian(4.0), one_order)] * 2, 1.0, None, {}),
        "Rényi on orders": (
            CURVES,
            curves,
            lambda alpha: 0.5 * alpha,
            None,
            {"orders": [1.5, 2.0, 16.0]},
        ),
        "tCDP": (tcdp.output_measure, [tcdp] * 2, oc.TruncatedConcentrated(0.5, 32.0), None, {}),
        "GDP": (
            oc.gaussian_tradeoff(),
            [C.make_pureDP_to_GDP(laplace(8.0))] * 2,
            0.5,
            None,
            {},
        ),
        "ladder": (
            oc.tradeoff(),
            to_functions,
            F.pure(0.125).power(7),
            A.ladder(F.pure(0.125)),
            {},
        ),
        "residue": (oc.tradeoff(), to_functions, F.gaussian(1.0), A.residue(1.0), {}),
        "functions": (
            oc.tradeoff(),
            list(map(of_function, FUNCTIONS.values())),
            None,
            A.ladder(F.approximate(0.125, 1e-7)),
            {},
        ),
        "odometer": (PURE, [laplace(8.0)], None, None, {}),
        "settled, and nothing launched": (PURE, [], 1.0, None, {}),
    }


def launch(ledger: Any, budget: tuple[Any, ...]) -> None:
    """Build what the budget is for, and launch its queries."""
    measure, queries, d_out, accumulator, more = budget
    d_in = more.get("d_in", 1)
    if d_out is None:
        bound = {"ledger": ledger, "d_in": d_in}
        make = oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator, **bound)
    else:
        odometer = oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)
        rest = {"d_in": d_in, "d_out": d_out, "ledger": ledger, **more}
        make = oc.make_concurrent_filter(odometer, **rest)
    root = make([1, 2, 3])
    for number, query in enumerate(queries):
        with oc.labelled(f"number {number + 1}, for Zoë\n漢"):
            root(query)


def told(ledger: Any) -> dict[str, Any]:
    """What a summary says, so that later versions can be compared with it."""
    summary, entries = ledger.read()
    return {
        "launches": summary.launches,
        "spent": plain(summary.spent),
        "remaining": plain(summary.remaining),
        "anchor": summary.anchor,
        "labels": [entry.label for entry in entries],
        "mechanisms": [entry.mechanism for entry in entries],
        "losses": [plain(entry.loss) for entry in entries],
    }


def plain(value: Any) -> Any:
    """A loss as JSON: of a function the δ at three ε, of a curve its values at three orders."""
    if isinstance(value, F):
        return [float(value.delta(epsilon)) for epsilon in (0.25, 0.5, 1.0)]
    if isinstance(value, oc.TruncatedConcentrated):
        return [value.rho, value.omega]
    if callable(value):
        return [float(value(order)) for order in (1.5, 2.0, 16.0)]
    return list(value) if isinstance(value, tuple) else value


def main(folder: Path) -> None:
    """Write the ledgers and what they say."""
    expected = {}
    for name, budget in budgets().items():
        with create_ledger(folder / "closed.db", name) as ledger:
            launch(ledger, budget)
            expected[name] = told(ledger)
    name = "created, and never used"
    with create_ledger(folder / "closed.db", name) as ledger:
        expected[name] = told(ledger)
    with closing(sqlite3.connect(folder / "closed.db")) as connection:
        connection.execute("VACUUM")
    with create_ledger(folder / "open.db", "killed") as ledger:
        launch(ledger, budgets()["pure"])
        expected["killed"] = told(ledger)
        for end in ("", "-wal"):
            shutil.copyfile(folder / f"open.db{end}", folder / f"killed.db{end}")
    (folder / "open.db").unlink()
    text = json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True)
    (folder / "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    dp.enable_features("contrib", "honest-but-curious")
    main(Path(sys.argv[1]))
