"""Every public callable with a valid call, and of each argument what kind of value it takes.

:data:`CASES` has the callables of ``opendp_concurrent``, ``.ledger``, ``.plot``, ``.serving`` and
``.verify``, the methods of their classes, and the messages that each handle takes. A kind says
which values *may* be accepted; any other has to be refused. A public callable without a case fails
``test_argument_fuzz.py``.
"""

from __future__ import annotations

import functools
import inspect
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import tables  # beside this file
from dp_accounting import dp_event
from opendp.mod import Domain, Measure, Measurement, Metric, Odometer, Transformation

import opendp_concurrent as oc
from opendp_concurrent import _checks as written
from opendp_concurrent import ledger, plot, serving, verify
from opendp_concurrent._checks import Guard, guards_of
from opendp_concurrent._opendp.advisories import ACCEPTED
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.data.partition import Partition
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE

DOORS = (
    *(oc, oc.c, oc.m, oc.t, oc.accumulators, oc.fdp),
    *(oc.measures, oc.mechanisms, oc.streams),
)
PUBLIC = {
    name: vars(group)[name]
    for group in DOORS
    for name in group.__all__
    if not inspect.ismodule(vars(group).get(name, inspect))
}
MESSAGES = (  # what handles take and answer, which is no handle
    *("Deviation", "LinearAnswers", "NoisySum", "Outcome", "SparseVectorAnswer"),
    *("Update", "Updates"),
)
PUBLIC |= {name: vars(oc.handles)[name] for name in MESSAGES}

dp.enable_features("contrib", "honest-but-curious")
T = oc.TradeoffFunction

# --- kinds -----------------------------------------------------------------------------------


def is_kind(value: Any, *kinds: type) -> bool:
    """Whether the class itself is one of the kinds, whatever the value says."""
    return any(kind in kinds for kind in type(value).__mro__)


def exact(value: Any) -> Any:
    """The number that it is, whatever it says; None if it is no number."""
    if is_kind(value, bool, np.bool_):
        return None
    if is_kind(value, int):
        return int.__add__(value, 0)
    if is_kind(value, float):
        return float.__add__(value, 0.0)
    if is_kind(value, np.integer, np.floating):
        return value.item()
    return None


def is_word(value: Any, word: str) -> bool:
    return type(value) is str and value == word


