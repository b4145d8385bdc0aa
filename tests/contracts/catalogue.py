"""Every public constructor, and everything that takes what they make.

* ``SUBJECTS``: innermost mechanisms. A subject is built afresh for each case, and says how one
  talks with it.
* ``WRAPPERS``: what takes a measurement, an odometer or a mechanism, and gives another one:
  wrappers proper, transformations, casts, and combinators, on which it is launched.
* ``PLAIN``: public names that build no mechanism, with one word for what they are.

``test_catalogue.py`` fails if a public name is in none of them. A wrapper may refuse what it
is given, with an error of this package or of OpenDP, when it is built or when it is launched: the
laws are about what is not refused.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from typing import Any, ClassVar

import opendp.prelude as dp
import polars as pl
from opendp.mod import Measurement, Odometer, OdometerQueryable, OpenDPException, Queryable

import opendp_concurrent as oc
from opendp_concurrent import measures
from opendp_concurrent.errors import ConcurrentError

from ..build import costing
from . import tables
from .probes import (
    CANARY,
    Seen,
    counting,
    looking_on,
    native_queryable,
    probe_on,
    release_on,
    remembering,
)

DOORS = (
    *(oc, oc.c, oc.m, oc.t, oc.accumulators, oc.fdp),
    *(oc.measures, oc.mechanisms, oc.streams),
)
PUBLIC = {
    name: vars(group)[name]
    for group in DOORS
    for name in group.__all__
    if callable(vars(group).get(name))
}
MESSAGES = (  # what handles take and answer, which is no handle
    *("Deviation", "LinearAnswers", "NoisySum", "Outcome", "SparseVectorAnswer"),
    *("Update", "Updates"),
)
PUBLIC |= {name: vars(oc.handles)[name] for name in MESSAGES}
D_INS = (1, 2, 3)
D_IN = 3  # what is bounded at one distance is bounded at this one
ORDERS = (2.0, 4.0, 8.0)
MANY = 10_000  # messages
CONTRIBUTIONS = 1000  # of a user
REFUSALS = (ConcurrentError, OpenDPException)


class Kind(Enum):
    """What a mechanism is."""

    NONINTERACTIVE = "answers once"
    INTERACTIVE = "takes queries"
    CONTINUAL = "takes updates and queries"
    COMPOSITION = "launches measurements, within a bound or without"
    ODOMETER = "an odometer"


class Role(Enum):
    """What a wrapper does with what it takes."""

    WRAPPER = "another conversation, the same guarantee"
    CAST = "the same function, another measure"
    TRANSFORMATION = "the same mechanism, other data"
    COMBINATOR = "launches it"


# --- spaces and measures ---------------------------------------------------------------------

SMALL = 2**20  # items of a stream are below


def table() -> Any:
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def stream() -> Any:
    return oc.integer_stream(0, SMALL), oc.event_presence()


def changes() -> Any:
    return oc.integer_stream(0, SMALL), oc.event_change()


def users() -> Any:
    def member(pair: Any) -> bool:
        return isinstance(pair, tuple) and len(pair) == 2 and 0 <= pair[1] <= SMALL

    return oc.record_stream("pairs of user and integer", member), oc.user_presence()


ROWS = [CANARY, 1, 2, 3]


def _renyi(d: int) -> Callable[[float], float]:
    return lambda alpha: 0.125 * alpha * d * d


PURE = dp.max_divergence
UNIFORM = "approximate zCDP"
MEASURES: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
    "pure": (PURE, lambda d: 0.125 * d),
    "approximate": (lambda: dp.approximate(dp.max_divergence()), lambda d: (0.125 * d, 1e-6 * d)),
    "zCDP": (dp.zero_concentrated_divergence, lambda d: 0.125 * d * d),
    UNIFORM: (
        lambda: dp.approximate(dp.zero_concentrated_divergence()),
        lambda d: (0.125 * d * d, 1e-6 * d),
    ),
    "approximate Rényi": (
        lambda: oc.approximate_renyi_divergence(alpha=4.0),
        lambda d: (0.5 * d * d, 1e-6 * d),
    ),
    "Rényi curve": (dp.renyi_divergence, _renyi),
    "Rényi order": (lambda: oc.fixed_renyi_divergence(alpha=4.0), lambda d: 0.5 * d * d),
    "tCDP": (
        lambda: oc.truncated_concentrated_divergence(omega=20.0),
        lambda d: oc.TruncatedConcentrated(0.125 * d * d, 20.0),
    ),
    "Gaussian": (oc.gaussian_tradeoff, lambda d: 0.5 * d),
    "trade-off": (oc.tradeoff, lambda d: oc.TradeoffFunction.gaussian(0.5 * d)),
}


# --- cases -----------------------------------------------------------------------------------

Send = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """Something that was built, and how one talks with what is innermost in it.

    :ivar what: a measurement or an odometer; or, if ``top``, a function from data to a handle
    :ivar kind: of ``what``
    :ivar layers: names of the wrappers, outermost first, then of the subject
    :ivar enter: from sending to the handle of ``what``, to sending to what is innermost; adds the
        handles of what it launches on the way
    :ivar query: one that the innermost mechanism answers
    :ivar data: what ``what`` takes
    :ivar item: from an item of the innermost stream to one of the stream of ``what``
    :ivar loss: that of the innermost one, at its own d_in
    """

    what: Any
    kind: Kind
    layers: tuple[str, ...]
    seen: Seen
    query: Callable[[], Any]
    data: list[Any]
    enter: Callable[[Send, list[Any]], Send] = lambda send, doors: send
    item: Callable[[Any], Any] = lambda item: item
    innermost: Any = None
    top: bool = False

    @property
    def space(self) -> tuple[Any, Any]:
        return self.what.input_domain, self.what.input_metric

    @property
    def measure(self) -> Any:
        return self.what.output_measure

    @property
    def on_stream(self) -> bool:
        return self.data == []

    @property
    def continual(self) -> bool:
        """Whether the innermost mechanism takes updates."""
        return self.innermost is Kind.CONTINUAL

    def open(self, data: Any = None) -> Talk:
        """Start it on data, and enter."""
        handle = self.what(self.data if data is None else data)
        return Talk(self, handle)

    def talk(self, handle: Any) -> Talk:
        """Talk by way of a handle, from a launch elsewhere."""
        return Talk(self, handle)

    def __str__(self) -> str:
        return " ( ".join(self.layers)


def answering(answer: Any) -> Send:
    """A handle, or a release that is given again and again."""
    return answer if callable(answer) else lambda _: answer


def is_ours(door: Any) -> bool:
    """Whether a handle is asked through this package: OpenDP's own may abort at a wrong message."""
    return callable(door) and type(door) not in (Queryable, OdometerQueryable)


