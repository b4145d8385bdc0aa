"""What a ledger writes of values, measures and terms: in tables, exact, one text for each value."""

import dataclasses
import importlib
import inspect
import json
import math
import pkgutil
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent import TradeoffFunction as F
from opendp_concurrent import TruncatedConcentrated
from opendp_concurrent._checks import BY_CLASS, KINDS, check_fields
from opendp_concurrent.accounting.best_rule import any_time, renyi, zcdp
from opendp_concurrent.accounting.epsilon_delta import Advanced, advanced, basic, either
from opendp_concurrent.accounting.ladder import ladder, residue
from opendp_concurrent.accounting.rule import FromRule, Within
from opendp_concurrent.accounting.store import Charge, Terms
from opendp_concurrent.composition.block_totals import OnEachBlock, OnKeys
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    LedgerDamagedError,
    LedgerError,
    LedgerMismatchError,
    UnregisteredError,
)
from opendp_concurrent.ledger import encoding, register_tag
from opendp_concurrent.ledger.charges import LimitedCharge, Opened, read_terms, write_terms
from opendp_concurrent.ledger.encoding import decode, encode
from opendp_concurrent.measures import composition_measure, registered
from opendp_concurrent.measures.measure import Basic
from opendp_concurrent.measures.renyi import GridCurve, OnOrders
from opendp_concurrent.measures.shapes import PairMeasure
from opendp_concurrent.measures.slots import Products
from opendp_concurrent.serving.shared_release import _Steps as Steps

from ..build import APPROXIMATE, DATA, PURE, RENYI, ZCDP, a_filter, an_odometer

QUARTER = '{"double":"0x1.0000000000000p-2"}'
INFINITE, TWO = '{"double":"inf"}', '{"double":"0x1.0000000000000p+1"}'
WORST = (
    '"gaussian":{"double":"inf"},"infinite":{"double":"0x1.0000000000000p+0"},'
    '"limit":{"double":"inf"},"loss_error":{"double":"0x0.0p+0"},"losses":{"doubles":""},'
    '"mass_error":{"double":"0x0.0p+0"},"masses":{"doubles":""},'
    '"never":{"double":"0x1.0000000000000p+0"},"slack":{"double":"0x0.0p+0"},"symmetric":true'
)
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


def test_what_is_written_of_a_value_never_changes():
    assert RECORDS.keys() == {tag for tag in KINDS if ":" not in tag}
    for value, now in RECORDS.values():
        assert encode("x", value) == now
        assert decode(now) == value


def test_every_accounting_of_the_package_is_written_or_refused():
    """One that is added, and forgotten in the table, fails here."""
    known = set()
    for module in pkgutil.walk_packages(oc.__path__, "opendp_concurrent."):
        if "plot" in module.name or "verify" in module.name or module.name.endswith("__main__"):
            continue
        for _, one in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if one.__module__ == module.name and dataclasses.is_dataclass(one):
                known |= {one} if callable(getattr(one, "start", None)) else set()
    assert {Advanced, Basic} <= known
    unkept = {FromRule, Products, Steps}  # the last one is of shared releases, never at a root
    assert known - set(BY_CLASS) == unkept


@pytest.mark.parametrize("tag", sorted(RECORDS.keys() - {"function"}))
def test_every_field_is_in_the_table(tag):
    """By a key of its own; a field that is added must be written, or the class is refused."""
    kind, value = KINDS[tag], RECORDS[tag][0]
    if type(value) is not kind.cls:
        (value,) = value.product.factors
    fields = getattr(kind.cls, "_fields", None) or [
        one.name for one in dataclasses.fields(kind.cls) if one.init
    ]
    assert len(kind.keys) == len(fields)
    parts = set(kind.parts(value))
    assert parts == set(kind.keys) or (tag == "pair" and parts < set(kind.keys))
    check_fields(kind.cls, {name: name for name in fields})
    for name in fields:
        with pytest.raises(InvalidValueError, match=f"lacks {name}: a field without a key"):
            check_fields(kind.cls, {one: one for one in fields if one != name})


# --- distances ---------------------------------------------------------------------------------