def number(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (one := exact(value)) is not None and bool(test(one))


def whole_number(test: Callable[[int], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(one := exact(value), int) and test(one)


def elements(value: Any) -> list[Any] | None:
    """What is in a short sequence, read as a class that does not lie; None if it is none."""
    if is_kind(value, np.ma.MaskedArray):
        return None
    if is_kind(value, np.ndarray):
        return list(value[:10]) if value.ndim else None
    for kind in (list, tuple):
        if is_kind(value, kind):
            return list(kind.__iter__(value))
    if is_kind(value, range):
        return list(value[:10])
    if issubclass(type(value), Sequence) and not is_kind(value, str, bytes, bytearray, memoryview):
        return [value[index] for index in range(min(10, len(value)))]
    return None


def each(kind: str, least: int = 1) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        inner = elements(value)
        return inner is not None and len(inner) >= least and all(map(KINDS[kind], inner))

    return accepts


def either(*kinds: str) -> Callable[[Any], bool]:
    return lambda value: any(KINDS[kind](value) for kind in kinds)


def of_class(*classes: type) -> Callable[[Any], bool]:
    return lambda value: is_kind(value, *classes)


KINDS: dict[str, Callable[[Any], bool]] = {
    "anything": lambda value: True,
    "nothing hostile": lambda value: False,
    "None": lambda value: value is None,
    "real": number(lambda one: one == one),
    "finite real": number(lambda one: -inf < one < inf),
    "non_negative": number(lambda one: 0 <= one),
    "finite": number(lambda one: 0 <= one < inf),
    "positive": number(lambda one: 0 < one < inf),
    "probability": number(lambda one: 0 <= one <= 1),
    "above 1": number(lambda one: 1 < one),
    "between 0 and 1": number(lambda one: 0 < one < 1),
    "order": number(lambda one: 1 < one < inf),
    "order from 1": number(lambda one: 1 <= one < inf),
    "integer": whole_number(lambda one: True),
    "whole": whole_number(lambda one: 0 <= one),
    "count": whole_number(lambda one: 1 <= one),
    "flag": lambda value: value is True or value is False,
    "text": of_class(str),
    "path": of_class(str, Path),
    "item": lambda value: value is None or is_kind(value, bool, np.bool_, int, np.integer),
    "callable": callable,
    "domain": of_class(Domain),
    "metric": of_class(Metric),
    "measure": of_class(Measure),
    "measurement": of_class(Measurement),
    "odometer": of_class(Odometer),
    "transformation": of_class(Transformation),
    "function": of_class(T),
    "tcdp": of_class(oc.TruncatedConcentrated),
    "d_in": whole_number(lambda one: 0 <= one < 2**32),
    "mapping": lambda value: issubclass(type(value), Mapping),
    "sequence": lambda value: elements(value) is not None,
    "iterable": lambda value: hasattr(type(value), "__iter__") or hasattr(value, "__getitem__"),
}


def is_json(value: Any) -> bool:
    """Whether JSON has the value."""
    try:
        json.dumps(value, allow_nan=False)
    except Exception:
        return False
    return True


KINDS["JSON"] = is_json
KINDS["finite number"] = lambda value: (
    KINDS["finite real"](value)
    or (is_kind(value, Decimal, Fraction) and value == value and abs(value) < inf)
)
KINDS["typed"] = lambda value: (
    is_kind(value, Decimal, Fraction, str)
    and 0 <= (Decimal(value) if is_kind(value, str) else value) < inf
)
KINDS["wholes"] = each("whole", 0)
KINDS["plan"] = of_class(pl.LazyFrame)
KINDS["partition"] = of_class(Partition)
KINDS["record"] = lambda value: False
KINDS["fraction"] = of_class(Fraction)
KINDS["exceptions"] = lambda value: (
    is_kind(value, tuple)
    and all(is_kind(one, type) and issubclass(one, Exception) for one in tuple.__iter__(value))
)
KINDS["message"] = of_class(oc.handles.Update, oc.handles.Updates)
KINDS["accounting"] = of_class(type(oc.accumulators.zcdp(1e-7)))
KINDS["counts"] = each("count", 0)
KINDS["guess"] = lambda value: (
    KINDS["finite real"](value) or is_kind(value, bool, Fraction, Decimal)
)
KINDS["constant"] = of_class(int, float, str, date, np.integer, np.floating)
# of a column of texts; in an array, NaN is NULL
KINDS["key"] = lambda value: value is None or KINDS["text"](value) or value != value
KINDS["predicate"] = of_class(oc.tables.Expression)
KINDS["bounds"] = lambda value: is_kind(value, tuple) and each("finite real", 2)(value)
KINDS["pair"] = lambda value: (
    is_kind(value, tuple)
    and len(inner := list(tuple.__iter__(value))) == 2
    and KINDS["non_negative"](inner[0])
    and KINDS["probability"](inner[1])
)


def accepts(kind: str) -> Callable[[Any], bool]:
    """The test of a kind: ``a or b``, and ``list of a``."""
    parts = [part.strip() for part in kind.split(" or ")]
    tests = [
        each(part.removeprefix("list of ")) if part.startswith("list of ") else KINDS[part]
        for part in parts
    ]
    return lambda value: any(test(value) for test in tests)


# --- cases -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A callable, and a valid call of it.

    :ivar call: takes the arguments by name, and uses what is made of them
    :ivar arguments: of each a valid value and its kind
    :ivar state: what a refused call must not change, of a handle
    :ivar fresh: makes the handle, which is then the first argument of ``call``
    """

    name: str
    call: Callable[..., Any]
    arguments: dict[str, tuple[Any, str]]
    fresh: Callable[[], Any] | None = None
    state: Callable[[Any], Any] = field(default=lambda handle: None)


CASES: dict[str, Case] = {}
MODULES = {
    "ledger": vars(ledger),
    "plot": vars(plot),
    "serving": vars(serving),
    "extend": vars(oc.extend),
    "verify": vars(verify),
    "tables": vars(oc.tables),
}


def public(name: str) -> Any:
    """The public callable of this name."""
    found: Any = PUBLIC | MODULES
    for part in name.split("."):
        found = found[part] if isinstance(found, Mapping) else getattr(found, part)
    return found


def kind_of(name: str, guard: Any, default: Any) -> str:
    """The kind of an argument: what its guard says; else by its name."""
    if isinstance(guard, Guard) and all(
        one.removeprefix("list of ") in KINDS for one in guard.kind.split(" or ")
    ):
        return guard.kind
    kind = BY_NAME[name][1] if name in BY_NAME else "nothing hostile"
    if kind == "anything" or kind.startswith("None"):
        return kind
    return "flag" if isinstance(default, bool) else "None" if default is None else kind


def filled(
    made: Any, guards: Mapping[str, Any], given: Mapping[str, tuple[Any, ...]]
) -> dict[str, tuple[Any, str]]:
    """Each argument of a callable with a valid value and its kind.

    What is not given comes from the guard, from the name, and from the default value.
    """
    found = {}
    for name, parameter in inspect.signature(made).parameters.items():
        default = parameter.default
        code = getattr(made, "func", made)
        captured = default is not parameter.empty and code.__name__ == "<lambda>"
        if captured or name == "options":
            continue
        value, *kind = given.get(name, (UNKNOWN,))
        kind = kind or [kind_of(name, guards.get(name), default)]
        if value is UNKNOWN and default is not parameter.empty:
            value = default
        elif value is UNKNOWN:
            value = BY_NAME[name][0] if name in BY_NAME else VALID[kind[0]]
        found[name] = value, kind[0]
    assert given.keys() <= found.keys(), given
    return found


def guards_at(name: str) -> Mapping[str, Any]:
    """The guards of a public callable; none for what is not public."""
    try:
        return guards_of(public(name.partition(", ")[0]))
    except (KeyError, AttributeError):
        return {}


def takes_any(call: Any) -> bool:
    """Whether a callable takes any keywords, or does not say what it takes."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(one.kind is one.VAR_KEYWORD for one in parameters)


UNKNOWN = object()


def drawn(draw: Any) -> Any:
    """Draw without a window, and keep no picture."""

    def drawing(**given: Any) -> Any:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        try:
            return draw(**given)
        finally:
            pyplot.close("all")

    return drawing


def use(made: Any) -> Any:
    """Read the map of a measurement."""
    return used(made) if isinstance(made, Measurement) else made


def case(
    name: str,
    call: Callable[..., Any] | None = None,
    /,
    then: Callable[[Any], Any] = use,
    **arguments: tuple[Any, ...],
) -> None:
    """A public callable. What is not given of its arguments comes from its signature.

    But a variant, whose name has a comma, and a call that takes any keywords, get what is given.
    """
    assert name not in CASES, name
    made = public(name.partition(", ")[0]) if call is None else call
    if ", " in name or takes_any(made):
        guards = guards_at(name)
        arguments = {
            one: given if len(given) == 2 else (*given, kind_of(one, guards.get(one), 0))
            for one, given in arguments.items()
        }
    else:
        arguments = filled(made, guards_at(name), arguments)
    if call is None:
        made = drawn(made) if name.startswith("plot.") else made
        call = lambda **given: then(made(**given))  # noqa: E731
    CASES[name] = Case(name, call, arguments)


def on_handle(
    name: str,
    fresh: Callable[[], Any],
    call: Callable[..., Any] | None = None,
    state: Callable[[Any], Any] = lambda handle: None,
    /,
    **arguments: tuple[Any, ...],
) -> None:
    """A method of a handle; without a call, the public method of that name."""
    assert name not in CASES, name
    if call is None:
        method = name.rpartition(".")[2]
        made = functools.partial(public(name), None)
        call = lambda handle, **given: getattr(handle, method)(**given)  # noqa: E731
    else:
        made = functools.partial(call, None)
    if not takes_any(made):
        arguments = filled(made, guards_at(name), arguments)
    CASES[name] = Case(name, call, arguments, fresh, state)


def used(measurement: Any, d_in: Any = 1) -> Any:
    """Read the map of what was made: a loss that is no number at all would be nonsense."""
    loss = measurement.map(d_in)
    if isinstance(loss, float) and not loss >= 0.0:
        raise AssertionError(f"the map says {loss}")
    return measurement


def maker(
    name: str, space: tuple[Any, Any], at: Any = 1, finish: Any = used, /, **rest: tuple[Any, ...]
) -> None:
    """A constructor on a space, and its then_."""
    make, then = PUBLIC[f"make_{name}"], PUBLIC.get(f"then_{name}")
    first = {"input_domain": (space[0], "domain"), "input_metric": (space[1], "metric")}
    arguments = filled(make, guards_of(make), first | rest)
    case(f"make_{name}", lambda **given: finish(make(**given), at), **arguments)
    if then is not None:
        for taken in first:
            del arguments[taken]
        case(f"then_{name}", lambda **given: finish(space >> then(**given), at), **arguments)


VECTOR = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
NUMBER = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
PAIRS = oc.record_stream("pairs", lambda pair: type(pair) is tuple and len(pair) == 2)
BITS = oc.integer_stream(0, 1), oc.event_presence()
PURE, ZCDP, RENYI = dp.max_divergence(), dp.zero_concentrated_divergence(), dp.renyi_divergence()
APPROXIMATE = dp.approximate(PURE)
COUNT = VECTOR >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
ODOMETER = oc.make_concurrent_odometer(*VECTOR, PURE)
FILTER = oc.make_concurrent_filter(ODOMETER, 1, 1.0)
LAPLACE = dp.m.make_laplace(*NUMBER, scale=1.0)
GAUSSIAN = dp.m.make_gaussian(*NUMBER, scale=1.0)
COUNTER = oc.m.make_counter(*BITS, PURE, 4.0)
F = T.laplace(0.5)


COLUMNS = "text or list of text"
LOSS = oc.TruncatedConcentrated(0.1, 64.0)
# valid values, by the kind that a guard says
VALID: dict[str, Any] = {
    "count": 3,
    "finite": 1.0,
    "integer": 1,
    "measure": PURE,
    "measurement": COUNT,
    "non_negative": 1.0,
    "positive": 1.0,
    "probability": 0.5,
    "text": "text",
    "whole": 1,
}
# valid values and kinds of arguments that are not described by a guard
BY_NAME: dict[str, tuple[Any, str]] = {
    "accumulator": (None, "None"),
    "alpha": (0.1, "probability"),
    "bound": (3.0, "positive"),
    "by": ("zone", COLUMNS),
    "categories": (3, "count"),
    "column": ("hours", "text"),
    "d_in": (1, "d_in"),
    "d_out": (1.0, "finite or typed"),
    "debug": (False, "anything"),
    "delta": (1e-3, "probability"),
    "delta_slack": (1e-6, "probability"),
    "epsilon": (0.5, "non_negative"),
    "handle": (1, "anything"),
    "horizon": (2, "count"),
    "keys": (["a"], "list of text"),
    "label": ("alice", "text"),
    "loss": (LOSS, "tcdp"),
    "lower": (0, "integer"),
    "measurements": ([COUNT, COUNT], "list of measurement"),
    "most": (9, "count"),
    "mu": (1.0, "non_negative"),
    "name": ("name", "text"),
    "noise_multiplier": (1.0, "non_negative"),
    "odometer": (ODOMETER, "odometer"),
    "omega": (8.0, "above 1"),
    "output_measure": (PURE, "measure"),
    "owner": ("alice", "text"),
    "rate": (0.1, "probability"),
    "records": (10, "whole"),
    "rho": (0.1, "non_negative"),
    "rounds": (2, "count"),
    "scale": (1.0, "positive"),
    "sensitivity": (None, "None or positive"),
    "sigma": (1.0, "positive"),
    "threshold": (5.0, "finite number"),
    "universe": (8, "count or sequence"),
    "upper": (5, "integer"),
    "value": (1.0, "anything"),
    "wait": (1.0, "finite"),
    "width": (1e-3, "non_negative"),
}


def only(measurement: Any, d_in: Any) -> Any:
    return measurement


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz"))


@cache
def ledger_path() -> Path:
    path = folder() / "budget.db"
    made = ledger.create_ledger(path, "survey")
    root = oc.make_concurrent_filter(ODOMETER, 1, 1.0, ledger=made)([1, 2])
    root(COUNT)
    made.close()
    return path


# accumulators and rules


def launched(accounting: Any) -> Any:
    """Use an accumulator for (ε, δ)."""
    loss = accounting.start((0.0, 0.0)).after((0.1, 0.0)).loss
    if not loss[0] >= 0.0 <= loss[1]:
        raise AssertionError(f"the loss is {loss}")
    return loss


class SumRule:
    start = Fraction(0)

    def after(self, state, d_mid):
        return state + Fraction(d_mid)

    def continues(self, state, d_out):
        return state <= d_out


case("basic", lambda: oc.accumulators.basic().start(MAX_DIVERGENCE))
case("advanced", then=launched)
case("zcdp", then=launched)
case("any_time", then=launched, planned=(1.0, "positive"))
case("renyi", then=launched, order=(8.0, "order"))
case("residue", lambda mu: oc.accumulators.residue(mu).start(None).after(T.pure(0.1)))
case(
    "ladder",
    lambda unit: oc.accumulators.ladder(unit).start(None).after(T.pure(0.01)),
    unit=(T.pure(0.01), "function"),
)
case(
    "ladder, at a delta",
    lambda **given: oc.accumulators.ladder(**given).start(None).after((0.01, 0.0)),
    unit=(T.pure(0.01), "function"),
    delta_slack=(1e-6, "None or probability"),
)
case(
    "either",
    lambda rules: oc.accumulators.either(oc.accumulators.basic(), rules),
    rules=(oc.accumulators.zcdp(1e-6), "accounting"),
)
case(
    "from_rule",
    lambda rule: oc.accumulators.from_rule(rule).start(0.0).after(0.25).loss,
    rule=(SumRule(),),
)
case(
    "from_rule, along",
    lambda along: (
        oc.accumulators.from_rule(SumRule(), along=along)
        .start(oc.extend.composition_measure(PURE))
        .after(0.25)
        .loss
    ),
    along=(lambda number: number, "callable"),
)
case("best_rule", d_out=((1.0, 1e-6), "pair"), typical=([(0.01, 0.0)], "list of pair"))
case(
    "launches_admitted",
    accumulator=(oc.accumulators.advanced(1e-6), "accounting"),
    d_out=((1.0, 1e-6), "pair"),
    typical=([(0.1, 0.0)], "list of pair"),
)
case(
    "optimal_composition",
    then=lambda made: made.epsilon(1e-3),
    d_mids=([0.5, (0.3, 1e-9)], "list of non_negative or list of pair"),
    counts=([1, 2], "None or list of whole"),
)
case("largest_share", privacy_loss=((PURE, 1.0),), launches=(4, "count or list of finite"))
case(
    "largest_share, approximate",
    privacy_loss=((APPROXIMATE, (1.0, 1e-6)),),
    launches=(4, "count or list of finite"),
    accumulator=(oc.accumulators.zcdp(5e-7), "None or accounting"),
    delta=(1e-9,),
)
case(
    "smallest_scale",
    make_measurement=(lambda scale: oc.m.make_certified_laplace(*NUMBER, scale, PURE),),
    d_in=(1.0, "finite or reals or sequence"),
)
case(
    "loss_of",
    epsilon=(1.0, "non_negative or typed"),
    delta=(None, "None or probability or typed"),
    rho=(None, "None"),
    alpha=(None, "None or order"),
    omega=(None, "None"),
    mu=(None, "None"),
    tradeoff=(None, "None"),
)
case("loss_of, rho", rho=(1.0, "non_negative or typed"), omega=(8.0, "None or above 1"))
case(
    "loss_of, rho and delta",
    rho=(1.0, "non_negative or typed"),
    delta=(1e-6, "None or probability or typed"),
)
case("loss_of, mu", mu=(1.0, "non_negative or typed"))
case("loss_of, tradeoff", tradeoff=(F, "function"))
case("loss_of, alpha", epsilon=(1.0, "non_negative or typed"), alpha=(8.0, "None or order"))

# values, measures, domains

case("TruncatedConcentrated")
for operator in ("__le__", "__eq__", "__lt__", "__ge__", "__gt__"):
    case(
        f"TruncatedConcentrated.{operator}",
        lambda other, operator=operator: getattr(LOSS, operator)(other),
        other=(LOSS, "anything"),
    )
    case(
        f"TradeoffFunction.{operator}",
        lambda other, operator=operator: getattr(F, operator)(other),
        other=(F, "anything"),
    )
case("risk", d_out=(1.0, "non_negative"), prior=(0.5, "between 0 and 1"))
case("group_tcdp", size=(4, "count"))
case("subsampled_tcdp", sample_size=(1000, "count"), population=(10**6, "count"))
case("fixed_renyi_divergence", alpha=(8.0, "order"))
case("approximate_renyi_divergence", alpha=(8.0, "order"))
case("truncated_concentrated_divergence")
for name in ("gaussian_tradeoff", "tradeoff", "event_change", "event_presence", "user_presence"):
    case(name, PUBLIC[name])
case("category_stream")
case("integer_stream")
case("record_stream", member=(lambda record: True, "callable"))
case(
    "Update",
    lambda item, step: COUNTER([])(oc.handles.Update(item, step)),
    item=(1, "item"),
    step=(1, "None or count"),
)
case("Updates", lambda items: COUNTER([])(oc.handles.Updates(items)), items=([1, None], "sequence"))
case("Deviation", query=(len, "anything"), guess=(1.0, "anything"))
case("SparseVectorAnswer", then=bool, outcome=(oc.handles.Outcome.ABOVE, "anything"))
case(
    "LinearAnswers",
    then=type,
    values=([1.0], "anything"),
    gap=(0.0, "anything"),
    never_worse=(True, "anything"),
)
case("NoisySum", per_row=(lambda rows: rows[:, 0], "callable"), bound=(1.0, "finite"))
case("individual_scale")


def label(label: Any) -> None:
    with oc.labelled(label):
        oc.make_concurrent_filter(ODOMETER, 1, 1.0)([1])(COUNT)


case("labelled", label)


def accept(references: Any) -> None:
    before = set(ACCEPTED)
    try:
        oc.accept_advisories(references)
    finally:
        ACCEPTED.intersection_update(before)


case("accept_advisories", accept, references=("opendp#2930", "text"))
case("counter_rmse")
case("window_rmse", window=(100, "count"))
case("sparse_vector_accuracy")

# trade-off functions


def answers(function: Any) -> Any:
    """Use a function."""
    for value in (function.delta(0.1), function.epsilon(1e-6), function.beta(0.1)):
        if not value >= 0.0:
            raise AssertionError(f"it answers {value}")
    return function


KINDS["matrix"] = lambda value: (
    is_kind(value, np.ndarray, list, tuple)
    and not is_kind(value, np.ma.MaskedArray)
    and (array := np.asarray(value)).dtype.kind in "fiu"
    and array.ndim == 2
    and bool(np.isfinite(array.ravel()[:10].astype(float)).all())
)
case("TradeoffFunction.identity")
case("TradeoffFunction.worst")
for name, arguments in {
    "pure": {},
    "approximate": {},
    "gaussian": {},
    "laplace": {"steps": (8.0, "positive or above 1")},
    "discrete_laplace": {"sensitivity": (1, "count")},
    "discrete_gaussian": {"sensitivity": (1, "count")},
    "randomized_response": {"prob": (0.75, "probability")},
    "finite": {
        "first": ([0.75, 0.25], "list of probability"),
        "second": ([0.25, 0.75], "list of probability"),
    },
    "subsampled_gaussian": {"unit": ("removed", "nothing hostile")},
    "subsampled_laplace": {"unit": ("added", "nothing hostile")},
    "from_profile": {
        "epsilons": ([0.0, 1.0], "list of non_negative"),
        "deltas": ([0.5, 0.1], "list of probability"),
        "other_deltas": ([0.5, 0.1], "None or list of probability"),
    },
    "from_curve": {
        "alphas": ([0.0, 0.5, 1.0], "list of probability"),
        "betas": ([0.8, 0.2, 0.0], "list of probability"),
    },
    "from_loss_distribution": {
        "losses": ([0.5, -0.5], "list of finite real"),
        "probabilities": ([0.6224593312018546, 0.3775406687981454], "list of probability"),
        "infinite": (0.0, "probability"),
    },
    "mixture": {
        "weights": ([0.5, 0.5], "list of finite"),
        "functions": ([F, T.pure(0.1)], "list of function"),
    },
}.items():
    case(f"TradeoffFunction.{name}", then=answers, **arguments)
SESSION = oc.fdp.Session.subsampled_gaussian(1.0, 0.1)
KINDS["session"] = of_class(T, oc.fdp.Session)
case("Session", removed=(F, "function"), added=(F, "function"))
case("Session.subsampled_gaussian")
case("Session.subsampled_laplace")
case("Session.compose", lambda other: SESSION.compose(other), other=(SESSION, "session"))
case(
    "smallest_sigma",
    lambda **given: oc.fdp.smallest_sigma(**given),
    loss=(lambda sigma: T.gaussian(1 / sigma), "callable"),
    epsilon=(2.0, "finite"),
    delta=(1e-3, "probability"),
    bounds=((1.0, 4.0), "bounds"),
    tolerance=(0.5, "positive"),
)
case("Session.power", SESSION.power, count=(2, "whole"))
KINDS["reals"] = lambda value: (
    KINDS["real"](value)
    or (
        is_kind(value, np.ndarray, list, tuple)
        and not is_kind(value, np.ma.MaskedArray)
        and (array := np.asarray(value)).dtype.kind in "fiu"
        and not np.isnan(array.ravel()[:10].astype(float)).any()
    )
)
for name, arguments in {
    "delta": {"epsilon": (0.5, "reals")},
    "delta_bounds": {"epsilon": (0.5, "reals"), "width": (1e-3, "non_negative")},
    "epsilon": {"delta": (1e-3, "probability")},
    "epsilon_bounds": {"delta": (1e-3, "probability"), "width": (1e-3, "non_negative")},
}.items():
    case(f"Session.{name}", getattr(SESSION, name), **arguments)
EVENT = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0))
KINDS["event"] = lambda value: issubclass(type(value), dp_event.DpEvent)
KINDS["loss"] = of_class(T, oc.fdp.Session)
KINDS["events"] = lambda value: (
    is_kind(value, list, tuple) and all(map(KINDS["event"], elements(value)))
)
RELATIONS = ("ADD_OR_REMOVE_ONE", "REPLACE_SPECIAL")
case("from_dp_event", event=(EVENT, "event"))
case("to_dp_event", loss=(SESSION, "loss"))
for name, arguments in {
    "GaussianDpEvent": {"noise_multiplier": (1.0, "non_negative")},
    "LaplaceDpEvent": {"noise_multiplier": (1.0, "non_negative")},
    "DiscreteLaplaceDpEvent": {
        "noise_parameter": (1.0, "non_negative"),
        "sensitivity": (1, "count"),
    },
    "RandomizedResponseDpEvent": {
        "noise_parameter": (0.1, "probability"),
        "num_buckets": (3, "count"),
    },
    "SelfComposedDpEvent": {"event": (EVENT, "event"), "count": (3, "count")},
    "ComposedDpEvent": {"events": ([EVENT], "events")},
    "PoissonSampledDpEvent": {
        "sampling_probability": (0.1, "probability"),
        "event": (EVENT.event, "event"),
    },
    "SingleEpochTreeAggregationDpEvent": {
        "noise_multiplier": (1.0, "non_negative"),
        "step_counts": (8, "count or list of count"),
    },
    "ZCDpEvent": {"rho": (0.1, "non_negative"), "xi": (0.1, "non_negative")},
}.items():
    case(
        f"from_dp_event, {name}",
        lambda name=name, **given: oc.fdp.from_dp_event(
            getattr(dp_event, name)(**given), "REPLACE_SPECIAL"
        ),
        **arguments,
    )
case("Accountant")
on_handle(
    "Accountant.compose",
    oc.fdp.Accountant,
    lambda accountant, **given: accountant.compose(**given),
    lambda accountant: (accountant.session, accountant.ledger),
    event=(EVENT, "event"),
    count=(2, "count"),
)
on_handle(
    "Accountant.supports",
    oc.fdp.Accountant,
    lambda accountant, event: accountant.supports(event) or oc.fdp.from_dp_event(event),
    lambda accountant: (accountant.session, accountant.ledger),
    event=(EVENT, "event"),
)
case("Accountant.get_epsilon", oc.fdp.Accountant().get_epsilon, target_delta=(1e-3, "probability"))
case("Accountant.get_delta", oc.fdp.Accountant().get_delta, target_epsilon=(0.5, "non_negative"))
PRODUCT = T.laplace(0.5).compose(T.gaussian(0.5))
for title, function in {"": F, ", product": PRODUCT, ", worst": T.worst()}.items():
    for name, arguments in {
        "delta": {"epsilon": (0.5, "reals")},
        "delta_bounds": {"epsilon": (0.5, "reals"), "width": (1e-3, "non_negative")},
        "epsilon": {"delta": (1e-3, "probability")},
        "epsilon_bounds": {"delta": (1e-3, "probability"), "width": (1e-3, "non_negative")},
        "beta": {"alpha": (0.1, "probability")},
        "beta_bounds": {"alpha": (0.1, "probability")},
        "compose": {"others": (F, "function")},
        "power": {"count": (1, "whole")},
        "group": {"size": (3, "count")},
        "root": {"part": (Fraction(1, 2), "anything")},
        "units": {"unit": (F, "function")},
        "admits": {"unit": (T.pure(0.1), "function")},
    }.items():

        def method(name=name, function=function, **given):
            if name == "compose":
                return answers(function.compose(given["others"]))
            found = getattr(function, name)(**given)
            return answers(found) if isinstance(found, T) and name != "root" else found

        case(f"TradeoffFunction.{name}{title}", method, **arguments)
case("TradeoffFunction.residual", T.gaussian(1.0).residual, child=(T.pure(0.1), "function"))
case("TradeoffFunction.one_way", F.one_way, unit=("removed",))
for name in ("inverse", "symmetrised", "both_directions"):
    case(f"TradeoffFunction.{name}", getattr(F, name))

# composition


def spent(handle: Any) -> Any:
    """What was charged."""
    return handle.privacy_loss(1)


maker("concurrent_odometer", VECTOR, 1, lambda made, d_in: made([1, 2])(COUNT))
case(
    "make_concurrent_odometer, approximate",
    lambda accumulator: oc.make_concurrent_odometer(*VECTOR, APPROXIMATE, accumulator=accumulator)(
        [1]
    ).privacy_loss(1),
    accumulator=(oc.accumulators.zcdp(1e-6), "None or accounting"),
)
maker(
    "concurrent_composition",
    VECTOR,
    1,
    lambda made, d_in: used(made)([1, 2])(COUNT),
    d_mids=([0.5, 0.25], "list of non_negative"),
    order=("given", "text"),
)
case(
    "make_concurrent_composition, Rényi",
    lambda **given: oc.make_concurrent_composition(*VECTOR, RENYI, **given).map(1)(2.0),
    d_in=(1,),
    d_mids=([lambda alpha: alpha / 2] * 2,),
    orders=([2, 4], "list of order"),
)
case(
    "make_concurrent_composition, approximate",
    lambda **given: oc.make_concurrent_composition(*VECTOR, APPROXIMATE, **given).map(1),
    d_in=(1,),
    d_mids=([(0.5, 1e-7), (0.25, 0.0)], "list of pair"),
    delta=(1e-6, "None or probability"),
)
case("make_concurrent_filter", then=lambda made: used(made)([1, 2])(COUNT))
case(
    "make_concurrent_filter, Rényi",
    lambda **given: oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*VECTOR, RENYI), 1, **given
    )([1]).privacy_loss()(2.0),
    d_out=(lambda alpha: alpha, "callable"),
    orders=([2, 4], "list of order"),
)
for title, measure, d_out, kind in (
    ("approximate", APPROXIMATE, (1.0, 1e-6), "pair"),
    ("tradeoff", oc.gaussian_tradeoff(), 1.0, "finite or typed"),
    ("tCDP", oc.truncated_concentrated_divergence(8.0), LOSS, "tcdp or finite"),
):
    case(
        f"make_concurrent_filter, {title}",
        lambda measure=measure, **given: oc.make_concurrent_filter(
            oc.make_concurrent_odometer(*VECTOR, measure), 1, **given
        )([1]).remaining(),
        d_out=(d_out, kind),
    )
