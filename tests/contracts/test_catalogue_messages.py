"""No message costs much before it is charged: each constructor that one can name, at its largest.

Each message is read, and the loss of what it makes is read once, in a process that ends after 30
seconds of its processor and at 4 GiB. This guards against minutes; it measures nothing.
"""

import json
import os
from functools import cache

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent._opendp.private import VERSION
from opendp_concurrent.serving.kinds import BY_ANNOTATION, BY_NAME
from opendp_concurrent.serving.serialization import MOST_LETTERS
from opendp_concurrent.serving.values import signature_of, table

from ..forks import ran_in_forks
from ..serving import test_serialization as messages

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
dp.enable_features("contrib", "honest-but-curious")
MODULE = "opendp_concurrent"

READER = """
import os, resource
import opendp.prelude as dp
import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
dp.enable_features("contrib", "honest-but-curious")

def read(text):
    try:
        made = oc.deserialize(text)
    except (InvalidTypeError, InvalidValueError) as error:
        return f"refused: {error}"
    if not hasattr(made, "map"):
        return "built"
    for d_in in (1, 1.0):
        try:
            made.map(d_in)
            return "built, with a loss"
        except Exception as error:
            found = f"built, without a loss: {type(error).__name__}"
    return found

def run(label, text):
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    print(read(text)[:2000])

read(oc.serialize(dp.max_divergence()))
"""


def check(texts):
    """What each message came to, in a process that may end."""
    assert all(len(text) <= MOST_LETTERS for text in texts.values())
    cases, ran = list(texts.items()), {}
    for first in range(0, len(cases), 40):  # a program has 300 seconds
        ran |= ran_in_forks(READER, cases[first : first + 40])
    assert [label for (label, _), (status, _) in ran.items() if status] == []
    return {label: said for (label, _), (_, said) in ran.items()}


# --- what may be expensive, by name ---------------------------------------------------------------


def call(name, module=MODULE, **given):
    return {"__function__": name, "__module__": module, "__kwargs__": given, "__version__": VERSION}


def pair(*parts):
    return {"__tuple__": list(parts)}


def written(one):
    return json.loads(oc.serialize(one))


def array(values):
    return call("array", values=np.asarray(values).tolist(), dtype="float64")


SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ON = {"input_domain": written(SPACE[0]), "input_metric": written(SPACE[1])}
WHOLE = {
    "input_domain": written(dp.atom_domain(T=int)),
    "input_metric": written(dp.absolute_distance(T=int)),
}
STREAM = {
    "input_domain": call("integer_stream", lower=0, upper=3),
    "input_metric": call("event_presence"),
}
PURE, ZCDP = written(dp.max_divergence()), written(dp.zero_concentrated_divergence())
APPROXIMATE, RENYI = (written(dp.approximate(dp.max_divergence())), written(dp.renyi_divergence()))
TRADEOFF, GAUSSIAN = call("tradeoff"), call("gaussian_tradeoff")


def count(scale=4.0):
    return written(SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=scale))


def cast(measurement, measure, **options):
    return call("cast", measurement=measurement, to_measure=measure, **options)


def odometer(measure=PURE, **given):
    return call("make_concurrent_odometer", **{**ON, **given}, output_measure=measure)


def composed(losses, measure=APPROXIMATE, **options):
    return call(
        "make_concurrent_composition",
        **ON,
        output_measure=measure,
        d_in=1,
        d_mids=losses,
        **options,
    )


def indexed(parts, measure=TRADEOFF, space=ON, **options):
    return call(
        "make_indexed_composition", **space, output_measure=measure, d_in=1, measurements=parts,
        **options,
    )  # fmt: skip


def distinct(many, top=0.1):
    return [pair(top * (1 + (index * 7919) % many) / many, 0.0) for index in range(many)]


def laplace_tradeoff(scale):
    return call("make_certified_laplace", **WHOLE, scale=scale, output_measure=TRADEOFF)


def on_tables(rows):
    domain = written(messages.table()[0])
    domain["__kwargs__"]["rows"] = rows
    return {"input_domain": domain, "input_metric": call("table_metric")}


def weights(**given):
    usual = {"universe": 1000, "queries": 10, "size": 9000, "d_in": 1, "d_out": 1.0}
    return call(
        "make_private_multiplicative_weights", **ON, output_measure=PURE, **{**usual, **given}
    )


def marginals(columns):
    return call("make_marginals", **ON, output_measure=ZCDP, d_in=1, d_out=1.0, columns=columns)


def tower(depth):
    one = count()
    for index in range(depth):
        one = cast(one, TRADEOFF if index % 2 else ZCDP)
    return one


