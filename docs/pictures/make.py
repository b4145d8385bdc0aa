"""Make every picture of the docs.

    python docs/pictures/make.py [DIRECTORY] [--only NAME]

Nothing here depends on noise: a picture is the same, byte for byte, whenever it is made with the
same matplotlib. With a DIRECTORY they go there, as PNG too, to be looked at.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from contextlib import suppress
from itertools import count, cycle
from pathlib import Path
from unittest.mock import patch

import matplotlib
import numpy as np
import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError
from opendp_concurrent.plot import accuracy_of_plan, plot_session, plot_tradeoff

F = oc.TradeoffFunction
DELTA = 1e-6


def session(plain):
    """The same requests to filters over three rules, until each has refused three."""
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    measure, d_out = dp.approximate(dp.max_divergence()), (1.0, DELTA)

    def query(epsilon):
        return dp.c.make_approximate(space >> dp.t.then_count() >> dp.m.then_laplace(1 / epsilon))

    small, large = query(0.01), query(0.05)
    rules = {
        "basic": oc.accumulators.basic(),
        "advanced": oc.accumulators.advanced(DELTA),
        "zcdp": oc.accumulators.zcdp(DELTA),
    }
    losses = {name: [] for name in rules}
    refused = {name: [] for name in rules}
    for name, rule in rules.items():
        odometer = oc.make_concurrent_odometer(*space, measure, accumulator=rule)
        root = oc.make_concurrent_filter(odometer, d_in=1, d_out=d_out)([1, 2, 3])
        for number, one in zip(count(1), cycle([small] * 9 + [large])):
            try:
                root(one)
            except BudgetExceededError:
                refused[name].append(number)
            losses[name].append(root.privacy_loss())
            if len(refused[name]) == 3:
                break
    plot_session(losses, refused=refused, d_out=d_out, ylabel=f"ε at δ = {DELTA:g}", ax=plain)


def interleaved(plain):
    """Two children of one filter, queried in turn: what each has spent of what it paid for."""
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    pure = dp.max_divergence()
    odometer = oc.make_concurrent_odometer(*space, pure)
    root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    losses, refused = {"the filter": [], "child A": [], "child B": []}, []

    def note(*handles):
        for spent, handle in zip(losses.values(), handles, strict=True):
            spent.append(0.0 if handle is None else handle.privacy_loss())

    one = root(oc.make_concurrent_composition(*space, pure, 1, [1 / 16] * 4))
    note(root, one, None)
    two = root(oc.make_concurrent_filter(odometer, d_in=1, d_out=3 / 8))
    note(root, one, two)
    for handle, epsilon in [
        *((one, 1 / 16), (two, 1 / 8), (one, 1 / 16), (two, 1 / 16), (root, 1 / 8)),
        *((one, 1 / 16), (two, 1 / 8), (root, 1 / 2), (two, 1 / 16), (root, 1 / 8)),
        (one, 1 / 16),
    ]:
        try:
            handle(space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon))
        except BudgetExceededError:
            refused.append(len(losses["the filter"]) + 1)
        note(root, one, two)
    note(root, one, two)  # so that the last step is seen
    plot_session(losses, refused={"the filter": refused}, d_out=1.0, ylabel="ε spent", ax=plain)
    plain.set_xlabel("launches and queries, in order")
    plain.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)


def ledger_week(plain):
    """Three teams with six analysts on one ledger, for a week: what each limit has spent."""
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    random, now = np.random.default_rng(5), 1_795_392_000 * 10**9

    def limit(handle, label, d_out):
        return handle(oc.c.make_limited(odometer, 1, d_out, label=label))

    teams = {"cardiology": ("ann", "tom"), "oncology": ("eva", "ida"), "billing": ("max", "kim")}
    with (
        tempfile.TemporaryDirectory() as folder,
        oc.ledger.create_ledger(f"{folder}/budget.db", "clinic") as ledger,
        patch("opendp_concurrent.ledger.book.time_ns", lambda: now),
    ):
        root = oc.make_concurrent_filter(odometer, d_in=1, d_out=4.0, ledger=ledger)([1, 2, 3])
        people = [
            limit(limit(root, team, 1.5), person, 0.9)
            for team, two in teams.items()
            for person in two
        ]
        for _ in range(90):
            now += int(random.exponential(7 * 86_400 / 90) * 10**9)
            handle, price = people[random.integers(6)], random.choice([0.02, 0.05, 0.1])
            with suppress(BudgetExceededError):
                handle(space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / price))
        oc.plot.plot_ledger(ledger, by="limit", ax=plain)


def ledger_blocks(plain):
    """A block filter on a ledger: each launch reads the four newest weeks."""
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    weeks, now = oc.c.by_key(lambda record: record), 1_795_392_000 * 10**9
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=25.0)
    with (
        tempfile.TemporaryDirectory() as folder,
        oc.ledger.create_ledger(f"{folder}/budget.db", "visits") as ledger,
        patch("opendp_concurrent.ledger.book.time_ns", lambda: now),
    ):
        made = oc.c.make_block_filter(
            odometer, 1, 1.0, blocks=weeks, keys=range(1, 14), ledger=ledger
        )
        root = made([])
        for number in range(60):
            now += 8 * 86_400 * 10**9 // 60
            newest = 4 + number // 6
            with suppress(BudgetExceededError):
                root(list(range(newest - 3, newest + 1)), count)
        oc.plot.plot_ledger(ledger, ax=plain)


def tradeoff(plain):
    """Three families, and two of each."""
    units = {"Gaussian, μ = 1": F.gaussian(1.0), "Laplace, ε = 1": F.laplace(1.0)}
    units["pure, ε = 1"] = F.pure(1.0)
    ax = plot_tradeoff(list(units.values()), labels=list(units), ax=plain)
    colors = [line.get_color() for line in ax.get_lines()[:3]]
    ax.get_lines()[-1].remove()  # drawn again below
    twice = [unit.power(2) for unit in units.values()]
    ax = plot_tradeoff(twice, labels=[f"two of {name.split(',')[0]}" for name in units], ax=plain)
    for line, color in zip(ax.get_lines()[3:6], colors, strict=True):
        line.set(color=color, linestyle="--")
    for band in ax.collections:
        band.remove()  # narrower than a line
    ax.legend()


def sampled_steps(plain):
    """Poisson-sampled Gaussian steps, beside two accountants of dp-accounting."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    step = PoissonSampledDpEvent(1e-3, GaussianDpEvent(1.0))
    ours = oc.fdp.from_dp_event(step)
    launches = np.unique(np.geomspace(1, 200_000, 40).round().astype(int)).tolist()
    lower, upper = zip(*(ours.power(k).epsilon_bounds(DELTA) for k in launches), strict=True)
    (line,) = plain.plot(launches, upper, label="oc.fdp: from both sides")
    plain.fill_between(launches, upper, lower, color=line.get_color(), alpha=0.3, linewidth=0.0)
    for name, accountant, line in (
        ("dp-accounting: PLDAccountant", PLDAccountant, "--"),
        ("dp-accounting: RdpAccountant", RdpAccountant, ":"),
    ):
        values = [accountant().compose(step, k).get_epsilon(DELTA) for k in launches]
        plain.plot(launches, values, line, label=name)
    plain.grid(visible=True, which="major", alpha=0.3)
    plain.set(xscale="log", yscale="log", xlabel="steps", ylim=(3e-4, 20.0))
    plain.set_ylabel(f"ε at δ = {DELTA:g}")
    plain.legend()