case("make_limited", then=lambda made: FILTER([1, 2])(made)(COUNT))
OF_BLOCKS = [1, 2]


def launched_on_a_block(**given):
    handle = used(oc.c.make_block_filter(**given))([1, 2])
    return handle([1], COUNT) if given["keys"] is OF_BLOCKS else handle


case(
    "make_block_filter",
    launched_on_a_block,
    odometer=(ODOMETER,),
    d_in=(1,),
    d_out=(1e6, "non_negative"),
    blocks=(oc.c.by_key(lambda record: record), "partition"),
    keys=(OF_BLOCKS, "iterable"),
    orders=(None, "None"),
    halt=(False, "flag"),
    ledger=(None, "None"),
    opaque_errors=(False, "flag"),
)
case("make_filter_to_odometer", measurement=(FILTER, "measurement"))
case(
    "make_chain_ot",
    then=lambda made: made.input_domain,
    transformation=(
        dp.t.make_user_transformation(*VECTOR, *VECTOR, lambda rows: rows, lambda d_in: d_in),
    ),
)
case(
    "make_chain_po",
    then=lambda made: made([1])(COUNT),
    postprocessor=(str, "callable or transformation"),
)
case(
    "cast",
    then=lambda made: used(made, 1.0),
    measurement=(LAPLACE,),
    delta=(None, "None"),
    orders=(None, "None"),
)
case(
    "cast, approximate",
    lambda **given: oc.c.cast(to_measure=APPROXIMATE, **given).map(1.0),
    measurement=(GAUSSIAN,),
    delta=(1e-6, "probability"),
)
case(
    "cast, Rényi",
    lambda **given: oc.c.cast(to_measure=APPROXIMATE, **given).map(1.0),
    measurement=(oc.m.make_certified_gaussian(*NUMBER, 1.0, RENYI),),
    delta=(1e-6, "probability"),
    orders=([2, 4], "list of order"),
)
case(
    "make_pureDP_to_zCDP",
    lambda **given: used(oc.c.make_pureDP_to_zCDP(**given), 1.0),
    measurement=(LAPLACE, "measurement"),
)
AGES = oc.c.by_values({"young": range(30), "old": range(30, 120)})
maker(
    "parallel_composition",
    VECTOR,
    1,
    lambda made, d_in: used(made)([1, 40])("young"),
    partition=(AGES, "partition"),
    measurements=({"young": COUNT, "old": COUNT}, "nothing hostile"),
)


