"""What a message may name: rebuilt with the same loss, and nothing else is called."""

import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import opendp.mod
import opendp.prelude as dp
import pytest
from opendp.mod import Measurement, Odometer

import opendp_concurrent as oc
from opendp_concurrent import serialization
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.opendp_kinds import BY_ANNOTATION, BY_NAME, KINDS, OF_OPENDP
from opendp_concurrent.provenance import CONSTRUCTORS, MODULE, Record

dp.enable_features("contrib", "honest-but-curious")

ROOT = Path(__file__).parents[1]
D_INS = (1, 2, 3, 7)
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
APPROXIMATE = dp.approximate(PURE)
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
STREAM = oc.integer_stream(0, 3), oc.event_presence()
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
GDP, TCDP = oc.gaussian_tradeoff(), oc.truncated_concentrated_divergence(20.0)


def count(scale=4.0):
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


def odometer(accumulator=None, measure=PURE):
    return oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)


MADE = {
    "native chain": count,
    "clamp and sum": lambda: (
        SPACE >> dp.t.then_clamp((0, 9)) >> dp.t.then_sum() >> dp.m.then_gaussian(scale=9.0)
    ),
    "native cast": lambda: dp.c.make_pureDP_to_zCDP(count()),
    "native list": lambda: dp.c.make_composition([count(), count(1.0)]),
    "native compositor": lambda: dp.c.make_adaptive_composition(*SPACE, PURE, 1, [0.5, 1.0]),
    "above threshold": lambda: oc.m.make_above_threshold(*SPACE, PURE, 1, scale=8.0, threshold=5),
    "sparse vector": lambda: oc.m.make_sparse_vector(
        *SPACE, PURE, 2, scale=8.0, threshold=5, max_hits=3, sensitivity=2
    ),
    "guess and check": lambda: oc.m.make_guess_and_check(
        *SPACE, PURE, 1, max_hits=3, scale=8.0, tolerance=9.0, answer_scale=4.0
    ),
    "laplace": lambda: oc.m.make_certified_laplace(*REAL, 1.0, ZCDP),
    "geometric": lambda: oc.m.make_certified_geometric(*WHOLE, 1.0, ZCDP),
    "gaussian": lambda: oc.m.make_certified_gaussian(*REAL, 2.0, GDP),
    "chained laplace": lambda: SPACE >> dp.t.then_count() >> oc.m.then_certified_laplace(1.0, ZCDP),
    "cast": lambda: oc.c.cast(count(), oc.fixed_renyi_divergence(4.0)),
    "named cast": lambda: oc.c.make_pureDP_to_tCDP(count(), omega=20.0),
    "selection": lambda: oc.c.make_private_selection(count(), mean_runs=4),
    "interactive": lambda: oc.c.make_interactive(count()),
    "bounded": lambda: oc.c.make_bounded_interactive(oc.c.make_interactive(count()), 9),
    "compositor": lambda: oc.make_concurrent_composition(*SPACE, APPROXIMATE, 2, [(0.5, 1e-6)] * 2),
    "tCDP compositor": lambda: oc.make_concurrent_composition(
        *SPACE, TCDP, 1, [oc.TruncatedConcentrated(0.5, 20.0)]
    ),
    "chained compositor": lambda: (
        SPACE >> dp.t.then_cast_default(TOA=int) >> oc.then_concurrent_composition(PURE, 1, [0.5])
    ),
    "indexed": lambda: oc.c.make_indexed_composition(*SPACE, PURE, 1, [count(), count(1.0)]),
    "filter": lambda: oc.make_concurrent_filter(odometer(), 2, 1.0),
    "filter on a chain": lambda: oc.make_concurrent_filter(
        SPACE >> dp.t.then_cast_default(TOA=int) >> odometer(), 2, 1.0
    ),
    "zcdp": lambda: oc.make_concurrent_filter(
        odometer(oc.accumulators.zcdp(1e-7), APPROXIMATE), 1, (1.0, 1e-6)
    ),
    "either": lambda: oc.make_concurrent_filter(
        odometer(
            oc.accumulators.either(
                oc.accumulators.advanced(1e-7), oc.accumulators.renyi(9.0, 1e-7)
            ),
            APPROXIMATE,
        ),
        1,
        (1.0, 1e-6),
    ),
    "best rule": lambda: oc.make_concurrent_filter(
        odometer(oc.accumulators.best_rule((1.0, 1e-6), [(0.1, 0.0)]), APPROXIMATE), 1, (1.0, 1e-6)
    ),
    "quotas": lambda: oc.c.make_analyst_quotas(odometer(), 1, {"alice": 0.5, "bob": 0.25}),
    "linear queries": lambda: oc.m.make_linear_queries(
        *SPACE, PURE, 1, 1.0, 4, np.eye(4), size=100
    ),
    "weights": lambda: oc.m.make_private_multiplicative_weights(
        *SPACE, PURE, d_in=1, d_out=1.0, universe=4, queries=9, size=9000
    ),
    "projected": lambda: oc.m.make_projected_queries(
        *SPACE, ZCDP, d_in=1, d_mids=[0.5], universe=4, size=100
    ),
    "counter": lambda: oc.m.make_counter(*STREAM, PURE, scale=4.0),
    "window": lambda: oc.m.make_window_counter(*STREAM, PURE, scale=4.0, window=4),
    "histogram": lambda: oc.m.make_histogram_counter(
        oc.category_stream(["red", "green"]), oc.event_presence(), PURE, scale=4.0
    ),
    "alarm": lambda: oc.m.make_alarm(*STREAM, PURE, threshold=10, scale=4.0),
    "clamped counter": lambda: (
        oc.t.make_stream_clamp(*STREAM, oc.integer_stream(0, 1))
        >> oc.m.make_counter(oc.integer_stream(0, 1), oc.event_presence(), PURE, scale=4.0)
    ),
    "stream": lambda: oc.c.make_concurrent_continual(
        oc.make_concurrent_filter(oc.make_concurrent_odometer(*STREAM, PURE), 1, 1.0)
    ),
    "randomized response": lambda: oc.m.make_certified_randomized_response_bool(0.75, ZCDP),
}


