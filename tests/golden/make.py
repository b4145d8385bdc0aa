"""Write ledgers as the version that is installed does, to be read by all later ones.

    python tests/golden/make.py FOLDER

``FOLDER`` gets

* ``closed.db.gz``, with a budget for each measure and each accumulator that can be kept;
* ``killed.db.gz`` and ``killed.db-wal.gz``, as a process leaves them that is killed;
* ``expected.json``: what the ledgers say, with doubles in hexadecimal; and what this version
  cannot make, each with the reason.

The folders beside this file were written by the version that they are named after. They are never
written again, as no later version could. This script runs with every version since 0.1.0, so a
public name is looked up wherever a version has it.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.ledger import create_ledger

EPSILONS = (0.25, 0.5, 1.0)  # at which a trade-off function is compared
ORDERS = (1.5, 2.0, 16.0)  # at which a Rényi curve is
KEPT = ("closed.db", "killed.db", "killed.db-wal")
LARGE = ("mixture with a gaussian",)  # functions that are written once
ONE_WAY = "subsampled"  # whose losses bound one direction of neighbours


def public(name: str) -> Any:
    """A public name of this version, whichever group it is in."""
    for group in ("", "c.", "accumulators."):
        try:
            found = attrgetter(group + name)(oc)
        except AttributeError:
            continue
        if callable(found):
            return found
    raise AttributeError(f"opendp_concurrent has no {name}")


F = oc.TradeoffFunction
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
NUMBER = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
PURE, ZCDP, CURVES = dp.max_divergence(), dp.zero_concentrated_divergence(), dp.renyi_divergence()
APPROXIMATE = dp.approximate(PURE)


UNEVEN = [0.25, 0.5, 0.25, 0.0], [0.0, 0.375, 0.5, 0.125]
FUNCTIONS: dict[str, Callable[[], Any]] = {
    "identity": F.identity,
    "worst": F.worst,
    "pure": lambda: F.pure(0.25),
    "approximate": lambda: F.approximate(0.25, 1e-7),
    "all or nothing": lambda: F.approximate(0.0, 1e-7),
    "gaussian": lambda: F.gaussian(0.125),
    "tiny gaussian": lambda: F.gaussian(5e-324),
    "laplace": lambda: F.laplace(0.25),
    "discrete laplace": lambda: F.discrete_laplace(4.0, 2),
    "fine laplace": lambda: F.laplace(0.25, 10_000.0),
    "discrete gaussian": lambda: F.discrete_gaussian(1.0),
    "randomized response": lambda: F.randomized_response(0.375, 3),
    "finite": lambda: F.finite([0.25, 0.5, 0.25], [0.5, 0.375, 0.125]),
    "inverse": lambda: F.finite([0.25, 0.5, 0.25], [0.5, 0.375, 0.125]).inverse(),
    "inverse twice": lambda: F.finite(*UNEVEN).inverse().inverse(),
    "finite with infinite losses": lambda: F.finite(*UNEVEN),
    "inverse with infinite losses": lambda: F.finite(*UNEVEN).inverse(),
    "profile": lambda: F.from_profile([0.0, 0.5], [0.125, 0.0]),
    "profile of two directions": lambda: F.from_profile([0.0, 0.5], [0.125, 0.0], [0.125, 1e-7]),
    "inverse of a profile": lambda: F.from_profile(
        [0.0, 0.5], [0.125, 0.0], [0.125, 1e-7]
    ).inverse(),
    "curve": lambda: F.from_curve([0.0, 0.25, 1.0], [0.875, 0.5, 0.0]),
    "loss distribution": lambda: F.from_loss_distribution([0.25, -0.25], [0.5625, 0.4375]),
    "mixture": lambda: F.mixture([1, 2], [F.pure(0.25), F.pure(0.5)]),
    "mixture of two directions": lambda: F.mixture(
        [1, 2], [F.pure(0.25), F.finite([0.25, 0.5, 0.25], [0.5, 0.375, 0.125])]
    ),
    "mixture with a gaussian": lambda: F.mixture([3, 1], [F.identity(), F.gaussian(0.125)]),
    "group of a gaussian": lambda: F.gaussian(0.125).group(2),
    "group of a laplace": lambda: F.laplace(0.125).group(3),
    "group of a finite": lambda: F.randomized_response(0.375, 3).group(2),
    "symmetrised": lambda: F.finite([0.25, 0.5, 0.25], [0.5, 0.375, 0.125]).symmetrised(),
    "power": lambda: F.laplace(0.03125).power(7),
    "product": lambda: F.gaussian(0.125).compose(F.laplace(0.125)).compose(F.pure(0.0625)),
    "product with its inverse": lambda: F.finite([0.5, 0.5], [0.5625, 0.4375]).compose(
        F.finite([0.5, 0.5], [0.5625, 0.4375]).inverse()
    ),
}


class Budget(NamedTuple):
    """A filter, or an odometer, and what is launched on it.

    :ivar d_out: the bound; None for an odometer
    :ivar more: other arguments of the filter
    :ivar limits: for each query, the labels of the limits that it is below, from the outermost one
    """

    measure: Any
    queries: Any
    d_out: Any = None
    accumulator: Any = None
    d_in: Any = 1
    space: Any = SPACE
    data: Any = (1, 2, 3)
    more: Any = ()
    chained: Any = None
    limits: Any = ()

    def root(self, ledger: Any) -> Any:
        """The queryable, kept in ``ledger``."""
        kept = {"ledger": ledger, "d_in": self.d_in}
        head = self.space if self.chained is None else self.chained
        bound = {} if self.d_out is not None else kept
        made = oc.make_concurrent_odometer(
            *head, self.measure, accumulator=self.accumulator, **bound
        )
        if self.chained is not None:
            made = self.space >> dp.t.then_clamp((0, 8)) >> made
        if self.d_out is not None:
            made = oc.make_concurrent_filter(made, d_out=self.d_out, **kept, **dict(self.more))
        return made(list(self.data) if isinstance(self.data, tuple) else self.data)

    def below(self, root: Any, number: int) -> Any:
        """The queryable that a query is launched on."""
        for label in self.limits[number] if self.limits else ():
            made = oc.make_concurrent_odometer(*self.space, self.measure)
            root = root(public("make_limited")(made, self.d_in, 2.0, label=label))
        return root


def laplace(scale: float) -> Any:
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


def gaussian(scale: float) -> Any:
    return SPACE >> dp.t.then_count() >> dp.m.then_gaussian(scale=scale)


def loses(measure: Any, *losses: Any) -> list[Any]:
    """Measurements that say of themselves that they lose this much."""
    return [
        dp.m.make_user_measurement(*SPACE, measure, len, lambda _, loss=loss: loss)
        for loss in losses
    ]


def functions(*without: str) -> list[Any]:
    """A measurement for each trade-off function that this version has."""
    found = []
    for name, make in FUNCTIONS.items():
        with suppress(Exception):  # left out: main says so
            found += [] if name in without else [make()]
    return loses(oc.tradeoff(), *found)


def _pure() -> dict[str, Callable[[], Budget]]:
    inner = dp.vector_domain(dp.atom_domain(T=int, bounds=(0, 8))), dp.symmetric_distance()
    summed = inner >> dp.t.then_sum() >> dp.m.then_laplace(scale=64.0)
    float_noise = NUMBER >> dp.m.then_laplace(scale=8.0)
    return {
        "pure": lambda: Budget(PURE, [laplace(8.0), laplace(10.0)], 1.0),
        "pure, é 漢 'quoted'": lambda: Budget(PURE, [laplace(8.0)], 1.0, public("basic")()),
        "pure, at distance 3": lambda: Budget(PURE, [laplace(8.0)], 4.0, d_in=3),
        "pure, at distance 2.5": lambda: Budget(
            PURE, [float_noise] * 2, 2.0, d_in=2.5, space=NUMBER, data=3.0
        ),
        "pure, of all sizes": lambda: Budget(PURE, loses(PURE, 5e-324, 0.0, 1e300, 0.1), 3e300),
        "pure, chained": lambda: Budget(PURE, [summed] * 2, 1.0, chained=inner),
        "odometer": lambda: Budget(PURE, [laplace(8.0)]),
        "odometer, at distance 2": lambda: Budget(PURE, [laplace(8.0)] * 2, d_in=2),
        "odometer, without privacy": lambda: Budget(PURE, loses(PURE, 0.5, float("inf"), 0.25)),
        "settled, and nothing launched": lambda: Budget(PURE, [], 1.0),
        "twenty": lambda: Budget(PURE, [laplace(64.0)] * 20, 1.0),
    }


def _approximate() -> dict[str, Callable[[], Budget]]:
    pairs = dp.c.make_approximate(laplace(8.0)), dp.c.make_approximate(laplace(16.0))
    lossy = [*pairs, *loses(APPROXIMATE, (0.1, 1e-9), (0.0, 1e-10))]
    worst = loses(APPROXIMATE, (0.25, 1e-8), (float("inf"), 0.0), (0.5, 2.0))
    basic, advanced, zcdp = public("basic"), public("advanced"), public("zcdp")
    renyi, either, best_rule = public("renyi"), public("either"), public("best_rule")

    def budget(accumulator: Any, d_out: Any = (2.5, 2e-6)) -> Callable[[], Budget]:
        return lambda: Budget(APPROXIMATE, lossy, d_out, accumulator())

    def odometer(accumulator: Any) -> Callable[[], Budget]:
        return lambda: Budget(APPROXIMATE, worst, None, accumulator())

    rules = {
        "basic": basic,
        "advanced": lambda: advanced(1e-7),
        "zcdp": lambda: zcdp(1e-7),
        "renyi": lambda: renyi(8.0, 1e-7),
        "any_time": lambda: public("any_time")(1e-7, 2.0),
        "either": lambda: either(basic(), zcdp(1e-7)),
        "either of all": lambda: either(
            either(basic(), advanced(1e-8)), zcdp(1e-7), renyi(12.5, 1e-9)
        ),
        "best rule": lambda: best_rule((2.5, 1e-6), typical=[(0.01, 0.0)]),
        "best rule, of few": lambda: best_rule((2.5, 1e-6), typical=[(2.0, 0.0)]),
    }
    return {
        "approximate": lambda: Budget(APPROXIMATE, pairs, (1.0, 1e-9)),
        "zcdp, at distance 2": lambda: Budget(APPROXIMATE, pairs, (4.0, 1e-6), zcdp(1e-7), d_in=2),
        "ladder of pairs": lambda: Budget(
            APPROXIMATE, lossy, (4.0, 1e-5), public("ladder")(F.approximate(0.125, 1e-8), 1e-6)
        ),
        **{name: budget(one) for name, one in rules.items()},
        **{f"odometer, {name}": odometer(one) for name, one in rules.items()},
    }


def _concentrated() -> dict[str, Callable[[], Budget]]:
    cast, truncated = public("cast"), public("make_zCDP_to_tCDP")
    one_order, half = oc.fixed_renyi_divergence(4.0), oc.fixed_renyi_divergence(1.5)
    tcdp, zcdp_itself = truncated(gaussian(4.0), 32.0), truncated(gaussian(4.0), float("inf"))
    less = truncated(gaussian(4.0), 64.0)
    less = cast(less, tcdp.output_measure) if less.output_measure != tcdp.output_measure else less
    return {
        "zCDP": lambda: Budget(ZCDP, [gaussian(4.0), gaussian(5.0)], 0.5),
        "zCDP, at distance 2": lambda: Budget(ZCDP, [gaussian(4.0)] * 2, 0.5, d_in=2),
        "zCDP, odometer": lambda: Budget(ZCDP, [gaussian(4.0)]),
        "Rényi of one order": lambda: Budget(one_order, [cast(gaussian(4.0), one_order)] * 2, 1.0),
        "Rényi of one order, odometer": lambda: Budget(half, [cast(laplace(8.0), half)] * 2),
        "Rényi on orders": lambda: Budget(
            CURVES,
            [cast(gaussian(4.0), CURVES)] * 2,
            lambda alpha: 0.5 * alpha,
            more={"orders": list(ORDERS)},
        ),
        "Rényi on one order, of functions": lambda: Budget(
            CURVES,
            loses(CURVES, lambda alpha: alpha / 8, lambda alpha: 0.0),
            lambda alpha: 1.0,
            d_in=2,
            more={"orders": [2.0]},
        ),
        "tCDP": lambda: Budget(
            tcdp.output_measure, [tcdp, less], oc.TruncatedConcentrated(0.5, 32.0)
        ),
        "tCDP, odometer": lambda: Budget(tcdp.output_measure, [tcdp, less]),
        "tCDP of all orders": lambda: Budget(
            zcdp_itself.output_measure, [zcdp_itself], oc.TruncatedConcentrated(0.5)
        ),
    }


def _tradeoff() -> dict[str, Callable[[], Budget]]:
    gdp, fdp = oc.gaussian_tradeoff(), oc.tradeoff()
    to_gdp, to_fdp = public("make_pureDP_to_GDP"), public("make_pureDP_to_fDP")
    ladder, residue = public("ladder"), public("residue")
    pures = [to_fdp(laplace(8.0))] * 3
    units = {
        "pure": F.pure(0.125),
        "approximate": F.approximate(0.125, 1e-7),
        "gaussian": F.gaussian(0.25),
        "laplace": F.laplace(0.125),
        "fine laplace": F.laplace(0.125, 10_000.0),
        "discrete laplace": F.discrete_laplace(16.0, 2),
        "finite": F.finite([0.5, 0.5], [0.5625, 0.4375]),
        "product": F.gaussian(0.125).compose(F.pure(0.0625)),
    }

    def on_ladder(unit: Any, d_out: Any) -> Callable[[], Budget]:
        return lambda: Budget(fdp, loses(fdp, unit, unit.power(2)), d_out, ladder(unit))

    return {
        "GDP": lambda: Budget(gdp, [to_gdp(laplace(8.0))] * 2, 0.5),
        "GDP, odometer": lambda: Budget(gdp, loses(gdp, 0.25, 0.1, 0.0), d_in=3),
        "GDP, without privacy": lambda: Budget(gdp, loses(gdp, 0.25, float("inf"))),
        "ladder": lambda: Budget(fdp, pures, F.pure(0.125).power(7), ladder(F.pure(0.125))),
        "ladder, at distance 2": lambda: Budget(
            fdp, loses(fdp, F.pure(0.25)) * 2, F.gaussian(2.0), ladder(F.pure(0.125)), d_in=2
        ),
        **{f"ladder of {name}": on_ladder(unit, unit.power(12)) for name, unit in units.items()},
        **{
            f"ladder up to a {name}": on_ladder(F.pure(0.0625), bound)
            for name, bound in (
                ("profile", F.from_profile([0.0, 1.0], [0.5, 0.125])),
                ("mixture", F.mixture([1, 3], [F.pure(1.0), F.pure(2.0)])),
                ("laplace", F.laplace(2.0)),
            )
        },
        "residue": lambda: Budget(fdp, pures, F.gaussian(1.0), residue(1.0)),
        "residue, odometer": lambda: Budget(fdp, loses(fdp, F.laplace(0.25)), None, residue(1.0)),
        "functions": lambda: Budget(fdp, functions(), None, ladder(F.approximate(0.125, 1e-7))),
        "subsampled": lambda: Budget(
            fdp,
            loses(
                fdp,
                F.subsampled_gaussian(2.0, 0.25, unit="removed"),
                F.subsampled_laplace(0.5, 0.25, unit="added"),
            ),
            None,
            ladder(F.approximate(0.125, 1e-7)),
        ),
        "subsampled, both directions": lambda: Budget(
            fdp,
            loses(
                fdp,
                F.subsampled_gaussian(2.0, 0.25, unit="removed").both_directions(),
                F.subsampled_laplace(0.5, 0.25, unit="added").both_directions(),
            ),
            None,
            ladder(F.approximate(0.125, 1e-7)),
        ),
        "functions beside a residue": lambda: Budget(fdp, functions(*LARGE), None, residue(4.0)),
    }


def _limited() -> dict[str, Callable[[], Budget]]:
    def budget(*limits: tuple[str, ...], d_out: Any = 1.0, d_in: Any = 1) -> Callable[[], Budget]:
        def make() -> Budget:
            public("make_limited")
            return Budget(PURE, [laplace(16.0)] * len(limits), d_out, d_in=d_in, limits=limits)

        return make

    return {
        "limits": budget(("alice",), (), ("bob",), ("alice",)),
        "limits of a team": budget(("team", "Zoë 漢"), ("team",), ("team", "Zoë 漢"), ("bob",)),
        "limits of an odometer": budget(("alice",), (), ("alice",), d_out=None, d_in=2),
    }


def budgets() -> dict[str, Callable[[], Budget]]:
    """What makes each budget, by name."""
    return _pure() | _approximate() | _concentrated() | _tradeoff() | _limited()


def launch(ledger: Any, budget: Budget) -> None:
    """Build what the budget is for, and launch its queries."""
    root = budget.root(ledger)
    for number, query in enumerate(budget.queries):
        with oc.labelled(f"number {number + 1}, for Zoë\n漢"):
            budget.below(root, number)(query)


def told(ledger: Any) -> dict[str, Any]:
    """What a ledger says, so that later versions can be compared with it."""
    summary, entries = ledger.read()
    limits = [
        [*one.path, one.launches, plain(one.spent), plain(one.remaining)]
        for one in getattr(summary, "limits", ())
    ]
    return ({"limits": limits} if limits else {}) | {
        "launches": summary.launches,
        "spent": plain(summary.spent),
        "remaining": plain(summary.remaining),
        "anchor": summary.anchor,
        "labels": [entry.label for entry in entries],
        "mechanisms": [entry.mechanism for entry in entries],
        "d_mids": [plain(entry.d_mid) for entry in entries],
        "losses": [plain(entry.loss) for entry in entries],
    }


def plain(value: Any) -> Any:
    """A loss as JSON: of a function the δ at three ε, of a curve its values at three orders."""
    if isinstance(value, F):
        return {"delta": [float(value.delta(epsilon)).hex() for epsilon in EPSILONS]}
    if isinstance(value, oc.TruncatedConcentrated):
        return {"rho": plain(value.rho), "omega": plain(value.omega)}
    if callable(value):
        return {"curve": [float(value(order)).hex() for order in ORDERS]}
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if type(value).__name__ == "Round":
        return str(value)
    return None if value is None else float(value).hex()


def main(folder: Path) -> None:
    """Write the ledgers and what they say."""
    folder.mkdir(parents=True)
    expected: dict[str, Any] = {}
    left_out = {}
    for name, make in FUNCTIONS.items():
        try:
            make()
        except Exception as error:
            left_out[f"function {name}"] = f"{type(error).__name__}: {error}"
    for name, make_budget in budgets().items():
        if name == ONE_WAY and hasattr(F, "both_directions"):
            left_out[name] = "losses that bound one direction are refused"
            continue
        try:
            budget = make_budget()
        except Exception as error:
            left_out[name] = f"{type(error).__name__}: {error}"
            continue
        with create_ledger(folder / "closed.db", name) as ledger:
            launch(ledger, budget)
            expected[name] = told(ledger)
    name = "created, and never used"
    with create_ledger(folder / "closed.db", name) as ledger:
        expected[name] = told(ledger)
    with closing(sqlite3.connect(folder / "closed.db")) as connection:
        connection.execute("VACUUM")
    with create_ledger(folder / "open.db", "killed") as ledger:
        launch(ledger, budgets()["pure"]())
        expected["killed"] = told(ledger)
        for end in ("", "-wal"):
            shutil.copyfile(folder / f"open.db{end}", folder / f"killed.db{end}")
    for file in list(folder.iterdir()):
        if file.name in KEPT:
            file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        file.unlink()
    text = f'{{"budgets": {listed(expected)}, "left out": {listed(left_out)}}}\n'
    (folder / "expected.json").write_text(text, encoding="utf-8")


def listed(values: dict[str, Any]) -> str:
    """An object as JSON, with a line for each name."""
    lines = [
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in sorted(values.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}"


if __name__ == "__main__":
    dp.enable_features("contrib", "honest-but-curious")
    main(Path(sys.argv[1]))