def parted(partition: Any) -> Any:
    """Use a partition of integers, with parts 0 and 1."""
    made = oc.c.make_parallel_composition(*VECTOR, partition, {0: COUNT, 1: COUNT})
    return made([0, 1, 2])(0)


case(
    "by_key",
    lambda function: parted(oc.c.by_key(function)),
    function=(lambda record: record % 2, "callable"),
)
case("by_entry")
case("by_split", function=(lambda rows, keys: {}, "callable"))
case("by_column", lambda names: oc.c.by_column("region", names), names=("year", "text"))
case(
    "by_values",
    then=parted,
    groups=({0: range(5), 1: range(5, 9)}, "mapping"),
    of=(None, "None or callable or text"),
)
maker("indexed_composition", VECTOR, delta=(None,))
case(
    "make_indexed_composition, approximate",
    lambda **given: oc.c.make_indexed_composition(
        *VECTOR, APPROXIMATE, 1, [oc.c.cast(COUNT, APPROXIMATE)] * 2, **given
    ).map(1),
    delta=(1e-6, "None or probability"),
)
case(
    "make_interactive",
    lambda **given: used(oc.c.make_interactive(**given)),
    measurement=(COUNT, "measurement"),
)
case(
    "make_bounded_interactive",
    then=lambda made: used(made)([1])(None),
    measurement=(COUNT, "measurement or odometer"),
    max_messages=(3, "count"),
)
case("make_private_selection", mean_runs=(5.0, "above 1"))


def asked_once(state: Any, tag: Any, message: Any) -> Any:
    return (1, oc.c.ANSWER, message) if tag is oc.c.ANSWER else (state, oc.c.QUERY, None)


case(
    "make_interactive_postprocessing",
    then=lambda made: used(made)([1])(None),
    measurement=(COUNT, "measurement or odometer"),
    postprocessor=(asked_once, "callable"),
    initial_state=(None, "anything"),
    max_asks=(5, "count"),
)
case("ANSWER", lambda: repr(oc.c.ANSWER))
case("QUERY", lambda: repr(oc.c.QUERY))


def release(**given: Any) -> Any:
    """Use a context."""
    context = oc.concurrent_context(**given)
    return context.query().count().laplace(4.0).release()


