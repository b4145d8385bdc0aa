"""What a message may name: rebuilt with the same loss, and nothing else is called."""

import json
import warnings
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

import numpy as np
import opendp.mod
import opendp.prelude as dp
import pytest
from opendp.mod import Odometer

import opendp_concurrent as oc
from opendp_concurrent._checks import CONSTRUCTORS, MODULE
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.serving import values as calls
from opendp_concurrent.serving.kinds import BY_ANNOTATION, BY_NAME, OF_OPENDP
from opendp_concurrent.serving.kinds import MESSAGE_KINDS as KINDS
from opendp_concurrent.tables.domain import Tables, table_domain, units
from opendp_concurrent.tables.schema import schema_of

from ..build import APPROXIMATE, PURE, SPACE, ZCDP, a_filter
from ..contracts import tables
from ..contracts.catalogue import PUBLIC
from ..forks import run_program

STREAM = oc.integer_stream(0, 3), oc.event_presence()
BITS = oc.integer_stream(0, 1), oc.event_presence()
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
GDP, TCDP = oc.gaussian_tradeoff(), oc.truncated_concentrated_divergence(20.0)


@pytest.fixture(autouse=True)
def _dp_deserialize_knows_this_package():
    oc.install()
    yield
    oc.uninstall()


def count(scale=4.0):
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


def odometer(accumulator=None, measure=PURE):
    return oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)


SCHEMA = {"person": int, "zone": str, "age": int, "hours": float, "day": date}


def table():
    """The space of tables that have not been truncated; no engine is needed."""
    return table_domain(Tables(schema_of(SCHEMA, "person"))), units()


def linked():
    """The space of tables beside others."""
    homes = Tables(schema_of({**SCHEMA, "eur": oc.tables.Decimal(2)}, "person"), 2)
    return table_domain(Tables(schema_of(SCHEMA, "person"), others=(("homes", homes),))), units()


def cut(of=None):
    return (of or table()) >> oc.t.then_truncate(1)


def noisy(query, scale=1.0):
    return query >> dp.m.then_laplace(scale)


def answers(*of):
    return cut() >> oc.t.then_table_answers([Answer(*one) for one in of])


def blocks(by, keys):
    on_tables = oc.make_concurrent_odometer(*(cut().output_space), PURE)
    return oc.c.make_block_filter(on_tables, 1, 1.0, blocks=by, keys=keys)


def by_blocks(partition):
    return oc.c.make_block_filter(odometer(), 1, 1.0, blocks=partition)


def bounded(accumulator):
    """A filter that adds losses up by an accumulator."""
    return a_filter((1.0, 1e-6), APPROXIMATE, accumulator)


CHAIN = SPACE >> dp.t.then_cast_default(TOA=int)
rules, col, Answer = oc.accumulators, oc.tables.col, oc.tables.Answer