def losses(measurement):
    found = []
    for d_in in D_INS:
        try:
            loss = measurement.map(
                d_in if "f64" not in str(measurement.input_distance_type) else d_in / 2
            )
        except (InvalidValueError, dp.OpenDPException) as error:
            loss = type(error).__name__
        found.append(loss)
    return found


@pytest.mark.filterwarnings("ignore::opendp_concurrent.errors.AccuracyWarning")
@pytest.mark.parametrize("name", MADE)
def test_a_round_trip_keeps_the_space_the_kind_and_the_loss(name):
    made = MADE[name]()
    message = dp.serialize(made)
    for again in (oc.deserialize(message), dp.deserialize(message)):
        assert type(again) is type(made)
        assert again.input_domain == made.input_domain
        assert again.input_metric == made.input_metric
        assert again.output_measure == made.output_measure
        assert losses(again) == losses(made)
        assert dp.serialize(again) == message
        assert repr(again) == repr(made) or "0x" in repr(made)


def test_an_odometer_goes_there_and_back():
    for accumulator in (None, oc.accumulators.basic()):
        made = odometer(accumulator)
        again = oc.deserialize(dp.serialize(made))
        assert isinstance(again, Odometer)
        assert (again.accumulator, again.measure) == (made.accumulator, made.measure)
    made = SPACE >> dp.t.then_cast_default(TOA=int) >> odometer()
    assert repr(oc.deserialize(dp.serialize(made))) == repr(made)
    made = oc.make_concurrent_odometer(*SPACE, GDP, accumulator=None)
    assert oc.deserialize(dp.serialize(made)).output_measure == GDP
    residue = oc.make_concurrent_odometer(
        *SPACE, oc.tradeoff(), accumulator=oc.accumulators.residue(1.0)
    )
    assert oc.deserialize(dp.serialize(residue)).accumulator == residue.accumulator