class Talk:
    """A conversation with an innermost mechanism.

    :ivar doors: the handle, and the handles of what was launched on it, innermost last
    """

    def __init__(self, case: Case, handle: Any) -> None:
        self.case, self.doors = case, [handle]
        self.ask: Send = case.enter(answering(handle), self.doors)

    def answer(self) -> Any:
        """Ask the subject's own query."""
        return self.ask(self.case.query())

    def update(self, item: Any) -> Any:
        """Let an item arrive, wherever it is taken; return where, or None if it is refused."""
        return self.deliver(oc.handles.Update(None if item is None else self.case.item(item)))

    def update_all(self, items: list[Any]) -> Any:
        """Let items arrive, likewise."""
        wrap = self.case.item
        return self.deliver(
            oc.handles.Updates([None if one is None else wrap(one) for one in items])
        )

    def deliver(self, message: Any) -> Any:
        for index, door in reversed(list(enumerate(self.doors))):  # a filter may halt at it
            if is_ours(door):
                try:
                    assert door(message) is None, f"an update was answered by {self.case}"
                except REFUSALS:
                    continue
                return index
        if not is_ours(self.doors[-1]):
            return None
        try:
            self.ask(message)
        except REFUSALS:
            return None
        return "asked"


# --- subjects --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """An innermost mechanism.

    :ivar covers: public names that build it
    :ivar make: builds it; the argument is where it says what happens to it
    :ivar queries: of its handle, those that have a name
    """

    name: str
    kind: Kind
    covers: tuple[str, ...]
    make: Callable[[Seen], Any]
    query: Callable[[], Any] = lambda: None
    data: Callable[[], list[Any]] = lambda: list(ROWS)
    item: Callable[[Any], Any] = lambda item: item
    queries: frozenset[str] = frozenset()

    def build(self) -> Case:
        """Build it, for one case."""
        seen = Seen()
        return Case(
            self.make(seen),
            self.kind,
            (self.name,),
            seen,
            self.query,
            self.data(),
            item=self.item,
            innermost=self.kind,
        )


class Built:
    """Calls a constructor on a space: the one that makes, or its partial one."""

    def __init__(self, name: str, space: Any) -> None:
        self.name, self.space = name, space

    compared: ClassVar[set[tuple[str, ...]]] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What ``make_x`` builds; on each space once checked to be what ``then_x`` builds."""
        made = PUBLIC[f"make_{self.name}"](*self.space, *args, **kwargs)
        then = PUBLIC.get(f"then_{self.name}")
        built = self.name, *map(str, self.space), *kwargs
        if then is not None and built not in self.compared:
            self.compared.add(built)
            same = self.space >> then(*args, **kwargs)
            assert type(same) is type(made)
            assert (same.input_domain, same.input_metric) == (made.input_domain, made.input_metric)
        return made


def counted(seen: Seen, name: str, **options: Any) -> Any:
    """Noise on the number of rows."""
    count = table() >> dp.t.then_count()
    made = Built(name, count.output_space)(8.0, PURE(), **options)
    return count >> made


def shared(*ceiling: float) -> Any:
    """The number of rows at many levels of noise."""
    count = table() >> dp.t.then_count()
    return count >> Built("shared_release", count.output_space)(PURE(), *ceiling)


def parity(kind: type, value: Callable[[int], Any]) -> Any:
    """Whether the number of rows is odd, as data of randomized response."""
    return dp.t.make_user_transformation(
        *table(),
        *(dp.atom_domain(T=kind), dp.discrete_distance()),
        lambda rows: value(len(rows) % 2),
        lambda d_in: min(d_in, 1),
    )


def as_frame() -> Any:
    """The rows as a LazyFrame."""
    return dp.t.make_user_transformation(
        *table(),
        *(dp.lazyframe_domain([dp.series_domain("n", dp.atom_domain(T="i64"))]), table()[1]),
        lambda rows: pl.LazyFrame({"n": rows}, schema={"n": pl.Int64}),
        lambda d_in: d_in,
    )


def categories() -> Any:
    return Built("stream_map", stream())(oc.category_stream(4), lambda item: item % 4)


def count_rows() -> Any:
    return table() >> dp.t.then_count()


def count_python() -> Any:
    return len


def linear() -> Any:
    return [1.0, 0.0, 1.0, 0.0]


def composition_on(space: Any, measure: str, seen: Seen, count: int = 2) -> Any:
    make, loss = MEASURES[measure]
    on_orders = {"orders": ORDERS} if measure == "Rényi curve" else {}
    return Built("concurrent_composition", space)(make(), D_IN, [loss(D_IN)] * count, **on_orders)


class SumRule:
    """A continuation rule: the measure's own sum."""

    def __init__(self, measure: Any) -> None:
        self.start = oc.extend.composition_measure(measure).total()

    def after(self, state: Any, d_mid: Any) -> Any:
        return state.after(d_mid)

    def continues(self, state: Any, d_out: Any) -> Any:
        return state.within(d_out)


def by_rule(space: Any, measure: Any) -> Any:
    """An odometer by a rule, whose losses are read along a family."""
    along = {
        MEASURES["approximate"][0](): lambda epsilon: (epsilon, 1e-2),
        MEASURES["tCDP"][0](): lambda rho: oc.TruncatedConcentrated(rho, 20.0),
    }
    rule = oc.accumulators.from_rule(SumRule(measure), along=along.get(measure))
    return oc.make_concurrent_odometer(*space, measure, accumulator=rule)


