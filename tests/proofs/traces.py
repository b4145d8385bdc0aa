"""Random traces of accounts, written as terms of Rocq (docs/proofs/rocq/Traces.v).

A trace says what was launched or opened, whether it was granted, and what the losses were then.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.ledger.store import Store

from ..build import an_odometer, costing

MEASURES = {"pure": dp.max_divergence, "zcdp": dp.zero_concentrated_divergence}
LOSSES = [0.0, 0.1, 0.2, 0.25, 0.3, 1 / 3, 0.7, 2.0**-40, 2.0**-40 / 3]
BOUNDS = [0.0, 0.3, 0.5, 1.0, 1.1, 2.7]
RAN: list[float] = []  # the losses of mechanisms that have run


class Crash(BaseException):
    """The process ends here."""


def number(rng: Random, choices: list[float]) -> float:
    return rng.choice(choices) if rng.random() < 0.6 else rng.random() * rng.choice([0.01, 0.4])


@cache
def odometer(measure: str):
    return an_odometer(MEASURES[measure]())


@cache
def mechanism(measure: str, loss: float, fails: bool):
    def function(data):
        RAN.append(loss)
        if fails:
            raise ValueError
        return len(data)

    return costing(loss, function, MEASURES[measure]())


# --- terms -------------------------------------------------------------------------------------


def units(loss: float) -> str:
    """A loss as Traces.v counts it: exactly, or not at all."""
    found = Fraction(loss) * 2**100
    assert found.denominator == 1
    return f"{found.numerator}%Z"


def option(value, show=str) -> str:
    return "None" if value is None else f"(Some {show(value)})"


def sequence(items) -> str:
    return f"[:: {'; '.join(items)}]"


def boolean(value: bool) -> str:
    return str(value).lower()


# --- trees of accounts in memory ---------------------------------------------------------------


class Tree:
    """A filter or an odometer: its root, then its child odometers and limits."""

    def __init__(self, handle, path=()):
        self.handles, self.path, self.children = [handle], path, 0

    def read(self, place: int) -> str:
        return units(self.handles[place].privacy_loss(1))


def place_of(index: int) -> str:
    return option(index - 1 if index else None)


def memory_trace(seed: int, events: int = 50) -> str:
    """A trace of filters in filters, with child odometers and limits."""
    rng = Random(seed)
    measure = rng.choice([*MEASURES])
    bound = rng.choice([None, *BOUNDS[2:]])
    made = odometer(measure)
    root = made if bound is None else oc.make_concurrent_filter(made, 1, bound)
    trees, seen = [Tree(root([1, 2, 3]))], []
    for event in range(events):
        tree = rng.choice(trees)
        index = rng.randrange(len(tree.handles))
        handle, path = tree.handles[index], sequence(map(str, tree.path))
        what = rng.choices(["launch", "filter", "odometer", "limit", "look"], [50, 10, 8, 12, 20])
        if what == ["look"]:
            seen.append(f"Look {path} {place_of(index)} {tree.read(index)}")
            continue
        granted = True
        if what == ["launch"]:
            loss = number(rng, LOSSES)
            term = f"ELaunch {place_of(index)} (KB {units(loss)})"
            try:
                handle(mechanism(measure, loss, rng.random() < 0.1))
            except BudgetExceededError:
                granted = False
            except dp.OpenDPException:
                pass  # the mechanism has failed, and is paid for
            tree.children += granted
        elif what == ["filter"]:
            inner = number(rng, BOUNDS)
            term, granted = f"ELaunch {place_of(index)} (KF {units(inner)})", False
            with suppress(BudgetExceededError):
                answer = handle(oc.make_concurrent_filter(made, 1, inner))
                trees.append(Tree(answer, (*tree.path, tree.children)))
                tree.children, granted = tree.children + 1, True
        elif what == ["odometer"]:
            term = f"EOpen {place_of(index)} None"
            tree.handles.append(handle(made))
        else:
            inner = number(rng, BOUNDS)
            term = f"EOpen {place_of(index)} (Some {units(inner)})"
            limit = oc.c.make_limited(made, 1, inner, label=f"limit {event}")
            tree.handles.append(handle(limit))
        readings = f"{tree.read(0)} {tree.read(index)}"
        seen.append(f"See {path} ({term}) {boolean(granted)} {readings}")
    for tree in trees:
        path = sequence(map(str, tree.path))
        for index in range(len(tree.handles)):
            seen.append(f"Look {path} {place_of(index)} {tree.read(index)}")
    return f"differs (bound_of {option(bound, units)}) {sequence(seen)} 0"


# --- accounts in a ledger ----------------------------------------------------------------------


def ledger_trace(seed: int, path, events: int = 50) -> str:
    """A trace of a filter with a ledger, and limits, whose process crashes between its steps."""
    rng = Random(seed)
    measure, bound = rng.choice([*MEASURES]), rng.choice(BOUNDS[2:])
    name = f"budget {seed}"
    limits: list[tuple[int, str, float]] = []
    kept: list[str] = []

    def opened(ledger):
        made = oc.make_concurrent_filter(odometer(measure), 1, bound, ledger=ledger)
        handles = [made([1, 2, 3])]
        for above, label, inner in limits:
            limit = oc.c.make_limited(odometer(measure), 1, inner, label=label)
            handles.append(handles[above](limit))
        return handles

    ledger = create_ledger(path, dataset=name)
    handles = opened(ledger)
    for event in range(events):
        index = rng.randrange(len(handles))
        what, fate = rng.random(), "Done"
        if what < 0.12 and len(limits) < 6:
            limits.append((index, f"limit {event}", number(rng, BOUNDS)))
            kept.append(f"Limit {place_of(index)} {units(limits[-1][2])}")
            made = oc.c.make_limited(odometer(measure), 1, limits[-1][2], label=limits[-1][1])
            handles.append(handles[index](made))
            continue
        if what < 0.2:
            ledger.close()
            ledger = open_ledger(path, dataset=name)
            handles = opened(ledger)
            kept.append(f"Again {sequence(units(one.privacy_loss()) for one in handles)}")
            continue
        loss, ran, admitted = number(rng, LOSSES), len(RAN), True
        fate = rng.choices(["Done", "BeforeWrite", "AfterWrite"], [70, 15, 15])[0]
        query = mechanism(measure, loss, rng.random() < 0.1)
        with pytest.MonkeyPatch.context() as patch:
            if fate != "Done":
                patch.setattr(Store, "finish", crashing(Store.finish, fate))
            try:
                handles[index](query)
            except BudgetExceededError:
                admitted = False
            except dp.OpenDPException:
                pass
            except Crash:
                assert fate != "Done"
        if fate != "Done":  # a crash: nothing in memory is left
            ledger.close()
            ledger = open_ledger(path, dataset=name)
            handles = opened(ledger)
        readings = " ".join(units(handles[one].privacy_loss()) for one in (0, index))
        has_run = len(RAN) > ran
        kept.append(
            f"Went {place_of(index)} {units(loss)} {fate} "
            f"{boolean(admitted)} {boolean(has_run)} {readings}"
        )
    ledger.close()
    return f"kept_differs (start 0%Z (Some {units(bound)})) {sequence(kept)} 0"


def crashing(finish, fate: str):
    def ends(store, driver, changes):
        if fate == "AfterWrite":
            finish(store, driver, changes)
        else:
            store.undo(driver, None)
        raise Crash

    return ends


# --- Rocq --------------------------------------------------------------------------------------

HEAD = """From Coq Require Import ZArith.
From mathcomp Require Import ssreflect ssrnat seq.
Require Import Verified."""
FILES = "Preamble", "Accounting", "Ledger", "Crash", "Traces"


def compile_account(folder, source) -> None:
    """Compile the verified account, or take what ``make`` has compiled since the last change.

    One file in place of five: each loads the libraries.
    """
    last = source / "Assumptions.vo"  # of what make compiles
    paths = [source / f"{name}.v" for name in FILES]
    if last.is_file() and last.stat().st_mtime >= max(one.stat().st_mtime for one in paths):
        for path in paths:
            shutil.copy(path.with_suffix(".vo"), folder)
        text = f"Require Export {' '.join(FILES[1:])}.\n"
    else:
        text = re.sub("^Require Import .*", "", "\n".join(map(Path.read_text, paths)), flags=re.M)
        text = text.replace("Export ", "Import ")  # or losses would be read in mathcomp's scopes
    (folder / "Verified.v").write_text(text)
    coqc(folder, "Verified")


def coqc(folder, name: str) -> str:
    made = subprocess.run(
        ["coqc", "-q", f"{name}.v"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr[-2000:]
    return made.stdout


def differences(folder, traces: list[str]) -> list[int | None]:
    """For each trace, the first event at which the two accounts differ."""
    lines = [f"Definition t{n} : option nat := {trace}." for n, trace in enumerate(traces)]
    names = sequence(f"t{n}" for n in range(len(traces)))
    lines += [f"Eval vm_compute in {names}.\n"]
    (folder / "Run.v").write_text("\n".join([HEAD, *lines]))
    said = coqc(folder, "Run").split("=", 1)[1].rpartition(":")[0]
    found = said.replace("[::", "").replace("]", "").split(";")
    assert len(found) == len(traces)
    return [None if one.strip() == "None" else int(one.split()[1].split("%")[0]) for one in found]