case(
    "concurrent_context",
    release,
    data=([1, 2, 3], "anything"),
    privacy_unit=(dp.unit_of(contributions=1),),
    privacy_loss=(dp.loss_of(epsilon=1.0),),
    split_evenly_over=(None,),
    split_by_weights=(None, "None or list of finite"),
    domain=(dp.vector_domain(dp.atom_domain(T=int)),),
    margins=(None, "None or iterable"),
    orders=(None, "None"),
    accumulator=(None,),
    ledger=(None, "None"),
    opaque_errors=(True,),
)
case(
    "concurrent_context, split",
    lambda **given: oc.concurrent_context(
        [1, 2, 3], dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0), **given
    ),
    split_evenly_over=(3,),
)
case(
    "concurrent_context, weights",
    lambda **given: oc.concurrent_context(
        [1, 2, 3], dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0), **given
    ),
    split_by_weights=([1.0, 2.0], "None or list of finite"),
)

# mechanisms

for name in ("certified_gaussian", "certified_laplace"):
    maker(
        name,
        NUMBER,
        1.0,
        scale=(1.0, "finite"),
        output_measure=(ZCDP, "measure"),
        k=(-20, "None or integer"),
    )
    for title, measure in (("f-DP", oc.tradeoff()), ("Rényi", oc.fixed_renyi_divergence(4.0))):
        case(
            f"make_{name}, {title}",
            lambda name=name, measure=measure, **given: used(
                PUBLIC[f"make_{name}"](*NUMBER, output_measure=measure, **given), 1.0
            ),
            scale=(1.0, "finite"),
            k=(None, "None or integer"),
        )
        case(
            f"make_{name}, {title}, integers",
            lambda name=name, measure=measure, **given: used(
                PUBLIC[f"make_{name}"](*WHOLE, output_measure=measure, **given)
            ),
            scale=(1.0, "finite"),
        )
maker("certified_geometric", WHOLE)
case("make_certified_randomized_response", categories=(["a", "b", "c"], "sequence"))
case("make_certified_randomized_response_bool")
SPARSE = {
    "output_measure": (PURE, "measure"),
    "d_in": (1, "d_in"),
    "scale": (2.0, "positive"),
    "threshold": (5.0, "finite number"),
}
QUERY = VECTOR >> dp.t.then_count()
maker("above_threshold", VECTOR, query_scale=(4.0, "None or positive"), **SPARSE)
maker("sparse_vector", VECTOR, **SPARSE)
maker("guess_and_check", VECTOR, tolerance=(5.0, "finite real"), delta=(None,))
case(
    "make_guess_and_check, approximate",
    lambda **given: oc.m.make_guess_and_check(*VECTOR, APPROXIMATE, 1, 2.0, 5.0, 2, **given).map(1),
    delta=(1e-6, "None or probability"),
)
maker("private_multiplicative_weights", VECTOR, d_out=(50.0, "positive or typed"), size=(10_000,))
maker("projected_queries", VECTOR, output_measure=(ZCDP,), d_mids=([0.25, 0.25],))
maker(
    "marginals",
    VECTOR,
    d_out=(0.5, "positive or typed"),
    columns=(1, "count"),
    bounds=((0, 1), "anything"),
    pairs=((), "anything"),
)
ROWS = dp.numpy.array2_domain(T=float, num_columns=2), dp.symmetric_distance()
maker("individual_filter", ROWS)
maker(
    "shared_release", WHOLE, 1, lambda made, d_in: made(5)(0.25), ceiling=(0.5, "None or positive")
)

FRAMES = dp.lazyframe_domain([dp.series_domain("n", dp.atom_domain(T="i64"))]), VECTOR[1]
maker("frame_count", FRAMES, lazyframe=(pl.LazyFrame(schema={"n": pl.Int64}), "plan"))

# streams


class Clock:
    steps = 0

    def update(self, item):
        self.steps += 1

    def update_all(self, items):
        self.steps += len(items)

    def ask(self, query):
        return self.steps


def fed(made: Any, d_in: Any) -> Any:
    """Use a continual mechanism."""
    handle = used(made)([])
    handle.update_all([1, None, 0])
    return handle(None)


maker("continual", BITS, 1, fed, start=(Clock,), privacy_map=(lambda d_in: 0.0,))
for name in ("counter", "histogram_counter"):
    maker(
        name,
        BITS if name == "counter" else (oc.category_stream(2), BITS[1]),
        1,
        fed if name == "counter" else used,
        output_measure=(PURE, "measure"),
        scale=(4.0, "finite"),
        horizon=(10, "None or count"),
    )
maker("window_counter", BITS, 1, fed)
maker("alarm", BITS, 1, fed, threshold=(10,))
maker(
    "parallel_continual",
    BITS,
    1,
    lambda made, d_in: used(made)([]),
    key=(lambda item: item % 2,),
    measurements=({0: COUNTER, 1: COUNTER}, "nothing hostile"),
)
maker(
    "on_stream",
    BITS,
    1,
    lambda made, d_in: used(made)([]),
    measurement=(oc.make_concurrent_filter(oc.make_concurrent_odometer(*VECTOR, PURE), 1, 1.0),),
)
case(
    "make_concurrent_continual",
    then=lambda made: made([]),
    composition=(
        oc.make_concurrent_filter(oc.make_concurrent_odometer(*BITS, PURE), 1, 1.0),
        "measurement or odometer",
    ),
)
maker(
    "bounded_contributions",
    (PAIRS, oc.user_presence()),
    1,
    only,
    output_domain=(oc.integer_stream(0, 1),),
)
BOUNDED = tables.space()


def asked_table(made: Any, d_in: Any) -> Any:
    """Use a transformation of tables."""
    made(tables.data())
    return used(made, d_in)


def on_table(name: str, **rest: tuple[Any, ...]) -> None:
    maker(name, BOUNDED, 1, asked_table, **rest)


on_table("where", predicate=(oc.tables.col("zone") == "a", "predicate"))
on_table("with_columns", columns=({"long": oc.tables.col("hours") > 1.0}, "mapping"))
on_table("table_select", columns=(["zone"], COLUMNS))
HASHED = {"key": ("a key", "text")}
on_table("truncate", order_by=(["zone"], COLUMNS), descending=(True, "flag"), **HASHED)
on_table("group_truncate", **HASHED)
on_table("per_unit", columns=({"n": oc.tables.count()}, "mapping"))
on_table(
    "public_join",
    on=("zone", COLUMNS),
    schema=({"big": bool}, "mapping"),
    rows=({"a": True}, "mapping"),
    how=("left", "nothing hostile"),
)
maker(
    "private_join",
    tables.linked().space,
    1,
    lambda made, d_in: (made(tables.linked()), used(made, d_in)),
    table=("others", "text"),
    columns=(None, "None or mapping or " + COLUMNS),
    on=([], COLUMNS + " or sequence"),
    how=("semi", "nothing hostile"),
)
on_table("rows_per_unit", edges=([1, 2, 3], "list of integer"), norm=("l1", "nothing hostile"))
GROUPS = {"by": ("zone", COLUMNS), "keys": (["a"], "list of key")}
VALUE = {
    "column": ("hours", "text"),
    "bounds": ((0.0, 1.0), "bounds"),
    "quantum": (0.5, "positive"),
}
NORM = {"norm": ("l1", "nothing hostile")}
on_table("distinct_units", **GROUPS, **NORM)
on_table("distinct_values", columns=("zone", COLUMNS), **GROUPS, **NORM)
on_table("table_count", column=(None, "None or text"), **GROUPS, **NORM)
on_table("table_sum", **GROUPS, **VALUE, **NORM)
on_table("table_histogram", edges=([0.0, 1.0], "list of real"), **GROUPS, **NORM)
on_table("table_prefixes", cuts=([0.0, 1.0], "list of real"), **GROUPS, **NORM)
on_table(
    "table_answers", answers=([oc.tables.Answer("count")], "list of answers"), **GROUPS, **NORM
)
on_table("quantile_scores", candidates=([0.0, 1.0], "list of real"))
case(
    "tables.scan",
    connection=(tables.connection(),),
    table=("people", COLUMNS),
    schema=({"person": int}, "mapping"),
    unit=("person", COLUMNS),
    csv=(None, "None"),
)
on_table("table_keys", d_out=((0.5, 1e-3), "pair of non_negative"))
case(
    "tables.Table.with_tables",
    lambda **given: tables.people().with_tables(**given),
    others=(tables.people(),),
)
case("tables.unit_of", units=(1, "whole"))
HOURS = oc.tables.col("hours")
case(
    "tables.Expression.is_in",
    lambda **given: HOURS.is_in(**given),
    values=([1.0], "list of constant"),
)
case(
    "tables.Expression.between",
    lambda **given: HOURS.between(**given),
    lower=(0.0, "constant"),
    upper=(1.0, "constant"),
)
case(
    "tables.Expression.starts_with",
    lambda **given: oc.tables.col("zone").starts_with(**given),
    prefix=("a", "text"),
)
case("tables.col", name=("zone", "text"))
case("tables.lit", value=(1.0, "constant"))
case("tables.when", condition=(oc.tables.col("zone") == "a", "predicate"))
case(
    "tables.Then.when",
    lambda **given: oc.tables.when(HOURS > 1.0).then(1.0).when(**given),
    condition=(oc.tables.col("zone") == "a", "predicate"),
)
case("tables.Decimal", scale=(2, "whole"))
case(
    "tables.Csv",
    separator=(";", "text"),
    decimal=(",", "text"),
    header=(["a"], "sequence or None"),
    nulls=(["NA"], "sequence"),
    encoding=("utf-8", "text"),
)
case(
    "tables.describe_schema",
    connection=(tables.connection(),),
    table=("people", COLUMNS),
    csv=(None, "None"),
)
case("uncollected", frame=(pl.LazyFrame({"age": [30]}),))
maker("stream_clamp", BITS, 1, only, output_domain=(oc.integer_stream(0, 1),))
maker(
    "stream_filter",
    BITS,
    1,
    lambda made, d_in: fed(made >> oc.m.then_counter(PURE, 4.0), 1),
    predicate=(lambda item: item == 1,),
)
maker(
    "stream_map",
    BITS,
    1,
    lambda made, d_in: fed(made >> oc.m.then_counter(PURE, 4.0), 1),
    output_domain=(oc.integer_stream(0, 1),),
    function=(lambda item: item,),
)