def release_query(space: Callable[[], Any], measure: str) -> Callable[[], Any]:
    make, loss = MEASURES[measure]
    return lambda: release_on(space(), make(), loss, Seen())


def user_interactive(seen: Seen, measure: str) -> Any:
    """A measurement whose function makes one of OpenDP's own queryables."""
    make, loss = MEASURES[measure]

    def function(rows: Any) -> Any:
        number = len(rows)
        return native_queryable(lambda query: number)

    return costing(loss, function, make())


@cache
def multiplicative_weights() -> Any:
    """Planned once: this takes half a second."""
    return Built("private_multiplicative_weights", table())(
        dp.zero_concentrated_divergence(), d_in=D_IN, d_out=0.5, universe=4, queries=4, size=10_000
    )


def _both(name: str) -> tuple[str, str]:
    return f"make_{name}", f"then_{name}"


def noisy_table(name: str) -> Any:
    """Noise on an aggregate of a table."""
    asked = Built(name, tables.space())(**tables.AGGREGATES[name])
    if name == "quantile_scores":
        return asked >> dp.m.then_noisy_max(PURE(), scale=8.0, negate=True)
    return asked >> dp.m.then_laplace(scale=8.0)


ZCDP = dp.zero_concentrated_divergence
LAPLACE = dp.m.then_laplace(scale=8.0)


def _gaussian(seen: Seen) -> Any:
    count = count_rows()
    return count >> Built("certified_gaussian", count.output_space)(8.0, ZCDP())


def _frame(seen: Seen) -> Any:
    frame = as_frame()
    asked = Built("frame_count", frame.output_space)(pl.LazyFrame(schema={"n": pl.Int64}))
    return frame >> asked >> LAPLACE


def _conversations(seen: Seen) -> Any:
    def interact(root: Any) -> Any:
        return root(release_query(table, "zCDP")())

    return oc.c.make_private_selection(
        composition_on(table(), "zCDP", seen), 2.0, interact=interact
    )


def _histogram(seen: Seen) -> Any:
    head = categories()
    return head >> Built("histogram_counter", head.output_space)(PURE(), scale=8.0)


def _on(name: str, *rest: Any, space: Any = table, **named: Any) -> Callable[[Seen], Any]:
    """A constructor on a space; what can be called is made when it is built."""
    return lambda seen: Built(name, space())(*(one() for one in rest), **named)


def _measured(make: Any, on_a_measure: Any) -> dict[str, Callable[[Seen], Any]]:
    return {
        f"{make} {name}": partial(on_a_measure, measure=measure, loss=loss)
        for name, (measure, loss) in MEASURES.items()
    }


def _release(seen: Seen, measure: Any, loss: Any) -> Any:
    return release_on(table(), measure(), loss, seen)


def _probe(seen: Seen, measure: Any, loss: Any) -> Any:
    return probe_on(stream(), measure(), loss, seen)


