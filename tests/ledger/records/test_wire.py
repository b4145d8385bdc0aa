"""What is written of a value is in tables: no name of Python's decides it."""

import dataclasses
import importlib
import inspect
import json
import pkgutil
from hashlib import sha256
from math import inf
from typing import NamedTuple

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent
import opendp_concurrent as oc
from opendp_concurrent import TradeoffFunction as F
from opendp_concurrent import TruncatedConcentrated
from opendp_concurrent._checks import BY_CLASS, KINDS, check_fields
from opendp_concurrent.accounting.best_rule import any_time, renyi, zcdp
from opendp_concurrent.accounting.epsilon_delta import Advanced, advanced, basic, either
from opendp_concurrent.accounting.ladder import ladder, residue
from opendp_concurrent.accounting.rule import FromRule
from opendp_concurrent.accounting.store import Terms
from opendp_concurrent.composition.block_totals import OnEachBlock, OnKeys
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    LedgerDamagedError,
    LedgerError,
    LedgerMismatchError,
    UnregisteredError,
)
from opendp_concurrent.ledger import encoding as measures
from opendp_concurrent.ledger.charges import LimitedCharge, Opened, read_terms, write_terms
from opendp_concurrent.ledger.encoding import canonical, decode, encode, first_hash, hasher
from opendp_concurrent.measures import composition_measure, registered
from opendp_concurrent.measures.measure import Basic
from opendp_concurrent.measures.renyi import GridCurve, OnOrders
from opendp_concurrent.measures.shapes import PairMeasure
from opendp_concurrent.measures.slots import Products
from opendp_concurrent.serving.shared_release import _Steps as Steps

from ...build import APPROXIMATE, DATA, RENYI, ZCDP, a_filter, an_odometer
from ..conftest import next_hash