MADE = {
    "native chain": count,
    "clamp and sum": lambda: steps(1) >> dp.m.then_gaussian(scale=9.0),
    "decimals": lambda: noisy(
        cut()
        >> oc.t.then_where(col("age").cast(oc.tables.Decimal(2)) < Decimal("17.95"))
        >> oc.t.then_table_count()
    ),
    "native cast": lambda: dp.c.make_pureDP_to_zCDP(count()),
    "native list": lambda: dp.c.make_composition([count(), count(1.0)]),
    "native compositor": lambda: dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5, 1.0]),
    "above threshold": lambda: oc.m.make_above_threshold(*SPACE, PURE, 1, scale=8.0, threshold=5),
    "sparse vector": lambda: oc.m.make_sparse_vector(*SPACE, PURE, 2, 8.0, 5, 3, sensitivity=2),
    "guess and check": lambda: oc.m.make_guess_and_check(
        *SPACE, PURE, 1, max_hits=3, scale=8.0, tolerance=9.0, answer_scale=4.0
    ),
    "laplace": lambda: oc.m.make_certified_laplace(*REAL, 1.0, ZCDP),
    "geometric": lambda: oc.m.make_certified_geometric(*WHOLE, 1.0, ZCDP),
    "gaussian": lambda: oc.m.make_certified_gaussian(*REAL, 2.0, GDP),
    "chained laplace": lambda: SPACE >> dp.t.then_count() >> oc.m.then_certified_laplace(1.0, ZCDP),
    "shared release": lambda: SPACE >> dp.t.then_count() >> oc.m.then_shared_release(PURE, 0.5),
    "cast": lambda: oc.c.cast(count(), oc.fixed_renyi_divergence(4.0)),
    "cast to tCDP": lambda: oc.c.cast(count(), TCDP),
    "cast to one order": lambda: oc.c.cast(count(), oc.approximate_renyi_divergence(4.0)),
    "selection": lambda: oc.c.make_private_selection(count(), mean_runs=4),
    "interactive": lambda: oc.c.make_interactive(count()),
    "bounded": lambda: oc.c.make_bounded_interactive(oc.c.make_interactive(count()), 9),
    "compositor": lambda: oc.make_concurrent_composition(*SPACE, APPROXIMATE, 2, [(0.5, 1e-6)] * 2),
    "tCDP compositor": lambda: oc.make_concurrent_composition(
        *SPACE, TCDP, 1, [oc.TruncatedConcentrated(0.5, 20.0)]
    ),
    "chained compositor": lambda: CHAIN >> oc.then_concurrent_composition(PURE, 1, [0.5]),
    "indexed": lambda: oc.c.make_indexed_composition(*SPACE, PURE, 1, [count(), count(1.0)]),
    "filter": lambda: a_filter(d_in=2),
    "filter on a chain": lambda: oc.make_concurrent_filter(CHAIN >> odometer(), 2, 1.0),
    "any_time": lambda: bounded(rules.any_time(1e-7, 2.0)),
    "zcdp": lambda: bounded(rules.zcdp(1e-7)),
    "either": lambda: bounded(rules.either(rules.advanced(1e-7), rules.renyi(9.0, 1e-7))),
    "best rule": lambda: bounded(rules.best_rule((1.0, 1e-6), [(0.1, 0.0)])),
    "marginals": lambda: oc.m.make_marginals(*SPACE, PURE, 1, 1.0, 1, np.array([[0.0, 9.0]])),
    "weights": lambda: oc.m.make_private_multiplicative_weights(
        *SPACE, PURE, d_in=1, d_out=1.0, universe=4, queries=9, size=9000
    ),
    "projected": lambda: oc.m.make_projected_queries(*SPACE, ZCDP, 1, [0.5], universe=4, size=99),
    "counter": lambda: oc.m.make_counter(*STREAM, PURE, scale=4.0),
    "window": lambda: oc.m.make_window_counter(*STREAM, PURE, scale=4.0, window=4),
    "histogram": lambda: oc.m.make_histogram_counter(
        oc.category_stream(["red", "green"]), oc.event_presence(), PURE, scale=4.0
    ),
    "alarm": lambda: oc.m.make_alarm(*STREAM, PURE, threshold=10, scale=4.0),
    "clamped counter": lambda: (
        oc.t.make_stream_clamp(*STREAM, BITS[0]) >> oc.m.make_counter(*BITS, PURE, scale=4.0)
    ),
    "a question on a stream": lambda: oc.c.make_on_stream(*STREAM, count()),
    "stream": lambda: oc.c.make_concurrent_continual(a_filter(space=STREAM)),
    "randomized response of values": lambda: oc.m.make_certified_randomized_response(
        ["a", "b", "c"], 0.75, PURE
    ),
    "parallel": lambda: oc.c.make_parallel_composition(
        *SPACE, oc.c.by_values({"low": [0, 1], "high": range(2, 5)}), {"low": count()}
    ),
    "blocks": lambda: by_blocks(oc.c.by_values({"a": [1, 2], "b": [3]})),
    "many blocks": lambda: blocks(oc.c.by_column("zone"), ["a", "b"]),
    "blocks of integers": lambda: blocks(oc.c.by_column("age"), range(10**5)),
    "blocks of days": lambda: blocks(oc.c.by_column("day"), [date(2024, 2, 29)]),
    "table sums": lambda: (
        table()
        >> oc.t.then_where(
            ((col("age") >= 18) & ~col("zone").is_null())
            | col("zone").is_in(["a", "b"])
            | (col("day") < date(2024, 2, 29))
            | (col("age") != col("person"))
        )
        >> oc.t.then_with_columns(
            {
                "class": col("age").cut([18, 65], ["young", "grown", "old"]),
                "week": col("day").clip(date(2024, 1, 1), date(2024, 12, 31)).dt.week(),
                "noon": oc.tables.lit(datetime(2024, 2, 29, 12)),
                "half": oc.tables.when(col("age") > 3)
                .then(col("hours") / 2)
                .otherwise(col("age").cast(float).fill_null(0.5)),
            }
        )
        >> oc.t.then_table_select(["zone", "age", "hours", "class"])
        >> oc.t.then_public_join("zone", {"town": str, "price": float}, {"a": ("b", None)})
        >> oc.t.then_group_truncate("zone", 2, 2)
        >> oc.t.then_truncate(3, ["age"], materialize=True)
        >> oc.t.then_table_sum("hours", (0.0, 9.0), 0.5, "zone", ["a", "b"])
        >> dp.m.then_laplace(40.0)
    ),
    "table counts": lambda: noisy(cut() >> oc.t.then_table_count("zone", ["a"])),
    "private join": lambda: noisy(
        cut(linked() >> oc.t.then_private_join("homes", {"town": "zone"}, "age", "left"))
        >> oc.t.then_table_count()
    ),
    "table count": lambda: noisy(cut() >> oc.t.then_table_count()),
    "table sum": lambda: noisy(cut() >> oc.t.then_table_sum("age", (0, 9)), 9.0),
    "table moments": lambda: noisy(answers(("stdev", "age", (0, 99))), 1e9),
    "table histogram": lambda: noisy(cut() >> oc.t.then_table_histogram("age", [0, 9, 18])),
    "table prefixes": lambda: noisy(cut() >> oc.t.then_table_prefixes("age", [0, 9, 18])),
    "table values": lambda: noisy(
        table() >> oc.t.then_truncate(2, key="a key") >> oc.t.then_distinct_values("zone")
    ),
    "table answers": lambda: noisy(answers(("count",), ("mean", "age", (0, 120)))),
    "table keys": lambda: cut() >> oc.m.then_table_keys("zone", d_out=(1.0, 1e-6)),
    "scores": lambda: (
        cut()
        >> oc.t.then_quantile_scores("age", [0, 9], 0.5)
        >> dp.m.then_noisy_max(PURE, 4.0, negate=True)
    ),
    "per unit": lambda: noisy(
        table()
        >> oc.t.then_per_unit({"n": oc.tables.count(), "age": oc.tables.sum("age", (0, 9))})
        >> oc.t.then_table_sum("n", (0, 9)),
        9.0,
    ),
    "rows per unit": lambda: noisy(table() >> oc.t.then_rows_per_unit([1, 2, 9])),
    "units": lambda: noisy(table() >> oc.t.then_distinct_units()),
    "individual": lambda: oc.m.make_individual_filter(*SPACE, ZCDP, 0.5),
    "randomized response": lambda: oc.m.make_certified_randomized_response_bool(0.75, ZCDP),
}