SHIFT: dict[str, Any] = {"scale": 24.0, "threshold": 1000, "sensitivity": D_IN}
WINDOW, HORIZON = {"scale": 2.0**23, "window": 3}, {"scale": 2.0**23, "horizon": 100}
ONCE: dict[str, tuple[tuple[str, ...], Callable[[Seen], Any]]] = {
    **{name: ((), make) for name, make in _measured("release", _release).items()},
    "laplace": (_both("certified_laplace"), lambda seen: counted(seen, "certified_laplace")),
    "geometric": (_both("certified_geometric"), lambda seen: counted(seen, "certified_geometric")),
    "gaussian": (_both("certified_gaussian"), _gaussian),
    "native laplace": ((), lambda seen: count_rows() >> LAPLACE),
    "count of a frame": (_both("frame_count"), _frame),
    "randomized response of two": (
        ("make_certified_randomized_response_bool",),
        lambda seen: (
            parity(bool, bool) >> oc.m.make_certified_randomized_response_bool(0.75, PURE())
        ),
    ),
    "randomized response of three": (
        ("make_certified_randomized_response",),
        lambda seen: (
            parity(int, int) >> oc.m.make_certified_randomized_response([0, 1, 2], 0.5, PURE())
        ),
    ),
    "private selection": (
        ("make_private_selection",),
        lambda seen: oc.c.make_private_selection(counted(seen, "certified_laplace"), 2.0),
    ),
    "private selection of conversations": ((), _conversations),
    "marginals": (
        _both("marginals"),
        _on("marginals", PURE, d_in=D_IN, d_out=0.5, columns=1, bounds=(-2, 9)),
    ),
}
ON_TABLES = {name: lambda seen, name=name: noisy_table(name) for name in tables.AGGREGATES}
ON_TABLES["table_keys"] = _on("table_keys", lambda: "zone", space=tables.space, d_out=(0.5, 1e-3))
STREAMS: dict[str, tuple[str, Callable[[Seen], Any]]] = {
    "counter": ("counter", _on("counter", PURE, space=stream, scale=2.0**23)),
    "histogram counter": ("histogram_counter", _histogram),
    "digits counter": ("counter", _on("counter", PURE, space=stream, **HORIZON)),
    "buffered counter": ("counter", _on("counter", ZCDP, space=stream, scale=2.0**23)),
    "buffered counter with a horizon": ("counter", _on("counter", ZCDP, space=stream, **HORIZON)),
    "buffered window": ("window_counter", _on("window_counter", ZCDP, space=stream, **WINDOW)),
    "window counter": ("window_counter", _on("window_counter", PURE, space=stream, **WINDOW)),
    "alarm": ("alarm", _on("alarm", PURE, space=stream, scale=2.0**23, threshold=2**40)),
}
INTERACTIVE: dict[str, tuple[tuple[str, ...], Callable[[Seen], Any], Callable[[], Any]]] = {
    "above threshold": (
        _both("above_threshold"),
        _on("above_threshold", PURE, lambda: D_IN, **SHIFT),
        count_rows,
    ),
    "sparse vector": (
        _both("sparse_vector"),
        _on("sparse_vector", PURE, lambda: D_IN, max_hits=2, **SHIFT),
        count_rows,
    ),
    "guess and check": (
        _both("guess_and_check"),
        _on(
            "guess_and_check",
            PURE,
            lambda: D_IN,
            scale=24.0,
            tolerance=1000,
            max_hits=2,
            sensitivity=D_IN,
        ),
        lambda: (count_rows(), 4),
    ),
    "shared release": (_both("shared_release"), lambda seen: shared(0.5), lambda: 0.25),
    "individual filter": (
        _both("individual_filter"),
        _on("individual_filter", PURE, d_out=0.5),
        lambda: oc.handles.NoisySum(lambda rows: rows > 0, bound=1, scale=10.0),
    ),
    **{
        f"native queryable {name}": ((), partial(user_interactive, measure=name), lambda: None)
        for name in ("pure", UNIFORM)
    },
}
ODOMETERS: dict[str, tuple[Callable[[Seen], Any], Callable[[], Any]]] = {
    "odometer": (_on("concurrent_odometer", PURE), release_query(table, "pure")),
    f"odometer {UNIFORM}": (
        _on("concurrent_odometer", MEASURES[UNIFORM][0]),
        release_query(table, UNIFORM),
    ),
    "odometer of OpenDP": (
        lambda seen: dp.c.make_fully_adaptive_composition(*table(), PURE()),
        release_query(table, "pure"),
    ),
    **{
        f"odometer by a rule, {name}": (
            lambda seen, name=name: by_rule(table(), MEASURES[name][0]()),
            release_query(table, name),
        )
        for name in ("approximate", "tCDP")
    },
    "shared release by steps": (lambda seen: shared(), lambda: 0.125),
}
SUBJECTS: tuple[Subject, ...] = (
    *(Subject(name, Kind.NONINTERACTIVE, *one) for name, one in ONCE.items()),
    *(
        Subject(name.replace("_", " "), Kind.NONINTERACTIVE, _both(name), make, data=tables.data)
        for name, make in ON_TABLES.items()
    ),
    *(
        Subject(name, Kind.CONTINUAL, _both("continual"), make, lambda: "count", list)
        for name, make in _measured("probe", _probe).items()
    ),
    *(
        Subject(
            f"composition {name}",
            Kind.COMPOSITION,
            _both("concurrent_composition"),
            lambda seen, name=name: composition_on(table(), name, seen),
            release_query(table, name),
        )
        for name in MEASURES
    ),
    *(Subject(name, Kind.INTERACTIVE, *one) for name, one in INTERACTIVE.items()),
    Subject(
        "sparse vector on a table",
        Kind.INTERACTIVE,
        _both("sparse_vector"),
        _on(
            "sparse_vector",
            PURE,
            lambda: D_IN,
            space=tables.space,
            max_hits=2,
            **SHIFT | {"sensitivity": tables.BOUNDED * D_IN},
        ),
        lambda: tables.space() >> oc.t.then_table_count(),
        data=tables.data,
    ),
    Subject(
        "multiplicative weights",
        Kind.INTERACTIVE,
        _both("private_multiplicative_weights"),
        lambda seen: multiplicative_weights(),
        linear,
        queries=frozenset({"synthetic"}),
    ),
    Subject(
        "projected queries",
        Kind.INTERACTIVE,
        _both("projected_queries"),
        _on("projected_queries", ZCDP, d_in=D_IN, d_mids=[0.25] * 4, universe=4, size=10_000),
        lambda: [linear()],
        queries=frozenset({"synthetic"}),
    ),
    *(
        Subject(name, Kind.CONTINUAL, _both(made), make, data=list, queries=frozenset({"read"}))
        for name, (made, make) in STREAMS.items()
    ),
    Subject(
        "probe of changes",
        Kind.CONTINUAL,
        (),
        lambda seen: probe_on(changes(), PURE(), MEASURES["pure"][1], seen),
        data=list,
    ),
    *(
        Subject(name, Kind.ODOMETER, _both("concurrent_odometer") * (name == "odometer"), *one)
        for name, one in ODOMETERS.items()
    ),
    Subject(
        "odometer of a stream",
        Kind.ODOMETER,
        (),
        _on("concurrent_odometer", PURE, space=stream),
        lambda: probe_on(stream(), PURE(), MEASURES["pure"][1], Seen()),
        list,
    ),
)


# --- wrappers --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wrapper:
    """Takes what a case has, and gives another case; or refuses.

    :ivar same_map: whether the map of the whole is that of what is inside, to the last digit
    :ivar stretch: how far it brings neighbours apart
    :ivar protocol: whether its handle takes other messages than what is inside
    """

    name: str
    role: Role
    covers: tuple[str, ...]
    make: Callable[[Case], Case]
    same_map: bool = False
    stretch: int = 1
    protocol: bool = False

    def __call__(self, case: Case) -> Case:
        """Wrap a case."""
        return replace(self.make(case), layers=(self.name, *case.layers))


def behind(case: Case, what: Any, address: Callable[[Any], Any] = lambda message: message) -> Case:
    """The case behind a wrapper that passes messages on."""
    enter = case.enter
    kind = Kind.INTERACTIVE if case.kind is Kind.NONINTERACTIVE else case.kind
    return replace(
        case,
        what=what,
        kind=kind,
        enter=lambda send, doors: enter(lambda message: send(address(message)), doors),
    )


def after(case: Case, what: Any, data: list[Any], item: Callable[[Any], Any]) -> Case:
    """The case behind a transformation."""
    inner = case.item
    return replace(case, what=what, data=data, item=lambda one: item(inner(one)))