case("from_record", measurement=(COUNTER,), record=(COUNTER([]).to_record(), "record"))

# ledgers

numbers = iter(range(10**9))


def created(path_or_url: Any, dataset: Any, wait: Any) -> Any:
    if is_word(path_or_url, "new"):
        path_or_url = folder() / f"{next(numbers)}.db"
    ledger.create_ledger(path_or_url, dataset, wait=wait).close()


case("ledger.create_ledger", created, path_or_url=("new", "path"), dataset=("survey", "text"))
case(
    "ledger.open_ledger",
    lambda path_or_url, **given: ledger.open_ledger(
        ledger_path() if is_word(path_or_url, "there") else path_or_url, **given
    ).close(),
    path_or_url=("there", "path"),
    dataset=("survey",),
    anchor=(None, "None"),
    read_only=(False,),
    wait=(1.0,),
)


case(
    "ledger.datasets",
    lambda path_or_url, **given: ledger.datasets(
        ledger_path() if is_word(path_or_url, "there") else path_or_url, **given
    ),
    path_or_url=("there", "path"),
    wait=(1.0,),
)


class Theirs:
    """A class of another package."""

    first = 0


KINDS["attributes"] = lambda value: (
    issubclass(type(value), Mapping)
    and all(type(one) is str and one.isidentifier() for pair in value.items() for one in pair)
)


def registered(**given: Any) -> None:
    """Register a class, and forget it."""
    tables: list[Any] = [written.KINDS, written.BY_CLASS]
    before = [dict(one) for one in tables]
    try:
        oc.extend.register(**given)(Theirs)
    finally:
        for table, one in zip(tables, before, strict=True):
            table.clear()
            table.update(one)


case(
    "extend.register",
    registered,
    tag=("acme:theirs", "nothing hostile"),
    fields=({"first": "first"}, "attributes"),
    make=(None, "None or callable"),
)


def an_open_ledger() -> Any:
    return ledger.open_ledger(ledger_path(), "survey")


on_handle("ledger.SqlLedger.summary", an_open_ledger, anchor=(None, "None"))
on_handle(
    "ledger.SqlLedger.entries",
    an_open_ledger,
    lambda opened, **given: len(opened.entries(**given)),
    limit=(None, f"None or {COLUMNS}"),
    label=(None, "None or text"),
)
on_handle("ledger.SqlLedger.charged", an_open_ledger)
on_handle("ledger.SqlLedger.read", an_open_ledger, anchor=(None, "None"))
on_handle(
    "ledger.SqlLedger.report",
    an_open_ledger,
    lambda opened, **given: len(opened.report(**given)) > 1000,
    refused=({"alice": 3}, "mapping"),
)
on_handle(
    "ledger.SqlLedger.book",
    an_open_ledger,
    lambda opened, terms: None if is_word(terms, "none") else opened.book(terms),
    terms=("none",),
)

# plots

F2 = T.pure(1.0)
AX = {"ax": (None, "None")}


case(
    "plot.plot_tradeoff",
    functions=([F, F2], "function or list of function"),
    labels=(["a", "b"], "None or list of text"),
    **AX,
)

case(
    "plot.accuracy_of_plan",
    make_measurement=(lambda scale: oc.m.make_certified_laplace(*NUMBER, scale, ZCDP), "callable"),
    d_in=(1.0, "non_negative"),
    d_out=(0.5, "non_negative or typed"),
    launches=([1, 10],),
    accumulators=(None, "None"),
    beta=(0.05,),
    answers=(None, "None or count"),
    **AX,
)
case(
    "plot.plot_session",
    losses=([0.5, 0.75], "list of non_negative or sequence"),
    d_out=(1.0, "None or non_negative or function or pair or tcdp"),
    refused=([2], "counts"),
    **AX,
)
case(
    "plot.plot_stream",
    steps=([1, 2, 3],),
    answers=({"tree": [0.0, 2.0, 2.0]},),
    alarms=([2], "counts"),
    **AX,
)
case(
    "plot.plot_ledger",
    drawn(
        lambda ledger, **given: plot.plot_ledger(
            an_open_ledger() if is_word(ledger, "open") else ledger, **given
        )
    ),
    ledger=("open",),
    against=("time",),
    by=("time", "None"),
    **AX,
)
MENU = verify.response_menu(0.5, 1.0)
START, RULE = oc.accumulators.basic().start(APPROXIMATE_MAX_DIVERGENCE), Within((1.5, 0.0))


# verify

PAIR = [verify.random_interactive(seed) for seed in (1, 2)]
ONE = verify.random_interactive(seed=7)
TWO = verify.randomized_response(1.0)
NOTHING = "nothing hostile"
case(
    "verify.FiniteMechanism",
    first=((0.5, 0.5), "list of probability"),
    second=((0.25, 0.75), "list of probability"),
)
for name, arguments in {
    "delta": {"epsilon": (0.5, "real")},
    "epsilon": {"delta": (0.0, "probability")},
    "renyi": {"order": (2.0, "above 1")},
    "tradeoff": {"alpha": (0.1, "probability")},
}.items():
    case(f"verify.FiniteMechanism.{name}", getattr(TWO, name), **arguments)
    case(f"verify.FiniteInteractiveMechanism.{name}", getattr(ONE, name), **arguments)
case("verify.FiniteMechanism.roc", TWO.roc)
case("verify.FiniteInteractiveMechanism.analysts", lambda: list(ONE.analysts()))
case("verify.FiniteInteractiveMechanism.queries", ONE.queries, turn=(0, "whole"))
case(
    "verify.FiniteInteractiveMechanism.answers",
    ONE.answers,
    history=((), "anything"),
    query=(1, "whole"),
)
case("verify.FiniteInteractiveMechanism", tables=(ONE.tables,))
case("verify.randomized_response")
case("verify.random_mechanism")
case("verify.random_interactive")
case(
    "verify.response_menu",
    lambda epsilons: verify.response_menu(0.5, epsilons),
    epsilons=(1.0, "non_negative"),
)
for name in ("composition_delta", "concurrent_delta", "sequential_delta"):
    case(f"verify.{name}", getattr(verify, name), mechanisms=(PAIR, NOTHING), epsilon=(0.5, "real"))
case("verify.concurrent_renyi", mechanisms=(PAIR, NOTHING), order=(2.0, "above 1"))
case("verify.simulate", mechanism=(ONE,), pair=(TWO,))


@cache
def simulated() -> Any:
    return verify.simulate(ONE)


case(
    "verify.certify",
    lambda mechanism, simulation: verify.certify(
        mechanism, simulated() if is_word(simulation, "found") else simulation
    ),
    mechanism=(ONE,),
    simulation=("found",),
)
case(
    "verify.worst_analyst",
    menu=(MENU,),
    accumulator=(START, NOTHING),
    rule=(RULE,),
    epsilon=(1.0, "real"),
)
ITEM = verify.Item("response", 0.5, verify.randomized_response(0.5))
case(
    "verify.worst_renyi",
    menu=([ITEM],),
    accumulator=(oc.accumulators.basic().start(MAX_DIVERGENCE), NOTHING),
    rule=(Within(1.0),),
    order=(2.0, "order from 1"),
)
case(
    "verify.worst_loss",
    menu=([ITEM],),
    accumulator=(oc.accumulators.basic().start(MAX_DIVERGENCE), NOTHING),
    rule=(Within(1.0),),
    losses=([Fraction(1, 2)], "None or list of non_negative or list of fraction"),
)
case(
    "verify.worst_stopping",
    readings=([0.5, 1.0], "list of non_negative"),
    epsilon=(0.5, "positive"),
)
case("verify.Limited", rule=(RULE, "anything"))
case(
    "verify.audit",
    measurement=(lambda data: 0.5,),
    x=(1, "anything"),
    x_prime=(0, "anything"),
    strategy=(lambda answer: answer,),
    n=(50,),
)
AUDIT = verify.Audit(0.1, 0.0, 0.99, 10, "x")
case("verify.Audit.violates", AUDIT.violates)
case(
    "verify.clamped_noise",
    lambda low, high, gaussian: verify.clamped_noise(low, high, gaussian=gaussian)(0, 1.0),
    low=(0,),
    gaussian=(False,),
)


class Running:
    def __init__(self, release):
        self.total, self.release = 0, release

    def update(self, item):
        self.total += item if type(item) is int and 0 <= item < 9 else 0

    def __call__(self, query):
        return self.release(self.total, 2.0)