@pytest.mark.parametrize(
    "make",
    [
        lambda: STREAM[0],
        lambda: oc.category_stream(4),
        lambda: oc.category_stream(["red", "green"]),
        oc.event_presence,
        oc.event_change,
        oc.user_presence,
        oc.gaussian_tradeoff,
        oc.tradeoff,
        lambda: oc.fixed_renyi_divergence(2.5),
        lambda: TCDP,
        lambda: APPROXIMATE,
        lambda: SPACE[0],
    ],
)
def test_domains_metrics_and_measures(make):
    assert oc.deserialize(dp.serialize(make())) == make()


def test_a_message_runs_on_a_server():
    root = oc.make_concurrent_filter(odometer(), 1, 1.0)([1, 2, 3])
    svt = root(oc.deserialize(dp.serialize(MADE["above threshold"]())))
    assert svt(SPACE >> dp.t.then_count()).outcome in oc.m.Outcome
    assert root.admits(oc.deserialize(dp.serialize(count())))


# --- what is not written -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (
            lambda: oc.c.make_private_selection(count(), mean_runs=2, score=abs),
            r"make_private_selection: its argument score is a builtin",
        ),
        (
            lambda: oc.c.make_interactive_postprocessing(MADE["interactive"](), lambda a: (a, a)),
            r"make_interactive_postprocessing: its argument \w+ is a function",
        ),
        (
            lambda: oc.make_concurrent_composition(
                *SPACE, oc.tradeoff(), 1, [oc.TradeoffFunction.pure(1.0)]
            ),
            "make_concurrent_composition: its argument d_mids is a TradeoffFunction",
        ),
        (
            lambda: oc.c.make_interactive(
                dp.m.make_user_measurement(*SPACE, PURE, len, lambda d_in: 1.0 * d_in)
            ),
            "make_interactive: its argument measurement, make_user_measurement: its argument",
        ),
        (
            lambda: oc.make_concurrent_composition(*SPACE, PURE, 1, [float("inf")]),
            "make_concurrent_composition: its argument d_mids is not finite",
        ),
        (
            lambda: oc.m.make_linear_queries(
                *SPACE, PURE, 1, 1.0, 300, np.ones((300, 300)), size=100
            ),
            "argument queries",
        ),
    ],
)
def test_what_is_refused_is_named(make, named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = make()
    with pytest.raises(InvalidTypeError, match=f"dp.serialize cannot serialise .*{named}"):
        dp.serialize(made)


def test_a_ledger_is_not_written(tmp_path):
    ledger = pytest.importorskip("opendp_concurrent.ledger")
    with ledger.create_ledger(tmp_path / "a.db", "survey") as kept:
        made = oc.make_concurrent_filter(odometer(), 1, 1.0, ledger=kept)
        with pytest.raises(InvalidTypeError, match="its argument ledger is a SqlLedger"):
            dp.serialize(made)


def test_a_record_keeps_no_function_alive_and_does_not_change_with_its_arguments():
    import weakref

    def score(answer):
        return answer

    d_mids = [0.5]
    seen = weakref.ref(score)
    record = Record("make", {"score": score, "d_mids": d_mids})
    d_mids[0] = 9.0
    del score
    assert seen() is None
    assert record._arguments["d_mids"] == [0.5]
    assert record == {}


# --- what is not called --------------------------------------------------------------------------


def call(module, name, /, version=opendp.mod.__version__, **given):
    return {
        "__function__": name,
        "__module__": module,
        "__kwargs__": given,
        "__version__": version,
    }


ATOM = call("domains", "atom_domain", T="i32")
DOMAIN = call("domains", "vector_domain", atom_domain=ATOM)
METRIC = call("metrics", "symmetric_distance")
MEASURE = call("measures", "max_divergence")
COUNT = call("transformations", "make_count", input_domain=DOMAIN, input_metric=METRIC)
ON = {"input_domain": DOMAIN, "input_metric": METRIC, "output_measure": MEASURE}
SVT = {**ON, "d_in": 1, "scale": 2.0, "threshold": 3}
HOSTILE = {
    "unknown module": (call("os", "system", command="true"), "not a constructor"),
    "unknown name": (call("measurements", "make_nothing"), "not a constructor"),
    "dotted": (call("measurements", "make_laplace.__globals__"), "not a constructor"),
    "imports by name": (
        call("_lib", "import_optional_dependency", name="antigravity"),
        "not a constructor",
    ),
    "features": (call("mod", "enable_features", features=["x"]), "not a constructor"),
    "data": (call("measurements", "make_user_measurement"), "not a constructor"),
    "a claim about the sample": (
        call("combinators", "make_population_amplification", population_size=10**9),
        "not a constructor",
    ),
    "functions": (call(MODULE, "make_continual", **ON, start=COUNT), "not a constructor"),
    "private": (call(MODULE, "_allowed", allow=None), "not a constructor"),
    "no name": (call("measurements", None), "no string"),
    "extra key": ({**MEASURE, "more": 1}, "neither a call"),
    "missing key": ({"__function__": "max_divergence", "__module__": "measures"}, "neither a call"),
    "plain object": ({"a": 1}, "neither a call"),
    "polars": ({"__expr__": "AAAA", "__version__": opendp.mod.__version__}, "Polars"),
    "tuple of a number": ({"__tuple__": 3}, "tuple"),
    "extra argument": (call("measures", "max_divergence", more=1), "does not take"),
    "version": (call("measures", "max_divergence", version="0.1"), "OpenDP '0.1'"),
    "version of another type": (call("measures", "max_divergence", version=[]), "OpenDP"),
    "arguments of another type": ({**MEASURE, "__kwargs__": [1]}, "keyword arguments"),
    "missing argument": (call("measures", "approximate"), "approximate refuses"),
    "metric for a domain": (
        call("domains", "vector_domain", atom_domain=METRIC),
        "atom_domain must be a domain",
    ),
    "number for a text": (call("domains", "atom_domain", T=-1), "T must be a type"),
    "number for a measurement": (
        call(MODULE, "chain", measurement=1, transformation=COUNT),
        "must be a measurement",
    ),
    "an odometer without a pointer": (
        call(
            "core", "measurement_input_domain", this=call(MODULE, "make_concurrent_odometer", **ON)
        ),
        "must be a measurement",
    ),
    "promise": (call(MODULE, "make_above_threshold", **SVT, monotone=True), "monotone, which is a"),
    "promise in a list": (
        [call(MODULE, "make_above_threshold", **SVT, monotone=1)],
        "monotone, which is a",
    ),
    "score": (call(MODULE, "make_private_selection", score=COUNT), "score, which is a"),
    "a noisy curve": (
        call(
            MODULE,
            "make_concurrent_composition",
            **{**ON, "output_measure": call("measures", "renyi_divergence")},
            d_in=1,
            d_mids=[COUNT],
            orders=[2.0, 4.0],
        ),
        "d_mids must have no mechanism",
    ),
    "a noisy curve in a mapping": (
        call(
            MODULE,
            "make_analyst_quotas",
            odometer=call(MODULE, "make_concurrent_odometer", **ON),
            d_in=1,
            quotas=call(MODULE, "mapping", items=[{"__tuple__": ["alice", COUNT]}]),
        ),
        "items must have no mechanism",
    ),
    "a transformation as a key": (
        call(MODULE, "make_parallel_continual", **ON, key=COUNT),
        "not a constructor",
    ),
    "dtype": (call(MODULE, "array", values=[1], dtype="object"), "dtype"),
    "NaN as text in an array": (
        call(MODULE, "array", values=["nan", "1"], dtype="float64"),
        "values must be numbers",
    ),
    "None in an array": (call(MODULE, "array", values=[None], dtype="float64"), "values must be"),
    "a number that becomes infinite": (
        call(MODULE, "array", values=[1e300], dtype="float32"),
        "that float32 has",
    ),
    "a number that is cut": (call(MODULE, "array", values=[1.5], dtype="int32"), "that int32 has"),
    "a number that wraps": (call(MODULE, "array", values=[-1], dtype="uint8"), "that uint8 has"),
    "many tuples as keys": (
        call(
            MODULE,
            "mapping",
            items=[{"__tuple__": [{"__tuple__": [one]}, 0]} for one in range(1001)],
        ),
        "items must be at most 1000",
    ),
    "noise of 2^31 bits": (
        call(
            "measurements",
            "make_laplace",
            input_domain=call("domains", "atom_domain", T="f64", nan=False),
            input_metric=call("metrics", "absolute_distance", T="f64"),
            scale=1.0,
            k=2**31 - 1,
        ),
        "k must be an exponent",
    ),
    "noise that takes hours": (
        call(
            "measurements",
            "make_geometric",
            input_domain=ATOM,
            input_metric=call("metrics", "absolute_distance", T="i32"),
            scale=1.0,
            bounds={"__tuple__": [0, 2**31 - 1]},
        ),
        "bounds must be at most",
    ),
    "certified noise that takes hours": (
        call(
            MODULE,
            "make_certified_geometric",
            input_domain=ATOM,
            input_metric=call("metrics", "absolute_distance", T="i32"),
            output_measure=MEASURE,
            scale=1.0,
            bounds={"__tuple__": [0, 2**31 - 1]},
        ),
        "bounds must be at most",
    ),
    "negative scale": (call(MODULE, "make_above_threshold", **{**SVT, "scale": -1.0}), "scale"),
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
        (json.dumps(HOSTILE["dotted"][0]).replace("measurements", "\\u006deasurements"), "not a"),
    ],
)
def test_hostile_texts_are_refused(message, expected):
    with pytest.raises(InvalidValueError, match=expected):
        oc.deserialize(message)


