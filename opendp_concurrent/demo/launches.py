"""One session on one column, here and with OpenDP's own constructors, side by side."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import opendp.prelude as dp

import opendp_concurrent as oc

EPSILON = 1.0
NATIVE_ODOMETER_AS_CHILD = """
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
odometer = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
odometer([1.0])(odometer)
"""


class Native:
    """OpenDP's own names."""

    title = "OpenDP"
    make_composition = staticmethod(dp.c.make_adaptive_composition)
    then_composition = staticmethod(dp.c.then_adaptive_composition)
    make_odometer = staticmethod(dp.c.make_fully_adaptive_composition)
    make_filter = staticmethod(dp.c.make_privacy_filter)


class Ours:
    """The names of this package."""

    title = "opendp_concurrent"
    make_composition = staticmethod(oc.make_concurrent_composition)
    then_composition = staticmethod(oc.then_concurrent_composition)
    make_odometer = staticmethod(oc.make_concurrent_odometer)
    make_filter = staticmethod(oc.make_concurrent_filter)


class Session:
    """The script: each method is one step, and says what it answered."""

    def __init__(
        self, api: Any, values: list[float], bounds: tuple[float, float], contributions: int = 1
    ) -> None:
        self.api, self.values, self.bounds = api, values, bounds
        self.d_in = contributions  # rows of a person
        self.native = api is Native
        self.space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
        self.measure = dp.max_divergence()
        self.median = sum(bounds) / 2

    def count(self, epsilon: float) -> Any:
        return self.space >> dp.t.then_count() >> dp.m.then_laplace(scale=self.d_in / epsilon)

    def below(self, bound: float, epsilon: float) -> Any:
        """How many values are below a bound."""
        low, high = self.bounds
        edges = [min(max(bound, low + 1e-9), high)]
        return (
            self.space
            >> dp.t.then_find_bin(edges=edges)
            >> dp.t.then_count_by_categories(categories=[0], null_category=False)
            >> dp.m.then_laplace(scale=self.d_in / epsilon)
        )

    def open_filter(self) -> str:
        odometer = self.api.make_odometer(*self.space, self.measure)
        self.root = self.api.make_filter(odometer, self.d_in, EPSILON)(self.values)
        return f"one filter, epsilon = {EPSILON}"

    def launch_counts(self) -> str:
        child = self.api.make_composition(*self.space, self.measure, self.d_in, [1 / 32] * 2)
        self.counts = self.root(child)
        return "child A: a compositor for two counts"

    def launch_sums(self) -> str:
        clamp = self.space >> dp.t.then_clamp(self.bounds)
        child = clamp >> self.api.then_composition(self.measure, self.d_in, [1 / 8])
        self.clamped = clamp.output_space
        self.sums = self.root(child)
        return "child B: a compositor behind a clamp, for a mean"

    def launch_search(self) -> str:
        odometer = self.api.make_odometer(*self.space, self.measure)
        self.search = self.root(self.api.make_filter(odometer, self.d_in, 5 / 32))
        return "child C: a filter, for a search"

    def release_count(self) -> str:
        self.size = self.root(self.count(1 / 8))
        return f"a count: about {self.size} rows"

    def interleave(self) -> str:
        low, high = self.bounds
        for turn in range(5):
            self.median = (low + high) / 2
            (rows,) = self.search(self.below(self.median, 1 / 32))
            low, high = (self.median, high) if 2 * rows < self.size else (low, self.median)
            if turn in (1, 3):
                self.counts(self.below(high, 1 / 32))
        scale = self.d_in * max(map(abs, self.bounds)) * 8.001
        total = self.clamped >> dp.t.then_sum() >> dp.m.then_laplace(scale=scale)
        mean = self.sums(total) / max(self.size, 1)
        return f"8 queries to A, B and C in turn: median {self.median:.2f}, mean {mean:.2f}"

    def release_again(self) -> str:
        (rows,) = self.root(self.below(self.median, 1 / 32))
        return f"rows below the median found: about {rows}"

    def ask_too_much(self) -> str:
        return f"answered {self.root(self.count(0.9))}"

    def go_on(self) -> str:
        return f"a smaller count after the refusal: about {self.root(self.count(1 / 16))} rows"

    def child_odometer(self) -> str:
        if self.native:  # it kills the process, so another process tries
            command = [sys.executable, "-c", NATIVE_ODOMETER_AS_CHILD]
            code = subprocess.run(command, capture_output=True, check=False).returncode
            raise RuntimeError(f"the process that tried was killed (exit code {code})")
        leaf = self.root(self.api.make_odometer(*self.space, self.measure))
        leaf(self.count(1 / 16))
        return f"an odometer as child: its own loss {leaf.privacy_loss(self.d_in)}"

    def chained_odometer(self) -> str:
        clamp = self.space >> dp.t.then_clamp(self.bounds)
        odometer = clamp >> self.api.make_odometer(*clamp.output_space, self.measure)
        return f"clamp >> odometer: loss {odometer(self.values).privacy_loss(self.d_in)}"

    def approximate_zcdp(self) -> str:
        measure = dp.approximate(dp.zero_concentrated_divergence())
        odometer = self.api.make_odometer(*self.space, measure)
        root = self.api.make_filter(odometer, self.d_in, (0.1, 1e-7))(self.values)
        child = root(self.api.make_composition(*self.space, measure, self.d_in, [(0.05, 0.0)]))
        noisy = self.space >> dp.t.then_count() >> dp.m.then_gaussian(scale=5.0 * self.d_in)
        return f"an interactive child under approximate zCDP: {child(dp.c.make_approximate(noisy))}"

    def steps(self) -> list[tuple[float, Callable[[], str]]]:
        """The privacy loss that each step asks of the filter, and the step."""
        return [
            (0.0, self.open_filter),
            (1 / 16, self.launch_counts),
            (1 / 8, self.launch_sums),
            (5 / 32, self.launch_search),
            (1 / 8, self.release_count),
            (0.0, self.interleave),
            (1 / 32, self.release_again),
            (0.9, self.ask_too_much),
            (1 / 16, self.go_on),
            (1 / 16, self.child_odometer),
            (0.0, self.chained_odometer),
            (0.0, self.approximate_zcdp),
        ]