def on(
    case: Case,
    what: Any,
    *,
    key: Any = None,
    blocks: Any = None,
    top: bool = False,
    launch: bool = True,
) -> Case:
    """The case launched on a combinator: what it refuses must have changed nothing.

    :param key: which of several handles it is launched on; or, if it is not launched but there
        already, which one it is
    :param blocks: those on which it is launched
    """
    enter, seen = case.enter, case.seen

    def launched(send: Send, doors: list[Any]) -> Send:
        if key is not None:
            part = send(key)
            doors.append(part)
            send = answering(part)
        if launch:
            root = doors[-1]
            seen.launchers.append((root, send))
            before = loss_known(root)
            try:
                child = send(case.what if blocks is None else (blocks, case.what))
            except REFUSALS:
                seen.refused.append((before, loss_known(root)))
                raise
            doors.append(child)
            send = answering(child)
        return enter(send, doors)

    return replace(case, what=what, kind=Kind.COMPOSITION, enter=launched, top=top)


def loss_known(root: Any) -> Any:
    """What a handle says of its loss, and of what remains; None if it says nothing."""
    said = []
    for name, arguments in (("privacy_loss", ()), ("privacy_loss", (D_IN,)), ("remaining", ())):
        try:
            said.append(repr(getattr(root, name)(*arguments)))
        except (AttributeError, TypeError, *REFUSALS):
            continue
    return said


def measured(case: Case) -> tuple[int, Any]:
    """The largest d_in at which there is a loss, and the loss."""
    if isinstance(case.what, Odometer):
        return D_IN, None
    refusal: Any = None
    for d_in in reversed(D_INS):
        try:
            return d_in, map_of(case.what)(d_in)
        except REFUSALS as error:
            refusal = error
    raise refusal


def orders_of(case: Case) -> dict[str, Any]:
    curves = case.measure == dp.renyi_divergence()
    return {"orders": ORDERS} if curves else {}


def of_measure(measure: Any) -> Callable[[int], Any]:
    """The loss of what is under a measure."""
    return next(loss for make, loss in MEASURES.values() if make() == measure)


def budget_of(case: Case) -> tuple[int, Any]:
    """A d_in, and a budget there that admits the case once; anything for an odometer."""
    d_in, loss = measured(case)
    if loss is None:
        loss = of_measure(case.measure)(D_IN)
    return d_in, loss


def odometer_for(case: Case) -> Any:
    return oc.make_concurrent_odometer(*case.space, case.measure)


def in_filter(case: Case, **options: Any) -> Any:
    d_in, loss = budget_of(case)
    return oc.make_concurrent_filter(odometer_for(case), d_in, loss, **orders_of(case), **options)


def in_composition(case: Case) -> Any:
    d_in, loss = budget_of(case)
    return oc.make_concurrent_composition(
        *case.space, case.measure, d_in, [loss], **orders_of(case)
    )


def _postprocessing(machine: Callable[[Seen], Any], start: Any = None) -> Callable[[Case], Case]:
    def make(case: Case) -> Case:
        return behind(
            case,
            oc.c.make_interactive_postprocessing(
                case.what, machine(case.seen), initial_state=start
            ),
        )

    return make


def _indexed(case: Case, count: int = 1) -> Case:
    d_in, _ = measured(case)
    made = oc.c.make_indexed_composition(
        *case.space, case.measure, d_in, [case.what] * count, **orders_of(case)
    )
    return behind(case, made, lambda message: (0, message))


CAST_TO = {
    "pure": dp.zero_concentrated_divergence,
    "approximate": oc.tradeoff,
    "zCDP": oc.tradeoff,
    UNIFORM: dp.zero_concentrated_divergence,
    "approximate Rényi": lambda: dp.approximate(dp.max_divergence()),
    "Rényi curve": lambda: oc.fixed_renyi_divergence(alpha=4.0),
    "Rényi order": oc.tradeoff,
    "tCDP": lambda: oc.fixed_renyi_divergence(alpha=4.0),
    "Gaussian": dp.zero_concentrated_divergence,
    "trade-off": oc.gaussian_tradeoff,
}


def _cast_away(case: Case) -> Case:
    (target,) = (CAST_TO[name] for name, (make, _) in MEASURES.items() if make() == case.measure)
    return replace(case, what=oc.c.cast(case.what, target()))


def _cast_at_delta(case: Case) -> Case:
    approximate = dp.approximate(dp.max_divergence())
    return replace(case, what=oc.c.cast(case.what, approximate, delta=1e-3, **orders_of(case)))


def _profile_to_tradeoff(case: Case) -> Case:
    """Of one measure only: chords of a profile take a third of a second."""
    if case.measure != PURE() or case.layers[-1] not in ("release pure", "probe pure"):
        raise ConcurrentError("not tried")
    profile = oc.c.cast(case.what, dp.smoothed_max_divergence(), **orders_of(case))
    return replace(case, what=oc.c.cast(profile, oc.tradeoff()))


def _from(source: str, target: Callable[[], Any], **options: Any) -> Callable[[Any], Any]:
    """A cast of what is under one kind of measure."""

    def convert(one: Any) -> Any:
        if oc.extend.composition_measure(one.output_measure).kind != source:
            raise ConcurrentError("not tried")
        return oc.c.cast(one, target(), **options)

    return convert


def _fixed(source: str, **options: Any) -> Callable[[Any], Any]:
    """A cast to a privacy profile, which is read at one δ."""
    convert = _from(source, dp.smoothed_max_divergence, **options)
    return lambda one: fixed_delta(convert(one))