QUARTER, ZERO = '{"double":"0x1.0000000000000p-2"}', '{"double":"0x0.0p+0"}'
INFINITE, TWO = '{"double":"inf"}', '{"double":"0x1.0000000000000p+1"}'
WORST = (
    '"gaussian":{"double":"inf"},"infinite":{"double":"0x1.0000000000000p+0"},'
    '"limit":{"double":"inf"},"loss_error":{"double":"0x0.0p+0"},"losses":{"doubles":""},'
    '"mass_error":{"double":"0x0.0p+0"},"masses":{"doubles":""},'
    '"never":{"double":"0x1.0000000000000p+0"},"slack":{"double":"0x0.0p+0"},"symmetric":true'
)
OURS = [kind for kind in KINDS.values() if not kind.outside]
RECORDS = {  # of each tag: a value, and what is written of it, for ever
    "basic": (basic(), '{"basic":{}}'),
    "advanced": (advanced(0.25), f'{{"advanced":{{"slack":{QUARTER}}}}}'),
    "any_time": (any_time(0.25, 2.0), f'{{"any_time":{{"planned":{TWO},"slack":{QUARTER}}}}}'),
    "zcdp": (zcdp(0.25), f'{{"zcdp":{{"slack":{QUARTER}}}}}'),
    "renyi": (renyi(2.0, 0.25), f'{{"renyi":{{"order":{TWO},"slack":{QUARTER}}}}}'),
    "either": (
        either(basic(), zcdp(0.25)),
        f'{{"either":{{"rules":[{{"basic":{{}}}},{{"zcdp":{{"slack":{QUARTER}}}}}]}}}}',
    ),
    "orders": (OnOrders((2.0,)), f'{{"orders":{{"orders":[{TWO}]}}}}'),
    "ladder": (
        ladder(F.laplace(0.25)),
        '{"ladder":{"unit":{"function":{"factors":[[{"laplace":{"epsilon":'
        f'{QUARTER},"steps":{INFINITE}}}}},1]],"squares":"0x0"}}}}}}}}',
    ),
    "ladder-at-delta": (
        ladder(F.laplace(0.25), 0.25),
        '{"ladder-at-delta":{"slack":'
        f'{QUARTER},"unit":{{"function":{{"factors":[[{{"laplace":{{"epsilon":'
        f'{QUARTER},"steps":{INFINITE}}}}},1]],"squares":"0x0"}}}}}}}}',
    ),
    "residue": (residue(0.25), f'{{"residue":{{"mu":{QUARTER}}}}}'),
    "limit": (Opened(1, "ann", "{}"), '{"limit":{"above":1,"label":"ann","terms":"{}"}}'),
    "limited": (
        LimitedCharge(0.25, 1, (2.0, 0.25), (Opened(0, "team", "{}"),)),
        f'{{"limited":{{"d_mid":{QUARTER},"d_mids":[{TWO},{QUARTER}],"limit":1,'
        '"opened":[{"limit":{"above":0,"label":"team","terms":"{}"}}]}}',
    ),
    "tcdp": (TruncatedConcentrated(0.25, 2.0), f'{{"tcdp":{{"omega":{TWO},"rho":{QUARTER}}}}}'),
    "on-each-block": (
        OnEachBlock(zcdp(0.25), (2.0, 0.25)),
        f'{{"on-each-block":{{"d_out":[{TWO},{QUARTER}],"of":{{"zcdp":{{"slack":{QUARTER}}}}}}}}}',
    ),
    "on-blocks": (
        OnKeys(("W1", ("W", 2), 3), 0.25),
        f'{{"on-blocks":{{"d_mid":{QUARTER},"keys":["W1",["W",2],3]}}}}',
    ),
    "curve": (GridCurve((2.0,), (0.25,)), f'{{"curve":{{"orders":[{TWO}],"values":[{QUARTER}]}}}}'),
    "function": (F.gaussian(5e-324), '{"function":{"factors":[],"squares":"0x1"}}'),
    "laplace": (
        F.laplace(0.25),
        '{"function":{"factors":[[{"laplace":{"epsilon":'
        f'{QUARTER},"steps":{INFINITE}}}}},1]],"squares":"0x0"}}}}',
    ),
    "subsampled": (
        F.subsampled_gaussian(4.0, 0.25, unit="added"),
        '{"function":{"factors":[[{"subsampled":{"noise":"gaussian","rate":'
        f'{QUARTER},"size":{QUARTER},"unit":"added"}}}},1]],"squares":"0x0"}}}}',
    ),
    "pair": (
        F.worst(),
        f'{{"function":{{"factors":[[{{"pair":{{{WORST}}}}},1]],"squares":"0x0"}}}}',
    ),
}


@pytest.mark.parametrize("tag", RECORDS)
def test_what_is_written_of_a_value_never_changes(tag):
    value, now = RECORDS[tag]
    assert encode("x", value) == now
    assert decode(now) == value


def test_every_tag_is_held():
    assert RECORDS.keys() == {tag for tag in KINDS if ":" not in tag}
    assert all(kind.tag == tag for tag, kind in KINDS.items())


def test_every_accounting_of_the_package_is_written_or_refused():
    """One that is added, and forgotten in the table, fails here."""
    known = set()
    for module in pkgutil.walk_packages(opendp_concurrent.__path__, "opendp_concurrent."):
        if "plot" in module.name or "verify" in module.name or module.name.endswith("__main__"):
            continue
        for _, one in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if one.__module__ == module.name and dataclasses.is_dataclass(one):
                known |= {one} if callable(getattr(one, "start", None)) else set()
    assert {Advanced, Basic} <= known
    unkept = {FromRule, Products, Steps}  # the last one is of shared releases, never at a root
    assert known - set(BY_CLASS) == unkept