LAW = verify.Replayed(Running, verify.clamped_noise(0, 2))
NEIGHBOURS = verify.events_differ(1)
CONTINUAL = {
    "mechanisms": ([LAW], NOTHING),
    "items": ((None, 1), "sequence"),
    "neighbouring": (NEIGHBOURS, "callable"),
    "horizon": (2, "count"),
    "asks": (1, "count"),
}
case("verify.continual_delta", epsilon=(0.5, "real"), **CONTINUAL)
case("verify.continual_epsilon", **CONTINUAL)
case("verify.continual_renyi", order=(2.0, "above 1"), **CONTINUAL)
case(
    "verify.Replayed",
    then=lambda made: verify.continual_epsilon([made], (None, 1), NEIGHBOURS, 1),
    make=(Running, "callable"),
    noise=(verify.clamped_noise(0, 1), "callable"),
    queries=((None,), "iterable"),
    ask=(lambda machine, query: machine(query), "callable"),
)
case(
    "verify.events_differ",
    lambda at_most, presence: verify.events_differ(at_most, presence=presence)((0, 1), (0, None)),
    at_most=(1, "whole"),
    presence=(True,),
)
case("verify.Identifier", side=(1, "anything"), neighbouring=(NEIGHBOURS, "callable"))


class Total:
    total = 0

    def update(self, item):
        self.total += item if type(item) is int and 0 <= item < 9 else 0

    def __call__(self, query):
        return self.total


on_handle(
    "verify.Identifier.update",
    lambda: verify.Identifier(Total(), 1, NEIGHBOURS),
    first=(None, "anything"),
    second=(3, "anything"),
)

COIN = (Fraction(1, 3), Fraction(2, 3))
TAPE = verify.Tape()
ASK = verify.Move("ask", lambda session: session() if callable(session) else 0)


def asked(side: int) -> Callable[[], int]:
    return lambda: TAPE.draw(COIN if side == 0 else COIN[::-1])


def a_law(**given: Any) -> Any:
    return verify.Played(**({"tape": TAPE, "begin": asked, "moves": [ASK]} | given))


case(
    "verify.Tape.draw",
    lambda chances: TAPE.explore(lambda: TAPE.draw(chances)),
    chances=(COIN, "iterable"),
)
case("verify.Tape.explore", TAPE.explore, run=(asked(0),), decided=((1,), "wholes"))
case(
    "verify.Move",
    then=lambda made: a_law(moves=[made]).worst_loss(1),
    play=(lambda session: session(), "callable"),
    other=(None, "None or callable"),
)
case(
    "verify.Played",
    then=lambda made: made.worst_loss(2),
    tape=(TAPE,),
    begin=(asked, "callable"),
    moves=([ASK], "callable"),
    refusals=((oc.errors.BudgetExceededError,), "exceptions"),
)
case("verify.Played.worst_loss", lambda rounds: a_law(most=99).worst_loss(rounds))
case("verify.Played.sessions", lambda rounds: list(a_law(most=99).sessions(rounds)))
case(
    "verify.Played.delta",
    lambda **given: a_law(most=99).delta(**given),
    epsilon=(0.5, "real"),
    rounds=(2,),
)
case(
    "verify.Played.renyi",
    lambda **given: a_law(most=99).renyi(**given),
    order=(2.0, "order"),
    rounds=(2,),
)

case(
    "deserialize",
    message=(dp.serialize(VECTOR[0]),),
    allow=([], "sequence or None"),
    space=(None, "None"),
    output_measure=(None, "None"),
)


def fresh_answers() -> Any:
    """A store of answers of its own."""
    return serving.AnswerStore(folder() / f"answers {next(numbers)}.db")


def opened_answers(path: Any) -> None:
    """Open a store, and close it again."""
    serving.AnswerStore(folder() / f"new {next(numbers)}" if is_word(path, "new") else path).close()


case("serving.AnswerStore", opened_answers, path=("new", "path"))
on_handle(
    "serving.AnswerStore.once",
    fresh_answers,
    lambda store, **given: store.once(**given),
    lambda store: store._run("SELECT * FROM answers"),
    key=("alice/1", "text"),
    request=("count", "JSON"),
    run=(lambda: 1, "callable"),
    charged=(lambda: False, "callable"),
    lost=(0, "JSON"),
)
case("serving.HandleStore", seconds=(600.0, "positive"))
on_handle(
    "serving.HandleStore.keep",
    serving.HandleStore,
    lambda store, **given: store.keep(**given),
    owner=("alice", "text"),
    handle=(1, "anything"),
)
on_handle("serving.HandleStore.find", serving.HandleStore)
on_handle("serving.HandleStore.has_room", serving.HandleStore)
on_handle("serving.HandleStore.drop", serving.HandleStore)
case("serving.as_json")
case("serialize", made=(VECTOR[0], "anything"))  # numbers and texts, too

# --- handles ---------------------------------------------------------------------------------


def message_to(
    name: str,
    fresh: Callable[[], Any],
    state: Callable[[Any], Any] = lambda handle: None,
    /,
    **arguments: tuple[Any, ...],
) -> None:
    """A message to a handle, or a method that the name says; arguments go by their places."""
    method = "" if name[-1] in ")]" or name.endswith("a limit") else name.rpartition(".")[2]

    def call(handle: Any, **given: Any) -> Any:
        return (getattr(handle, method) if method else handle)(*given.values())

    arguments = {
        one: given if len(given) == 2 else (*given, kind_of(one, None, 0))
        for one, given in arguments.items()
    }
    CASES[name] = Case(name, call, arguments, fresh, state)


OFFERED = (COUNT, "measurement")
LAUNCHED = (COUNT, "measurement or odometer")
BIG = oc.make_concurrent_filter(ODOMETER, 1, 1e6)
HANDLES = {
    "odometer": lambda: ODOMETER([1, 2]),
    "filter": lambda: BIG([1, 2]),
    "compositor": lambda: oc.make_concurrent_composition(*VECTOR, PURE, 1, [0.5] * 99)([1, 2]),
    "native mode": lambda: dp.c.make_adaptive_composition(*VECTOR, PURE, 1, [1e6])([1, 2])(BIG),
    "with a ledger": lambda: _with_ledger(),
    "chained": lambda: (
        dp.t.make_user_transformation(*VECTOR, *VECTOR, lambda rows: rows, lambda d_in: d_in)
        >> ODOMETER
    )([1, 2]),
    "continual": lambda: oc.c.make_concurrent_continual(
        oc.make_concurrent_filter(oc.make_concurrent_odometer(*BITS, PURE), 1, 1e6)
    )([]),
}


def _with_ledger() -> Any:
    kept = ledger.create_ledger(folder() / f"{next(numbers)}.db", "survey")
    return oc.make_concurrent_filter(ODOMETER, 1, 1e6, ledger=kept)([1, 2])


for name, fresh in HANDLES.items():
    on_stream = name == "continual"
    query = (COUNTER, "measurement or odometer or message") if on_stream else LAUNCHED
    at = {"d_in": (1, "anything" if on_stream else "d_in or None")}
    message_to(f"{name}()", fresh, spent, query=query)
    message_to(f"{name}.privacy_loss", fresh, spent, **at)
    if name != "native mode":
        planned = {} if name == "compositor" else at
        described = (COUNTER, "measurement") if on_stream else LAUNCHED
        offered = described if on_stream else OFFERED
        message_to(f"{name}.admits", fresh, spent, query=offered)
        message_to(f"{name}.describe", fresh, spent, query=described, **planned)
        if not on_stream:
            message_to(f"{name}.loss_after", fresh, spent, queries=([COUNT], "iterable"), **planned)
for name, made in {"odometer": ODOMETER, "filter": FILTER, "cast": oc.c.cast(COUNT, ZCDP)}.items():
    case(f"{name}.invoke", made.invoke, arg=([1, 2], "anything"))
    if name != "odometer":
        case(f"{name}.map", made.map, d_in=(1, "d_in"))
        case(f"{name}.check", made.check, d_in=(1, "d_in"), d_out=(2.0, "non_negative"))
    case(
        f"{name}.__rshift__",
        lambda postprocessor, made=made: made >> postprocessor,
        postprocessor=(str, "callable" + " or transformation" * (name == "odometer")),
    )
SHARED = VECTOR >> dp.t.then_count() >> oc.m.then_shared_release(PURE)
BELOW = VECTOR >> dp.t.then_count() >> oc.m.then_shared_release(PURE, 1e3)
LEVEL = {"level": (0.5, "positive")}
message_to("shared()", lambda: BIG([1, 2])(SHARED), lambda handle: handle.privacy_loss(1), **LEVEL)
on_handle(
    "shared.accuracy",
    lambda: BIG([1, 2])(SHARED),
    lambda handle, **given: handle.accuracy(**given),
    beta=(0.05, "open probability"),
    answers=(None, "None or count"),
    **LEVEL,
)
message_to("shared.privacy_loss", lambda: BIG([1, 2])(SHARED), d_in=(1, "d_in"))
message_to("shared below a ceiling()", lambda: BIG([1, 2])(BELOW), **LEVEL)

BLOCKS = oc.c.make_block_filter(
    ODOMETER, 1, 1e6, blocks=oc.c.by_key(lambda record: record), keys=[1, 2, 3]
)
LIMITED = oc.c.make_limited(ODOMETER, 1, 1e3, label="ann")
TWO_BLOCKS = {"blocks": ([1, 2], "iterable")}


def some_blocks() -> Any:
    return BLOCKS([1, 2])


message_to("blocks()", some_blocks, spent, **TWO_BLOCKS, measurement=LAUNCHED)
message_to("blocks.admits", some_blocks, spent, **TWO_BLOCKS, measurement=OFFERED)
message_to("blocks.describe", some_blocks, spent, **TWO_BLOCKS, measurement=LAUNCHED)
message_to(
    "blocks() below a limit",
    lambda: some_blocks()(LIMITED),
    spent,
    **TWO_BLOCKS,
    measurement=LAUNCHED,
)
for name in ("privacy_loss", "remaining"):  # equal keys name one block
    message_to(f"blocks.{name}", some_blocks, spent, block=(2, "finite real or item"))