@pytest.mark.parametrize("message", [None, b"{}", 1, {"__tuple__": []}, ["{}"]])
def test_other_types_are_refused(message):
    with pytest.raises(InvalidTypeError, match="message"):
        oc.deserialize(message)


def test_nothing_is_built_if_any_part_is_not_allowed(monkeypatch):
    built = []
    table = {key: (lambda *a, key=key, **k: built.append(key)) for key in serialization.TABLE}
    monkeypatch.setattr(serialization, "TABLE", table)
    for key in (call("os", "system"), {"a": 1}):
        with pytest.raises(InvalidValueError):
            oc.deserialize(json.dumps([MEASURE, METRIC, key]))
    assert built == []


def test_no_module_is_imported_and_no_feature_enabled():
    before = set(sys.modules)
    for message, _ in HOSTILE.values():
        with pytest.raises(InvalidValueError):
            oc.deserialize(json.dumps(message))
    assert {name for name in set(sys.modules) - before if "antigravity" in name} == set()
    assert "x" not in opendp.mod.GLOBAL_FEATURES


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


def test_each_constructor_of_the_package_is_recorded_or_has_a_reason():
    made = {
        name for group in (oc.c, oc.m, oc.t) for name in group.__all__ if name.startswith("make_")
    }
    named = {name for name in made if "DP" in name} | {"make_larger_delta"}  # casts
    tables = {
        name
        for name in made & set(oc.t.__all__)
        if vars(oc.t)[name].__module__.split(".")[1] in ("tables", "frames")
    }
    others = {
        "make_filter_to_odometer",  # what it takes is recorded
        "make_resumable",  # a store
        "make_block_filter",  # a partition
        "make_individual_table_filter",  # a table
    }
    assert made - named - tables - others <= CONSTRUCTORS.keys()