Outcome = tuple[str, float, str, bool, float, Any]


def run(session: Session) -> list[Outcome]:
    """Run every step: its name, what it asked and said, if it ran, seconds, and the loss then."""
    outcomes = []
    for asked, step in session.steps():
        start = time.perf_counter()
        try:
            said, ran = step(), True
        except Exception as error:
            said, ran = f"{type(error).__name__}: {_first_line(error)}", False
        seconds = time.perf_counter() - start
        try:
            loss = session.root.privacy_loss(session.d_in)
        except Exception:
            loss = None
        outcomes.append((step.__name__.replace("_", " "), asked, said, ran, seconds, loss))
    return outcomes


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else ""


def show_launches(outcomes: list[Outcome]) -> None:
    """Print the launches: what was asked, charged and answered, loss so far, remaining."""
    print(f"{'step':<16}{'asked':>7}{'charged':>9}{'loss':>7}{'remaining':>11}  answered")
    before = 0.0
    for name, asked, said, _, _, loss in outcomes[:10]:
        row = f"{name:<16}{asked:>7.3f}{loss - before:>9.3f}{loss:>7.3f}{EPSILON - loss:>11.3f}"
        print(f"{row}  {said}")
        before = loss


def show_both(ours: list[Outcome], native: list[Outcome], timed: bool) -> None:
    """Print the same script on both, side by side; times depend on the rows."""
    print(f"\n{'step':<18}{'here':>10}{'OpenDP':>16}  what OpenDP said, where it differs")
    for (name, _, _, ran, seconds, _), (_, _, said, native_ran, native_seconds, _) in zip(
        ours, native, strict=True
    ):
        done = f"{seconds * 1e3:.1f} ms" if timed else "ran"
        native_done = f"{native_seconds * 1e3:.1f} ms" if timed else "ran"
        here, there = done if ran else "refused", native_done if native_ran else "refused"
        print(f"{name:<18}{here:>10}{there:>16}  {said if ran != native_ran else ''}")
    if not timed:
        return
    total, peer = (1e3 * sum(one[4] for one in outcomes[:7]) for outcomes in (ours, native))
    print(f"the first seven steps: {total:.1f} ms here, {peer:.1f} ms OpenDP")


def show(title: str, values: list[float], bounds: tuple[float, float]) -> None:
    """Run the script on published data, on both, and print what each said."""
    print(f"{title}: {len(values)} rows, published; one filter, pure DP, epsilon = {EPSILON}\n")
    for api in (Ours, Native):
        run(Session(api, values, bounds))  # once before, so that neither is timed while it loads
    _show([Session(api, values, bounds) for api in (Ours, Native)], timed=True)


def show_own(
    title: str, values: list[float], bounds: tuple[float, float], contributions: int
) -> None:
    """Run the script on somebody's own data, and print nothing but noisy answers about them."""
    low, high = bounds
    rows = "1 row" if contributions == 1 else f"{contributions} rows"
    print(
        f"{title}: one filter, pure DP, epsilon = {EPSILON} for a person with at most {rows} "
        "(--contributions)\n"
        f"cells that are missing, or no finite number, count as {low + (high - low) / 2:g}, the "
        "middle of --bounds\n"
        "the rows are yours, so their number and the time that they took are not shown\n"
    )
    _show([Session(api, values, bounds, contributions) for api in (Ours, Native)], timed=False)


def _show(sessions: list[Session], timed: bool) -> None:
    ours, native = sessions
    outcomes = run(ours)
    show_launches(outcomes)
    refusal = next(said for name, _, said, *_ in outcomes if name == "ask too much")
    print(f"\nthe refusal: {refusal}\nthe handle:  {ours.root!r}")
    show_both(outcomes, run(native), timed)