message_to(
    "blocks.add_blocks", some_blocks, len, keys=(["new"], "iterable"), data=([1, 2], "anything")
)


def some_parts() -> Any:
    return oc.c.make_parallel_composition(*VECTOR, AGES, {"young": COUNT, "old": COUNT})([1, 40])


on_handle("parts[]", some_parts, lambda handle, query: handle[query], query=("young",))
message_to("parts()", some_parts, query=("young",))
SVT = oc.m.make_sparse_vector(*VECTOR, PURE, 1, 2.0, 1e6, 3)
message_to("sparse vector()", lambda: SVT([1, 2]), query=(QUERY, "callable"))
on_handle(
    "sparse vector(Deviation)",
    lambda: SVT([1, 2]),
    lambda handle, guess: handle(oc.handles.Deviation(QUERY, guess)),
    guess=(3, "guess"),
)
GUESS = oc.m.make_guess_and_check(*VECTOR, PURE, 1, 2.0, 5.0, 99)
message_to("guess and check()", lambda: GUESS([1, 2]), message=((QUERY, 2.0),))
on_handle(
    "guess and check(guess)",
    lambda: GUESS([1, 2]),
    lambda handle, guess: handle((QUERY, guess)),
    guess=(2.0, "guess"),
)
PMW = oc.m.make_private_multiplicative_weights(
    *VECTOR, ZCDP, 1, 1e4, universe=8, queries=1000, size=10_000
)
ODD = lambda value: value % 2  # noqa: E731
message_to("weights()", lambda: PMW([1, 2] * 5000), query=(ODD, "callable or list of probability"))
MPQ = oc.m.make_projected_queries(*VECTOR, ZCDP, 1, [1e-3] * 99, universe=8, size=100)
message_to("projection()", lambda: MPQ([1, 2] * 50), batch=([ODD], "sequence"))
INDIVIDUAL = oc.m.make_individual_filter(*ROWS, ZCDP, d_out=1e6)
message_to(
    "individual()",
    lambda: INDIVIDUAL(np.ones((20, 2))),
    query=(oc.handles.NoisySum(lambda rows: rows[:, 0], 1.0, 10.0),),
)
case(
    "individual filter.invoke",
    lambda data: INDIVIDUAL.invoke(data),
    data=(np.ones((20, 2)), "sequence"),
)
CONVERSATION = oc.c.make_interactive(COUNT)
message_to("interactive()", lambda: CONVERSATION([1]), query=(None, "anything"))
message_to(
    "bounded()",
    lambda: oc.c.make_bounded_interactive(CONVERSATION, 10**6)([1]),
    query=(None, "anything"),
)
INDEXED = oc.c.make_indexed_composition(*VECTOR, PURE, 1, [SVT, COUNT])
message_to("indexed()", lambda: INDEXED([1]), query=((1, None),))
on_handle(
    "indexed(index)",
    lambda: INDEXED([1]),
    lambda handle, index: handle((index, None)),
    index=(1, "whole"),
)
CHILD = dp.c.make_adaptive_composition(*VECTOR, PURE, 1, [2.0] * 999)
message_to("child()", lambda: BIG([1, 2])(CHILD), query=OFFERED)
NATIVE_FILTER = dp.c.make_privacy_filter(
    dp.c.make_fully_adaptive_composition(*VECTOR, PURE), d_in=1, d_out=1e6
)


def child_odometer() -> Any:
    return oc.make_concurrent_filter(ODOMETER, 1, 1e7)([1])(NATIVE_FILTER)


message_to("child odometer()", child_odometer, spent, query=OFFERED)
message_to("child odometer.privacy_loss", child_odometer, d_in=(1,))
STREAMS = {
    "counter": lambda: COUNTER([]),
    "histogram": lambda: oc.m.make_histogram_counter(
        oc.category_stream(3), oc.event_presence(), PURE, 4.0
    )([]),
    "window": lambda: oc.m.make_window_counter(*BITS, PURE, 4.0, 7)([]),
    "alarm": lambda: oc.m.make_alarm(*BITS, PURE, 4.0, 10**6)([]),
    "own": lambda: oc.m.make_continual(*BITS, PURE, Clock, lambda d_in: 0.0)([]),
    "stream of compositor": HANDLES["continual"],
    "parallel stream": lambda: oc.c.make_parallel_continual(
        *BITS, lambda item: item % 2, {0: COUNTER, 1: COUNTER}
    )([]),
    "users": lambda: (
        oc.t.make_bounded_contributions(PAIRS, oc.user_presence(), oc.integer_stream(0, 1), 3)
        >> oc.m.then_counter(PURE, 4.0)
    )([]),
}
for name, fresh in STREAMS.items():
    item, loose = (("ann", 1), "anything") if name == "users" else (1, "item")
    on_handle(
        f"{name}.update",
        fresh,
        lambda handle, item, step: (
            handle.update(item, step=step) if step is not None else handle.update(item)
        ),
        item=(item, loose),
        step=(None, "None or count"),
    )
    message_to(f"{name}.update_all", fresh, items=([item, None], "sequence"))
    if name not in ("stream of compositor", "parallel stream"):
        asks = ("top", 1) if name == "histogram" else None
        message_to(f"{name}(query)", fresh, query=(asks, "anything"))
PARTS = STREAMS["parallel stream"]
message_to("parallel stream(key)", PARTS, part=(1, "anything"))
on_handle("parallel stream[key]", PARTS, lambda handle, part: handle[part], part=(1, "anything"))


def context() -> Any:
    return oc.concurrent_context([1, 2, 3], dp.unit_of(contributions=1), dp.loss_of(epsilon=1e6))


on_handle(
    "context.query",
    context,
    lambda context, epsilon: context.query(epsilon=epsilon).count().laplace().release(),
    lambda context: context.current_privacy_loss(),
    epsilon=(0.5, "non_negative or typed"),
)
on_handle(
    "context.limited",
    context,
    lambda context, **given: (
        context.limited(**given).query(epsilon=0.25).count().laplace().release()
    ),
    lambda context: context.current_privacy_loss(),
    label=("alice", "text"),
    privacy_loss=(dp.loss_of(epsilon=0.5), "nothing hostile"),
    accumulator=(None, "None or accounting"),
    orders=(None, "None"),
)

# --- what is public --------------------------------------------------------------------------

case("extend.composition_measure")

# Researchers write these; the package calls them, with what it has checked. The toys test them.
PROTOCOLS = (
    oc.extend.Accumulator,
    oc.extend.AccumulatorState,
    oc.extend.Kind,
    oc.extend.check_measurement,  # whose test is serving/test_check.py
    oc.extend.constructor,
    oc.extend.Composability,
    oc.extend.CompositionMeasure,
    oc.extend.Conversion,
    oc.extend.NumberMeasure,
)


def public_callables() -> set[str]:
    """Names that must have a case: what is exported, and the methods of exported classes."""
    names = set(MESSAGES)
    groups = dict.fromkeys(DOORS, "")
    extras = {
        ledger: "ledger.",
        plot: "plot.",
        serving: "serving.",
        verify: "verify.",
        oc.tables: "tables.",
        oc.extend: "extend.",
    }
    for module, prefix in (groups | extras).items():
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.ismodule(public) or public in PROTOCOLS:
                continue
            names.add(prefix + name)
            if inspect.isclass(public) and public.__name__ == name:  # an alias has no methods
                names |= {
                    f"{prefix}{name}.{method}"
                    for method, value in vars(public).items()
                    if not method.startswith("_")
                    and (
                        inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod))
                    )
                }
    return names


NO_ARGUMENTS = {
    "Description", "tables.Estimate", "install", "swapped_in", "uninstall",  # answers; nothing
    "tables.Answer", "tables.ROW",  # checked where they are used
    *(f"tables.{name}" for name in ("count", "count_distinct", "sum", "min", "max")),
    "TradeoffFunction", "Outcome",  # made by class methods; an enumeration
      # values of these are made by other public names, or they take nothing
    "tables.Table", "tables.Table.ask", "tables.Table.ask_keys", "tables.Table.derived",
    "tables.Table.joined",
    "tables.Table.materialized", "tables.Table.frozen", "tables.Table.engine",
    "tables.Expression", "tables.Then",
    "tables.Expression.is_null", "tables.Expression.abs", "tables.Expression.length",
    "tables.Expression.lower",
    # checked where they are used, with the types of the columns: see tables/test_typed.py
    "tables.Expression.clip", "tables.Expression.cut", "tables.Expression.fill_null",
    "tables.Expression.cast", "tables.Then.otherwise",
    "ledger.Entry", "ledger.LimitSummary", "ledger.Summary", "ledger.SqlLedger",
    "serving.AnswerStore.close",
    "ledger.SqlLedger.close", "ledger.SqlLedger.to_dp_events", "verify.Audit",
    "verify.ContinualLaw", "verify.ContinualLaw.update", "verify.ContinualLaw.answers",
    "verify.Counterexample", "verify.approximate_zcdp_counterexample",
    "verify.Item",
    "verify.Simulation", "verify.Reached", "verify.Tape", "verify.Worst",
    "verify.Limited.admits", "verify.Within", "verify.Within.admits", "verify.Within.remaining",
    "verify.Replayed.update", "verify.Replayed.answers",
}  # fmt: skip


def arguments_of(name: str) -> set[str] | None:
    """Names of the arguments of a public callable; None where Python cannot tell."""
    try:
        return set(inspect.signature(public(name)).parameters) - {"self", "options", "others"}
    except (TypeError, ValueError):
        return None