def losses(measurement):
    parts, found = 2 if "f64" in str(measurement.input_distance_type) else 1, []
    for d_in in (1, 2, 3, 7):
        try:
            found.append(measurement.map(d_in / parts if parts > 1 else d_in))
        except (InvalidValueError, dp.OpenDPException) as error:
            found.append(type(error).__name__)
    return found


@pytest.mark.filterwarnings("ignore::opendp_concurrent.errors.AccuracyWarning")
@pytest.mark.parametrize("name", MADE)
def test_a_round_trip_keeps_the_space_the_kind_and_the_loss(name):
    made = MADE[name]()
    message, short = dp.serialize(made), oc.serialize(made)
    assert len(short) <= len(message)
    assert oc.serialize(oc.deserialize(short)) == short
    for again in (
        oc.deserialize(message),
        dp.deserialize(message),
        oc.deserialize(short),
        dp.deserialize(short),
    ):
        assert type(again) is type(made)
        assert again.input_domain == made.input_domain
        assert again.input_metric == made.input_metric
        assert again.output_measure == made.output_measure
        assert losses(again) == losses(made)
        assert oc.serialize(again) == short
        assert repr(again) == repr(made) or "0x" in repr(made)


ODOMETERS = {
    "plain": odometer,
    "basic": lambda: odometer(oc.accumulators.basic()),
    "on a chain": lambda: CHAIN >> odometer(),
    "Gaussian": lambda: oc.make_concurrent_odometer(*SPACE, GDP, accumulator=None),
    "residue": lambda: oc.make_concurrent_odometer(
        *SPACE, oc.tradeoff(), accumulator=oc.accumulators.residue(1.0)
    ),
    "of a filter": lambda: oc.c.make_filter_to_odometer(MADE["filter"]()),
    "limit": lambda: oc.c.make_limited(odometer(), 1, 0.5, label="alice"),
}


@pytest.mark.parametrize("name", ODOMETERS)
def test_an_odometer_goes_there_and_back(name):
    made = ODOMETERS[name]()
    for message in (dp.serialize(made), oc.serialize(made)):
        again = oc.deserialize(message)
        assert isinstance(again, Odometer)
        assert (again.accumulator, again.measure) == (made.accumulator, made.measure)
        assert again.output_measure == made.output_measure
        assert repr(again) == repr(made)


