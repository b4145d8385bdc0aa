"""Respondents arrive one by one: counters and an alarm on one stream, under one filter."""

from __future__ import annotations

import sys
from typing import Any

import opendp.prelude as dp

import opendp_concurrent as oc

BUDGET, EVERY, WINDOW = 3.5, 250, 1000


def show(arrivals: list[int], levels: list[str], picture: str | None) -> None:
    """Feed the stream, ask all of its children in turn, print, and draw.

    :param arrivals: the category of each respondent, in order of arrival
    :param levels: what the categories are called
    :param picture: file to draw to
    """
    pure = dp.max_divergence()
    categories = oc.category_stream(len(levels)), oc.event_presence()
    highest = oc.t.make_stream_map(
        *categories, oc.integer_stream(0, 1), lambda level: int(level == len(levels) - 1)
    )
    horizon = len(arrivals)
    height, _ = oc.m.counter_nodes(horizon)
    mechanisms = {
        "all, by level": oc.m.make_histogram_counter(
            *categories, pure, scale=1.0 * height, horizon=horizon
        ),
        "highest, smooth": highest
        >> oc.m.then_counter(pure, scale=8.0, horizon=horizon, method="smooth"),
        "highest, last 1000": highest >> oc.m.then_window_counter(pure, scale=20.0, window=WINDOW),
        "alarm": highest >> oc.m.then_alarm(pure, 10.0, 150, query_scale=20.0, window=WINDOW),
    }
    odometer = oc.make_concurrent_odometer(*categories, pure)
    budget = oc.make_concurrent_filter(odometer, d_in=1, d_out=BUDGET)
    stream = oc.c.make_concurrent_continual(budget)([])
    print(f"{horizon} respondents arrive; one filter, pure DP, epsilon = {BUDGET}, event level")
    print("the survey is published: 'highest' is the exact count, beside the noisy ones")
    children = {}
    for name, mechanism in mechanisms.items():
        children[name] = stream(mechanism)
        print(f"  {name:<20}{mechanism.map(1):>8.4f}   spent {stream.privacy_loss():.4f}")

    steps: list[int] = []
    alarms: list[int] = []
    series: dict[str, list[float]] = {"highest": [], "highest, smooth": [], "highest, tree": []}
    print(
        f"\n{'step':>6}  {'most frequent':<22}{'highest':>8}{'smooth':>8}{'last 1000':>11}  alarm"
    )
    for start in range(0, horizon, EVERY):
        stream.update_all(arrivals[start : start + EVERY])
        step = min(start + EVERY, horizon)
        ((top, count),) = children["all, by level"](("top", 1))
        counts = children["all, by level"](None)
        smooth = children["highest, smooth"](None)
        recent = children["highest, last 1000"](None)
        said = children["alarm"](None)
        exact = sum(level == len(levels) - 1 for level in arrivals[:step])
        alarms += [step] * bool(said)
        if sys.stdout.isatty() or start % (4 * EVERY) == 0 or said:
            name = f"{levels[top]} ({count})"
            print(f"{step:>6}  {name:<22}{exact:>8}{smooth:>8}{recent:>11}  {'*' if said else ''}")
        steps.append(step)
        _append(series, highest=exact, smooth=smooth, tree=counts[-1])
    print(f"still spent {stream.privacy_loss():.4f}, remaining {stream.remaining():.4f}")
    if picture is not None:
        from ..plot import plot_stream

        figure: Any = plot_stream(steps, series, alarms=alarms).figure
        figure.savefig(picture)
        print(f"drawn to {picture}")


def _append(series: dict[str, list[float]], **now: Any) -> None:
    for name, value in zip(series, now.values(), strict=True):
        series[name].append(value)
