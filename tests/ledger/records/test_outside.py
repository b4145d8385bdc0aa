"""Accumulators and distances of other packages are kept, once their classes are registered."""

from dataclasses import dataclass
from typing import Any

import pytest

from opendp_concurrent._checks import BY_CLASS, KINDS
from opendp_concurrent.accounting.epsilon_delta import basic
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.accounting.store import Charge, Terms
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    LedgerDamagedError,
    LedgerError,
    LedgerMismatchError,
    UnregisteredError,
)
from opendp_concurrent.ledger import register_tag
from opendp_concurrent.ledger.encoding import decode, encode

TOYS = '''
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import opendp_concurrent as oc


@oc.extend.register("acme:cost", fields={"amount": "amount", "of": "unit"})
@dataclass(frozen=True)
class Cost:
    """A distance: so many of one unit."""

    amount: float
    unit: Any

    def __le__(self, other):
        return self.unit == other.unit and self.amount <= other.amount


@dataclass(frozen=True)
class Spent:
    weights: Any
    total: Fraction = Fraction(0)

    @property
    def loss(self):
        return Cost(float(self.total), self.weights.unit)

    def read(self, d_mid):
        return d_mid

    def after(self, d_mid, count=1):
        if type(d_mid) is not Cost or d_mid.unit != self.weights.unit or not d_mid.amount >= 0:
            raise ValueError("no cost")
        return replace(self, total=self.total + count * Fraction(d_mid.amount))

    def within(self, d_out):
        return self.total <= Fraction(d_out.amount)

    def remaining(self, d_out):
        return Cost(float(Fraction(d_out.amount) - self.total), self.weights.unit)

    def to_record(self):
        return [self.total.numerator, self.total.denominator]


@oc.extend.register("acme:weighted", fields={"of": "unit", "inner": "inner"})
@dataclass(frozen=True)
class Weighted:
    """An accounting: adds up costs of one unit."""

    unit: Any
    inner: Any = None

    def start(self, zero):
        return Spent(self)

    def from_record(self, zero, record):
        return Spent(self, Fraction(*record))
'''


@pytest.fixture
def registry():
    """What is registered in a test is forgotten after it."""
    before = dict(KINDS), dict(BY_CLASS)
    decode.cache_clear()
    yield
    for table, kinds in zip((KINDS, BY_CLASS), before, strict=True):
        table.clear()
        table.update(kinds)
    decode.cache_clear()


@pytest.fixture
def toys(registry):
    """The classes of another package."""
    found: dict[str, Any] = {"__name__": "acme"}
    exec(TOYS, found)
    return found


def terms(toys, unit="euro", d_out=8.0):
    cost, weighted = toys["Cost"], toys["Weighted"]
    bound = None if d_out is None else cost(d_out, unit)
    accounting = weighted(unit, basic())
    return Terms("Costs", accounting, "SymmetricDistance()", 1, bound)


def launch(book, d_mid):
    with book.turn() as turn:
        after = Within(book._terms.d_out).admits(turn.accumulator, d_mid)
        turn.write(Charge(d_mid, "theirs", ""), after)


def test_a_budget_of_another_package_is_kept_and_goes_on(store, toys):
    cost = toys["Cost"]
    launch(store.create().book(terms(toys)), cost(2.0, "euro"))
    ((text,),) = store.execute("SELECT d_mid FROM opendp_concurrent_charges")
    assert text == '{"acme:cost":{"amount":{"double":"0x1.0000000000000p+1"},"of":"euro"}}'
    ledger = store.open()
    book = ledger.book(terms(toys))
    for amount in (1.0, 0.5):
        launch(book, cost(amount, "euro"))
    assert book.read().loss == cost(3.5, "euro")
    summary, entries = store.open().read()
    assert summary.terms == terms(toys)
    assert summary.spent == cost(3.5, "euro")
    assert summary.remaining == cost(4.5, "euro")
    assert [entry.d_mid for entry in entries] == [cost(one, "euro") for one in (2.0, 1.0, 0.5)]
    assert len(ledger.to_dp_events().events) == 3
    for other in (terms(toys, "dollar"), terms(toys, d_out=9.0), terms(toys, d_out=None)):
        with pytest.raises(LedgerMismatchError):
            store.open().book(other)


