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
from opendp_concurrent._checks import Guard
from opendp_concurrent._opendp.advisories import ACCEPTED
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.data.partition import Partition
from opendp_concurrent.measures.divergences import APPROXIMATE_MAX_DIVERGENCE, MAX_DIVERGENCE

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
MODULES = {
    "ledger": ledger,
    "plot": plot,
    "serving": serving,
    "extend": oc.extend,
    "verify": verify,
    "tables": oc.tables,
}

dp.enable_features("contrib", "honest-but-curious")
T = oc.TradeoffFunction
Kind = Callable[[Any], bool]

# --- kinds -----------------------------------------------------------------------------------


def exact(value: Any) -> Any:
    """The number that it is; None if it is no number."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, np.integer | np.floating):
        return value.item()
    return value if isinstance(value, int | float) else None


def is_word(value: Any, word: str) -> bool:
    return type(value) is str and value == word


def number(test: Kind) -> Kind:
    return lambda value: (one := exact(value)) is not None and bool(test(one))


def whole_number(test: Callable[[int], bool]) -> Kind:
    return lambda value: isinstance(one := exact(value), int) and test(one)


def elements(value: Any) -> list[Any] | None:
    """What is in a short sequence; None if it is none."""
    if isinstance(value, np.ma.MaskedArray):
        return None
    if isinstance(value, np.ndarray):
        return list(value[:10]) if value.ndim else None
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return [value[index] for index in range(min(10, len(value)))]
    return None


def each(kind: str, least: int = 1) -> Kind:
    def accepts(value: Any) -> bool:
        inner = elements(value)
        return inner is not None and len(inner) >= least and all(map(KINDS[kind], inner))

    return accepts


def of_class(*classes: type) -> Kind:
    return lambda value: isinstance(value, classes)


def numbers_in(value: Any) -> Any:
    """The first numbers of an array, a list or a tuple; None if it has others."""
    if not isinstance(value, np.ndarray | list | tuple) or isinstance(value, np.ma.MaskedArray):
        return None
    array = np.asarray(value)
    return array.ravel()[:10].astype(float) if array.dtype.kind in "fiu" else None


def is_json(value: Any) -> bool:
    """Whether JSON has the value."""
    try:
        json.dumps(value, allow_nan=False)
    except Exception:
        return False
    return True


def is_pair(value: Any) -> bool:
    two = isinstance(value, tuple) and len(value) == 2
    return two and KINDS["non_negative"](value[0]) and KINDS["probability"](value[1])


KINDS: dict[str, Kind] = {
    "anything": lambda value: True,
    **dict.fromkeys(("nothing hostile", "record"), lambda value: False),
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
    "d_in": whole_number(lambda one: 0 <= one < 2**32),
    "flag": lambda value: value is True or value is False,
    "text": of_class(str),
    "path": of_class(str, Path),
    "item": of_class(bool, np.bool_, int, np.integer, type(None)),
    "callable": callable,
    "domain": of_class(Domain),
    "metric": of_class(Metric),
    "measure": of_class(Measure),
    "measurement": of_class(Measurement),
    "odometer": of_class(Odometer),
    "transformation": of_class(Transformation),
    "function": of_class(T),
    "tcdp": of_class(oc.TruncatedConcentrated),
    "mapping": of_class(Mapping),
    "sequence": lambda value: elements(value) is not None,
    "iterable": lambda value: hasattr(type(value), "__iter__") or hasattr(value, "__getitem__"),
    "JSON": is_json,
    "finite number": lambda value: (
        KINDS["finite real"](value)
        or (isinstance(value, Decimal | Fraction) and value == value and abs(value) < inf)
    ),
    "typed": lambda value: (
        isinstance(value, Decimal | Fraction | str)
        and 0 <= (Decimal(value) if isinstance(value, str) else value) < inf
    ),
    "wholes": each("whole", 0),
    "counts": each("count", 0),
    "plan": of_class(pl.LazyFrame),
    "partition": of_class(Partition),
    "fraction": of_class(Fraction),
    "exceptions": lambda value: (
        isinstance(value, tuple)
        and all(isinstance(one, type) and issubclass(one, Exception) for one in value)
    ),
    "message": of_class(oc.handles.Update, oc.handles.Updates),
    "accounting": of_class(type(oc.accumulators.zcdp(1e-7))),
    "guess": lambda value: (
        KINDS["finite real"](value) or isinstance(value, bool | Fraction | Decimal)
    ),
    "constant": of_class(int, float, str, date, np.integer, np.floating),
    # of a column of texts; in an array, NaN is NULL
    "key": lambda value: value is None or KINDS["text"](value) or value != value,
    "predicate": of_class(oc.tables.Expression),
    "bounds": lambda value: isinstance(value, tuple) and each("finite real", 2)(value),
    "pair": is_pair,
    "matrix": lambda value: (
        (found := numbers_in(value)) is not None
        and np.ndim(value) == 2
        and bool(np.isfinite(found).all())
    ),
    "reals": lambda value: (
        KINDS["real"](value)
        or ((found := numbers_in(value)) is not None and not np.isnan(found).any())
    ),
    **dict.fromkeys(("session", "loss"), of_class(T, oc.fdp.Session)),
    "event": of_class(dp_event.DpEvent),
    "events": lambda value: (
        isinstance(value, list | tuple) and all(map(KINDS["event"], elements(value) or ()))
    ),
    "attributes": lambda value: (
        isinstance(value, Mapping)
        and all(type(one) is str and one.isidentifier() for pair in value.items() for one in pair)
    ),
}


def accepts(kind: str) -> Kind:
    """The test of a kind: ``a or b``, and ``list of a``."""
    tests = [
        each(part.removeprefix("list of ")) if part.startswith("list of ") else KINDS[part]
        for part in kind.split(" or ")
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
        captured = default is not parameter.empty and (
            getattr(made, "func", made).__name__ == "<lambda>"
        )
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
        return getattr(public(name.partition(", ")[0]), "__guards__", {})
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


def with_kinds(
    arguments: Mapping[str, tuple[Any, ...]], guards: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        one: given if len(given) == 2 else (*given, kind_of(one, guards.get(one), 0))
        for one, given in arguments.items()
    }


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


def used(measurement: Any, d_in: Any = 1) -> Any:
    """Read the map of what was made: a loss that is no number at all would be nonsense."""
    loss = measurement.map(d_in)
    if isinstance(loss, float) and not loss >= 0.0:
        raise AssertionError(f"the map says {loss}")
    return measurement


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
        arguments = with_kinds(arguments, guards_at(name))
    else:
        arguments = filled(made, guards_at(name), arguments)
    if call is None:
        made = drawn(made) if name.startswith("plot.") else made
        call = lambda **given: then(made(**given))  # noqa: E731
    CASES[name] = Case(name, call, arguments)


def cases(names: str) -> None:
    """Public callables of which all comes from their signatures."""
    for name in names.split():
        case(name)


def on_handle(
    name: str,
    fresh: Callable[[], Any],
    call: Callable[..., Any] | None = None,
    state: Callable[[Any], Any] = lambda handle: None,
    /,
    **arguments: tuple[Any, ...],
) -> None:
    """A method of a handle; without a call, the method of that name."""
    assert name not in CASES, name
    method = name.rpartition(".")[2]
    if call is None:
        call = lambda handle, /, **given: getattr(handle, method)(**given)  # noqa: E731
        made = functools.partial(public(name), None) if guards_at(name) else None
    else:
        made = functools.partial(call, None)
    if made is not None and not takes_any(made):
        arguments = filled(made, guards_at(name), arguments)
    CASES[name] = Case(name, call, arguments, fresh, state)


def maker(
    name: str, space: tuple[Any, Any], at: Any = 1, finish: Any = used, /, **rest: tuple[Any, ...]
) -> None:
    """A constructor on a space, and its then_."""
    make, then = PUBLIC[f"make_{name}"], PUBLIC.get(f"then_{name}")
    first = {"input_domain": (space[0], "domain"), "input_metric": (space[1], "metric")}
    arguments = filled(make, getattr(make, "__guards__", {}), first | rest)
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
SAME_ROWS = dp.t.make_user_transformation(*VECTOR, *VECTOR, lambda rows: rows, lambda d_in: d_in)
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
# the kinds of some arguments that stand beside a value
NON_NEGATIVE, REAL, COUNTED = "non_negative or typed", "real", "None or count"
ANYTHING, NOTHING, NONE = "anything", "nothing hostile", (None, "None")
DELTA, ORDERS = (1e-6, "None or probability"), ([2, 4], "list of order")
PROBABILITIES = "list of probability"


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


def after(made: Any, d_mid: Any, measure: Any = None) -> Any:
    return made.start(measure).after(d_mid)


A = oc.accumulators
ACCOUNTING = "None or accounting"
case("basic", lambda: A.basic().start(MAX_DIVERGENCE))
case("advanced", then=launched)
case("zcdp", then=launched)
case("any_time", then=launched, planned=(1.0, "positive"))
case("renyi", then=launched, order=(8.0, "order"))
case("residue", lambda mu: after(A.residue(mu), T.pure(0.1)))
UNIT = {"unit": (T.pure(0.01), "function")}
case("ladder", lambda unit: after(A.ladder(unit), T.pure(0.01)), **UNIT)
case(
    "ladder, at a delta",
    lambda **given: after(A.ladder(**given), (0.01, 0.0)),
    **UNIT,
    delta_slack=DELTA,
)
case("either", lambda rules: A.either(A.basic(), rules), rules=(A.zcdp(1e-6), "accounting"))
case("from_rule", lambda rule: after(A.from_rule(rule), 0.25, 0.0).loss, rule=(SumRule(),))
case(
    "from_rule, along",
    lambda along: (
        after(A.from_rule(SumRule(), along=along), 0.25, oc.extend.composition_measure(PURE)).loss
    ),
    along=(lambda number: number, "callable"),
)
WITHIN = {"d_out": ((1.0, 1e-6), "pair"), "typical": ([(0.01, 0.0)], "list of pair")}
case("best_rule", **WITHIN)
case("launches_admitted", accumulator=(A.advanced(1e-6), "accounting"), **WITHIN)
case(
    "optimal_composition",
    then=lambda made: made.epsilon(1e-3),
    d_mids=([0.5, (0.3, 1e-9)], "list of non_negative or list of pair"),
    counts=([1, 2], "None or list of whole"),
)
LAUNCHES = {"launches": (4, "count or list of finite")}
case("largest_share", privacy_loss=((PURE, 1.0),), **LAUNCHES)
case(
    "largest_share, approximate",
    privacy_loss=((APPROXIMATE, (1.0, 1e-6)),),
    accumulator=(A.zcdp(5e-7), ACCOUNTING),
    delta=(1e-9,),
    **LAUNCHES,
)
case(
    "smallest_scale",
    make_measurement=(lambda scale: oc.m.make_certified_laplace(*NUMBER, scale, PURE),),
    d_in=(1.0, "finite or reals or sequence"),
)
TYPED_DELTA = "None or probability or typed"
case(
    "loss_of",
    epsilon=(1.0, NON_NEGATIVE),
    delta=(None, TYPED_DELTA),
    alpha=(None, "None or order"),
    **dict.fromkeys(("rho", "omega", "mu", "tradeoff"), NONE),
)
case("loss_of, rho", rho=(1.0, NON_NEGATIVE), omega=(8.0, "None or above 1"))
case("loss_of, rho and delta", rho=(1.0, NON_NEGATIVE), delta=(1e-6, TYPED_DELTA))
case("loss_of, mu", mu=(1.0, NON_NEGATIVE))
case("loss_of, tradeoff", tradeoff=(F, "function"))
case("loss_of, alpha", epsilon=(1.0, NON_NEGATIVE), alpha=(8.0, "None or order"))

# values, measures, domains

cases("TruncatedConcentrated truncated_concentrated_divergence category_stream integer_stream")
cases("individual_scale counter_rmse sparse_vector_accuracy")
for operator in ("__le__", "__eq__", "__lt__", "__ge__", "__gt__"):
    for one in (LOSS, F):
        case(
            f"{type(one).__name__}.{operator}",
            lambda other, one=one, operator=operator: getattr(one, operator)(other),
            other=(one, ANYTHING),
        )
case("risk", d_out=(1.0, "non_negative"), prior=(0.5, "between 0 and 1"))
case("group_tcdp", size=(4, "count"))
case("subsampled_tcdp", sample_size=(1000, "count"), population=(10**6, "count"))
case("fixed_renyi_divergence", alpha=(8.0, "order"))
case("approximate_renyi_divergence", alpha=(8.0, "order"))
for name in ("gaussian_tradeoff", "tradeoff", "event_change", "event_presence", "user_presence"):
    case(name, PUBLIC[name])
case("record_stream", member=(lambda record: True, "callable"))
case(
    "Update",
    lambda item, step: COUNTER([])(oc.handles.Update(item, step)),
    item=(1, "item"),
    step=(1, COUNTED),
)
case("Updates", lambda items: COUNTER([])(oc.handles.Updates(items)), items=([1, None], "sequence"))
case("Deviation", query=(len, ANYTHING), guess=(1.0, ANYTHING))
case("SparseVectorAnswer", then=bool, outcome=(oc.handles.Outcome.ABOVE, ANYTHING))
case(
    "LinearAnswers",
    then=type,
    values=([1.0], ANYTHING),
    gap=(0.0, ANYTHING),
    never_worse=(True, ANYTHING),
)
case("NoisySum", per_row=(lambda rows: rows[:, 0], "callable"), bound=(1.0, "finite"))


def label(label: Any) -> None:
    with oc.labelled(label):
        oc.make_concurrent_filter(ODOMETER, 1, 1.0)([1])(COUNT)


def accept(references: Any) -> None:
    before = set(ACCEPTED)
    try:
        oc.accept_advisories(references)
    finally:
        ACCEPTED.intersection_update(before)


case("labelled", label)
case("accept_advisories", accept, references=("opendp#2930", "text"))
case("window_rmse", window=(100, "count"))

# trade-off functions


def answers(function: Any) -> Any:
    """Use a function."""
    for value in (function.delta(0.1), function.epsilon(1e-6), function.beta(0.1)):
        if not value >= 0.0:
            raise AssertionError(f"it answers {value}")
    return function


cases("TradeoffFunction.identity TradeoffFunction.worst")
for name, arguments in {
    **{key: {} for key in ("pure", "approximate", "gaussian")},
    "laplace": {"steps": (8.0, "positive or above 1")},
    **{key: {"sensitivity": (1, "count")} for key in ("discrete_laplace", "discrete_gaussian")},
    "randomized_response": {"prob": (0.75, "probability")},
    "finite": {"first": ([0.75, 0.25], PROBABILITIES), "second": ([0.25, 0.75], PROBABILITIES)},
    "subsampled_gaussian": {"unit": ("removed", NOTHING)},
    "subsampled_laplace": {"unit": ("added", NOTHING)},
    "from_profile": {
        "epsilons": ([0.0, 1.0], "list of non_negative"),
        "deltas": ([0.5, 0.1], PROBABILITIES),
        "other_deltas": ([0.5, 0.1], f"None or {PROBABILITIES}"),
    },
    "from_curve": {
        "alphas": ([0.0, 0.5, 1.0], PROBABILITIES),
        "betas": ([0.8, 0.2, 0.0], PROBABILITIES),
    },
    "from_loss_distribution": {
        "losses": ([0.5, -0.5], "list of finite real"),
        "probabilities": ([0.6224593312018546, 0.3775406687981454], PROBABILITIES),
        "infinite": (0.0, "probability"),
    },
    "mixture": {
        "weights": ([0.5, 0.5], "list of finite"),
        "functions": ([F, T.pure(0.1)], "list of function"),
    },
}.items():
    case(f"TradeoffFunction.{name}", then=answers, **arguments)
SESSION = oc.fdp.Session.subsampled_gaussian(1.0, 0.1)
case("Session", removed=(F, "function"), added=(F, "function"))
cases("Session.subsampled_gaussian Session.subsampled_laplace Accountant")
case("Session.compose", lambda other: SESSION.compose(other), other=(SESSION, "session"))
case("Session.power", SESSION.power, count=(2, "whole"))
case(
    "smallest_sigma",
    lambda **given: oc.fdp.smallest_sigma(**given),
    loss=(lambda sigma: T.gaussian(1 / sigma), "callable"),
    epsilon=(2.0, "finite"),
    delta=(1e-3, "probability"),
    bounds=((1.0, 4.0), "bounds"),
    tolerance=(0.5, "positive"),
)
EPSILONS, OF_DELTA = {"epsilon": (0.5, "reals")}, {"delta": (1e-3, "probability")}
WIDTH, OF_ALPHA = {"width": (1e-3, "non_negative")}, {"alpha": (0.1, "probability")}
CURVES: dict[str, dict[str, Any]] = {
    "delta": EPSILONS,
    "delta_bounds": EPSILONS | WIDTH,
    "epsilon": OF_DELTA,
    "epsilon_bounds": OF_DELTA | WIDTH,
}
for name, arguments in CURVES.items():
    case(f"Session.{name}", getattr(SESSION, name), **arguments)
EVENT = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0))
RELATIONS = ("ADD_OR_REMOVE_ONE", "REPLACE_SPECIAL")
case("from_dp_event", event=(EVENT, "event"))
case("to_dp_event", loss=(SESSION, "loss"))
MULTIPLIER = {"noise_multiplier": (1.0, "non_negative")}
for name, arguments in {
    "GaussianDpEvent": MULTIPLIER,
    "LaplaceDpEvent": MULTIPLIER,
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
    "SingleEpochTreeAggregationDpEvent": MULTIPLIER
    | {"step_counts": (8, "count or list of count")},
    "ZCDpEvent": {"rho": (0.1, "non_negative"), "xi": (0.1, "non_negative")},
}.items():
    case(
        f"from_dp_event, {name}",
        lambda name=name, **given: oc.fdp.from_dp_event(
            getattr(dp_event, name)(**given), "REPLACE_SPECIAL"
        ),
        **arguments,
    )


def of_accountant(accountant: Any) -> Any:
    return accountant.session, accountant.ledger


on_handle(
    "Accountant.compose",
    oc.fdp.Accountant,
    lambda accountant, **given: accountant.compose(**given),
    of_accountant,
    event=(EVENT, "event"),
    count=(2, "count"),
)
on_handle(
    "Accountant.supports",
    oc.fdp.Accountant,
    lambda accountant, event: accountant.supports(event) or oc.fdp.from_dp_event(event),
    of_accountant,
    event=(EVENT, "event"),
)
case("Accountant.get_epsilon", oc.fdp.Accountant().get_epsilon, target_delta=(1e-3, "probability"))
case("Accountant.get_delta", oc.fdp.Accountant().get_delta, target_epsilon=(0.5, "non_negative"))
PRODUCT = T.laplace(0.5).compose(T.gaussian(0.5))
for title, function in {"": F, ", product": PRODUCT, ", worst": T.worst()}.items():
    for name, arguments in {
        **CURVES,
        "beta": OF_ALPHA,
        "beta_bounds": OF_ALPHA,
        "compose": {"others": (F, "function")},
        "power": {"count": (1, "whole")},
        "group": {"size": (3, "count")},
        "root": {"part": (Fraction(1, 2), ANYTHING)},
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


def odometer_of(measure: Any) -> Any:
    return oc.make_concurrent_odometer(*VECTOR, measure)


maker("concurrent_odometer", VECTOR, 1, lambda made, d_in: made([1, 2])(COUNT))
case(
    "make_concurrent_odometer, approximate",
    lambda accumulator: oc.make_concurrent_odometer(*VECTOR, APPROXIMATE, accumulator=accumulator)(
        [1]
    ).privacy_loss(1),
    accumulator=(A.zcdp(1e-6), ACCOUNTING),
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
    orders=ORDERS,
)
case(
    "make_concurrent_composition, approximate",
    lambda **given: oc.make_concurrent_composition(*VECTOR, APPROXIMATE, **given).map(1),
    d_in=(1,),
    d_mids=([(0.5, 1e-7), (0.25, 0.0)], "list of pair"),
    delta=DELTA,
)
case("make_concurrent_filter", then=lambda made: used(made)([1, 2])(COUNT))
case(
    "make_concurrent_filter, Rényi",
    lambda **given: oc.make_concurrent_filter(odometer_of(RENYI), 1, **given)([1]).privacy_loss()(
        2.0
    ),
    d_out=(lambda alpha: alpha, "callable"),
    orders=ORDERS,
)
for title, measure, d_out, kind in (
    ("approximate", APPROXIMATE, (1.0, 1e-6), "pair"),
    ("tradeoff", oc.gaussian_tradeoff(), 1.0, "finite or typed"),
    ("tCDP", oc.truncated_concentrated_divergence(8.0), LOSS, "tcdp or finite"),
):
    case(
        f"make_concurrent_filter, {title}",
        lambda measure=measure, **given: oc.make_concurrent_filter(
            odometer_of(measure), 1, **given
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
    orders=NONE,
    halt=(False, "flag"),
    ledger=NONE,
    opaque_errors=(False, "flag"),
)
case("make_filter_to_odometer", measurement=(FILTER, "measurement"))
case("make_chain_ot", then=lambda made: made.input_domain, transformation=(SAME_ROWS,))
case(
    "make_chain_po",
    then=lambda made: made([1])(COUNT),
    postprocessor=(str, "callable or transformation"),
)
case(
    "cast",
    then=lambda made: used(made, 1.0),
    measurement=(LAPLACE,),
    **dict.fromkeys(("delta", "orders"), NONE),
)


def at_delta(**given: Any) -> Any:
    return oc.c.cast(to_measure=APPROXIMATE, **given).map(1.0)


AT_DELTA = {"delta": (1e-6, "probability")}
case("cast, approximate", at_delta, measurement=(GAUSSIAN,), **AT_DELTA)
case(
    "cast, Rényi",
    at_delta,
    measurement=(oc.m.make_certified_gaussian(*NUMBER, 1.0, RENYI),),
    orders=ORDERS,
    **AT_DELTA,
)
case(
    "make_pureDP_to_zCDP",
    lambda **given: used(oc.c.make_pureDP_to_zCDP(**given), 1.0),
    measurement=(LAPLACE, "measurement"),
)
AGES = oc.c.by_values({"young": range(30), "old": range(30, 120)})
OF_AGES = {"young": COUNT, "old": COUNT}
maker(
    "parallel_composition",
    VECTOR,
    1,
    lambda made, d_in: used(made)([1, 40])("young"),
    partition=(AGES, "partition"),
    measurements=(OF_AGES, NOTHING),
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
    delta=DELTA,
)
case(
    "make_interactive",
    lambda **given: used(oc.c.make_interactive(**given)),
    measurement=(COUNT, "measurement"),
)
LAUNCHED = (COUNT, "measurement or odometer")
case(
    "make_bounded_interactive",
    then=lambda made: used(made)([1])(None),
    measurement=LAUNCHED,
    max_messages=(3, "count"),
)
case("make_private_selection", mean_runs=(5.0, "above 1"))


def asked_once(state: Any, tag: Any, message: Any) -> Any:
    return (1, oc.c.ANSWER, message) if tag is oc.c.ANSWER else (state, oc.c.QUERY, None)


case(
    "make_interactive_postprocessing",
    then=lambda made: used(made)([1])(None),
    measurement=LAUNCHED,
    postprocessor=(asked_once, "callable"),
    initial_state=(None, ANYTHING),
    max_asks=(5, "count"),
)
case("ANSWER", lambda: repr(oc.c.ANSWER))
case("QUERY", lambda: repr(oc.c.QUERY))


def release(**given: Any) -> Any:
    """Use a context."""
    return oc.concurrent_context(**given).query().count().laplace(4.0).release()


UNIT_AND_LOSS = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
case(
    "concurrent_context",
    release,
    data=([1, 2, 3], ANYTHING),
    privacy_unit=(UNIT_AND_LOSS[0],),
    privacy_loss=(UNIT_AND_LOSS[1],),
    split_evenly_over=(None,),
    split_by_weights=(None, "None or list of finite"),
    domain=(VECTOR[0],),
    margins=(None, "None or iterable"),
    orders=NONE,
    accumulator=(None,),
    ledger=NONE,
    opaque_errors=(True,),
)
for title, arguments in {
    "split": {"split_evenly_over": (3,)},
    "weights": {"split_by_weights": ([1.0, 2.0], "None or list of finite")},
}.items():
    case(
        f"concurrent_context, {title}",
        lambda **given: oc.concurrent_context([1, 2, 3], *UNIT_AND_LOSS, **given),
        **arguments,
    )

# mechanisms

SCALE = {"scale": (1.0, "finite")}
for name in ("certified_gaussian", "certified_laplace"):
    maker(
        name,
        NUMBER,
        1.0,
        output_measure=(ZCDP, "measure"),
        k=(-20, "None or integer"),
        **SCALE,
    )
    for title, measure in (("f-DP", oc.tradeoff()), ("Rényi", oc.fixed_renyi_divergence(4.0))):

        def noisy(space, at, name=name, measure=measure, **given):
            return used(PUBLIC[f"make_{name}"](*space, output_measure=measure, **given), at)

        case(
            f"make_{name}, {title}",
            functools.partial(noisy, NUMBER, 1.0),
            k=(None, "None or integer"),
            **SCALE,
        )
        case(f"make_{name}, {title}, integers", functools.partial(noisy, WHOLE, 1), **SCALE)
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
    delta=DELTA,
)
maker("private_multiplicative_weights", VECTOR, d_out=(50.0, "positive or typed"), size=(10_000,))
maker("projected_queries", VECTOR, output_measure=(ZCDP,), d_mids=([0.25, 0.25],))
maker(
    "marginals",
    VECTOR,
    d_out=(0.5, "positive or typed"),
    columns=(1, "count"),
    bounds=((0, 1), ANYTHING),
    pairs=((), ANYTHING),
)
ROWS = dp.numpy.array2_domain(T=float, num_columns=2), dp.symmetric_distance()
maker("individual_filter", ROWS)
maker(
    "shared_release", WHOLE, 1, lambda made, d_in: made(5)(0.25), ceiling=(0.5, "None or positive")
)
FRAMES = dp.lazyframe_domain([dp.series_domain("n", dp.atom_domain(T="i64"))]), VECTOR[1]
maker("frame_count", FRAMES, lazyframe=(pl.LazyFrame(schema={"n": pl.Int64}), "plan"))

# streams


def only(measurement: Any, d_in: Any) -> Any:
    return measurement


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


def fed_to_a_counter(made: Any, d_in: Any) -> Any:
    return fed(made >> oc.m.then_counter(PURE, 4.0), 1)


def begun(made: Any, d_in: Any) -> Any:
    return used(made)([])


maker("continual", BITS, 1, fed, start=(Clock,), privacy_map=(lambda d_in: 0.0,))
COUNTS = {
    "output_measure": (PURE, "measure"),
    "scale": (4.0, "finite"),
    "horizon": (10, COUNTED),
}
maker("counter", BITS, 1, fed, **COUNTS)
maker("histogram_counter", (oc.category_stream(2), BITS[1]), 1, used, **COUNTS)
maker("window_counter", BITS, 1, fed)
maker("alarm", BITS, 1, fed, threshold=(10,))
TWO_COUNTERS = (lambda item: item % 2), {0: COUNTER, 1: COUNTER}
maker(
    "parallel_continual",
    BITS,
    1,
    begun,
    key=(TWO_COUNTERS[0],),
    measurements=(TWO_COUNTERS[1], NOTHING),
)
maker("on_stream", BITS, 1, begun, measurement=(FILTER,))
OF_BITS = oc.make_concurrent_odometer(*BITS, PURE)
case(
    "make_concurrent_continual",
    then=lambda made: made([]),
    composition=(oc.make_concurrent_filter(OF_BITS, 1, 1.0), "measurement or odometer"),
)
OUTPUT = {"output_domain": (BITS[0],)}
maker("bounded_contributions", (PAIRS, oc.user_presence()), 1, only, **OUTPUT)
maker("stream_clamp", BITS, 1, only, **OUTPUT)
maker("stream_filter", BITS, 1, fed_to_a_counter, predicate=(lambda item: item == 1,))
maker("stream_map", BITS, 1, fed_to_a_counter, function=(lambda item: item,), **OUTPUT)
case("from_record", measurement=(COUNTER,), record=(COUNTER([]).to_record(), "record"))

# tables


def asked_table(made: Any, d_in: Any) -> Any:
    """Use a transformation of tables."""
    made(tables.data())
    return used(made, d_in)


def on_table(name: str, **rest: tuple[Any, ...]) -> None:
    maker(name, tables.space(), 1, asked_table, **rest)


ZONE, HOURS = oc.tables.col("zone"), oc.tables.col("hours")
IN_A, HASHED = (ZONE == "a", "predicate"), {"key": ("a key", "text")}
NORM = {"norm": ("l1", NOTHING)}
GROUPS = {"by": ("zone", COLUMNS), "keys": (["a"], "list of key"), **NORM}
on_table("where", predicate=IN_A)
on_table("with_columns", columns=({"long": HOURS > 1.0}, "mapping"))
on_table("table_select", columns=(["zone"], COLUMNS))
on_table("truncate", order_by=(["zone"], COLUMNS), descending=(True, "flag"), **HASHED)
on_table("group_truncate", **HASHED)
on_table("per_unit", columns=({"n": oc.tables.count()}, "mapping"))
on_table(
    "public_join",
    on=("zone", COLUMNS),
    schema=({"big": bool}, "mapping"),
    rows=({"a": True}, "mapping"),
    how=("left", NOTHING),
)
maker(
    "private_join",
    tables.linked().space,
    1,
    lambda made, d_in: (made(tables.linked()), used(made, d_in)),
    table=("others", "text"),
    columns=(None, "None or mapping or " + COLUMNS),
    on=([], COLUMNS + " or sequence"),
    how=("semi", NOTHING),
)
on_table("rows_per_unit", edges=([1, 2, 3], "list of integer"), **NORM)
on_table("distinct_units", **GROUPS)
on_table("distinct_values", columns=("zone", COLUMNS), **GROUPS)
on_table("table_count", column=(None, "None or text"), **GROUPS)
on_table(
    "table_sum",
    column=("hours", "text"),
    bounds=((0.0, 1.0), "bounds"),
    quantum=(0.5, "positive"),
    **GROUPS,
)
on_table("table_histogram", edges=([0.0, 1.0], "list of real"), **GROUPS)
on_table("table_prefixes", cuts=([0.0, 1.0], "list of real"), **GROUPS)
on_table("table_answers", answers=([oc.tables.Answer("count")], NOTHING), **GROUPS)
on_table("quantile_scores", candidates=([0.0, 1.0], "list of real"))
on_table("table_keys", d_out=((0.5, 1e-3), "pair of non_negative"))
CONNECTED = {"connection": (tables.connection(),), "table": ("people", COLUMNS), "csv": NONE}
case("tables.scan", schema=({"person": int}, "mapping"), unit=("person", COLUMNS), **CONNECTED)
case("tables.describe_schema", **CONNECTED)
case("tables.Table.with_tables", tables.people().with_tables, others=(tables.people(),))
case("tables.unit_of", units=(1, "whole"))
case("tables.Expression.is_in", HOURS.is_in, values=([1.0], "list of constant"))
case(
    "tables.Expression.between",
    HOURS.between,
    lower=(0.0, "constant"),
    upper=(1.0, "constant"),
)
case("tables.Expression.starts_with", ZONE.starts_with, prefix=("a", "text"))
case("tables.col", name=("zone", "text"))
case("tables.lit", value=(1.0, "constant"))
case("tables.when", condition=IN_A)
case("tables.Then.when", oc.tables.when(HOURS > 1.0).then(1.0).when, condition=IN_A)
case("tables.Decimal", scale=(2, "whole"))
case(
    "tables.Csv",
    separator=(";", "text"),
    decimal=(",", "text"),
    header=(["a"], "sequence or None"),
    nulls=(["NA"], "sequence"),
    encoding=("utf-8", "text"),
)
case("uncollected", frame=(pl.LazyFrame({"age": [30]}),))

# ledgers

numbers = iter(range(10**9))


def created(path_or_url: Any, dataset: Any, wait: Any) -> Any:
    if is_word(path_or_url, "new"):
        path_or_url = folder() / f"{next(numbers)}.db"
    ledger.create_ledger(path_or_url, dataset, wait=wait).close()


def there(path_or_url: Any) -> Any:
    return ledger_path() if is_word(path_or_url, "there") else path_or_url


def an_open_ledger() -> Any:
    return ledger.open_ledger(ledger_path(), "survey")


case("ledger.create_ledger", created, path_or_url=("new", "path"), dataset=("survey", "text"))
case(
    "ledger.open_ledger",
    lambda path_or_url, **given: ledger.open_ledger(there(path_or_url), **given).close(),
    path_or_url=("there", "path"),
    dataset=("survey",),
    anchor=NONE,
    read_only=(False,),
    wait=(1.0,),
)
case(
    "ledger.datasets",
    lambda path_or_url, **given: ledger.datasets(there(path_or_url), **given),
    path_or_url=("there", "path"),
    wait=(1.0,),
)
on_handle("ledger.SqlLedger.summary", an_open_ledger, anchor=NONE)
on_handle(
    "ledger.SqlLedger.entries",
    an_open_ledger,
    limit=(None, f"None or {COLUMNS}"),
    label=(None, "None or text"),
)
on_handle("ledger.SqlLedger.charged", an_open_ledger)
on_handle("ledger.SqlLedger.read", an_open_ledger, anchor=NONE)
on_handle("ledger.SqlLedger.report", an_open_ledger, refused=({"alice": 3}, "mapping"))
on_handle(
    "ledger.SqlLedger.book",
    an_open_ledger,
    lambda opened, terms: None if is_word(terms, "none") else opened.book(terms),
    terms=("none",),
)


class Theirs:
    """A class of another package."""

    first = 0


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
    tag=("acme:theirs", NOTHING),
    fields=({"first": "first"}, "attributes"),
    make=(None, "None or callable"),
)
case("extend.composition_measure")

# plots

AX = {"ax": NONE}
case(
    "plot.plot_tradeoff",
    functions=([F, T.pure(1.0)], "function or list of function"),
    labels=(["a", "b"], "None or list of text"),
    **AX,
)
case(
    "plot.accuracy_of_plan",
    make_measurement=(lambda scale: oc.m.make_certified_laplace(*NUMBER, scale, ZCDP), "callable"),
    d_in=(1.0, "non_negative"),
    d_out=(0.5, NON_NEGATIVE),
    launches=([1, 10],),
    accumulators=NONE,
    beta=(0.05,),
    answers=(None, COUNTED),
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

# verify

START, RULE = A.basic().start(APPROXIMATE_MAX_DIVERGENCE), Within((1.5, 0.0))
PAIR = [verify.random_interactive(seed) for seed in (1, 2)]
ONE, TWO = verify.random_interactive(seed=7), verify.randomized_response(1.0)
AT = {"epsilon": (0.5, REAL)}
OF_ORDER = {"order": (2.0, "above 1")}
case(
    "verify.FiniteMechanism",
    first=((0.5, 0.5), PROBABILITIES),
    second=((0.25, 0.75), PROBABILITIES),
)
for name, arguments in {
    "delta": AT,
    "epsilon": {"delta": (0.0, "probability")},
    "renyi": OF_ORDER,
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
    history=((), ANYTHING),
    query=(1, "whole"),
)
case("verify.FiniteInteractiveMechanism", tables=(ONE.tables,))
cases("verify.randomized_response verify.random_mechanism verify.random_interactive")
case(
    "verify.response_menu",
    lambda epsilons: verify.response_menu(0.5, epsilons),
    epsilons=(1.0, "non_negative"),
)
for name in ("composition_delta", "concurrent_delta", "sequential_delta"):
    case(f"verify.{name}", getattr(verify, name), mechanisms=(PAIR, NOTHING), **AT)
case("verify.concurrent_renyi", mechanisms=(PAIR, NOTHING), **OF_ORDER)
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
    menu=(verify.response_menu(0.5, 1.0),),
    accumulator=(START, NOTHING),
    rule=(RULE,),
    epsilon=(1.0, REAL),
)
PURE_FILTER = {
    "menu": ([verify.Item("response", 0.5, verify.randomized_response(0.5))],),
    "accumulator": (A.basic().start(MAX_DIVERGENCE), NOTHING),
    "rule": (Within(1.0),),
}
case("verify.worst_renyi", order=(2.0, "order from 1"), **PURE_FILTER)
case(
    "verify.worst_loss",
    losses=([Fraction(1, 2)], "None or list of non_negative or list of fraction"),
    **PURE_FILTER,
)
case(
    "verify.worst_stopping",
    readings=([0.5, 1.0], "list of non_negative"),
    epsilon=(0.5, "positive"),
)
case("verify.Limited", rule=(RULE, ANYTHING))
case(
    "verify.audit",
    measurement=(lambda data: 0.5,),
    x=(1, ANYTHING),
    x_prime=(0, ANYTHING),
    strategy=(lambda answer: answer,),
    n=(50,),
)
case("verify.Audit.violates", verify.Audit(0.1, 0.0, 0.99, 10, "x").violates)
case(
    "verify.clamped_noise",
    lambda low, high, gaussian: verify.clamped_noise(low, high, gaussian=gaussian)(0, 1.0),
    low=(0,),
    gaussian=(False,),
)


class Total:
    total = 0

    def update(self, item):
        self.total += item if type(item) is int and 0 <= item < 9 else 0

    def __call__(self, query):
        return self.total


class Running(Total):
    def __init__(self, release):
        self.release = release

    def __call__(self, query):
        return self.release(self.total, 2.0)


NEIGHBOURS = verify.events_differ(1)
NEIGHBOURING = {"neighbouring": (NEIGHBOURS, "callable")}
CONTINUAL = {
    "mechanisms": ([verify.Replayed(Running, verify.clamped_noise(0, 2))], NOTHING),
    "items": ((None, 1), "sequence"),
    "horizon": (2, "count"),
    "asks": (1, "count"),
    **NEIGHBOURING,
}
case("verify.continual_delta", **AT, **CONTINUAL)
case("verify.continual_epsilon", **CONTINUAL)
case("verify.continual_renyi", **OF_ORDER, **CONTINUAL)
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
case("verify.Identifier", side=(1, ANYTHING), **NEIGHBOURING)
on_handle(
    "verify.Identifier.update",
    lambda: verify.Identifier(Total(), 1, NEIGHBOURS),
    first=(None, ANYTHING),
    second=(3, ANYTHING),
)
COIN = (Fraction(1, 3), Fraction(2, 3))
TAPE = verify.Tape()
ASK = verify.Move("ask", lambda session: session() if callable(session) else 0)


def asked(side: int) -> Callable[[], int]:
    return lambda: TAPE.draw(COIN if side == 0 else COIN[::-1])


def a_law(**given: Any) -> Any:
    return verify.Played(**({"tape": TAPE, "begin": asked, "moves": [ASK]} | given))


PLAYED = a_law(most=99)
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
case("verify.Played.worst_loss", PLAYED.worst_loss)
case("verify.Played.sessions", lambda rounds: list(PLAYED.sessions(rounds)))
case("verify.Played.delta", PLAYED.delta, rounds=(2,), **AT)
case("verify.Played.renyi", PLAYED.renyi, rounds=(2,), order=(2.0, "order"))

# messages and servers

case(
    "deserialize",
    message=(dp.serialize(VECTOR[0]),),
    allow=([], "sequence or None"),
    space=NONE,
    output_measure=NONE,
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
on_handle("serving.HandleStore.keep", serving.HandleStore)
on_handle("serving.HandleStore.find", serving.HandleStore)
on_handle("serving.HandleStore.has_room", serving.HandleStore)
on_handle("serving.HandleStore.drop", serving.HandleStore)
case("serving.as_json")
case("serialize", made=(VECTOR[0], ANYTHING))  # numbers and texts, too

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

    CASES[name] = Case(name, call, with_kinds(arguments, {}), fresh, state)


OFFERED = (COUNT, "measurement")
BIG = oc.make_concurrent_filter(ODOMETER, 1, 1e6)


def _with_ledger() -> Any:
    kept = ledger.create_ledger(folder() / f"{next(numbers)}.db", "survey")
    return oc.make_concurrent_filter(ODOMETER, 1, 1e6, ledger=kept)([1, 2])


HANDLES = {
    "odometer": lambda: ODOMETER([1, 2]),
    "filter": lambda: BIG([1, 2]),
    "compositor": lambda: oc.make_concurrent_composition(*VECTOR, PURE, 1, [0.5] * 99)([1, 2]),
    "native mode": lambda: dp.c.make_adaptive_composition(*VECTOR, PURE, 1, [1e6])([1, 2])(BIG),
    "with a ledger": _with_ledger,
    "chained": lambda: (SAME_ROWS >> ODOMETER)([1, 2]),
    "continual": lambda: oc.c.make_concurrent_continual(oc.make_concurrent_filter(OF_BITS, 1, 1e6))(
        []
    ),
}
for name, fresh in HANDLES.items():
    on_stream = name == "continual"
    query = (COUNTER, "measurement or odometer or message") if on_stream else LAUNCHED
    at = {"d_in": (1, ANYTHING if on_stream else "d_in or None")}
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
    case(f"{name}.invoke", made.invoke, arg=([1, 2], ANYTHING))
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


def a_shared() -> Any:
    return BIG([1, 2])(SHARED)


message_to("shared()", a_shared, spent, **LEVEL)
on_handle(
    "shared.accuracy",
    a_shared,
    lambda handle, **given: handle.accuracy(**given),
    beta=(0.05, NOTHING),
    answers=(None, COUNTED),
    **LEVEL,
)
message_to("shared.privacy_loss", a_shared, d_in=(1, "d_in"))
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
    "blocks.add_blocks", some_blocks, len, keys=(["new"], "iterable"), data=([1, 2], ANYTHING)
)


def some_parts() -> Any:
    return oc.c.make_parallel_composition(*VECTOR, AGES, OF_AGES)([1, 40])


on_handle("parts[]", some_parts, lambda handle, query: handle[query], query=("young", NOTHING))
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
message_to("weights()", lambda: PMW([1, 2] * 5000), query=(ODD, f"callable or {PROBABILITIES}"))
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
BOUNDED = oc.c.make_bounded_interactive(CONVERSATION, 10**6)
message_to("interactive()", lambda: CONVERSATION([1]), query=(None, ANYTHING))
message_to("bounded()", lambda: BOUNDED([1]), query=(None, ANYTHING))
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
CATEGORIES = oc.category_stream(3), oc.event_presence()
STREAMS = {
    "counter": lambda: COUNTER([]),
    "histogram": lambda: oc.m.make_histogram_counter(*CATEGORIES, PURE, 4.0)([]),
    "window": lambda: oc.m.make_window_counter(*BITS, PURE, 4.0, 7)([]),
    "alarm": lambda: oc.m.make_alarm(*BITS, PURE, 4.0, 10**6)([]),
    "own": lambda: oc.m.make_continual(*BITS, PURE, Clock, lambda d_in: 0.0)([]),
    "stream of compositor": HANDLES["continual"],
    "parallel stream": lambda: oc.c.make_parallel_continual(*BITS, *TWO_COUNTERS)([]),
    "users": lambda: (
        oc.t.make_bounded_contributions(PAIRS, oc.user_presence(), BITS[0], 3)
        >> oc.m.then_counter(PURE, 4.0)
    )([]),
}
for name, fresh in STREAMS.items():
    item, loose = (("ann", 1), ANYTHING) if name == "users" else (1, "item")
    on_handle(
        f"{name}.update",
        fresh,
        lambda handle, item, step: (
            handle.update(item, step=step) if step is not None else handle.update(item)
        ),
        item=(item, loose),
        step=(None, COUNTED),
    )
    message_to(f"{name}.update_all", fresh, items=([item, None], "sequence"))
    if name not in ("stream of compositor", "parallel stream"):
        asks = ("top", 1) if name == "histogram" else None
        message_to(f"{name}(query)", fresh, query=(asks, ANYTHING))
PARTS = STREAMS["parallel stream"]
message_to("parallel stream(key)", PARTS, part=(1, ANYTHING))
on_handle("parallel stream[key]", PARTS, lambda handle, part: handle[part], part=(1, ANYTHING))


def context() -> Any:
    return oc.concurrent_context([1, 2, 3], UNIT_AND_LOSS[0], dp.loss_of(epsilon=1e6))


def spent_in(context: Any) -> Any:
    return context.current_privacy_loss()


on_handle(
    "context.query",
    context,
    lambda context, epsilon: context.query(epsilon=epsilon).count().laplace().release(),
    spent_in,
    epsilon=(0.5, NON_NEGATIVE),
)
on_handle(
    "context.limited",
    context,
    lambda context, **given: (
        context.limited(**given).query(epsilon=0.25).count().laplace().release()
    ),
    spent_in,
    label=("alice", "text"),
    privacy_loss=(dp.loss_of(epsilon=0.5), NOTHING),
    accumulator=(None, ACCOUNTING),
    orders=NONE,
)

# --- what is public --------------------------------------------------------------------------

# Researchers write these; the package calls them, with what it has checked. The toys test them.
PROTOCOLS = (
    *(oc.extend.Accumulator, oc.extend.AccumulatorState, oc.extend.Kind, oc.extend.constructor),
    oc.extend.check_measurement,  # whose test is serving/test_check.py
    *(oc.extend.Composability, oc.extend.CompositionMeasure, oc.extend.Conversion),
    oc.extend.NumberMeasure,
)


def public_callables() -> set[str]:
    """Names that must have a case: what is exported, and the methods of exported classes."""
    names = set(MESSAGES)
    extras = {f"{name}.": module for name, module in MODULES.items()}
    for prefix, module in (*(("", door) for door in DOORS), *extras.items()):
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
    "tables.Table", "tables.Expression", "tables.Then",
    *(f"tables.Table.{name}" for name in ("ask", "ask_keys", "derived", "joined", "materialized")),
    *(f"tables.Table.{name}" for name in ("frozen", "engine")),
    *(f"tables.Expression.{name}" for name in ("is_null", "abs", "length", "lower")),
    # checked where they are used, with the types of the columns: see tables/test_typed.py
    *(f"tables.Expression.{name}" for name in ("clip", "cut", "fill_null", "cast")),
    "tables.Then.otherwise",
    *(f"ledger.{name}" for name in ("Entry", "LimitSummary", "Summary", "SqlLedger")),
    "serving.AnswerStore.close", "ledger.SqlLedger.close", "ledger.SqlLedger.to_dp_events",
    *(f"verify.{name}" for name in ("Audit", "Counterexample", "Item", "Reached", "Simulation")),
    *(f"verify.{name}" for name in ("Tape", "Worst", "approximate_zcdp_counterexample")),
    "verify.ContinualLaw", "verify.ContinualLaw.update", "verify.ContinualLaw.answers",
    "verify.Limited.admits", "verify.Within", "verify.Within.admits", "verify.Within.remaining",
    "verify.Replayed.update", "verify.Replayed.answers",
}  # fmt: skip


def arguments_of(name: str) -> set[str] | None:
    """Names of the arguments of a public callable; None where Python cannot tell."""
    try:
        return set(inspect.signature(public(name)).parameters) - {"self", "options", "others"}
    except (TypeError, ValueError):
        return None
