"""Call public callables with hostile values, each run of calls in a process of its own.

``python fuzz.py plan.json`` is the process: it says which call it begins, and what went wrong.
:func:`run` starts it, and starts it again after a call that did not come back.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import random
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SECONDS = float(os.environ.get("FUZZ_SECONDS", "20"))  # of processor time, for one call
BLOCKED = 180.0  # seconds that a call may wait
MEMORY = 3 << 29  # bytes beyond what a process has after its imports
LONGEST = 2000  # characters of a message

OWN = {  # callable, and what they raise of their own is the caller's
    "len", "int", "float", "np.float64", "object", "type", "HostileError", "lambda three",
    "lambda: None", "lambda x: None", "lambda x: x", "staticmethod", "partial", "MagicMock",
    "class Measurement", "class TradeoffFunction", "partial constructor", "then_counter",
    "filter's handle", "counter's handle", "measurement on a bool", "measurement",
    "odometer's handle", "machine", "filter", "compositor", "counter", "native odometer",
    "native queryable", "odometer", "transformation",
    "lambda *_: callable", "lambda *_: array",
}  # fmt: skip

ALIASES = {  # what else a message may name
    "message": "query|guess",
    "output_measure": "d_mids|privacy_map",
    "make_measurement": "measurement|arg",
    "losses": "refused",
    "budget": "bound",
    "output_domain": "input_domain",
    "data": "arg",
    "arg": "data",
    "sensitivity": "scale",
    "d_in": "d_out",
    "tolerance": "threshold",
    "size": "d_out",
    "queries": "d_out",
    "universe": "d_out",
    "item": "user",
    "items": "user",
    "probabilities": "losses",
    "domain": "arg|input_domain",
    "input_domain": "universe",
    "d_out": "order",
    "steps": "answers",
    "first": "second|query|arg|streams",
    "second": "first|query|arg|streams",
    "query": "threshold|message|guess|step|key|composition|items|handle|measurement",
    "guess": "query|message",
    "batch": "query|handle",
    "measurement": "d_in|composition|arg|analyst|strategy",
    "launches": "bounds",
    "population": "loss",
    "sample_size": "loss",
    "strategy": "measurement|query|arg",
    "x": "measurement",
    "epsilons": "deltas",
    "x_prime": "measurement",
    "composition": "input_domain",
    "other": "postprocessor",
    "accumulator": "most|d_out",
    "decided": "run",
    "keys": "measurements",  # of blocks, by the same reader of keys
}

PASSED_ON = {  # where OpenDP says it of its own
    ("concurrent_context", "domain"),
    ("child()", "query"),
    ("child odometer()", "query"),
    ("context.query", "epsilon"),
}

FIELDS = {  # of hostile values whose own field is what the error names
    "NoisySum": "per_row",
    "Update of nonsense": "step",
    "Updates of nothing": "update",
}

Plan = list[tuple[str, str, str]]


def plan_all() -> Plan:
    """Every hostile value for each argument in turn."""
    from arguments import CASES
    from hostile import HOSTILE

    return [
        (name, arg, label)
        for name, one in CASES.items()
        for arg in one.arguments
        for label in HOSTILE
    ]


def plan_sample(seed: int, but: Collection[tuple[str, str]] = ()) -> Plan:
    """A hostile value for each argument, but for some."""
    from arguments import CASES
    from hostile import HOSTILE

    choose, labels = random.Random(seed), list(HOSTILE)
    return [
        (name, arg, choose.choice(labels))
        for name, one in CASES.items()
        for arg in one.arguments
        if (name, arg) not in but
    ]


# --- in the process --------------------------------------------------------------------------


def may_be_accepted(kind: str, value: Any) -> bool:
    from arguments import accepts

    try:
        return accepts(kind)(value)
    except Exception:
        return False


def judge(error: BaseException, name: str, kind: str, label: str) -> str | None:
    """What is wrong with an error; None if it is as it should be."""
    from hostile import HostileError

    from opendp_concurrent.errors import (
        ConcurrentError,
        LedgerError,
        PostprocessorError,
        PrivacyMapError,
        RefusalError,
        SpaceMismatchError,
        UnsupportedMeasureError,
    )

    try:
        message = str(error)
    except Exception as second:
        return f"the message raises {type(second).__name__}"
    if len(message) > LONGEST:
        return f"a message of {len(message)} letters"
    free = "callable" in kind or "anything" in kind or "transformation" in kind
    if free and label in OWN:
        return None
    if isinstance(error, ConcurrentError):
        known = (
            LedgerError,
            PostprocessorError,
            PrivacyMapError,
            RefusalError,
            SpaceMismatchError,
            UnsupportedMeasureError,
        )
        names = f"{name}|{ALIASES[name]}" if name in ALIASES else name
        if isinstance(error, known) or re.search(rf"\b({names})\b", message):
            return None
        return f"does not name {name}: {type(error).__name__}: {message[:300]}"
    arity = isinstance(error, TypeError) and "positional argument" in message
    if free and (
        isinstance(error, HostileError) or "HostileError" in message or label in OWN or arity
    ):
        return None
    return f"raw {type(error).__name__}: {message[:300]}"


def one_call(name: str, arg: str, label: str, handles: dict[str, Any]) -> str | None:
    """Make a call; what is wrong with how it ended, or None."""
    if name in SELF_TESTS:  # which need no import
        found, make = SELF_TESTS[name], lambda: nan
    else:
        from arguments import CASES
        from hostile import HOSTILE

        found, make = CASES[name], HOSTILE[label]
    value, kind = make(), found.arguments[arg][1]
    given = {key: valid for key, (valid, _) in found.arguments.items()} | {arg: value}
    first: tuple[Any, ...] = ()
    before: Any = None
    if found.fresh is not None:
        if name not in handles:
            handle = found.fresh()
            handles[name] = handle, found.state(handle)
        handle, before = handles[name]
        first = (handle,)
    try:
        found.call(*first, **given)
    except MemoryError as error:
        handles.pop(name, None)
        return f"MemoryError: {error}"
    except Exception as error:
        wrong = judge(error, arg, kind, label)
        if (name, arg) in PASSED_ON and type(error).__name__ == "OpenDPException":
            wrong = None
        if wrong and wrong.startswith("does not name") and FIELDS.get(label, arg) in str(error):
            wrong = None
        if wrong and "FUZZ_TRACE" in os.environ:
            traceback.print_exc()
        if first:
            if before is None:
                del handles[name]  # it may have halted
            elif found.state(first[0]) != before:
                wrong = f"charged: {before} became {found.state(first[0])}"
                del handles[name]
        return wrong
    handles.pop(name, None)
    if not may_be_accepted(kind, make()):
        return "accepted"
    return None


@dataclass(frozen=True)
class _Fault:
    """A case that does something which must be noticed."""

    call: Callable[..., Any]
    arguments: dict[str, tuple[Any, str]]
    fresh: Any = None

    @staticmethod
    def state(handle: Any) -> Any:
        return handle[0]


def _raise(error: BaseException) -> None:
    raise error


def _charge(handle: list[int]) -> None:
    from opendp_concurrent.errors import InvalidTypeError

    handle[0] += 1
    raise InvalidTypeError("x is wrong")


def _spin() -> None:
    while True:
        pass


NUMBER = {"x": (1, "positive")}
ENDS = {"crash", "hang"}  # a process that need not have imported anything
SELF_TESTS = {
    "crash": _Fault(lambda x: os.abort(), NUMBER),
    "hang": _Fault(lambda x: _spin(), NUMBER),
    "memory": _Fault(lambda x: bytearray(2 * MEMORY), NUMBER),
    "raw": _Fault(lambda x: x + "text", NUMBER),
    "nameless": _Fault(lambda x: _raise(_ours("something is wrong")), NUMBER),
    "named": _Fault(lambda x: _raise(_ours("x is wrong")), NUMBER),
    "accepted": _Fault(lambda x: None, NUMBER),
    "exit": _Fault(lambda x: sys.exit(0), NUMBER),
    "charged": _Fault(lambda handle, x: _charge(handle), NUMBER, lambda: [0]),
}


def _ours(message: str) -> Exception:
    from opendp_concurrent.errors import InvalidTypeError

    return InvalidTypeError(message)


def _limit() -> None:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def work(path: str) -> None:
    """Make the calls of a plan, and tell of each."""
    os.environ["RUST_BACKTRACE"] = "0"
    sys.modules["sklearn"] = None  # type: ignore[assignment]  # OpenDP imports it, for two seconds
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what is printed is no answer
    plan = json.loads(Path(path).read_text())
    if not {name for _, (name, _, _) in plan} <= ENDS:
        import arguments  # noqa: F401 (before the limit)

    if Path("/proc/self/statm").exists():
        _limit()
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    handles: dict[str, Any] = {}
    for number, (name, arg, label) in plan:
        out.write(f"{number}\n")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            wrong = one_call(name, arg, label, handles)
        except BaseException as error:
            wrong = f"let out {type(error).__name__}: {str(error)[:300]}"
            handles.clear()
        if wrong:
            out.write(json.dumps([number, wrong]) + "\n")
        if number % 200 == 0:
            gc.collect()
    signal.setitimer(signal.ITIMER_PROF, 0)
    out.write("done\n")


# --- the one that starts it ------------------------------------------------------------------


def run(plan: Plan, errors: Any = subprocess.DEVNULL) -> list[tuple[str, str, str, str]]:
    """Make the calls of a plan; return those that ended as they should not, and how."""
    wrong: list[tuple[str, str, str, str]] = []
    left = list(enumerate(plan))
    while left:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(left, file)
            file.flush()
            begun, done = _one_process(file.name, plan, wrong, errors)
        if done:
            break
        if begun is None:
            raise RuntimeError("the process did not begin")
        left = [one for one in left if one[0] > begun]
    return wrong


def _one_process(
    path: str, plan: Plan, wrong: list[tuple[str, str, str, str]], errors: Any
) -> tuple[int | None, bool]:
    command = [sys.executable, str(HERE / "fuzz.py"), path]
    begun: int | None = None
    with (
        tempfile.TemporaryDirectory() as folder,  # where a path without a folder ends up
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        ) as process,
    ):
        assert process.stdout is not None
        while True:
            ready, _, _ = select.select([process.stdout], [], [], BLOCKED)
            line = process.stdout.readline() if ready else ""
            if line == "done\n":
                return begun, True
            if line.startswith("["):
                number, what = json.loads(line)
                wrong.append((*plan[number], what))
            elif line:
                begun = int(line)
            else:
                process.kill()
                process.wait()
                if begun is not None:
                    ended = signal.Signals(-process.returncode).name if ready else "blocked"
                    what = f"more than {SECONDS} s" if ended == "SIGPROF" else f"ended: {ended}"
                    wrong.append((*plan[begun], what))
                return begun, False


if __name__ == "__main__":
    work(sys.argv[1])