def test_domains_metrics_and_measures():
    for one in (
        *(*STREAM, oc.category_stream(4), oc.category_stream(["red", "green"]), SPACE[0]),
        *(oc.event_change(), oc.user_presence(), GDP, oc.tradeoff(), TCDP, APPROXIMATE),
        *(oc.fixed_renyi_divergence(2.5), oc.approximate_renyi_divergence(2.5)),
    ):
        assert oc.deserialize(dp.serialize(one)) == one


@pytest.mark.parametrize(
    "noise", [lambda chain: chain >> dp.m.then_laplace(9.0), lambda chain: chain >> certified()]
)
def test_a_message_grows_by_the_same_length_with_each_step(noise):
    """OpenDP writes the output domain of a step as the one of all steps before, and the metric."""
    made = [steps(count) for count in (1, 2, 3, 4, 80)]
    theirs = [len(dp.serialize(one)) for one in made[:4]]
    assert all(more > 2.9 * less for less, more in pairwise(theirs))
    own = [len(oc.serialize(noise(one))) for one in made]
    assert own[3] - own[2] == own[2] - own[1] == (own[4] - own[3]) // 76 < 1200
    message = oc.serialize(noise(made[4]))
    for again in (oc.deserialize(message), dp.deserialize(message)):
        assert again.map(1) == noise(steps(1)).map(1)
        assert again.input_domain == made[4].input_domain


def steps(count):
    chain = SPACE
    for _ in range(count):
        chain = chain >> dp.t.then_clamp((0, 9))
    return chain >> dp.t.then_sum()


def certified():
    return oc.m.then_certified_geometric(9.0, ZCDP)


@pytest.mark.parametrize(
    "then",
    [
        *(dp.t.then_clamp((-3, 9)), dp.t.then_count_by_categories([1, 2]), dp.t.then_is_equal(3)),
        *(dp.t.then_cast_default(TOA=float), dp.t.then_cast_default(TOA=str)),
        *(dp.t.then_resize(7, 0), dp.t.then_ordered_random(), dp.t.then_count_by()),
        *(dp.t.then_quantile_score_candidates([1, 2, 3], 0.5), dp.t.then_cast(TOA="f64")),
    ],
)
def test_the_space_of_a_step_is_written_as_it_is(then):
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False), 3), SPACE[1]
    for made in (
        *(SPACE >> then, floats >> dp.t.then_clamp((0.5, 1.5)), cut() >> oc.t.then_truncate(2)),
        oc.t.make_stream_clamp(*STREAM, BITS[0]),
    ):
        for space in (made.output_domain, made.output_metric, made.input_domain):
            again = oc.deserialize(oc.serialize(space))
            assert again == space
            assert str(again) == str(space)


def test_a_block_filter_of_a_message_runs():
    made = oc.deserialize(oc.serialize(MADE["blocks"]()))
    root = made([1, 2, 3])
    assert isinstance(root(["a"], count(1.0)), int)
    assert (root.privacy_loss("a"), root.privacy_loss("b")) == (1.0, 0.0)


def test_a_query_of_a_message_runs_in_an_engine():
    people = tables.data()
    kept = people.space >> oc.t.then_where(oc.tables.col("zone") == "a")
    sums = noisy(kept >> oc.t.then_table_count("zone", ["a", "b"]), 0.0)
    again = oc.deserialize(oc.serialize(sums))
    assert again(people) == sums(people)


# --- what is not written -------------------------------------------------------------------------


RECORDS = oc.record_stream("pairs", lambda item: isinstance(item, tuple))
ENTRIES = dp.user_domain("entries", lambda data: isinstance(data, dict)), SPACE[1]


def on_entries():
    return dp.m.make_user_measurement(*ENTRIES, PURE, len, lambda d_in: 1.0 * d_in)


def counter():
    return oc.m.make_counter(*STREAM, PURE, scale=4.0)


def frame_count():
    pl = pytest.importorskip("polars")
    frame = pl.LazyFrame({"age": [20]})
    return oc.t.make_frame_count(dp.domain_of(frame, infer=True), SPACE[1], frame)


class Rule:
    """A rule of one's own."""

    start = 0.0

    def after(self, state, d_mid):
        return state + d_mid

    def continues(self, state, d_out):
        return state <= d_out