CASTS: dict[str, Callable[[Any], Any]] = {
    "pureDP to zCDP": oc.c.make_pureDP_to_zCDP,
    "pureDP to RDP": _from(measures.PURE, dp.renyi_divergence),
    "pureDP to GDP": _from(measures.PURE, oc.gaussian_tradeoff),
    "pureDP to fDP": _from(measures.PURE, oc.tradeoff),
    "pureDP to fixedRDP": _from(measures.PURE, lambda: oc.fixed_renyi_divergence(4.0)),
    "pureDP to tCDP": _from(measures.PURE, lambda: oc.truncated_concentrated_divergence(20.0)),
    "zCDP to RDP": _from(measures.ZCDP, dp.renyi_divergence),
    "zCDP to fDP": _from(measures.ZCDP, oc.tradeoff),
    "zCDP to fixedRDP": _from(measures.ZCDP, lambda: oc.fixed_renyi_divergence(4.0)),
    "zCDP to tCDP": _from(measures.ZCDP, lambda: oc.truncated_concentrated_divergence(20.0)),
    "GDP to zCDP": _from(measures.GAUSSIAN, dp.zero_concentrated_divergence),
    "GDP to fDP": _from(measures.GAUSSIAN, oc.tradeoff),
    "GDP to approxDP": _fixed(measures.GAUSSIAN),
    "RDP to fixedRDP": _from(measures.RENYI, lambda: oc.fixed_renyi_divergence(4.0)),
    "RDP to approxDP": _fixed(measures.RENYI, orders=ORDERS),
    "fixedRDP to approxDP": _fixed(measures.FIXED),
    "tCDP to approxDP": _fixed(measures.TRUNCATED),
    "approxDP to fDP": _from(measures.APPROXIMATE, oc.tradeoff),
    "larger delta": _from(
        measures.APPROXIMATE, lambda: dp.approximate(dp.max_divergence()), delta=1e-3
    ),
    "fDP to GDP": _from(measures.TRADEOFF, oc.gaussian_tradeoff),
    "fDP to approxDP": _fixed(measures.TRADEOFF),
}


def fixed_delta(measurement: Any) -> Any:
    return dp.c.make_fix_delta(measurement, 1e-3)


def _converted(convert: Callable[[Any], Any]) -> Callable[[Case], Case]:
    return lambda case: replace(case, what=convert(case.what))


def _stream_step(name: str, *rest: Callable[[Any], Any]) -> Callable[[Case], Case]:
    def make(case: Case) -> Case:
        domain, metric = case.space
        built = Built(name, (domain, metric))(*(one(domain) for one in rest))
        return after(case, built >> case.what, [], lambda item: item)

    return make


def _clamp(case: Case) -> Case:
    """From a wider stream."""
    _, metric = case.space
    wider = oc.integer_stream(-SMALL, 2 * SMALL)
    built = Built("stream_clamp", (wider, metric))(case.space[0])
    return after(case, built >> case.what, [], lambda item: item)


def _bounded_contributions(case: Case) -> Case:
    built = Built("bounded_contributions", users())(case.space[0], CONTRIBUTIONS)
    return after(case, built >> case.what, [], lambda item: ("ann", item))


def turned_rows(rows: Any) -> Any:
    """The same rows in another order; a table in an engine has none."""
    return rows[::-1] if isinstance(rows, list) else rows


def _table_step(case: Case) -> Case:
    """The same rows in another order, by a transformation of OpenDP."""
    turned = dp.t.make_user_transformation(*case.space, *case.space, turned_rows, lambda d_in: d_in)
    return after(case, turned >> case.what, case.data, lambda item: item)


def _engine_step(name: str, start: Callable[[], Any], *rest: Any, **named: Any) -> Any:
    """A transformation of tables whose result is the case's space."""

    def make(case: Case) -> Case:
        table = start()
        built = Built(name, table.space)(*rest, **named)
        return after(case, built >> case.what, table, lambda item: item)

    return make


def _alone(start: Callable[[], Any], name: str, *rest: Any, **named: Any) -> Any:
    """A transformation, and then the same rows in the case's space."""

    def make(case: Case) -> Case:
        table = start()
        made = Built(name, table.space)(*rest, **named)
        alone = dp.t.make_user_transformation(
            *made.output_space, *tables.space(), tables.alone, lambda d_in: d_in
        )
        return after(case, made >> alone >> case.what, table, lambda item: item)

    return make


def _to_stream(case: Case) -> Case:
    """From a table to the empty stream, by a transformation of the user's."""
    if not isinstance(case.data, list):
        raise ConcurrentError("not tried: a table in an engine is no stream")
    start = dp.t.make_user_transformation(*table(), *case.space, lambda rows: [], lambda d_in: d_in)
    return after(case, start >> case.what, list(ROWS), lambda item: item)


def _native_step(case: Case) -> Case:
    """``what >> function``, OpenDP's chain."""
    if case.layers[0] in OPENDPS:
        raise ConcurrentError("not tried: OpenDP frees the queryable that the function gets")
    function = dp.new_function(lambda answer: answer, TO="ExtrinsicObject")
    return replace(case, what=case.what >> function)


def _tail(case: Case) -> Case:
    """``odometer >> function``."""
    return replace(case, what=oc.c.make_chain_po(lambda answer: answer, case.what))


def _head(case: Case) -> Case:
    """``transformation >> odometer``."""
    turned = dp.t.make_user_transformation(*case.space, *case.space, turned_rows, lambda d_in: d_in)
    return after(case, oc.c.make_chain_ot(case.what, turned), case.data, lambda item: item)


def map_of(measurement: Any) -> Callable[[Any], Any]:
    """Its map, whatever was put in its place."""
    return partial(type(measurement).map, measurement)


def _run_by(run: Callable[[Callable[[], Any]], Any]) -> Callable[[Case], Case]:
    """A measurement of the user's, which runs it and returns what it gives."""

    def make(case: Case) -> Case:
        measured(case)
        what = case.what

        def function(rows: Any) -> Any:
            return run(lambda: what(rows))

        return replace(case, what=costing(map_of(what), function, case.measure, case.space))

    return make


def in_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def _odometer(case: Case) -> Case:
    return on(case, odometer_for(case))


def _back_to_odometer(case: Case) -> Case:
    return on(case, oc.c.make_filter_to_odometer(in_filter(case)))


def in_blocks(case: Case) -> Case:
    loss = map_of(case.what)(1) if isinstance(case.what, Measurement) else budget_of(case)[1]
    made = oc.c.make_block_filter(
        odometer_for(case),
        1,
        loss,
        blocks=oc.c.by_key(lambda row: D_IN),
        keys=[D_IN, "empty"],
        **orders_of(case),
    )
    return on(case, made, blocks=[D_IN, "empty"])