def _fields(cls):
    return {field.name for field in dataclasses.fields(cls) if field.init}


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.tag)
def test_every_field_is_in_the_table(kind):
    """By a key of its own; a field that is added must be written, or the class is refused."""
    if kind.tag == "function":  # a class with slots
        return
    parts = set(kind.parts(_one(kind)))
    named_tuple = not dataclasses.is_dataclass(kind.cls)
    names = set(kind.cls._fields) if named_tuple else _fields(kind.cls)
    assert len(kind.keys) == len(names)
    assert parts <= set(kind.keys)
    if kind.tag != "pair":
        assert parts == set(kind.keys)
    if named_tuple:
        more = NamedTuple("More", [(name, object) for name in (*names, "added")])
    else:
        fields = [("added", int, 0)]
        more = dataclasses.make_dataclass("More", fields, bases=(kind.cls,), frozen=True)
    attributes = {name: name for name in names}
    check_fields(kind.cls, attributes)
    with pytest.raises(InvalidValueError, match="lacks added: a field without a key"):
        check_fields(more, attributes)


def _one(kind):
    value = RECORDS[kind.tag][0]
    if type(value) is not kind.cls:
        (value,) = value.product.factors
    return value


# --- terms -----------------------------------------------------------------------------------


def terms_of(measure, accounting, d_out):
    return Terms(measure, accounting, "SymmetricDistance()", 1, d_out)


PAIRS = terms_of("Approximate(MaxDivergence)", zcdp(0.25), (2.0, 0.25))


def test_terms_say_their_form_and_leave_out_what_follows_from_the_measure():
    text = write_terms(PAIRS)
    assert text == (
        f'{{"accumulator":{{"zcdp":{{"slack":{QUARTER}}}}},"d_in":1,"d_out":[{TWO},{QUARTER}],'
        '"form":2,"measure":{"approximate":{}},"metric":"SymmetricDistance()"}'
    )
    assert read_terms(text) == PAIRS


@pytest.fixture
def theirs():
    """The name of a measure that another package registered."""
    dp.enable_features("contrib", "honest-but-curious")

    @opendp_concurrent.extend.register()
    class Theirs(PairMeasure):
        kind = "toy.Theirs"
        reason = "it is never launched under"
        distance_form = "a pair"

        def opendp(self):
            return dp.user_divergence(self.kind, self.kind)

    return Theirs.kind


def test_a_measure_of_another_package_is_written_by_its_name(theirs):
    outside = dataclasses.replace(PAIRS, measure=theirs, accumulator=basic())
    shape = json.loads(write_terms(outside))
    assert shape["measure"] == theirs
    assert read_terms(write_terms(outside)) == outside
    unknown = json.dumps(shape | {"measure": "toy.Unknown"})
    with pytest.raises(UnregisteredError, match=r"toy\.Unknown.*extend\.register"):
        read_terms(unknown)


def refused_terms(shape):
    text = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    with pytest.raises(LedgerDamagedError, match="the terms are unreadable"):
        read_terms(text)


def test_terms_have_one_text():
    shape = json.loads(write_terms(PAIRS))
    for change in (
        {"measure": "Approximate(MaxDivergence)"},
        {"measure": {"approximate": {"order": 1}}},
        {"measure": {"unknown": {}}},
        {"measure": {"fixed-renyi": {}}},
        {"accumulator": {"Zcdp": {"delta_slack": {"double": "0x1.0000000000000p-2"}}}},
        {"more": 1},
        *({"form": form} for form in ("2", None, True, 2.0, [2])),
    ):
        refused_terms(shape | change)
    for key in shape:
        refused_terms({name: one for name, one in shape.items() if name != key})


@pytest.mark.parametrize(("form", "version"), [(1, "an older"), (3, "a newer")])
def test_another_form_is_named(form, version):
    shape = json.loads(write_terms(PAIRS)) | {"form": form}
    with pytest.raises(
        LedgerError, match=f"in form {form}; .* reads form 2: use {version} version"
    ):
        read_terms(json.dumps(shape))