@pytest.mark.parametrize("forgotten", ["acme:cost", "acme:weighted"])
def test_every_reader_names_the_tag_that_is_missing(store, toys, forgotten):
    ledger = store.create()
    book = ledger.book(terms(toys))
    launch(book, toys["Cost"](2.0, "euro"))
    kind = KINDS.pop(forgotten)
    BY_CLASS.pop(kind.cls)
    decode.cache_clear()
    for read in (store.open, ledger.summary, ledger.entries, ledger.to_dp_events):
        with pytest.raises(UnregisteredError, match=f"tag '{forgotten}'.*extend.register") as told:
            read()
        assert told.value.tag == forgotten
        assert isinstance(told.value, LedgerError)
        assert not isinstance(told.value, LedgerDamagedError)
    with pytest.raises(InvalidTypeError, match="register the class with opendp_concurrent.extend"):
        ledger.book(terms(toys))
    register_tag(forgotten, kind.cls, {key: {"of": "unit"}.get(key, key) for key in kind.keys})
    assert store.open().summary().launches == 1


def test_a_class_is_renamed_and_its_records_stay(store, toys):
    launch(store.create().book(terms(toys)), toys["Cost"](2.0, "euro"))
    for tag in ("acme:cost", "acme:weighted"):
        BY_CLASS.pop(KINDS.pop(tag).cls)
    decode.cache_clear()
    found: dict[str, Any] = {"__name__": "acme.later"}
    renamed = TOYS.replace("Cost", "Price").replace("Weighted", "Sums")
    exec(
        renamed.replace('"amount": "amount"', '"amount": "how_much"')
        .replace("amount: float", "how_much: float")
        .replace(".amount", ".how_much"),
        found,
    )
    later = {"Cost": found["Price"], "Weighted": found["Sums"]}
    ledger = store.open()
    assert ledger.summary().spent == found["Price"](2.0, "euro")
    launch(ledger.book(terms(later)), found["Price"](1.0, "euro"))
    assert store.open().summary().launches == 2


# --- what is refused -------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    first: float = 0.0
    second: Any = None


FIELDS = {"first": "first", "second": "second"}


class Sub(Plain):
    pass


def test_values_of_other_classes_are_refused_before_anything_is_written(store, registry):
    register_tag("acme:plain", Plain, FIELDS)
    assert decode(encode("x", Plain(1.0, (1, "a", None)))) == Plain(1.0, (1, "a", None))
    for value in (Sub(1.0), Plain(1.0, Sub(1.0)), Plain(1.0, [1]), Plain(1.0, object())):
        with pytest.raises(InvalidTypeError, match="x .* cannot be kept in a ledger"):
            encode("x", value)


class Odd:
    """Its parts say something else than it is, in one way or another."""

    def __init__(self, value=0, how="less"):
        self.value, self.how = value, how

    def __eq__(self, other):
        if other.how == "raises":
            raise RuntimeError("no")
        return type(other) is type(self) and self.value == other.value

    __hash__ = None

    @property
    def parts(self):
        return {"less": 0, "raises": self.value}[self.how]


def test_what_does_not_come_back_is_refused(registry):
    register_tag("acme:odd", Odd, {"value": "parts"}, make=lambda value: Odd(value))
    assert encode("x", Odd(0)) == '{"acme:odd":{"value":0}}'
    for value, said in (
        (Odd(1), "do not make an equal value"),
        (Odd(1, "raises"), "its parts cannot be read"),
        (Odd(1, "missing"), "its parts cannot be read"),
    ):
        with pytest.raises(InvalidTypeError, match=said):
            encode("x", value)


def test_what_is_written_and_cannot_be_made_is_no_record(registry):
    def make(value):
        raise RuntimeError("whatever it raises")

    register_tag("acme:odd", Odd, {"value": "value"}, make=make)
    for text in ('{"value":1}', "{}", '{"parts":1}', "1"):
        with pytest.raises(InvalidValueError, match="not an exact record"):
            decode(f'{{"acme:odd":{text}}}')
    with pytest.raises(UnregisteredError, match="acme:unknown"):
        decode('[{"acme:unknown":1}]')


def test_make_must_be_a_function(registry):
    with pytest.raises(InvalidTypeError, match="make must be a function, found 1"):
        register_tag("acme:plain", Plain, FIELDS, make=1)


def test_a_tag_and_a_class_are_registered_once(registry):
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
        @dataclass(frozen=True)
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


class Forgetful(Odd):
    """An accounting whose record is not what it was, or not JSON."""

    def start(self, zero):
        return self

    def from_record(self, zero, record):
        return Forgetful([4])

    def to_record(self):
        return self.value

    def __eq__(self, other):
        return type(other) is Forgetful

    __hash__ = None
    loss = 0.0


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