def limited(case: Case) -> Any:
    """A limit that admits the case once."""
    d_in, loss = budget_of(case)
    return oc.c.make_limited(odometer_for(case), d_in, loss, label="ann", **orders_of(case))


def _limit(case: Case) -> Case:
    """In a limit below a filter."""
    return on(on(case, limited(case)), in_filter(case))


def _limit_on_blocks(case: Case) -> Case:
    """In a limit on a block filter."""
    blocks = in_blocks(case)
    return on(on(case, limited(case), blocks=[D_IN, "empty"]), blocks.what)


def _parallel(partition: Callable[[], Any]) -> Callable[[Case], Case]:
    def make(case: Case) -> Case:
        made = Built("parallel_composition", case.space)(partition(), {0: case.what, 1: case.what})
        return on(case, made, key=0, launch=False)

    return make


def _parallel_continual(case: Case) -> Case:
    made = Built("parallel_continual", case.space)(lambda item: 0, {0: case.what})
    return on(case, made, key=0, launch=False)


def _on_stream(case: Case) -> Case:
    """Asked of the rows of a stream, of which none has arrived."""
    return replace(behind(case, Built("on_stream", stream())(case.what)), data=[])


def _continual(of: Callable[[Case], Any]) -> Callable[[Case], Case]:
    def make(case: Case) -> Case:
        made = oc.c.make_concurrent_continual(of(case), max_messages=MANY)
        return on(case, made, top=not isinstance(made, Measurement))

    return make


def _context(case: Case, **split: Any) -> Case:
    domain, metric = case.space
    d_in, loss = budget_of(case)

    def start(data: Any) -> Any:
        return oc.concurrent_context(
            data, (metric, d_in), (case.measure, loss), domain=domain, **split, **orders_of(case)
        )

    return on(case, start, top=True)


def _not_sequential(case: Case) -> None:
    """OpenDP's own cannot host interactive children there: see docs of OpenDP's facts."""
    if case.measure == MEASURES[UNIFORM][0]():
        raise ConcurrentError("not tried")


def _native_composition(case: Case) -> Case:
    d_in, loss = measured(case)
    return on(case, dp.c.make_adaptive_composition(*case.space, case.measure, d_in, [loss]))


def _native_filter(case: Case) -> Case:
    d_in, loss = measured(case)
    _not_sequential(case)
    if case.measure == dp.renyi_divergence():
        raise ConcurrentError("not tried: OpenDP aborts the process here")
    native = dp.c.make_fully_adaptive_composition(*case.space, case.measure)
    return on(case, dp.c.make_privacy_filter(native, d_in, loss))


def _over_opendps(case: Case) -> Case:
    """In a filter of ours over OpenDP's odometer."""
    native = dp.c.make_fully_adaptive_composition(*case.space, case.measure)
    made = oc.make_concurrent_filter(native, *budget_of(case), **orders_of(case))
    return on(case, made)


def _by_rule(case: Case) -> Case:
    return on(case, oc.make_concurrent_filter(by_rule(case.space, case.measure), *budget_of(case)))


def _larger(function: Callable[..., Any], **options: Any) -> Callable[[Case], Case]:
    return lambda case: on(case, function(case, **options))


def _passing(name: str, make: Callable[[Case], Case], *covers: str, **more: Any) -> Wrapper:
    return Wrapper(name, Role.WRAPPER, covers, make, **{"same_map": True} | more)


def _combinator(name: str, make: Callable[[Case], Case], *covers: str) -> Wrapper:
    return Wrapper(name, Role.COMBINATOR, covers, make)


def _step(name: str, make: Callable[[Case], Case], public: str = "", **more: Any) -> Wrapper:
    covers = _both(public) if public else ()
    return Wrapper(name, Role.TRANSFORMATION, covers, make, **{"same_map": True} | more)


def _of_engine(name: str, *arguments: Any, public: str = "", **named: Any) -> Wrapper:
    public = public or name.replace(" ", "_")
    start, *rest = arguments
    return _step(name, _engine_step(public, start, *rest, **named), public)


