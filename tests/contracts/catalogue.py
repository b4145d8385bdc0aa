"""Every public constructor, and everything that takes what they make.

* ``SUBJECTS``: innermost mechanisms. A subject is built afresh for each case, and says how one
  talks with it.
* ``WRAPPERS``: what takes a measurement, an odometer or a mechanism, and gives another one:
  wrappers proper, transformations, casts, and combinators, on which it is launched.
* ``PLAIN``: public names that build no mechanism, with one word for what they are.

``test_catalogue_names.py`` fails if a public name is in none of them. A wrapper may refuse what it
is given, with an error of this package or of OpenDP, when it is built or when it is launched: the
laws are about what is not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from typing import Any

import opendp.prelude as dp
import polars as pl
from opendp.mod import Measurement, Odometer, OdometerQueryable, OpenDPException, Queryable

import opendp_concurrent as oc
from opendp_concurrent import measures
from opendp_concurrent.errors import ConcurrentError

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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What ``make_x`` builds; checked to be what ``then_x`` builds."""
        made = PUBLIC[f"make_{self.name}"](*self.space, *args, **kwargs)
        then = PUBLIC.get(f"then_{self.name}")
        if then is not None:
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


def parity() -> Any:
    """Whether the number of rows is odd, as data of randomized response."""
    return dp.t.make_user_transformation(
        *table(),
        dp.atom_domain(T=bool),
        dp.discrete_distance(),
        lambda rows: len(rows) % 2 == 1,
        lambda d_in: min(d_in, 1),
    )


def as_frame() -> Any:
    """The rows as a LazyFrame."""
    return dp.t.make_user_transformation(
        *table(),
        dp.lazyframe_domain([dp.series_domain("n", dp.atom_domain(T="i64"))]),
        dp.symmetric_distance(),
        lambda rows: pl.LazyFrame({"n": rows}, schema={"n": pl.Int64}),
        lambda d_in: d_in,
    )