def test_every_argument_of_opendp_has_a_kind():
    for module, names in OF_OPENDP.items():
        for name in names:
            for argument in serialization._signature((module, name)).parameters:
                assert serialization._kind((module, name), argument) in KINDS
    assert {*BY_ANNOTATION.values(), *BY_NAME.values()} <= KINDS.keys()


def test_dp_deserialize_calls_ours_from_the_same_table():
    with pytest.raises(InvalidValueError, match="does not deserialise"):
        dp.deserialize(json.dumps(call(MODULE, "make_continual", **ON)))
    with pytest.raises(InvalidValueError, match="refuses its arguments"):
        dp.deserialize(json.dumps(call(MODULE, "make_counter")))


FUZZ = """
import json, random, sys
import opendp.prelude as dp
import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.serialization import TABLE, _signature
dp.enable_features("contrib", "honest-but-curious")
parts = json.loads(sys.argv[1])
random = random.Random(int(sys.argv[2]))
odd = [None, True, 0, -1, 2**31, 2**62, 0.5, -2.5, 1e308, "", "a", "i32", "Vec<", [], [1], ["a"],
       [1, "a"], {"__tuple__": [0, 10]}, {"__tuple__": []}, *parts.values(), list(parts.values())]
built = 0
for _ in range(int(sys.argv[3])):
    module, name = random.choice(sorted(TABLE))
    given = {one: random.choice([parts.get(one, None), *random.choices(odd, k=1)])
             for one in _signature((module, name)).parameters if random.random() < 0.8}
    try:
        oc.deserialize(json.dumps({"__function__": name, "__module__": module, "__kwargs__": given,
                                   "__version__": parts["input_metric"]["__version__"]}))
        built += 1
    except (InvalidTypeError, InvalidValueError):
        pass
print(built)
"""


