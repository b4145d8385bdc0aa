"""One session on a column of numbers: two children of a filter, queried in turn."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import opendp.prelude as dp

import opendp_concurrent as oc

from ..types import Query

EPSILON = 1.0
OURS = SimpleNamespace(
    make_composition=oc.make_concurrent_composition,
    make_odometer=oc.make_concurrent_odometer,
    make_filter=oc.make_concurrent_filter,
)
OPENDP = SimpleNamespace(
    make_composition=dp.c.make_adaptive_composition,
    make_odometer=dp.c.make_fully_adaptive_composition,
    make_filter=dp.c.make_privacy_filter,
)


class Demonstration:
    """The script. Each method is one step and returns what it answered.

    :param api: three constructors, ours or OpenDP's
    :param values: the column; NaN where a value is missing
    :param bounds: what values are clamped to
    :param contributions: the largest number of rows of one person
    """

    def __init__(
        self, api: Any, values: list[float], bounds: tuple[float, float], contributions: int = 1
    ) -> None:
        self.api, self.values, self.bounds, self.d_in = api, values, bounds, contributions
        self.space = dp.vector_domain(dp.atom_domain(T=float, nan=True)), dp.symmetric_distance()
        self.known = self.space >> dp.t.then_drop_null()
        self.measure = dp.max_divergence()
        odometer = api.make_odometer(*self.space, self.measure)
        self.root = api.make_filter(odometer, self.d_in, EPSILON)(values)

    def noisy(self, query: Query, epsilon: float) -> Any:
        """Add the noise to a query that makes it cost ``epsilon`` for a person's rows."""
        return query >> dp.m.then_laplace(scale=query.map(self.d_in) / epsilon)

    def count(self, epsilon: float) -> Any:
        """How many rows there are."""
        return self.noisy(self.space >> dp.t.then_count(), epsilon)

    def below(self, bound: float, epsilon: float) -> Any:
        """How many values are below a bound."""
        bins = self.known >> dp.t.then_find_bin(edges=[bound])
        counts = dp.t.then_count_by_categories(categories=[0], null_category=False)
        return self.noisy(bins >> counts, epsilon)

    def open_two(self) -> str:
        child = self.api.make_composition(*self.space, self.measure, self.d_in, [1 / 16, 1 / 8])
        self.two = self.root(child)
        return "opened child A, a compositor for a count and a sum"

    def open_search(self) -> str:
        odometer = self.api.make_odometer(*self.space, self.measure)
        self.search = self.root(self.api.make_filter(odometer, self.d_in, 5 / 32))
        return "opened child B, a filter for a binary search"

    def count_rows(self) -> str:
        return f"about {self.root(self.count(1 / 8))} rows"

    def query_in_turn(self) -> str:
        low, high = self.bounds
        clamp = self.known >> dp.t.then_clamp(self.bounds)
        count = self.noisy(self.known >> dp.t.then_count(), 1 / 16)
        total = self.noisy(clamp >> dp.t.then_sum(), 1 / 8)
        answers = []
        for turn in range(5):  # in this order: B A B B A B B
            middle = (low + high) / 2
            (fewer,) = self.search(self.below(middle, 1 / 32))
            if turn in (0, 2):
                answers.append(self.two(count if turn == 0 else total))
            low, high = (middle, high) if 2 * fewer < answers[0] else (low, middle)
        known, added = answers
        mean = min(max(added / max(known, 1), self.bounds[0]), self.bounds[1])
        return f"{about(known)} values, mean {about(mean)}, median {about(middle)}"

    def ask_too_much(self) -> str:
        return f"answered {self.root(self.count(0.9))}"

    def ask_for_less(self) -> str:
        return f"about {self.root(self.count(1 / 16))} rows"

    def child_odometer(self) -> str:
        leaf = self.root(self.api.make_odometer(*self.space, self.measure))
        return f"about {leaf(self.count(1 / 16))} rows, from a child odometer"

    def chained_odometer(self) -> str:
        clamp = self.known >> dp.t.then_clamp(self.bounds)
        chained = clamp >> self.api.make_odometer(*clamp.output_space, self.measure)
        return f"spent {chained(self.values).privacy_loss(self.d_in)}"

    def approximate_zcdp(self) -> str:
        """Another filter, with a budget of its own."""
        measure = dp.approximate(dp.zero_concentrated_divergence())
        odometer = self.api.make_odometer(*self.space, measure)
        root = self.api.make_filter(odometer, self.d_in, (0.1, 1e-7))(self.values)
        child = root(self.api.make_composition(*self.space, measure, self.d_in, [(0.05, 0.0)]))
        count = self.space >> dp.t.then_count() >> dp.m.then_gaussian(scale=5.0 * self.d_in)
        return f"about {child(dp.c.make_approximate(count))} rows, from a child of another measure"

    def steps(self) -> list[tuple[Callable[[], str], float]]:
        """Each step, and the privacy loss that it asks of the filter."""
        return [
            (self.open_two, 3 / 16),
            (self.open_search, 5 / 32),
            (self.count_rows, 1 / 8),
            (self.query_in_turn, 0.0),
            (self.ask_too_much, 0.9),
            (self.ask_for_less, 1 / 16),
            (self.child_odometer, 1 / 16),
        ]


def about(number: float) -> str:
    """Say a noisy number, rounded for people."""
    return f"about {number:.0f}" if abs(number) >= 1000 else f"about {number:.3g}"


def attempt(step: Callable[[], str]) -> tuple[str, bool]:
    """Run a step; return what it said, and whether it ran."""
    try:
        return step(), True
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {lines[0] if lines else ''}", False


def _named(step: Callable[[], str]) -> str:
    return step.__name__.replace("_", " ")


def show(session: Demonstration) -> None:
    """Run the session and print each step: what it asks of the budget, what is spent then."""
    refusal = ""
    print(f"{'step':<15}{'asks':>7}{'spent':>8}  answer")
    for step, asked in session.steps():
        said, ran = attempt(step)
        spent = session.root.privacy_loss(session.d_in)
        print(f"{_named(step):<15}{asked:>7.4f}{spent:>8.4f}  {said if ran else 'refused'}")
        refusal = said if step == session.ask_too_much else refusal
    print(f"\nthe refusal: {refusal}\nthe filter:  {session.root!r}\n")


def show_own(
    title: str, values: list[float], bounds: tuple[float, float], contributions: int
) -> None:
    """Run the session on somebody's own data; print nothing but noisy answers about them."""
    rows = "1 row" if contributions == 1 else f"{contributions} rows"
    print(
        f"{title}: one filter, pure DP, epsilon = {EPSILON}\n"
        f"the budget protects a person with at most {rows} (--contributions)\n"
        "rows without a finite number count as rows; the values, mean and median leave them out\n"
    )
    show(Demonstration(OURS, values, bounds, contributions))


def show_published(title: str, values: list[float], bounds: tuple[float, float]) -> None:
    """Run the session on published data; then say what OpenDP's own constructors refuse of it."""
    print(f"{title}: {len(values):,} rows, published; one filter, pure DP, epsilon = {EPSILON}\n")
    show(Demonstration(OURS, values, bounds))
    session = Demonstration(OPENDP, values, bounds)
    steps = [step for step, _ in session.steps() if step != session.child_odometer]
    print("OpenDP's own constructors refuse these steps of the same session:")
    for step in (*steps, session.chained_odometer, session.approximate_zcdp):
        said, ran = attempt(step)
        if not ran and step != session.ask_too_much:
            print(f"{_named(step):<17}{said}")
    print("a child odometer was not tried, because opendp 0.16 ends the process\n")