def test_text_that_is_none_has_no_record():
    for text in ("\0", "a\ud800"):
        with pytest.raises(InvalidTypeError, match="lone surrogate"):
            encode("d_in", text)
        with pytest.raises(InvalidValueError, match="not an exact record"):
            decode(json.dumps(text))
    for metric in ("a\ud800", "\0"):
        shape = json.loads(write_terms(PAIRS)) | {"metric": metric}
        refused_terms(shape)


@pytest.mark.parametrize("name", ["measure", "metric"])
def test_names_in_terms_must_be_text(store, name):
    terms = dataclasses.replace(PAIRS, **{name: 1})
    with pytest.raises(InvalidTypeError, match=f"put_{name} must be a string"):
        store.create().book(terms)


# --- the hash of a charge: of all that it says, and of all before it -----------------------------


def test_the_hashes_are_those_of_the_texts():
    """Pinned: another version must not make others under the same schema."""
    text = '["opendp_concurrent",1,"survey",null]'
    assert first_hash("survey", None) == sha256(text.encode()).hexdigest()
    text = (
        '["00","survey",1,1700000000000000,"mean","laplace(scale=2.0)","{\\"double\\":\\"0x0\\"}"]'
    )
    d_mid = canonical('{"double":"0x0"}')
    found = hasher("survey", "mean", "laplace(scale=2.0)")("00", 1, 1_700_000_000_000_000, d_mid)
    assert found == sha256(text.encode()).hexdigest()


TEXTS = st.text() | st.sampled_from(['"', "\\", "\n", "\u2028", "\x7f", "é", "\U0001f600", "{}"])


@given(
    dataset=TEXTS,
    label=TEXTS,
    mechanism=TEXTS,
    d_mid=TEXTS,
    sequence=st.integers(),
    time=st.integers(),
)
def test_the_hash_of_alike_charges_is_that_of_each(
    dataset, label, mechanism, d_mid, sequence, time
):
    before = first_hash("survey", None)
    alike = hasher(dataset, label, mechanism)
    charge = (dataset, sequence, time, label, mechanism, d_mid)
    assert alike(before, sequence, time, canonical(d_mid)) == next_hash(before, charge)


# --- A measure is written as its tag and its parameters; tags never change -----------------------

ORDER = {"order": {"double": "0x1.199999999999ap+0"}}
WRITTEN = {  # for ever
    dp.max_divergence: ("MaxDivergence", {"pure": {}}),
    lambda: dp.approximate(dp.max_divergence()): (
        "Approximate(MaxDivergence)",
        {"approximate": {}},
    ),
    dp.zero_concentrated_divergence: ("ZeroConcentratedDivergence", {"zcdp": {}}),
    lambda: dp.approximate(dp.zero_concentrated_divergence()): (
        "Approximate(ZeroConcentratedDivergence)",
        {"approximate-zcdp": {}},
    ),
    dp.renyi_divergence: ("RenyiDivergence", {"renyi": {}}),
    lambda: oc.fixed_renyi_divergence(1.1): (
        "FixedRenyiDivergence(alpha=1.1)",
        {"fixed-renyi": ORDER},
    ),
    lambda: oc.fixed_renyi_divergence(1e300): (
        "FixedRenyiDivergence(alpha=1e+300)",
        {"fixed-renyi": {"order": {"double": "0x1.7e43c8800759cp+996"}}},
    ),
    lambda: oc.approximate_renyi_divergence(1.1): (
        "ApproximateRenyiDivergence(alpha=1.1)",
        {"approximate-renyi": ORDER},
    ),
    lambda: oc.truncated_concentrated_divergence(2.5): (
        "TruncatedConcentratedDivergence(omega=2.5)",
        {"tcdp": {"omega": {"double": "0x1.4000000000000p+1"}}},
    ),
    lambda: oc.truncated_concentrated_divergence(inf): (
        "TruncatedConcentratedDivergence(omega=inf)",
        {"tcdp": {"omega": {"double": "inf"}}},
    ),
    oc.gaussian_tradeoff: ("GaussianTradeoff", {"gdp": {}}),
    oc.tradeoff: ("Tradeoff", {"fdp": {}}),
}