CASES = {
    "optimal composition of many losses": lambda: composed(distinct(1000), delta=1e-6),
    "optimal composition of 15,000 losses": lambda: composed(distinct(15_000, 1e-4), delta=1e-6),
    "optimal composition of large losses": lambda: composed(distinct(90, 600.0), delta=1e-6),
    "optimal composition of small losses": lambda: composed(distinct(90, 1e-3), delta=1e-6),
    "optimal composition of equal losses": lambda: composed([pair(0.1, 0.0)] * 10_000, delta=1e-6),
    "optimal composition of some kinds": lambda: composed(distinct(60) * 100, delta=1e-6),
    "several optimal compositions": lambda: [composed(distinct(60), delta=1e-6)] * 8,
    "composition of losses": lambda: composed(distinct(15_000)),
    "f-DP of chords": lambda: indexed(
        [cast(cast(count(4.0 + index), ZCDP), TRADEOFF) for index in range(300)]
    ),
    "f-DP to Gaussian DP": lambda: cast(
        indexed([cast(count(4.0 + index), TRADEOFF) for index in range(300)]), GAUSSIAN
    ),
    "f-DP of noise to Gaussian DP": lambda: cast(
        indexed([laplace_tradeoff(4.0 + index) for index in range(300)], space=WHOLE), GAUSSIAN
    ),
    "f-DP to (epsilon, delta)": lambda: cast(
        indexed([cast(count(4.0 + index), TRADEOFF) for index in range(300)]),
        APPROXIMATE,
        delta=1e-6,
    ),
    "casts on casts": lambda: tower(90),
    "orders of a cast": lambda: cast(
        cast(count(), RENYI),
        APPROXIMATE,
        delta=1e-6,
        orders=[1.0 + (1 + index) / 7 for index in range(50_000)],
    ),
    "orders of a composition": lambda: indexed(
        [cast(count(), RENYI)] * 500, RENYI, orders=[2.0 + index for index in range(2_000)]
    ),
    "blocks of units with many rows": lambda: call(
        "make_block_filter",
        odometer=odometer(PURE, **on_tables(10**7)),
        d_in=1,
        d_out=1.0,
        blocks=call("by_columns", names=["age"]),
        keys=[1],
    ),
    "many weights": lambda: [weights(universe=2**23 + index) for index in range(500)],
    "many marginals": lambda: [marginals(2**23 + index) for index in range(500)],
    "counters": lambda: [
        call("make_counter", **STREAM, output_measure=ZCDP, scale=4.0, horizon=2**50 - index)
        for index in range(500)
    ],
    "a list of domains": lambda: [call("atom_domain", "domains", T="i32")] * 8_000,
    "rules": lambda: call(
        "make_concurrent_filter",
        odometer=odometer(
            APPROXIMATE,
            accumulator=call(
                "either",
                rules=[call("advanced", delta_slack=(1 + i) * 1e-13) for i in range(4_000)],
            ),
        ),
        d_in=1,
        d_out=pair(1.0, 1e-3),
    ),
    "contributions": lambda: call(
        "make_bounded_contributions",
        input_domain=call("integer_stream", lower=0, upper=3),
        input_metric=call("user_presence"),
        output_domain=call("integer_stream", lower=0, upper=3),
        max_contributions=2**31,
    ),
    "changed events": lambda: call(
        "make_counter", **{**STREAM, "input_metric": call("event_change")}, output_measure=PURE,
        scale=4.0, horizon=2**50,
    ),
    "limits": lambda: [
        call("make_limited", odometer=odometer(), d_in=1, d_out=1.0 + index, label="a" * 300)
        for index in range(500)
    ],
}  # fmt: skip
REFUSED = {  # these took between 3 seconds and hours
    "optimal composition of many losses",
    "optimal composition of 15,000 losses",
    "several optimal compositions",
    "f-DP of chords",
    "f-DP to Gaussian DP",
    "f-DP of noise to Gaussian DP",
    "orders of a cast",
    "orders of a composition",
    "blocks of units with many rows",
    "many weights",
    "many marginals",
}


@cache
def text_of(label):
    return json.dumps(CASES[label]())


NOT_REFUSED = [label for label in CASES if label not in REFUSED]
REST = pytest.param(NOT_REFUSED[1::2], marks=pytest.mark.slow)


@pytest.mark.parametrize("labels", [[*REFUSED, *NOT_REFUSED[::2]], REST], ids=["some", "rest"])
def test_what_is_expensive_is_refused_or_cheap(labels):
    found = check({label: text_of(label) for label in labels})
    refused = {label for label, one in found.items() if "too many cells" in one}
    assert REFUSED.intersection(labels) <= refused


# --- all constructors -----------------------------------------------------------------------------

NUMBERS = [2**31 - 1, 2**62, 1e300, 1e-300]