REFUSED = {
    "make_private_selection": (
        lambda: oc.c.make_private_selection(count(), mean_runs=2, score=abs),
        "score is a builtin",
    ),
    "make_interactive_postprocessing": (
        lambda: oc.c.make_interactive_postprocessing(MADE["interactive"](), lambda a: (a, a)),
        r"\w+ is a function",
    ),
    "a trade-off function": (
        lambda: oc.make_concurrent_composition(
            *SPACE, oc.tradeoff(), 1, [oc.TradeoffFunction.pure(1.0)]
        ),
        "make_concurrent_composition: its argument d_mids is a TradeoffFunction",
    ),
    "a function": (
        lambda: oc.c.make_interactive(
            dp.m.make_user_measurement(*SPACE, PURE, len, lambda d_in: 1.0 * d_in)
        ),
        "make_interactive: its argument measurement, make_user_measurement: its argument",
    ),
    "infinity": (
        lambda: oc.make_concurrent_composition(*SPACE, PURE, 1, [float("inf")]),
        "make_concurrent_composition: its argument d_mids is not finite",
    ),
    "many numbers": (
        lambda: oc.m.make_marginals(*SPACE, PURE, 1, 1.0, 99_999, np.ones((99_999, 2))),
        ": its argument bounds",
    ),
    "make_chain_po": (lambda: oc.c.make_chain_po(str, odometer()), "postprocessor is a type"),
    "make_continual": (lambda: oc.m.make_continual(*STREAM, PURE, Rule, abs), "start is a type"),
    "make_frame_count": (lambda: frame_count(), "make_frame_count: its argument"),
    "make_parallel_continual": (
        lambda: oc.c.make_parallel_continual(*STREAM, abs, {0: counter()}),
        "key is a builtin_function",
    ),
    "make_stream_filter": (lambda: oc.t.make_stream_filter(*STREAM, bool), "predicate is a type"),
    "make_stream_map": (
        lambda: oc.t.make_stream_map(*STREAM, STREAM[0], abs),
        "function is a builtin_function",
    ),
    "make_bounded_contributions": (  # its items are records, which a function tells
        lambda: oc.t.make_bounded_contributions(RECORDS, oc.user_presence(), STREAM[0], 3),
        "record_stream: its argument member is a function",
    ),
    "record_stream": (lambda: RECORDS, "member is a function"),
    "by_key": (
        lambda: by_blocks(oc.c.by_key(abs)),
        "function is a builtin_function",
    ),
    "by_values of a function": (
        lambda: by_blocks(oc.c.by_values({1: [2]}, abs)),
        "by_groups: its argument of is a builtin_function",
    ),
    "by_split": (
        lambda: oc.c.make_parallel_composition(*SPACE, oc.c.by_split(zip), {1: count()}),
        "function is a type",
    ),
    "by_entry": (
        lambda: oc.c.make_parallel_composition(*ENTRIES, oc.c.by_entry(), {1: on_entries()}),
        "make_parallel_composition: its argument input_domain, user_domain: its argument member",
    ),
    "from_rule": (
        lambda: odometer(oc.accumulators.from_rule(Rule())),
        "make_concurrent_odometer: its argument accumulator is a FromRule",
    ),
    "ladder": (
        lambda: odometer(oc.accumulators.ladder(oc.TradeoffFunction.pure(0.5), 1e-6), APPROXIMATE),
        "make_concurrent_odometer: its argument accumulator is a EpsilonDeltaLadder",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name):
    make, named = REFUSED[name]
    named = named if ": its" in named else f"{name}: its argument {named}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = make()
    for serialise in (dp.serialize, oc.serialize):
        with pytest.raises(InvalidTypeError, match=f"dp.serialize cannot serialise .*{named}"):
            serialise(made)


def test_a_ledger_is_not_written(tmp_path):
    ledger = pytest.importorskip("opendp_concurrent.ledger")
    with ledger.create_ledger(tmp_path / "a.db", "survey") as kept:
        made = oc.make_concurrent_filter(odometer(), 1, 1.0, ledger=kept)
        with pytest.raises(InvalidTypeError, match="its argument ledger is a SqlLedger"):
            dp.serialize(made)


# --- what is not called --------------------------------------------------------------------------


def call(module, name, /, version=opendp.mod.__version__, **given):
    return {
        "__function__": name,
        "__module__": module,
        "__kwargs__": given,
        "__version__": version,
    }


def ours(name, **given):
    return call(MODULE, name, **given)


def pairs(*of):
    return [{"__tuple__": list(one)} for one in of]


ATOM = call("domains", "atom_domain", T="i32")
DOMAIN = call("domains", "vector_domain", atom_domain=ATOM)
METRIC = call("metrics", "symmetric_distance")
MEASURE = call("measures", "max_divergence")
COUNT = call("transformations", "make_count", input_domain=DOMAIN, input_metric=METRIC)
ON = {"input_domain": DOMAIN, "input_metric": METRIC, "output_measure": MEASURE}
SVT = {**ON, "d_in": 1, "scale": 2.0, "threshold": 3}
A = call(MODULE, "column", name="a")


def noise(name, T, **given):
    domain = call("domains", "atom_domain", T=T, nan=False if T == "f64" else None)
    metric = call("metrics", "absolute_distance", T=T)
    return call("measurements", name, input_domain=domain, input_metric=metric, scale=1.0, **given)


def where(operation, *operands):
    """A selection of rows by an expression that names its operation."""
    columns = [{"__tuple__": ["a", "int"]}]
    table = call(MODULE, "table_domain", columns=columns, unit="a", rows=None, groups=[])
    condition = call(MODULE, "expression", operation=operation, operands=list(operands), given=None)
    metric = call(MODULE, "table_metric")
    return call(MODULE, "make_where", input_domain=table, input_metric=metric, predicate=condition)


HOSTILE = {
    **{
        f"{module} {name}": (call(module, name), "not a constructor")
        for module, name in (
            ("os", "system"),
            ("measurements", "make_laplace.__globals__"),
            ("measurements", "make_user_measurement"),
            ("combinators", "make_population_amplification"),  # a claim about the sample
        )
    },
    "no name": (call("measurements", None), "no string"),
    "extra key": ({**MEASURE, "more": 1}, "neither a call"),
    "polars": ({"__expr__": "AAAA", "__version__": opendp.mod.__version__}, "Polars"),
    "tuple of a number": ({"__tuple__": 3}, "tuple"),
    "extra argument": (call("measures", "max_divergence", more=1), "does not take"),
    "version": (call("measures", "max_divergence", version="0.1"), "OpenDP '0.1'"),
    "arguments of another type": ({**MEASURE, "__kwargs__": [1]}, "keyword arguments"),
    "missing argument": (call("measures", "approximate"), "approximate refuses"),
    "metric for a domain": (call("domains", "vector_domain", atom_domain=METRIC), "be a domain"),
    "number for a measurement": (ours("chain", measurement=1, transformation=COUNT), "must be a"),
    "an odometer without a pointer": (
        call("core", "measurement_input_domain", this=ours("make_concurrent_odometer", **ON)),
        "must be a measurement",
    ),
    "promise": (ours("make_above_threshold", **SVT, monotone=True), "; leave it out"),
    "score": (ours("make_private_selection", score=COUNT), "score, which is a"),
    "a noisy curve": (
        ours(
            "make_concurrent_composition",
            **{**ON, "output_measure": call("measures", "renyi_divergence")},
            d_in=1,
            d_mids=[COUNT],
            orders=[2.0, 4.0],
        ),
        "d_mids must have no mechanism",
    ),
    "dtype": (ours("array", values=[1], dtype="object"), "dtype"),
    "NaN as text in an array": (ours("array", values=["nan"], dtype="float64"), "be numbers"),
    "a number that becomes infinite": (ours("array", values=[1e300], dtype="float32"), "float32"),
    "a number that is cut": (ours("array", values=[1.5], dtype="int32"), "that int32 has"),
    "many tuples as keys": (
        ours("mapping", items=pairs(*((*pairs((one,)), 0) for one in range(1001)))),
        "items must be at most 1000",
    ),
    "noise of 2^31 bits": (noise("make_laplace", "f64", k=2**31 - 1), "k must be an exponent"),
    "noise that takes hours": (
        noise("make_geometric", "i32", bounds={"__tuple__": [0, 2**31 - 1]}),
        "bounds must be at most",
    ),
    "a comparison by its method": (where("__init__", A, A), "make_where refuses"),
    "a negated number": (where("not", 3), "operands"),
    "a type": (ours("columns", kinds=ours("mapping", items=pairs(("a", "eval")))), "kinds must be"),
    "a table with a column of functions": (
        ours("table_domain", columns=pairs(("a", "object")), unit="a", rows=1, groups=[]),
        "types",
    ),
    "a long range": (ours("integers", start=0, stop=10**6, step=1), "list them"),
    "a range without steps": (ours("integers", start=0, stop=9, step=0), "integers refuses"),
    "keys that are chosen": (
        ours("make_block_filter", keys=pairs(*((one, 0) for one in range(1001)))),
        "keys must be at most 1000",
    ),
    "a part by a measurement": (ours("by_part", measurements=pairs((COUNT, COUNT))), "unhashable"),
    "negative scale": (ours("make_above_threshold", **{**SVT, "scale": -1.0}), "scale"),
    "integer of 64 bits": (call("domains", "vector_domain", size=2**63), "64 bits"),
    "text too long": (call("domains", "atom_domain", T="a" * 10_001), "longer than"),
    "NUL": (call("domains", "atom_domain", T="i32\0"), "NUL"),
    "surrogate": (call("domains", "atom_domain", T="\ud800"), "surrogates"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_messages_are_refused(name):
    message, expected = HOSTILE[name]
    with pytest.raises(InvalidValueError, match=expected):
        oc.deserialize(json.dumps(message))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("NaN", "finite"),
        ('{"__tuple__": [Infinity, -Infinity]}', "finite"),
        ("[1e999]", "double"),
        ("1.5", "must call"),
        ("[" + "9" * 5000 + "]", "64 bits"),
        ("[" * 200 + "]" * 200, "nested too deeply"),
        ("[" * 500_000, "nested too deeply|not JSON"),
        ('{"__tuple__": [], "__tuple__": []}', "twice"),
        ("[" + "0," * 200_000 + "0]", "values"),
        (" " * (2**20 + 1), "letters"),
    ],
)
def test_hostile_texts_are_refused(message, expected):
    with pytest.raises(InvalidValueError, match=expected):
        oc.deserialize(message)


def test_nothing_is_built_if_any_part_is_not_allowed(monkeypatch):
    built = []
    table = {key: (lambda *a, key=key, **k: built.append(key)) for key in calls.table()}
    monkeypatch.setattr(calls, "table", lambda: table)
    for key in (call("os", "system"), {"a": 1}):
        with pytest.raises(InvalidValueError):
            oc.deserialize(json.dumps([MEASURE, METRIC, key]))
    assert built == []


def test_allow_is_a_list_of_constructors():
    message = dp.serialize(count())
    assert oc.deserialize(message, allow=[dp.t.make_count, dp.m.make_laplace]).map(1) == 0.25
    for allow in ([], [dp.t.make_count], [oc.m.make_above_threshold]):
        with pytest.raises(InvalidValueError, match="not among the constructors"):
            oc.deserialize(message, allow=allow)
    for allow in ([len], [dp.m.make_user_measurement], ["make_count"], [dp.m.then_laplace], [None]):
        with pytest.raises(InvalidTypeError, match=r"allow\[0\] must be a constructor"):
            oc.deserialize(message, allow=allow)
    every = [getattr(dp.c, name) for name in OF_OPENDP["combinators"]]
    assert oc.deserialize(
        dp.serialize(MADE["native cast"]()), allow=[*every, dp.t.make_count, dp.m.make_laplace]
    )


ELSEWHERE = {
    "make_filter_to_odometer": "returns the odometer that the filter was made of",
    "by_column": "written as by_columns",
    "by_values": "written as by_groups",
    "best_rule": "returns one of the other accumulators",
}


def called(tree):
    """The names that a message calls."""
    if isinstance(tree, dict):
        return {tree.get("__function__"), *(name for one in tree.values() for name in called(one))}
    return {name for one in tree for name in called(one)} if isinstance(tree, list) else set()


def test_each_public_constructor_is_serialised_or_refused_by_name():
    """One that is added must be added here, with its reason if it cannot be written."""
    accumulators = set(oc.accumulators.__all__) - {"launches_admitted"}
    made = [*MADE.values(), *ODOMETERS.values()]
    constructors = {
        name
        for name in PUBLIC
        if name.startswith(("make_", "by_"))
        or name in accumulators
        or (name.endswith("_stream") and not name.startswith("then_"))
    }
    written = {name for make in made for name in called(json.loads(oc.serialize(make())))}
    told = written | set(REFUSED) | set(ELSEWHERE)
    assert constructors - told == set()
    assert not set(REFUSED) & CONSTRUCTORS.keys() - calls.EXCLUDED - {
        "make_private_selection",  # without a function it is written
        "make_bounded_contributions",
    }


def test_every_argument_of_opendp_has_a_kind():
    for module, names in OF_OPENDP.items():
        for name in names:
            for argument in calls.signature_of((module, name)).parameters:
                assert calls.kind_of((module, name), argument) in KINDS
    assert {*BY_ANNOTATION.values(), *BY_NAME.values()} <= KINDS.keys()


def test_dp_deserialize_calls_ours_from_the_same_table():
    with pytest.raises(InvalidValueError, match="does not deserialise"):
        dp.deserialize(json.dumps(call(MODULE, "make_continual", **ON)))
    with pytest.raises(InvalidValueError, match="refuses its arguments"):
        dp.deserialize(json.dumps(call(MODULE, "make_counter")))


MUTATED = """
import copy, json, sys
from hypothesis import HealthCheck, given, settings, strategies as st
from opendp.mod import Domain, Measure, Measurement, Metric, Odometer, Transformation
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.serving.values import table
messages, tries = json.load(open(sys.argv[1])), int(sys.argv[2])
trees = [json.loads(one) for one in messages]
names = sorted({name for _, name in table()})
for one in messages:
    oc.deserialize(one)
watched = ("compile", "exec", "import", "open", "os.", "socket.", "subprocess.")
seen, reading = [], []
sys.addaudithook(lambda event, _: reading and event.startswith(watched) and seen.append(event))
MADE = (Domain, Measure, Measurement, Metric, Odometer, Transformation)
VALUES = (bool, dict, float, int, list, range, str, tuple, type(None))

def places(tree):
    found, waiting = [], [tree]
    while waiting:
        one = waiting.pop()
        inside = one.items() if isinstance(one, dict) else enumerate(one)
        for key, part in inside:
            found.append((one, key))
            if isinstance(part, (dict, list)):
                waiting.append(part)
    return found

leaves = st.one_of(st.none(), st.booleans(), st.integers(-2**70, 2**70), st.floats(), st.text(),
                   st.sampled_from(["i32", "Vec<i32>", "f64", "__class__", "os.system", *names]))
built = [0]

@settings(max_examples=tries, deadline=None, database=None, derandomize=True,
          suppress_health_check=list(HealthCheck))
@given(st.data())
def check(data):
    tree = copy.deepcopy(data.draw(st.sampled_from(trees)))
    for _ in range(data.draw(st.integers(1, 3))):
        where, key = data.draw(st.sampled_from(places(tree) or [({}, "a")]))
        kinds = ["near", "near", "near", "leaf", "graft", "wrap", "drop", "name"]
        kind = data.draw(st.sampled_from(kinds))
        if kind == "near":  # a number instead of a number
            near = [(one, name) for one, name in places(tree) if type(one[name]) in (int, float)]
            if near:
                one, name = data.draw(st.sampled_from(near))
                one[name] = data.draw(st.sampled_from([0, 1, 2, 0.5, 3.0, 1e-9, 1e9, -1]))
        elif kind == "leaf":
            where[key] = data.draw(leaves)
        elif kind == "graft":
            other, name = data.draw(st.sampled_from(places(data.draw(st.sampled_from(trees)))))
            where[key] = copy.deepcopy(other[name])
        elif kind == "wrap":
            where[key] = data.draw(st.sampled_from([[where.get(key) if isinstance(where, dict)
                                                     else where[key]], {"__tuple__": []}, {}]))
        elif kind == "drop" and isinstance(where, dict):
            where.pop(key, None)
        elif isinstance(where, dict):
            where[data.draw(leaves.filter(lambda one: isinstance(one, str)))] = where.pop(key, None)
    text = json.dumps(tree)
    cut = None if data.draw(st.integers(0, 9)) else data.draw(st.integers(0, len(text)))
    reading.append(1)
    try:
        made = oc.deserialize(text if cut is None else text[:cut] + text[cut + 1 :])
        assert isinstance(made, MADE + VALUES) or type(made).__module__.startswith(
            ("opendp_concurrent", "numpy", "datetime")), type(made)
        built[0] += 1
    except (InvalidTypeError, InvalidValueError):
        pass
    finally:
        reading.clear()

check()
print(built[0], sorted(set(seen)))
"""


@pytest.mark.parametrize("tries", [60, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_mutated_message_builds_what_is_allowed_or_is_refused(tmp_path, tries):
    """Nothing is imported, opened, compiled or run, and no other error comes out."""
    slow = {"weights", "projected", "best rule"}
    messages = [oc.serialize(make()) for name, make in MADE.items() if name not in slow]
    (tmp_path / "messages").write_text(json.dumps(messages))
    run = run_program(MUTATED, tmp_path / "messages", tries)
    assert run.returncode == 0, run.stderr[-3000:]
    built, seen = run.stdout.split(maxsplit=1)
    assert int(built) > tries / 50
    assert seen.strip() == "[]"