def parity_named() -> Any:
    return dp.t.make_user_transformation(
        *table(),
        dp.atom_domain(T=int),
        dp.discrete_distance(),
        lambda rows: len(rows) % 2,
        lambda d_in: min(d_in, 1),
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


def user_interactive(seen: Seen, measure: str = "pure") -> Any:
    """A measurement whose function makes one of OpenDP's own queryables."""
    make, loss = MEASURES[measure]

    def function(rows: Any) -> Any:
        number = len(rows)
        return native_queryable(lambda query: number)

    return dp.m.make_user_measurement(*table(), make(), function, loss, TO="ExtrinsicObject")


@cache
def multiplicative_weights() -> Any:
    """Planned once: this takes half a second."""
    return Built("private_multiplicative_weights", table())(
        dp.zero_concentrated_divergence(),
        d_in=D_IN,
        d_out=0.5,
        universe=4,
        queries=4,
        size=10_000,
    )


def _releases() -> Iterator[Subject]:
    for name, (make, loss) in MEASURES.items():
        yield Subject(
            f"release {name}",
            Kind.NONINTERACTIVE,
            (),
            lambda seen, make=make, loss=loss: release_on(table(), make(), loss, seen),
        )


def _probes() -> Iterator[Subject]:
    for name, (make, loss) in MEASURES.items():
        yield Subject(
            f"probe {name}",
            Kind.CONTINUAL,
            ("make_continual", "then_continual"),
            lambda seen, make=make, loss=loss: probe_on(stream(), make(), loss, seen),
            data=list,
            query=lambda: "count",
        )


def _compositions() -> Iterator[Subject]:
    for name in MEASURES:
        yield Subject(
            f"composition {name}",
            Kind.COMPOSITION,
            ("make_concurrent_composition", "then_concurrent_composition"),
            lambda seen, name=name: composition_on(table(), name, seen),
            release_query(table, name),
        )


def _interactive() -> Iterator[Subject]:
    for name in ("pure", UNIFORM):
        yield Subject(
            f"native queryable {name}",
            Kind.INTERACTIVE,
            (),
            lambda seen, name=name: user_interactive(seen, name),
        )


assert tables.UNIT == CANARY


def noisy_table(name: str) -> Any:
    """Noise on an aggregate of a table."""
    asked = Built(name, tables.space())(**tables.AGGREGATES[name])
    if name == "quantile_scores":
        return asked >> dp.m.then_noisy_max(PURE(), scale=8.0, negate=True)
    return asked >> dp.m.then_laplace(scale=8.0)


def _both(name: str) -> tuple[str, str]:
    return f"make_{name}", f"then_{name}"


CONTINUAL = {"kind": Kind.CONTINUAL, "data": list}
COUNTER = {**CONTINUAL, "queries": frozenset({"read"})}
SUBJECTS: tuple[Subject, ...] = (
    *_releases(),
    *_probes(),
    *_compositions(),
    *_interactive(),
    Subject(
        "laplace",
        Kind.NONINTERACTIVE,
        _both("certified_laplace"),
        lambda seen: counted(seen, "certified_laplace"),
    ),
    Subject(
        "geometric",
        Kind.NONINTERACTIVE,
        _both("certified_geometric"),
        lambda seen: counted(seen, "certified_geometric"),
    ),
    Subject(
        "gaussian",
        Kind.NONINTERACTIVE,
        _both("certified_gaussian"),
        lambda seen: (
            (count := count_rows())
            >> Built("certified_gaussian", count.output_space)(
                8.0, dp.zero_concentrated_divergence()
            )
        ),
    ),
    Subject(
        "native laplace",
        Kind.NONINTERACTIVE,
        (),
        lambda seen: count_rows() >> dp.m.then_laplace(scale=8.0),
    ),
    *(
        Subject(
            name.replace("_", " "),
            Kind.NONINTERACTIVE,
            _both(name),
            lambda seen, name=name: noisy_table(name),
            data=tables.data,
        )
        for name in tables.AGGREGATES
    ),
    Subject(
        "table keys",
        Kind.NONINTERACTIVE,
        _both("table_keys"),
        lambda seen: Built("table_keys", tables.space())("zone", d_out=(0.5, 1e-3)),
        data=tables.data,
    ),
    Subject(
        "count of a frame",
        Kind.NONINTERACTIVE,
        _both("frame_count"),
        lambda seen: (
            (frame := as_frame())
            >> Built("frame_count", frame.output_space)(pl.LazyFrame(schema={"n": pl.Int64}))
            >> dp.m.then_laplace(scale=8.0)
        ),
    ),
    Subject(
        "randomized response of two",
        Kind.NONINTERACTIVE,
        ("make_certified_randomized_response_bool",),
        lambda seen: parity() >> oc.m.make_certified_randomized_response_bool(0.75, PURE()),
    ),
    Subject(
        "randomized response of three",
        Kind.NONINTERACTIVE,
        ("make_certified_randomized_response",),
        lambda seen: (
            parity_named() >> oc.m.make_certified_randomized_response([0, 1, 2], 0.5, PURE())
        ),
    ),
    Subject(
        "above threshold",
        Kind.INTERACTIVE,
        _both("above_threshold"),
        lambda seen: Built("above_threshold", table())(
            PURE(), D_IN, scale=24.0, threshold=1000, sensitivity=D_IN
        ),
        count_rows,
    ),
    Subject(
        "sparse vector",
        Kind.INTERACTIVE,
        _both("sparse_vector"),
        lambda seen: Built("sparse_vector", table())(
            PURE(), D_IN, scale=24.0, threshold=1000, max_hits=2, sensitivity=D_IN
        ),
        count_rows,
    ),
    Subject(
        "sparse vector on a table",
        Kind.INTERACTIVE,
        _both("sparse_vector"),
        lambda seen: Built("sparse_vector", tables.space())(
            PURE(), D_IN, scale=24.0, threshold=1000, max_hits=2, sensitivity=tables.BOUNDED * D_IN
        ),
        lambda: tables.space() >> oc.t.then_table_count(),
        data=tables.data,
    ),
    Subject(
        "guess and check",
        Kind.INTERACTIVE,
        _both("guess_and_check"),
        lambda seen: Built("guess_and_check", table())(
            PURE(), D_IN, scale=24.0, tolerance=1000, max_hits=2, sensitivity=D_IN
        ),
        lambda: (count_rows(), 4),
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
        lambda seen: Built("projected_queries", table())(
            dp.zero_concentrated_divergence(),
            d_in=D_IN,
            d_mids=[0.25] * 4,
            universe=4,
            size=10_000,
        ),
        lambda: [linear()],
        queries=frozenset({"synthetic"}),
    ),
    Subject(
        "private selection",
        Kind.NONINTERACTIVE,
        ("make_private_selection",),
        lambda seen: oc.c.make_private_selection(counted(seen, "certified_laplace"), 2.0),
    ),
    Subject(
        "private selection of conversations",
        Kind.NONINTERACTIVE,
        (),
        lambda seen: oc.c.make_private_selection(
            composition_on(table(), "zCDP", seen),
            2.0,
            interact=lambda root: root(release_query(table, "zCDP")()),
        ),
    ),
    Subject(
        "marginals",
        Kind.NONINTERACTIVE,
        _both("marginals"),
        lambda seen: Built("marginals", table())(
            PURE(), d_in=D_IN, d_out=0.5, columns=1, bounds=(-2, 9)
        ),
    ),
    Subject(
        "shared release",
        Kind.INTERACTIVE,
        _both("shared_release"),
        lambda seen: shared(0.5),
        lambda: 0.25,
    ),
    Subject(
        "shared release by steps",
        Kind.ODOMETER,
        (),
        lambda seen: shared(),
        lambda: 0.125,
    ),
    Subject(
        "individual filter",
        Kind.INTERACTIVE,
        _both("individual_filter"),
        lambda seen: Built("individual_filter", table())(PURE(), d_out=0.5),
        lambda: oc.handles.NoisySum(lambda rows: rows > 0, bound=1, scale=10.0),
    ),
    Subject(
        "counter",
        covers=_both("counter"),
        make=lambda seen: Built("counter", stream())(PURE(), scale=2.0**23),
        **COUNTER,
    ),
    Subject(
        "histogram counter",
        covers=_both("histogram_counter"),
        make=lambda seen: (
            (head := categories())
            >> Built("histogram_counter", head.output_space)(PURE(), scale=8.0)
        ),
        **COUNTER,
    ),
    Subject(
        "digits counter",
        covers=_both("counter"),
        make=lambda seen: Built("counter", stream())(PURE(), scale=2.0**23, horizon=100),
        **COUNTER,
    ),
    Subject(
        "buffered counter",
        covers=_both("counter"),
        make=lambda seen: Built("counter", stream())(
            dp.zero_concentrated_divergence(), scale=2.0**23
        ),
        **COUNTER,
    ),
    Subject(
        "buffered counter with a horizon",
        covers=_both("counter"),
        make=lambda seen: Built("counter", stream())(
            dp.zero_concentrated_divergence(), scale=2.0**23, horizon=100
        ),
        **COUNTER,
    ),
    Subject(
        "buffered window",
        covers=_both("window_counter"),
        make=lambda seen: Built("window_counter", stream())(
            dp.zero_concentrated_divergence(), scale=2.0**23, window=3
        ),
        **COUNTER,
    ),
    Subject(
        "window counter",
        covers=_both("window_counter"),
        make=lambda seen: Built("window_counter", stream())(PURE(), scale=2.0**23, window=3),
        **COUNTER,
    ),
    Subject(
        "alarm",
        covers=_both("alarm"),
        make=lambda seen: Built("alarm", stream())(PURE(), scale=2.0**23, threshold=2**40),
        **COUNTER,
    ),
    Subject(
        "probe of changes",
        covers=(),
        make=lambda seen: probe_on(changes(), PURE(), MEASURES["pure"][1], seen),
        **CONTINUAL,
    ),
    Subject(
        "odometer",
        Kind.ODOMETER,
        _both("concurrent_odometer"),
        lambda seen: Built("concurrent_odometer", table())(PURE()),
        release_query(table, "pure"),
    ),
    Subject(
        f"odometer {UNIFORM}",
        Kind.ODOMETER,
        (),
        lambda seen: Built("concurrent_odometer", table())(MEASURES[UNIFORM][0]()),
        release_query(table, UNIFORM),
    ),
    Subject(
        "odometer of OpenDP",
        Kind.ODOMETER,
        (),
        lambda seen: dp.c.make_fully_adaptive_composition(*table(), PURE()),
        release_query(table, "pure"),
    ),
    *(
        Subject(
            f"odometer by a rule, {name}",
            Kind.ODOMETER,
            (),
            lambda seen, name=name: by_rule(table(), MEASURES[name][0]()),
            release_query(table, name),
        )
        for name in ("approximate", "tCDP")
    ),
    Subject(
        "odometer of a stream",
        Kind.ODOMETER,
        (),
        lambda seen: Built("concurrent_odometer", stream())(PURE()),
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


def budget_of(case: Case) -> tuple[int, Any]:
    """A d_in, and a budget there that admits the case once; anything for an odometer."""
    d_in, loss = measured(case)
    if loss is None:
        loss = next(loss(D_IN) for make, loss in MEASURES.values() if make() == case.measure)
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


def _in_function(case: Case) -> Case:
    """A measurement of the user's, which runs it and returns what it gives."""
    measured(case)
    what = case.what
    made = dp.m.make_user_measurement(
        *case.space, case.measure, lambda rows: what(rows), map_of(what), TO="ExtrinsicObject"
    )
    return replace(case, what=made)


def _in_thread(case: Case) -> Case:
    """The same, run in a thread."""
    measured(case)
    what = case.what

    def function(rows: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: what(rows)).result()

    made = dp.m.make_user_measurement(
        *case.space, case.measure, function, map_of(what), TO="ExtrinsicObject"
    )
    return replace(case, what=made)


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


def _context(case: Case) -> Case:
    domain, metric = case.space
    d_in, loss = budget_of(case)

    def start(data: Any) -> Any:
        return oc.concurrent_context(
            data, (metric, d_in), (case.measure, loss), domain=domain, **orders_of(case)
        )

    return on(case, start, top=True)


def _context_split(case: Case) -> Case:
    domain, metric = case.space
    d_in, loss = budget_of(case)

    def start(data: Any) -> Any:
        return oc.concurrent_context(
            data,
            (metric, d_in),
            (case.measure, loss),
            split_evenly_over=1,
            domain=domain,
            **orders_of(case),
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


WRAPPERS: tuple[Wrapper, ...] = (
    Wrapper(
        "interactive",
        Role.WRAPPER,
        ("make_interactive",),
        lambda case: behind(case, oc.c.make_interactive(case.what)),
        same_map=True,
    ),
    Wrapper(
        "bounded",
        Role.WRAPPER,
        ("make_bounded_interactive",),
        lambda case: behind(case, oc.c.make_bounded_interactive(case.what, MANY)),
        same_map=True,
    ),
    Wrapper(
        "looking on",
        Role.WRAPPER,
        ("make_interactive_postprocessing",),
        _postprocessing(looking_on),
        same_map=True,
        protocol=True,
    ),
    Wrapper(
        "remembering",
        Role.WRAPPER,
        (),
        _postprocessing(remembering, ({}, None)),
        same_map=True,
        protocol=True,
    ),
    Wrapper(
        "counting", Role.WRAPPER, (), _postprocessing(counting, 0), same_map=True, protocol=True
    ),
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
    Wrapper(
        "stream map",
        Role.TRANSFORMATION,
        _both("stream_map"),
        _stream_step("stream_map", lambda domain: domain, lambda domain: lambda item: item),
        same_map=True,
    ),
    Wrapper(
        "stream filter",
        Role.TRANSFORMATION,
        _both("stream_filter"),
        _stream_step("stream_filter", lambda domain: lambda item: True),
        same_map=True,
    ),
    Wrapper("stream clamp", Role.TRANSFORMATION, _both("stream_clamp"), _clamp, same_map=True),
    Wrapper(
        "bounded contributions",
        Role.TRANSFORMATION,
        _both("bounded_contributions"),
        _bounded_contributions,
        stretch=CONTRIBUTIONS,
    ),
    Wrapper("table step", Role.TRANSFORMATION, (), _table_step, same_map=True),
    Wrapper(
        "where",
        Role.TRANSFORMATION,
        _both("where"),
        _engine_step("where", tables.data, oc.tables.col("zone") == "a"),
        same_map=True,
    ),
    Wrapper(
        "with columns",
        Role.TRANSFORMATION,
        _both("with_columns"),
        _engine_step("with_columns", tables.data, {"hours": oc.tables.col("hours") * 2.0}),
        same_map=True,
    ),
    Wrapper(
        "select",
        Role.TRANSFORMATION,
        _both("table_select"),
        _engine_step("table_select", tables.data, list(tables.SCHEMA)),
        same_map=True,
    ),
    Wrapper(
        "truncate",
        Role.TRANSFORMATION,
        _both("truncate"),
        _engine_step("truncate", tables.data, tables.BOUNDED, materialize=True),
        same_map=True,
    ),
    Wrapper(
        "group truncate",
        Role.TRANSFORMATION,
        _both("group_truncate"),
        _engine_step("group_truncate", tables.people, **tables.BY),
        same_map=True,
    ),
    Wrapper(
        "public join",
        Role.TRANSFORMATION,
        _both("public_join"),
        _engine_step("public_join", tables.narrow, "zone", {"hours": float}, {"a": 1.0, "b": None}),
        same_map=True,
    ),
    Wrapper(
        "private join",
        Role.TRANSFORMATION,
        _both("private_join"),
        _alone(tables.linked, "private_join", "others", how="semi"),
        same_map=True,
    ),
    Wrapper(
        "per unit",
        Role.TRANSFORMATION,
        _both("per_unit"),
        _alone(tables.people, "per_unit", tables.PERSONS),
        same_map=True,
    ),
    Wrapper("table to stream", Role.TRANSFORMATION, (), _to_stream, same_map=True),
    Wrapper("native step", Role.WRAPPER, (), _native_step, same_map=True),
    Wrapper("odometer tail", Role.WRAPPER, ("make_chain_po",), _tail),
    Wrapper("odometer head", Role.TRANSFORMATION, ("make_chain_ot",), _head),
    Wrapper("in a function", Role.WRAPPER, (), _in_function, same_map=True),
    Wrapper("in a thread", Role.WRAPPER, (), _in_thread, same_map=True),
    Wrapper("on an odometer", Role.COMBINATOR, (), _odometer),
    Wrapper(
        "on a filter's odometer", Role.COMBINATOR, ("make_filter_to_odometer",), _back_to_odometer
    ),
    Wrapper("in a filter", Role.COMBINATOR, ("make_concurrent_filter",), _larger(in_filter)),
    Wrapper("in a filter that halts", Role.COMBINATOR, (), _larger(in_filter, halt=True)),
    Wrapper("in a filter over a native odometer", Role.COMBINATOR, (), _over_opendps),
    Wrapper("in a filter by a rule", Role.COMBINATOR, (), _by_rule),
    Wrapper("in a composition", Role.COMBINATOR, (), _larger(in_composition)),
    Wrapper("in blocks", Role.COMBINATOR, ("make_block_filter",), in_blocks),
    Wrapper("in a limit on blocks", Role.COMBINATOR, (), _limit_on_blocks),
    Wrapper("in a limit", Role.COMBINATOR, ("make_limited",), _limit),
    Wrapper(
        "in a part by key",
        Role.COMBINATOR,
        (*_both("parallel_composition"), "by_key"),
        _parallel(lambda: oc.c.by_key(lambda row: row % 2)),
    ),
    Wrapper(
        "in a part by values",
        Role.COMBINATOR,
        ("by_values",),
        _parallel(lambda: oc.c.by_values({0: [0, 2], 1: [1, 3]})),
    ),
    Wrapper(
        "in a part by split",
        Role.COMBINATOR,
        ("by_split",),
        _parallel(lambda: oc.c.by_split(lambda rows, keys: dict.fromkeys(keys, rows))),
    ),
    Wrapper(
        "in a part of a stream", Role.COMBINATOR, _both("parallel_continual"), _parallel_continual
    ),
    Wrapper(
        "asked on a stream",
        Role.TRANSFORMATION,
        _both("on_stream"),
        _on_stream,
        same_map=True,
        protocol=True,
    ),
    Wrapper(
        "on a stream's filter",
        Role.COMBINATOR,
        ("make_concurrent_continual",),
        _continual(in_filter),
    ),
    Wrapper("on a stream's composition", Role.COMBINATOR, (), _continual(in_composition)),
    Wrapper("on a stream's odometer", Role.COMBINATOR, (), _continual(odometer_for)),
    Wrapper("in a context", Role.COMBINATOR, ("concurrent_context",), _context),
    Wrapper("in a context that is split", Role.COMBINATOR, (), _context_split),
    Wrapper("in OpenDP's composition", Role.COMBINATOR, (), _native_composition),
    Wrapper("in OpenDP's filter", Role.COMBINATOR, (), _native_filter),
)

OPENDPS = ("in OpenDP's composition", "in OpenDP's filter")

PLAIN: dict[str, str] = {
    **dict.fromkeys(("install", "swapped_in", "uninstall"), "hook"),
    "uncollected": "data",
    **dict.fromkeys(("ANSWER", "QUERY"), "tag"),
    **dict.fromkeys(("Update", "Updates", "Deviation", "NoisySum"), "message"),
    **dict.fromkeys(("LinearAnswers", "Outcome", "SparseVectorAnswer"), "answer"),
    "Description": "answer",
    **dict.fromkeys(("deserialize", "serialize"), "message"),
    **dict.fromkeys(("Session", "TradeoffFunction", "TruncatedConcentrated"), "distance"),
    "Accountant": "accountant",
    **dict.fromkeys(
        (
            "approximate_renyi_divergence",
            "fixed_renyi_divergence",
            "gaussian_tradeoff",
            "tradeoff",
            "truncated_concentrated_divergence",
        ),
        "measure",
    ),
    **dict.fromkeys(("event_change", "event_presence", "user_presence"), "metric"),
    **dict.fromkeys(("category_stream", "integer_stream", "record_stream"), "domain"),
    **dict.fromkeys(
        (
            "advanced",
            "any_time",
            "basic",
            "best_rule",
            "either",
            "from_rule",
            "ladder",
            "renyi",
            "residue",
            "zcdp",
        ),
        "accumulator",
    ),
    **dict.fromkeys(("by_column", "by_entry"), "partition"),  # of frames, of mappings
    **dict.fromkeys(
        (
            "accept_advisories",
            "counter_rmse",
            "from_dp_event",
            "from_record",
            "group_tcdp",
            "individual_scale",
            "labelled",
            "largest_share",
            "launches_admitted",
            "loss_of",
            "optimal_composition",
            "risk",
            "smallest_scale",
            "smallest_sigma",
            "sparse_vector_accuracy",
            "subsampled_tcdp",
            "to_dp_event",
            "window_rmse",
        ),
        "tool",
    ),
}


TAKES_ODOMETERS = frozenset(
    {
        "odometer tail",
        "odometer head",
        "on an odometer",
        "on a filter's odometer",
        "in a filter",
        "in a filter that halts",
        "in a filter over a native odometer",
        "in a filter by a rule",
        "in a composition",
        "in a limit",
        "in blocks",
        "in a limit on blocks",
        "in a context",
        "in a context that is split",
        "bounded",
        "looking on",
        "remembering",
        "counting",
        "on a stream's filter",
        "on a stream's composition",
        "on a stream's odometer",
    }
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