@pytest.mark.parametrize("tries", [1500, pytest.param(20_000, marks=pytest.mark.slow)])
def test_no_message_ends_the_process(tries):
    """In a process of its own: a wrong pointer in OpenDP's bindings would end this one."""
    laplace = call(
        "measurements",
        "make_laplace",
        input_domain=ATOM,
        input_metric=call("metrics", "absolute_distance", T="i32"),
        scale=1.0,
    )
    parts = {
        **ON,
        "transformation0": COUNT,
        "measurement1": laplace,
        "measurement": call(
            "combinators", "make_chain_mt", measurement1=laplace, transformation0=COUNT
        ),
        "odometer": call(MODULE, "make_concurrent_odometer", **ON),
        "stream": call(MODULE, "integer_stream", lower=0, upper=1),
        "scale": 1.0,
        "d_in": 1,
        "this": COUNT,
    }
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FUZZ, json.dumps(parts), "7", str(tries)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout) > tries / 30


def test_threads_read_messages_side_by_side():
    found, message = [], dp.serialize(MADE["above threshold"]())

    def read():
        for _ in range(20):
            found.append(oc.deserialize(message).map(1))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert len(set(found)) == 1


def test_trusted_messages_may_have_arguments_that_take_long():
    wide = oc.m.make_certified_geometric(*WHOLE, 1.0, ZCDP, bounds=(0, 2**20))
    assert dp.deserialize(dp.serialize(wide)).map(1) == wide.map(1)
    with pytest.raises(InvalidValueError, match="bounds must be at most"):
        oc.deserialize(dp.serialize(wide))
    narrow = oc.m.make_certified_geometric(*WHOLE, 1.0, ZCDP, bounds=(0, 2**16))
    assert oc.deserialize(dp.serialize(narrow)).map(1) == narrow.map(1)


def test_only_measurements_have_a_loss_after_all():
    made = oc.deserialize(json.dumps([MEASURE, {"__tuple__": [1, 2.5]}, None, "text"]))
    assert made == [PURE, (1, 2.5), None, "text"]
    assert not isinstance(made, Measurement)