def leaves(tree, path=()):
    """The numbers and lists of a message, each by its path."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, part in inside:
        if key in ("__function__", "__module__", "__version__"):
            continue
        if isinstance(part, list) and part:
            yield (*path, key)
        if isinstance(part, dict | list):
            yield from leaves(part, (*path, key))
        elif type(part) in (int, float):
            yield (*path, key)


def put(tree, path, value):
    copied = json.loads(json.dumps(tree))
    at = copied
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(copied)


def larger(tree):
    """The message with each number, and each list, in turn as large as it may be."""
    for path in leaves(tree):
        one = tree
        for key in path:
            one = one[key]
        if type(one) is not list:
            yield from ((path, put(tree, path, value)) for value in NUMBERS)
            continue
        room = (MOST_LETTERS - len(json.dumps(tree))) // (len(json.dumps(one)) + 2)
        yield path, put(tree, path, one * max(1, min(room, 2**16 // len(one))))
        if all(type(part) in (int, float) for part in one):
            many = [type(one[0])(index) for index in range(60_000)]
            yield path, put(tree, path, many)


def named(text):
    """The constructors that a message calls."""
    found = set()
    json.loads(
        text, object_hook=lambda one: found.add((one.get("__module__"), one.get("__function__")))
    )
    return found


@pytest.mark.filterwarnings("ignore::opendp_concurrent.errors.AccuracyWarning")
@pytest.mark.parametrize("name", messages.MADE)
def test_each_argument_may_be_large(name):
    tree = json.loads(oc.serialize(messages.MADE[name]()))
    texts = {}
    for path, text in larger(tree):
        place = tuple(one for one in path if isinstance(one, str))
        if len(text) <= MOST_LETTERS:
            texts.setdefault(f"{place} {len(texts) if 'scale' in place else text[-40:]}", text)
    check(texts)


ATOMS = {
    "a number": [1e300, 1e-300, 2**62, 1.0],
    "an integer from 0 to 2^31": [2**31 - 1, 10**6, 2],
    "an integer of 32 bits, or None": [2**31 - 1, None],
    "an exponent from -1074 to 1023, or None": [-1074, 1023, None],
    "a bool": [True, False],
    "a bool, or None": [False, None],
    "a text": ["linear", "a" * 10_000],
    "a type": ["i32", "f64", None],
    "a value": [2**31 - 1, "a" * 10_000, 1e300],
    "values of one type": [list(range(60_000)), [index / 7 for index in range(50_000)]],
    "a loss": [1e300, 0.5, pair(0.5, 1e-300)],
    "losses": [[0.5] * 100_000, [pair(0.5, 1e-9)] * 30_000],
    "bounds": [pair(0, 2**62), pair(-1e300, 1e300), pair(0, 9)],
    "bounds, or None": [None, pair(0, 9)],
}


def native_messages():
    """Calls of OpenDP's constructors with arguments that are as large as their kinds allow."""
    random = np.random.default_rng(3)
    elements = [dp.atom_domain(T=int), dp.atom_domain(T=float, nan=False), dp.atom_domain(T=bool)]
    elements += [dp.atom_domain(bounds=(0, 9))]
    domains = [
        *elements,
        *map(dp.vector_domain, elements[:4]),
        dp.vector_domain(elements[3], 2**30),
    ]
    metrics = [dp.symmetric_distance(), dp.insert_delete_distance(), dp.absolute_distance(T=int)]
    metrics += [dp.absolute_distance(T=float), dp.l1_distance(T=int), dp.linf_distance(T=int)]
    parts = {
        "a domain": [written(one) for one in domains],
        "a metric": [written(one) for one in metrics],
        "a measure": [PURE, ZCDP, APPROXIMATE],
        "a measurement": [count(), count(1e-300)],
        "measurements": [[count()] * 500],
        "a transformation": [written(SPACE >> dp.t.then_count())],
        "an odometer": [odometer()],
        **ATOMS,
    }
    for module, name in sorted(table()):
        if module == MODULE:
            continue
        given = {}
        for one, parameter in signature_of((module, name)).parameters.items():
            taken = getattr(parameter.annotation, "__name__", str(parameter.annotation))
            kind = BY_ANNOTATION.get(taken) or BY_NAME.get(one)
            kind = kind or ("a type" if "GenericAlias" in taken else "a value")
            given[one] = parts[kind][int(random.integers(len(parts[kind])))]
        text = json.dumps(call(name, module, **given))
        if len(text) <= MOST_LETTERS:
            yield f"{module}.{name}", text


def test_opendp_s_constructors_with_large_arguments():
    texts = dict(native_messages())
    found = check(texts)
    assert sum(one.startswith("built") for one in found.values()) > 15


def test_every_constructor_is_tried():
    """A new one is in an example of a message, or this fails."""
    tried = {(MODULE, "integers"), (MODULE, "array"), (MODULE, "residue")}
    for make in messages.MADE.values():
        tried |= named(oc.serialize(make()))
    for label in CASES:
        tried |= named(text_of(label))
    tried |= {tuple(label.split(".")) for label, _ in native_messages()}
    assert set(table()) <= tried