LOSSES = st.floats(min_value=0.0, allow_nan=False)


FINITE, INFINITE_LOSSES = (
    F.finite([0.2, 0.5, 0.3], [0.5, 0.4, 0.1]),
    F.finite([0.3, 0.5, 0.2, 0.0], [0.0, 0.3, 0.6, 0.1]),
)
FUNCTIONS = {
    "identity": F.identity(),
    "worst": F.worst(),
    "approximate": F.approximate(0.3, 1e-7),
    "tiny gaussian": F.gaussian(5e-324),
    "fine laplace": F.laplace(0.7, 10_000.0),
    "discrete laplace": F.discrete_laplace(3.0, 2),
    "discrete gaussian": F.discrete_gaussian(2.0),
    "randomized response": F.randomized_response(0.6, 3),
    "profile of two directions": F.from_profile([0.0, 1.0], [0.3, 0.1], [0.3, 0.2]),
    "loss distribution": F.from_loss_distribution([0.5, -0.5], [0.65, 0.3], 0.05),
    "mixture": F.mixture([1, 2], [F.pure(0.5), F.gaussian(0.3)]),
    "inverse with infinite losses": INFINITE_LOSSES.inverse(),
    "inverse twice": FINITE.inverse().inverse(),
    "symmetrised": FINITE.symmetrised(),
    "group": F.laplace(0.7).group(3),
    "power": F.laplace(0.7).power(50),
    "product with its inverse": F.laplace(0.1).compose(FINITE).compose(FINITE.inverse()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_trade_off_function_survives_with_all_that_it_says(name):
    function = FUNCTIONS[name]
    text = encode("d_mid", function)
    again = decode(text)
    assert again == function
    assert hash(again) == hash(function)
    assert encode("d_mid", again) == text
    epsilons = np.array([-1.0, 0.0, 0.1, 0.5, 2.0])
    for one, other in zip(
        again.delta_bounds(epsilons), function.delta_bounds(epsilons), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)  # sums, in the order of the text
    assert again.inverse() == function.inverse()
    assert again.compose(function) == function.power(2)


def test_products_keep_their_order_and_are_equal_in_any():
    """What is decoded adds up as what was encoded did, to the last digit."""
    one, other = F.laplace(0.1), F.finite([0.2, 0.8], [0.8, 0.2])
    product, turned = one.compose(other), other.compose(one)
    assert product == turned
    for function in (product, turned):
        assert list(decode(encode("f", function)).product.factors) == list(function.product.factors)
    assert encode("f", F.gaussian(0.3).compose(F.gaussian(0.4))) != encode("f", F.gaussian(0.3))
    assert encode("f", F.pure(0.5)) == encode("f", F.approximate(0.5, 0.0))


def test_a_value_of_another_type_is_another_text():
    texts = {encode("x", value) for value in (1, 1.0, True, "1", (1.0,), None, -0.0, 0.0)}
    assert len(texts) == 8


@given(
    LOSSES
    | st.tuples(LOSSES, st.floats(0.0, 1.0))
    | st.builds(oc.TruncatedConcentrated, LOSSES, st.floats(min_value=1.0, exclude_min=True))
    | st.tuples(LOSSES, LOSSES).map(lambda values: GridCurve((1.5, 64.0), values))
)
@example(5e-324)
@example(math.inf)
def test_losses_survive_bit_for_bit(loss):
    text = encode("d_mid", loss)
    again = decode(text)
    assert (type(again), again, encode("d_mid", again)) == (type(loss), loss, text)


def test_what_has_no_exact_form_is_refused_by_name():
    for value in (len, [1.0], {1.0}, np.float64(1.0), np.ones(2, dtype=np.float32)):
        with pytest.raises(InvalidTypeError, match="d_mid .* cannot be kept in a ledger"):
            encode("d_mid", value)


OTHER_TEXTS = [
    '{"double": "0x1.0000000000000p+0"}',
    '{"double":"1.0"}',
    '{"double":"0x2.0000000000000p+0"}',
    '{"double":"0x1p99999"}',
    '{"double":1}',
    '{"double":"0x1.0000000000000p+0","more":1}',
    '{"tcdp":{"rho":{"double":"0x1.0000000000000p+0"}}}',
    '{"tcdp":{"omega":{"double":"inf"},"rho":{"double":"-0x1.0000000000000p+0"}}}',
    '{"tcdp":{"rho":{"double":"0x1.0000000000000p+0"},"omega":{"double":"inf"}}}',
    '{"tcdp":{"more":1,"omega":{"double":"inf"},"rho":{"double":"0x1.0000000000000p+0"}}}',
    '{"function":{"squares":"0x0"}}',
    '{"function":{"squares":"0x0","factors":[]}}',
    '{"function":{"factors":[],"squares":"0x00"}}',
    '{"function":{"factors":[[{"double":"inf"},1]],"squares":"0x0"}}',
    '{"function":{"factors":[[1]],"squares":"0x0"}}',
    *('{"pair":{}}', '{"doubles":"AA"}', '{"doubles":"AAAA"}', '{"swapped":1}'),
]


def test_other_texts_are_refused():
    for text in OTHER_TEXTS:
        with pytest.raises(InvalidValueError, match="not an exact record"):
            decode(text)


# --- measures ----------------------------------------------------------------------------------

ORDER = {"order": {"double": "0x1.199999999999ap+0"}}
WRITTEN = [  # measures, their names, and what is written of them, for ever
    (PURE, "MaxDivergence", {"pure": {}}),
    (APPROXIMATE, "Approximate(MaxDivergence)", {"approximate": {}}),
    (ZCDP, "ZeroConcentratedDivergence", {"zcdp": {}}),
    (
        dp.approximate(ZCDP),
        "Approximate(ZeroConcentratedDivergence)",
        {"approximate-zcdp": {}},
    ),
    (RENYI, "RenyiDivergence", {"renyi": {}}),
    (oc.fixed_renyi_divergence(1.1), "FixedRenyiDivergence(alpha=1.1)", {"fixed-renyi": ORDER}),
    (
        oc.approximate_renyi_divergence(1.1),
        "ApproximateRenyiDivergence(alpha=1.1)",
        {"approximate-renyi": ORDER},
    ),
    (
        oc.truncated_concentrated_divergence(2.5),
        "TruncatedConcentratedDivergence(omega=2.5)",
        {"tcdp": {"omega": {"double": "0x1.4000000000000p+1"}}},
    ),
    (
        oc.truncated_concentrated_divergence(inf),
        "TruncatedConcentratedDivergence(omega=inf)",
        {"tcdp": {"omega": {"double": "inf"}}},
    ),
    (oc.gaussian_tradeoff(), "GaussianTradeoff", {"gdp": {}}),
    (oc.tradeoff(), "Tradeoff", {"fdp": {}}),
]


def test_every_measure_has_a_tag_that_never_changes():
    found = set()
    for measure, name, shape in WRITTEN:
        assert composition_measure(measure).name == name
        assert encoding.written(name) == shape
        assert encoding.read(shape) == name
        found |= {*shape}
    ours = [one for one in registered() if one.__module__.startswith("opendp_concurrent.")]
    assert found == {one.tag for one in ours}
    assert len(found) == len(ours)
    for name in ("", "MaxDivergence()", "FixedRenyiDivergence(alpha=02.0)"):  # no name of ours
        assert encoding.written(name) == encoding.read(name) == name


# --- terms -----------------------------------------------------------------------------------


PAIRS = Terms("Approximate(MaxDivergence)", zcdp(0.25), "SymmetricDistance()", 1, (2.0, 0.25))


def test_terms_say_their_form_and_leave_out_what_follows_from_the_measure():
    text = write_terms(PAIRS)
    assert text == (
        f'{{"accumulator":{{"zcdp":{{"slack":{QUARTER}}}}},"d_in":1,"d_out":[{TWO},{QUARTER}],'
        '"form":2,"measure":{"approximate":{}},"metric":"SymmetricDistance()"}'
    )
    assert read_terms(text) == PAIRS


def test_a_measure_of_another_package_is_written_by_its_name(registry):
    @oc.extend.register()
    class Theirs(PairMeasure):
        kind = "toy.Theirs"
        reason = "it is never launched under"
        distance_form = "a pair"

        def opendp(self):
            return dp.user_divergence(self.kind, self.kind)

    outside = dataclasses.replace(PAIRS, measure=Theirs.kind, accumulator=basic())
    shape = json.loads(write_terms(outside))
    assert shape["measure"] == Theirs.kind
    assert read_terms(write_terms(outside)) == outside
    unknown = json.dumps(shape | {"measure": "toy.Unknown"})
    with pytest.raises(UnregisteredError, match=r"toy\.Unknown.*extend\.register"):
        read_terms(unknown)


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
        *({"metric": text} for text in ("a\ud800", "\0")),
        *({key: ...} for key in shape),  # one is left out
    ):
        changed = {key: one for key, one in (shape | change).items() if one is not ...}
        text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
        with pytest.raises(LedgerDamagedError, match="the terms are unreadable"):
            read_terms(text)


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


@pytest.mark.parametrize("name", ["measure", "metric"])
def test_names_in_terms_must_be_text(sqlite, name):
    terms = dataclasses.replace(PAIRS, **{name: 1})
    with pytest.raises(InvalidTypeError, match=f"put_{name} must be a string"):
        sqlite.create().book(terms)


def bounded(*arguments, **options):
    return lambda ledger: a_filter(*arguments, ledger=ledger, **options)


def unbounded(ledger):
    return an_odometer(ledger=ledger, d_in=1)(DATA)


def of_order(alpha):
    return bounded(measure=oc.fixed_renyi_divergence(alpha))


def on_orders(*orders):
    return bounded(lambda alpha: alpha, RENYI, orders=orders)


def pairs(accumulator):
    return bounded((1.0, 1e-6), APPROXIMATE, accumulator)


NONE, SETTLED, OTHER = "no bound (an odometer)", advanced(1e-7), advanced(2e-7)
MISMATCHES = [  # what is settled, what is given, and what the error says
    (bounded(), bounded(2.0), "d_out", "1.0", "2.0"),
    (bounded(), bounded(1.0000000000000002), "d_out", "1.0", "1.0000000000000002"),
    (bounded(), bounded(d_in=2), "d_in", "1", "2"),
    (bounded(), bounded(measure=ZCDP), "output_measure", "Max", "ZeroConcentratedDivergence"),
    (of_order(2.0), of_order(3.0), "output_measure", "alpha=2.0", "alpha=3.0"),
    (pairs(SETTLED), pairs(OTHER), "accumulator", str(SETTLED), str(OTHER)),
    (pairs(SETTLED), pairs(basic()), "accumulator", str(SETTLED), str(basic())),
    (on_orders(2.0, 4.0), on_orders(2.0, 5.0), "accumulator", "4.0", "5.0"),
    (bounded(), unbounded, "d_out", "1.0", NONE),
    (unbounded, bounded(), "d_out", NONE, "1.0"),
]


def test_terms_are_settled_once_and_others_are_refused(sqlite):
    for number, (settle, give, name, recorded, other) in enumerate(MISMATCHES):
        settle(sqlite.create(f"budget {number}"))
        settle(sqlite.open(f"budget {number}"))  # the same ones are accepted
        before = sqlite.rows()
        with pytest.raises(LedgerMismatchError, match="create another ledger") as raised:
            give(sqlite.open(f"budget {number}"))
        error = raised.value
        assert (error.name, sqlite.rows()) == (name, before)
        assert (recorded in str(error.recorded), other in str(error.given)) == (True, True)
    bounded(1)(sqlite.open("budget 0"))  # of d_out, 1 is 1.0


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


# --- classes of other packages -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cost:
    """A distance: so many of one unit."""

    amount: float
    unit: Any

    def __le__(self, other):
        return self.unit == other.unit and self.amount <= other.amount


@dataclasses.dataclass(frozen=True)
class Spent:
    unit: Any
    total: Fraction = Fraction(0)

    @property
    def loss(self):
        return Cost(float(self.total), self.unit)

    def after(self, d_mid, count=1):
        if type(d_mid) is not Cost or d_mid.unit != self.unit or not d_mid.amount >= 0:
            raise ValueError("no cost")
        return Spent(self.unit, self.total + count * Fraction(d_mid.amount))

    def within(self, d_out):
        return self.total <= Fraction(d_out.amount)

    def remaining(self, d_out):
        return Cost(float(Fraction(d_out.amount) - self.total), self.unit)

    def to_record(self):
        return [self.total.numerator, self.total.denominator]


@dataclasses.dataclass(frozen=True)
class Weighted:
    """An accumulator: adds up costs of one unit."""

    unit: Any
    inner: Any = None

    def start(self, zero):
        return Spent(self.unit)

    def from_record(self, zero, record):
        return Spent(self.unit, Fraction(*record))


def forget(tag):
    BY_CLASS.pop(KINDS.pop(tag).cls)
    decode.cache_clear()


@pytest.fixture
def registry():
    """What is registered in a test is forgotten after it."""
    before = dict(KINDS), dict(BY_CLASS)
    yield
    for table, kinds in zip((KINDS, BY_CLASS), before, strict=True):
        table.clear()
        table.update(kinds)
    decode.cache_clear()


TAGS = {
    "acme:cost": (Cost, {"amount": "amount", "of": "unit"}),
    "acme:weighted": (Weighted, {"of": "unit", "inner": "inner"}),
}


@pytest.fixture
def toys(registry):
    for tag, (cls, fields) in TAGS.items():
        register_tag(tag, cls, fields)


def theirs(unit="euro", d_out=8.0):
    bound = None if d_out is None else Cost(d_out, unit)
    return Terms("Costs", Weighted(unit, basic()), "SymmetricDistance()", 1, bound)


def launch(book, d_mid):
    with book.turn() as turn:
        after = Within(book._terms.d_out).admits(turn.accumulator, d_mid)
        turn.write(Charge(d_mid, "theirs", ""), after)


def test_a_budget_of_another_package_is_kept_and_goes_on(store, toys):
    launch(store.create().book(theirs()), Cost(2.0, "euro"))
    ((text,),) = store.execute("SELECT d_mid FROM opendp_concurrent_charges")
    assert text == '{"acme:cost":{"amount":{"double":"0x1.0000000000000p+1"},"of":"euro"}}'
    ledger = store.open()
    book = ledger.book(theirs())
    for amount in (1.0, 0.5):
        launch(book, Cost(amount, "euro"))
    assert book.read().loss == Cost(3.5, "euro")
    summary, entries = store.open().read()
    assert summary.terms == theirs()
    assert (summary.spent, summary.remaining) == (Cost(3.5, "euro"), Cost(4.5, "euro"))
    assert [entry.d_mid for entry in entries] == [Cost(one, "euro") for one in (2.0, 1.0, 0.5)]
    assert len(ledger.to_dp_events().events) == 3
    for other in (theirs("dollar"), theirs(d_out=9.0), theirs(d_out=None)):
        with pytest.raises(LedgerMismatchError):
            store.open().book(other)


@pytest.mark.parametrize("forgotten", TAGS)
def test_every_reader_names_the_tag_that_is_missing(sqlite, toys, forgotten):
    ledger = sqlite.create()
    launch(ledger.book(theirs()), Cost(2.0, "euro"))
    forget(forgotten)
    for read in (sqlite.open, ledger.summary, ledger.entries, ledger.to_dp_events):
        with pytest.raises(UnregisteredError, match=f"tag '{forgotten}'.*extend.register") as told:
            read()
        assert told.value.tag == forgotten
        assert isinstance(told.value, LedgerError)
        assert not isinstance(told.value, LedgerDamagedError)
    with pytest.raises(InvalidTypeError, match="register the class with opendp_concurrent.extend"):
        ledger.book(theirs())
    register_tag(forgotten, *TAGS[forgotten])
    assert sqlite.open().summary().launches == 1


@dataclasses.dataclass(frozen=True)
class Plain:
    first: float = 0.0
    second: Any = None


FIELDS = {"first": "first", "second": "second"}


def test_values_of_other_classes_are_refused(registry):
    class Sub(Plain):
        """Not registered."""

    register_tag("acme:plain", Plain, FIELDS)
    assert decode(encode("x", Plain(1.0, (1, "a", None)))) == Plain(1.0, (1, "a", None))
    for value in (Sub(1.0), Plain(1.0, Sub(1.0)), Plain(1.0, [1]), Plain(1.0, object())):
        with pytest.raises(InvalidTypeError, match="x .* cannot be kept in a ledger"):
            encode("x", value)


class Odd:
    zero = 0

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Odd and self.value == other.value

    __hash__ = None


@pytest.mark.parametrize(
    ("attribute", "said"), [("zero", "do not make an equal value"), ("missing", "cannot be read")]
)
def test_what_does_not_come_back_is_refused(registry, attribute, said):
    register_tag("acme:odd", Odd, {"value": attribute}, make=Odd)
    with pytest.raises(InvalidTypeError, match=said):
        encode("x", Odd(1))


def test_what_is_written_and_cannot_be_made_is_no_record(registry):
    def make(value):
        raise RuntimeError("whatever it raises")

    register_tag("acme:odd", Odd, {"value": "value"}, make=make)
    for text in ('{"value":1}', "{}", '{"parts":1}', "1"):
        with pytest.raises(InvalidValueError, match="not an exact record"):
            decode(f'{{"acme:odd":{text}}}')
    with pytest.raises(UnregisteredError, match="acme:unknown"):
        decode('[{"acme:unknown":1}]')


def test_a_tag_and_a_class_are_registered_once(registry):
    with pytest.raises(InvalidTypeError, match="make must be a function, found 1"):
        register_tag("acme:plain", Plain, FIELDS, make=1)
    register_tag("acme:plain", Plain, FIELDS)
    register_tag("acme:plain", Plain, dict(reversed(FIELDS.items())))  # again, as modules do
    with pytest.raises(InvalidValueError, match="cls .* has the tag 'acme:plain'"):
        register_tag("acme:other", Plain, FIELDS)
    with pytest.raises(InvalidValueError, match="tag .* belongs to .*Plain.*use another tag"):
        register_tag("acme:plain", Odd, {"value": "value"})
    with pytest.raises(InvalidValueError, match="tag .* belongs to"):
        register_tag("acme:plain", Plain, {"first": "first", "other": "second"})
    assert encode("x", Plain(1.0)) == (
        '{"acme:plain":{"first":{"double":"0x1.0000000000000p+0"},"second":null}}'
    )


def test_a_class_that_is_defined_anew_takes_the_place_of_the_older(registry):
    """As in a notebook, where a cell is run again."""

    def define():
        @dataclasses.dataclass(frozen=True)
        class Cell:
            value: int

        return Cell

    older, newer = define(), define()
    register_tag("acme:cell", older, {"value": "value"})
    text = encode("x", older(1))
    assert decode(text) == older(1)
    register_tag("acme:cell", newer, {"value": "value"})
    assert type(decode(text)) is newer
    with pytest.raises(InvalidTypeError, match="Cell has no exact record"):
        encode("x", older(1))


class Forgetful:
    """An accumulator whose record is not what it was, or not JSON."""

    loss = 0.0

    def __init__(self, record):
        self.record = record

    def __eq__(self, other):
        return type(other) is Forgetful

    __hash__ = None

    def start(self, zero):
        return self

    def from_record(self, zero, record):
        return Forgetful([4])

    def to_record(self):
        return self.record


@pytest.mark.parametrize("record", [float("nan"), object(), {1: 2, "a": 3}, b"x", [3]])
def test_an_accumulator_whose_record_is_read_as_another_is_refused_before_it_is_settled(
    sqlite, registry, record
):
    register_tag("acme:forgetful", Forgetful, {}, make=lambda: Forgetful(record))
    ledger = sqlite.create()
    said = "its record, read again, gives another" if record == [3] else "its record cannot be"
    with pytest.raises(InvalidTypeError, match=said):
        ledger.book(Terms("Theirs", Forgetful(record), "", 1, None))
    assert ledger.summary().terms is None