def marginals(folder: Path) -> None:
    """Made by its benchmark, from the counts that are in the table beside it."""
    sys.path.insert(0, str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("marginals", BENCHMARKS / "marginals.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sizes = np.unique(np.geomspace(50, 20_000, 33).round().astype(int))
    columns = np.array([module.marginals(int(size)) for size in sizes]).T
    module.picture(str(folder / "marginals.svg"), sizes, columns)


def plan(plain):
    """The error of each count, by how many share (1, 1e-6), under three rules."""
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    measure = dp.approximate(dp.max_divergence())
    accuracy_of_plan(
        lambda scale: oc.m.make_certified_laplace(*space, scale, measure),
        1.0,
        (1.0, DELTA),
        [1, 5, 10, 20, 50, 100, 150, 200],
        accumulators={
            "basic": oc.accumulators.basic(),
            "advanced": oc.accumulators.advanced(DELTA),
            "zcdp": oc.accumulators.zcdp(DELTA),
        },
        ax=plain,
    )


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PLOTS = {
    interleaved: (4.0, 3.4),
    session: (6.0, 4.0),
    tradeoff: (4.8, 4.8),
    ledger_week: (7.5, 4.0),
    ledger_blocks: (7.5, 4.0),
    plan: (6.0, 4.0),
    sampled_steps: (6.0, 4.0),
}


def main() -> None:
    """Draw all of them."""
    from matplotlib.figure import Figure

    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("directory", nargs="?", type=Path, help="beside this file, if left out")
    options.add_argument("--only", help="the name of one picture")
    options = options.parse_args()
    folder = options.directory or Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)

    def write(figure, name):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        if options.directory is not None:
            figure.savefig(folder / f"{name}.png", dpi=117)  # 6 inches are 700 pixels

    matplotlib.rcParams["svg.hashsalt"] = "opendp_concurrent"
    for draw, size in PLOTS.items():
        if options.only in (None, draw.__name__):
            figure = Figure(figsize=size, layout="constrained")
            draw(figure.subplots())
            write(figure, draw.__name__)
    if options.only in (None, "marginals"):
        marginals(folder)


if __name__ == "__main__":
    main()
