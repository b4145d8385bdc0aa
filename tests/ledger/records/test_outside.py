"""Accumulators and distances of other packages are kept, once their classes are registered."""

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
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
from opendp_concurrent.ledger.command import main
from opendp_concurrent.ledger.encoding import decode, encode

from ...forks import run_program

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


def test_what_is_written_has_tags_and_keys_only(store, toys):
    launch(store.create().book(terms(toys)), toys["Cost"](2.0, "euro"))
    ((text,),) = store.execute("SELECT d_mid FROM opendp_concurrent_charges")
    assert text == '{"acme:cost":{"amount":{"double":"0x1.0000000000000p+1"},"of":"euro"}}'
    ((text,),) = store.execute("SELECT terms FROM opendp_concurrent_budgets")
    shape = json.loads(text)
    assert shape["accumulator"] == {"acme:weighted": {"inner": {"basic": {}}, "of": "euro"}}
    assert shape["measure"] == "Costs"
    assert "Weighted" not in text


def test_a_process_that_does_not_register_the_class_is_told_its_tag(sqlite, toys, capsys):
    launch(sqlite.create().book(terms(toys)), toys["Cost"](2.0, "euro"))
    sqlite.close()
    code = (
        "from opendp_concurrent.ledger.command import main\n"
        "{toys}\n"
        f"raise SystemExit(main(['verify', {sqlite.address!r}]))"
    )
    for text, status, said in (
        ("", 1, "a value with the tag 'acme:weighted'.*import the package that defines it"),
        (TOYS, 0, "1 charges are consistent"),
    ):
        ran = run_program(code.replace("{toys}", text))
        assert ran.returncode == status, ran.stderr
        assert re.search(said, ran.stdout + ran.stderr)
    assert main(["show", sqlite.address, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["measure"], shown["launches"]) == ("Costs", 1)


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


# --- totals ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Near:
    """A total that two machines add up differently, of which it knows the larger, or does not."""

    total: float = 0.0

    @property
    def loss(self):
        return self.total

    def after(self, d_mid, count=1):
        return type(self)(self.total + count * d_mid)

    def to_record(self):
        return self.total.hex()


class Merging(Near):
    """One that knows."""

    def merged(self, other):
        larger = max(self.total, other.total)
        return type(self)(larger) if larger <= 2 * min(self.total, other.total) else None


@dataclass(frozen=True)
class Sums:
    """An accounting of one of them."""

    of: Any

    def start(self, zero):
        return Near() if self.of == "near" else Merging()

    def from_record(self, zero, record):
        return type(self.start(zero))(float.fromhex(record))


def test_totals_of_another_machine_are_merged_by_the_accumulator_or_refused(store, registry):
    """Nothing in the ledger knows these classes."""
    register_tag("acme:sums", Sums, {"of": "of"})
    for of, factor, spent in (
        ("near", 1.0, 0.5),
        ("near", 1.5, None),
        ("merging", 1.5, 0.75),
        ("merging", 0.75, 0.5),
        ("merging", 3.0, None),
    ):
        name = f"{of} {factor}"
        book = store.create(name).book(Terms("Theirs", Sums(of), "", 1, None))
        with book.turn() as turn:
            turn.write(Charge(0.5, "", ""), turn.accumulator.after(0.5))
        record = json.dumps((0.5 * factor).hex())
        store.execute(
            f"UPDATE opendp_concurrent_budgets SET record = '{record}' WHERE dataset = '{name}'"
        )
        if spent is None:
            with pytest.raises(LedgerDamagedError, match=r"total is (0\.75|1\.5)"):
                store.open(name)
        else:
            assert store.open(name).summary().spent == spent


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
        return type(other) is Odd and self.value == other.value

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
    with pytest.raises(InvalidValueError, match="not an exact record"):
        decode('{"acme:odd":{"value":1}}')
    for text in ('{"acme:odd":{}}', '{"acme:odd":{"parts":1}}', '{"acme:odd":1}'):
        with pytest.raises(InvalidValueError, match="not an exact record"):
            decode(text)
    for text in ('{"acme:unknown":{}}', '[{"acme:unknown":1}]'):
        with pytest.raises(UnregisteredError, match="acme:unknown"):
            decode(text)


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


class Forgetful:
    """An accounting whose record is not what it was, or not JSON."""

    def __init__(self, record):
        self.record = record

    def start(self, zero):
        return self

    def from_record(self, zero, record):
        return Forgetful(record)

    def to_record(self):
        return self.record if self.record != [2] else [1]

    def __eq__(self, other):
        return type(other) is Forgetful

    __hash__ = None
    loss = 0.0


@pytest.mark.parametrize("record", [float("nan"), object(), {1: 2, "a": 3}, b"x"])
def test_an_accumulator_whose_record_is_no_json_is_refused_before_it_is_settled(
    store, registry, record
):
    register_tag("acme:forgetful", Forgetful, {}, make=lambda: Forgetful(0))
    ledger = store.create()
    with pytest.raises(InvalidTypeError, match="accumulator .* its record cannot be"):
        ledger.book(Terms("Theirs", Forgetful(record), "", 1, None))
    assert ledger.summary().terms is None


def test_an_accumulator_whose_record_is_read_as_another_is_refused(store, registry):
    register_tag("acme:forgetful", Forgetful, {}, make=lambda: Forgetful(0))
    forgetful = Forgetful([3])
    forgetful.from_record = lambda zero, record: Forgetful([4])
    ledger = store.create()
    with pytest.raises(InvalidTypeError, match="its record, read again, gives another"):
        ledger.book(Terms("Theirs", forgetful, "", 1, None))


def test_doubles_of_toys_survive_bit_for_bit(registry):
    register_tag("acme:plain", Plain, FIELDS)
    for number in (5e-324, nextafter(1.0, 2.0), inf, float(Fraction(1, 3))):
        assert decode(encode("x", Plain(number))).first.hex() == number.hex()