WRAPPERS: tuple[Wrapper, ...] = (
    _passing(
        "interactive",
        lambda case: behind(case, oc.c.make_interactive(case.what)),
        "make_interactive",
    ),
    _passing(
        "bounded",
        lambda case: behind(case, oc.c.make_bounded_interactive(case.what, MANY)),
        "make_bounded_interactive",
    ),
    _passing(
        "looking on", _postprocessing(looking_on), "make_interactive_postprocessing", protocol=True
    ),
    _passing("remembering", _postprocessing(remembering, ({}, None)), protocol=True),
    _passing("counting", _postprocessing(counting, 0), protocol=True),
    Wrapper("indexed", Role.COMBINATOR, _both("indexed_composition"), _indexed, protocol=True),
    Wrapper("indexed, two", Role.COMBINATOR, (), partial(_indexed, count=2), protocol=True),
    Wrapper(
        "cast to itself",
        Role.CAST,
        ("cast",),
        lambda case: replace(case, what=oc.c.cast(case.what, case.measure)),
        same_map=True,
    ),
    Wrapper("cast away", Role.CAST, (), _cast_away),
    Wrapper("cast at delta", Role.CAST, (), _cast_at_delta),
    Wrapper("profile to fDP", Role.CAST, (), _profile_to_tradeoff),
    *(
        Wrapper(
            name,
            Role.CAST,
            ("make_pureDP_to_zCDP",) if name == "pureDP to zCDP" else (),
            _converted(convert),
        )
        for name, convert in CASTS.items()
    ),
    _step(
        "stream map",
        _stream_step("stream_map", lambda domain: domain, lambda domain: lambda item: item),
        "stream_map",
    ),
    _step(
        "stream filter",
        _stream_step("stream_filter", lambda domain: lambda item: True),
        "stream_filter",
    ),
    _step("stream clamp", _clamp, "stream_clamp"),
    _step(
        "bounded contributions",
        _bounded_contributions,
        "bounded_contributions",
        same_map=False,
        stretch=CONTRIBUTIONS,
    ),
    _step("table step", _table_step),
    _of_engine("where", tables.data, oc.tables.col("zone") == "a"),
    _of_engine("with columns", tables.data, {"hours": oc.tables.col("hours") * 2.0}),
    _of_engine("select", tables.data, list(tables.SCHEMA), public="table_select"),
    _of_engine("truncate", tables.data, tables.BOUNDED, materialize=True),
    _of_engine("group truncate", tables.people, **tables.BY),
    _of_engine("public join", tables.narrow, "zone", {"hours": float}, {"a": 1.0, "b": None}),
    _step(
        "private join", _alone(tables.linked, "private_join", "others", how="semi"), "private_join"
    ),
    _step("per unit", _alone(tables.people, "per_unit", tables.PERSONS), "per_unit"),
    _step("table to stream", _to_stream),
    _passing("native step", _native_step),
    _passing("odometer tail", _tail, "make_chain_po", same_map=False),
    Wrapper("odometer head", Role.TRANSFORMATION, ("make_chain_ot",), _head),
    _passing("in a function", _run_by(lambda run: run())),
    _passing("in a thread", _run_by(in_thread)),
    _combinator("on an odometer", _odometer),
    _combinator("on a filter's odometer", _back_to_odometer, "make_filter_to_odometer"),
    _combinator("in a filter", _larger(in_filter), "make_concurrent_filter"),
    _combinator("in a filter that halts", _larger(in_filter, halt=True)),
    _combinator("in a filter over a native odometer", _over_opendps),
    _combinator("in a filter by a rule", _by_rule),
    _combinator("in a composition", _larger(in_composition)),
    _combinator("in blocks", in_blocks, "make_block_filter"),
    _combinator("in a limit on blocks", _limit_on_blocks),
    _combinator("in a limit", _limit, "make_limited"),
    _combinator(
        "in a part by key",
        _parallel(lambda: oc.c.by_key(lambda row: row % 2)),
        *_both("parallel_composition"),
        "by_key",
    ),
    _combinator(
        "in a part by values",
        _parallel(lambda: oc.c.by_values({0: [0, 2], 1: [1, 3]})),
        "by_values",
    ),
    _combinator(
        "in a part by split",
        _parallel(lambda: oc.c.by_split(lambda rows, keys: dict.fromkeys(keys, rows))),
        "by_split",
    ),
    _combinator("in a part of a stream", _parallel_continual, *_both("parallel_continual")),
    _step("asked on a stream", _on_stream, "on_stream", protocol=True),
    _combinator("on a stream's filter", _continual(in_filter), "make_concurrent_continual"),
    _combinator("on a stream's composition", _continual(in_composition)),
    _combinator("on a stream's odometer", _continual(odometer_for)),
    _combinator("in a context", _context, "concurrent_context"),
    _combinator("in a context that is split", partial(_context, split_evenly_over=1)),
    _combinator("in OpenDP's composition", _native_composition),
    _combinator("in OpenDP's filter", _native_filter),
)

OPENDPS = ("in OpenDP's composition", "in OpenDP's filter")
TOOLS = """
    accept_advisories counter_rmse from_dp_event from_record group_tcdp individual_scale labelled
    largest_share launches_admitted loss_of optimal_composition risk smallest_scale smallest_sigma
    sparse_vector_accuracy subsampled_tcdp to_dp_event window_rmse
"""
PLAIN: dict[str, str] = {
    name: kind
    for kind, names in {
        "hook": "install swapped_in uninstall",
        "data": "uncollected",
        "tag": "ANSWER QUERY",
        "message": "Update Updates Deviation NoisySum deserialize serialize",
        "answer": "LinearAnswers Outcome SparseVectorAnswer Description",
        "distance": "Session TradeoffFunction TruncatedConcentrated",
        "accountant": "Accountant",
        "measure": "approximate_renyi_divergence fixed_renyi_divergence gaussian_tradeoff tradeoff "
        "truncated_concentrated_divergence",
        "metric": "event_change event_presence user_presence",
        "domain": "category_stream integer_stream record_stream",
        "accumulator": "advanced any_time basic best_rule either from_rule ladder renyi residue "
        "zcdp",
        "partition": "by_column by_entry",  # of frames, of mappings
        "tool": TOOLS,
    }.items()
    for name in names.split()
}
TAKES_ODOMETERS = frozenset(
    {"odometer tail", "odometer head", "bounded", "looking on", "remembering", "counting"}
    | {f"on {what}" for what in ("an odometer", "a filter's odometer")}
    | {f"on a stream's {what}" for what in ("filter", "composition", "odometer")}
    | {
        f"in a filter{more}"
        for more in ("", " that halts", " over a native odometer", " by a rule")
    }
    | {f"in a {what}" for what in ("composition", "limit", "limit on blocks", "context")}
    | {"in a filter by a rule", "in blocks", "in a context that is split"}
)


@dataclass(frozen=True)
class Recipe:
    """Wrappers, outermost first, and the subject inside; built afresh as often as is wanted."""

    wrappers: tuple[Wrapper, ...]
    subject: Subject

    def cases(self) -> list[Case] | None:
        """The subject, and what each wrapper made of it, innermost first; None if one refused."""
        return self.around(self.subject.build())

    def around(self, inner: Case) -> list[Case] | None:
        """The same of a subject that is built already."""
        cases = [inner]
        for wrapper in reversed(self.wrappers):
            inner = cases[-1]
            if inner.top:  # holds data already
                return None
            if isinstance(inner.what, Odometer) and wrapper.name not in TAKES_ODOMETERS:
                return None
            try:
                cases.append(wrapper(inner))
            except REFUSALS:
                return None
        return cases

    def __str__(self) -> str:
        return " ( ".join((*(one.name for one in self.wrappers), self.subject.name))


def names_covered() -> set[str]:
    """Public names that a subject or a wrapper builds."""
    return {name for one in (*SUBJECTS, *WRAPPERS) for name in one.covers}