def test_every_measure_has_a_tag_that_never_changes():
    found = set()
    for make, (name, shape) in WRITTEN.items():
        assert composition_measure(make()).name == name
        assert measures.written(name) == shape
        assert measures.read(shape) == name
        found |= {*shape}
    ours = [one for one in registered() if one.__module__.startswith("opendp_concurrent.")]
    assert found == {one.tag for one in ours}
    assert len(found) == len(ours)


@pytest.mark.parametrize(
    "name",
    ["", "MaxDivergence()", "FixedRenyiDivergence", "FixedRenyiDivergence(alpha=02.0)"],
)
def test_a_name_that_is_no_measure_of_ours_is_written_as_it_is(name):
    assert measures.written(name) == measures.read(name) == name


# --- what a budget is about is settled once; under anything else it is refused, with both val ----


def bounded(*arguments, **options):
    return lambda ledger: a_filter(*arguments, ledger=ledger, **options)


def unbounded(ledger):
    return an_odometer(ledger=ledger, d_in=1)(DATA)


def pairs(accumulator):
    return bounded((1.0, 1e-6), APPROXIMATE, accumulator)


def of_order(alpha):
    return bounded(measure=oc.fixed_renyi_divergence(alpha))


def on_orders(*orders):
    return bounded(lambda alpha: alpha, RENYI, orders=orders)


NONE, SETTLED = "no bound (an odometer)", oc.accumulators.advanced(1e-7)
OTHERS = (oc.accumulators.basic(), oc.accumulators.advanced(2e-7), oc.accumulators.zcdp(1e-7))
MISMATCHES = {  # what is settled, what is given, and what the error says
    "d_out": (bounded(), bounded(2.0), "d_out", "1.0", "2.0"),
    "ulp": (bounded(), bounded(1.0000000000000002), "d_out", "1.0", "1.0000000000000002"),
    "d_in": (bounded(), bounded(d_in=2), "d_in", "1", "2"),
    "measure": (
        *(bounded(), bounded(measure=ZCDP)),
        *("output_measure", "MaxDivergence", "ZeroConcentratedDivergence"),
    ),
    "order": (of_order(2.0), of_order(3.0), "output_measure", "alpha=2.0", "alpha=3.0"),
    **{
        str(one): (pairs(SETTLED), pairs(one), "accumulator", str(SETTLED), str(one))
        for one in OTHERS
    },
    "orders": (on_orders(2.0, 4.0), on_orders(2.0, 5.0), "accumulator", "4.0", "5.0"),
    "an odometer": (bounded(), unbounded, "d_out", "1.0", NONE),
    "a filter": (unbounded, bounded(), "d_out", NONE, "1.0"),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_other_terms_are_refused(sqlite, case):
    settle, give, name, recorded, given = MISMATCHES[case]
    settle(sqlite.create())
    before = sqlite.rows()
    with pytest.raises(LedgerMismatchError, match="create another ledger") as raised:
        give(sqlite.open())
    error = raised.value
    assert (error.name, sqlite.rows()) == (name, before)
    assert (recorded in str(error.recorded), given in str(error.given)) == (True, True)


def test_the_same_terms_are_accepted_in_every_process(store):
    bounded()(store.create())
    bounded()(store.open())
    bounded(1)(store.open())  # of d_out, 1 is 1.0


def test_what_has_no_exact_form_settles_nothing(sqlite):
    class Own:
        start = 0

        def after(self, state, d_mid):
            return state + d_mid

        def continues(self, state, d_out):
            return state <= d_out

    ledger = sqlite.create()
    with pytest.raises(InvalidTypeError, match="accumulator .* cannot be kept in a ledger"):
        bounded(accumulator=oc.accumulators.from_rule(Own()))(ledger)
    assert ledger.summary().terms is None
