"""What is written of a value is in tables: no name of Python's decides it."""

import dataclasses
import gzip
import importlib
import inspect
import json
import pkgutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import opendp.prelude as dp
import pytest

pytest.importorskip("sqlalchemy")

import opendp_concurrent
from opendp_concurrent import TradeoffFunction as F
from opendp_concurrent import TruncatedConcentrated
from opendp_concurrent.accounts.charge import Terms
from opendp_concurrent.accumulators.advanced import Advanced, advanced
from opendp_concurrent.accumulators.basic import basic
from opendp_concurrent.accumulators.either import either
from opendp_concurrent.accumulators.from_rule import FromRule
from opendp_concurrent.accumulators.renyi import renyi
from opendp_concurrent.accumulators.zcdp import zcdp
from opendp_concurrent.arguments.written import BY_CLASS, KINDS, check_fields, plain
from opendp_concurrent.blocks.recorded import OnEachBlock
from opendp_concurrent.blocks.totals import OnKeys
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    LedgerDamagedError,
    LedgerError,
    LedgerMismatchError,
    UnregisteredError,
)
from opendp_concurrent.ledger.records import wire
from opendp_concurrent.ledger.records.encoding import decode, encode
from opendp_concurrent.ledger.records.limited import LimitedCharge, Opened
from opendp_concurrent.ledger.records.terms import read_terms, write_terms
from opendp_concurrent.measures import register
from opendp_concurrent.measures.shapes import PairMeasure
from opendp_concurrent.releases.shared_release import _Steps as Steps
from opendp_concurrent.stopping.any_time import any_time
from opendp_concurrent.sums.orders_sum import GridCurve, OnOrders
from opendp_concurrent.sums.square_sum import Squares
from opendp_concurrent.tradeoffs.ladder import ladder
from opendp_concurrent.tradeoffs.product import Products
from opendp_concurrent.tradeoffs.residue import residue
from opendp_concurrent.truncated.truncated_sum import LeastOmega

GOLDEN = Path(__file__).parents[2] / "golden"
QUARTER, ZERO = '{"double":"0x1.0000000000000p-2"}', '{"double":"0x0.0p+0"}'
INFINITE, TWO = '{"double":"inf"}', '{"double":"0x1.0000000000000p+1"}'
WORST = (
    '"gaussian":{"double":"inf"},"infinite":{"double":"0x1.0000000000000p+0"},'
    '"limit":{"double":"inf"},"loss_error":{"double":"0x0.0p+0"},"losses":{"doubles":""},'
    '"mass_error":{"double":"0x0.0p+0"},"masses":{"doubles":""},'
    '"never":{"double":"0x1.0000000000000p+0"},"slack":{"double":"0x0.0p+0"},"symmetric":true'
)
OURS = [kind for kind in KINDS.values() if not kind.outside]
RECORDS = {  # of each tag: a value, what is written now, and what 0.1.0 wrote, or None; for ever
    "basic": (basic(), '{"basic":{}}', '{"Basic":{}}'),
    "advanced": (
        advanced(0.25),
        f'{{"advanced":{{"slack":{QUARTER}}}}}',
        f'{{"Advanced":{{"delta_slack":{QUARTER}}}}}',
    ),
    "any_time": (
        any_time(0.25, 2.0),
        f'{{"any_time":{{"planned":{TWO},"slack":{QUARTER}}}}}',
        None,
    ),
    "zcdp": (
        zcdp(0.25),
        f'{{"zcdp":{{"slack":{QUARTER}}}}}',
        f'{{"Zcdp":{{"delta_slack":{QUARTER}}}}}',
    ),
    "renyi": (
        renyi(2.0, 0.25),
        f'{{"renyi":{{"order":{TWO},"slack":{QUARTER}}}}}',
        f'{{"Renyi":{{"delta_slack":{QUARTER},"order":{TWO}}}}}',
    ),
    "either": (
        either(basic(), zcdp(0.25)),
        f'{{"either":{{"rules":[{{"basic":{{}}}},{{"zcdp":{{"slack":{QUARTER}}}}}]}}}}',
        f'{{"Either":{{"rules":[{{"Basic":{{}}}},{{"Zcdp":{{"delta_slack":{QUARTER}}}}}]}}}}',
    ),
    "orders": (
        OnOrders((2.0,)),
        f'{{"orders":{{"orders":[{TWO}]}}}}',
        f'{{"OnOrders":{{"orders":[{TWO}]}}}}',
    ),
    "squares": (Squares(), '{"squares":{}}', '{"Squares":{}}'),
    "least-omega": (LeastOmega(), '{"least-omega":{}}', '{"Truncated":{}}'),
    "ladder": (
        ladder(F.laplace(0.25)),
        '{"ladder":{"unit":{"function":{"factors":[[{"laplace":{"epsilon":'
        f'{QUARTER},"steps":{INFINITE}}}}},1]],"squares":"0x0"}}}}}}}}',
        '{"Ladder":{"unit":{"TradeoffFunction":{"factors":[[{"Laplace":{"epsilon":'
        f'{QUARTER},"steps":{INFINITE}}}}},1]],"squares":"0x0"}}}}}}}}',
    ),
    "ladder-at-delta": (
        ladder(F.laplace(0.25), 0.25),
        '{"ladder-at-delta":{"slack":'
        f'{QUARTER},"unit":{{"function":{{"factors":[[{{"laplace":{{"epsilon":'
        f'{QUARTER},"steps":{INFINITE}}}}},1]],"squares":"0x0"}}}}}}}}',
        None,
    ),
    "residue": (
        residue(0.25),
        f'{{"residue":{{"mu":{QUARTER}}}}}',
        f'{{"Residue":{{"mu":{QUARTER}}}}}',
    ),
    "limit": (
        Opened(1, "ann", "{}"),
        '{"limit":{"above":1,"label":"ann","terms":"{}"}}',
        None,
    ),
    "limited": (
        LimitedCharge(0.25, 1, (2.0, 0.25), (Opened(0, "team", "{}"),)),
        f'{{"limited":{{"d_mid":{QUARTER},"d_mids":[{TWO},{QUARTER}],"limit":1,'
        '"opened":[{"limit":{"above":0,"label":"team","terms":"{}"}}]}}',
        None,
    ),
    "tcdp": (
        TruncatedConcentrated(0.25, 2.0),
        f'{{"tcdp":{{"omega":{TWO},"rho":{QUARTER}}}}}',
        f'{{"TruncatedConcentrated":{{"omega":{TWO},"rho":{QUARTER}}}}}',
    ),
    "on-each-block": (
        OnEachBlock(zcdp(0.25), (2.0, 0.25)),
        f'{{"on-each-block":{{"d_out":[{TWO},{QUARTER}],"of":{{"zcdp":{{"slack":{QUARTER}}}}}}}}}',
        None,
    ),
    "on-blocks": (
        OnKeys(("W1", ("W", 2), 3), 0.25),
        f'{{"on-blocks":{{"d_mid":{QUARTER},"keys":["W1",["W",2],3]}}}}',
        None,
    ),
    "curve": (
        GridCurve((2.0,), (0.25,)),
        f'{{"curve":{{"orders":[{TWO}],"values":[{QUARTER}]}}}}',
        f'{{"GridCurve":{{"orders":[{TWO}],"values":[{QUARTER}]}}}}',
    ),
    "function": (
        F.gaussian(5e-324),
        '{"function":{"factors":[],"squares":"0x1"}}',
        '{"TradeoffFunction":{"factors":[],"squares":"0x1"}}',
    ),
    "laplace": (
        F.laplace(0.25),
        '{"function":{"factors":[[{"laplace":{"epsilon":'
        f'{QUARTER},"steps":{INFINITE}}}}},1]],"squares":"0x0"}}}}',
        '{"TradeoffFunction":{"factors":[[{"Laplace":{"epsilon":'
        f'{QUARTER},"steps":{INFINITE}}}}},1]],"squares":"0x0"}}}}',
    ),
    "subsampled": (
        F.subsampled_gaussian(4.0, 0.25, unit="added"),
        '{"function":{"factors":[[{"subsampled":{"noise":"gaussian","rate":'
        f'{QUARTER},"size":{QUARTER},"unit":"added"}}}},1]],"squares":"0x0"}}}}',
        None,
    ),
    "pair": (
        F.worst(),
        f'{{"function":{{"factors":[[{{"pair":{{{WORST}}}}},1]],"squares":"0x0"}}}}',
        f'{{"TradeoffFunction":{{"factors":[[{{"Finite":{{{WORST}}}}},1]],"squares":"0x0"}}}}',
    ),
}
MORE = [  # values whose text depends on the C library: written again, they are the same
    F.pure(0.25).compose(F.gaussian(0.5)),
    F.finite([0.25, 0.5, 0.25, 0.0], [0.0, 0.375, 0.5, 0.125]).inverse(),
    F.from_profile([0.0, 0.5], [0.125, 0.0], [0.125, 1e-7]),
    F.mixture([3, 1], [F.identity(), F.gaussian(0.125)]),
]


@pytest.mark.parametrize("tag", RECORDS)
def test_what_is_written_of_a_value_never_changes(tag):
    value, now, then = RECORDS[tag]
    assert encode("x", value) == now
    if then is None:  # not known to 0.1.0
        assert decode(now) == value
        with pytest.raises(InvalidTypeError, match="older version"):
            encode("x", value, 1)
        return
    assert encode("x", value, 1) == then
    assert decode(now) == decode(then, 1) == value
    for text, form in ((now, 1), (then, 2)):
        with pytest.raises(InvalidValueError, match="not an exact record"):
            decode(text, form)


def test_every_tag_is_held():
    assert RECORDS.keys() == {tag for tag in KINDS if not wire.is_outside(tag)}
    assert {tag for tag, _ in wire.FORM_1.values()} == {tag for tag in RECORDS if RECORDS[tag][2]}
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
    assert {Advanced, LeastOmega} <= known
    unkept = {FromRule, Products, Steps}  # the last one is of shared releases, never at a root
    assert known - set(BY_CLASS) == unkept


@pytest.fixture
def rename():
    """Gives every class of the table another name."""
    names = {kind.cls: (kind.cls.__name__, kind.cls.__qualname__) for kind in OURS}

    def give():
        decode.cache_clear()
        for number, one in enumerate(names):
            one.__name__ = one.__qualname__ = f"Renamed{number}"

    yield give
    for one, before in names.items():
        one.__name__, one.__qualname__ = before
    decode.cache_clear()


def test_no_record_changes_when_classes_are_renamed(rename):
    """Not what is written, in either form, nor what is read of all golden ledgers."""
    before = {
        (name, form): text
        for name, (_, *texts) in RECORDS.items()
        for form, text in zip((2, 1), texts, strict=True)
        if text is not None
    }
    more = [encode("x", one, form) for one in MORE for form in (1, 2)]
    rename()
    assert Advanced.__name__ == Advanced.__qualname__ != "Advanced"
    for (name, form), text in before.items():
        assert encode("x", RECORDS[name][0], form) == text
        assert decode(text, form) == RECORDS[name][0]
    assert [encode("x", one, form) for one in MORE for form in (1, 2)] == more
    for text in more:
        assert decode(text, 1 if "TradeoffFunction" in text else 2) in MORE


ENDED = (
    "training",
    "training, batches",
    "truncated gaussian",
    "truncated laplace",
)  # budgets that nobody makes any more


@pytest.mark.parametrize("version", sorted(one.parent.name for one in GOLDEN.glob("*/closed*")))
def test_golden_records_are_read_when_classes_are_renamed(rename, tmp_path, version):
    rename()
    path = tmp_path / "closed.db"
    path.write_bytes(gzip.decompress((GOLDEN / version / "closed.db.gz").read_bytes()))
    forms = set()
    with closing(sqlite3.connect(path)) as connection:
        budgets = connection.execute("SELECT dataset, terms FROM opendp_concurrent_budgets")
        for dataset, text in budgets.fetchall():
            if text is None or dataset in ENDED:
                continue
            terms, form = read_terms(text)
            assert write_terms(terms, form) == text
            forms.add(form)
            for (d_mid,) in connection.execute(
                "SELECT d_mid FROM opendp_concurrent_charges WHERE dataset = ?", [dataset]
            ):
                assert encode("d_mid", decode(d_mid, form), form) == d_mid
    assert len(forms) == 1


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
    for name in names:
        with pytest.raises(InvalidValueError, match=f"lacks .*{name}"):
            check_fields(kind.cls, {one: one for one in names - {name}})


def _one(kind):
    value = RECORDS[kind.tag][0]
    if type(value) is not kind.cls:
        (value,) = value.product.factors
    return value


def test_no_record_changes_when_a_field_is_renamed(monkeypatch):
    """Whoever renames it changes the attribute in the table, not the key."""

    @dataclasses.dataclass(frozen=True)
    class Later:
        part_of_delta: float

    kind = plain("advanced", Later, {"slack": "part_of_delta"})
    monkeypatch.setitem(KINDS, "advanced", kind)
    monkeypatch.setitem(BY_CLASS, Later, kind)
    decode.cache_clear()
    _, now, then = RECORDS["advanced"]
    for text, form in ((now, 2), (then, 1)):
        assert encode("x", Later(0.25), form) == text
        assert decode(text, form) == Later(0.25)
    decode.cache_clear()


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
    assert read_terms(text) == (PAIRS, 2)


def test_terms_of_0_1_0_are_read_and_written_as_they_were():
    text = write_terms(PAIRS, 1)
    shape = json.loads(text)
    assert sorted(shape) == ["accounting", "d_in", "d_out", "measure", "metric", "zero"]
    assert shape["zero"] == f"[{ZERO},{ZERO}]"
    assert shape["accounting"] == RECORDS["zcdp"][2]
    assert read_terms(text) == (PAIRS, 1)


@pytest.fixture
def theirs():
    """The name of a measure that another package registered."""
    dp.enable_features("contrib", "honest-but-curious")

    @register
    class Theirs(PairMeasure):
        kind = "toy.Theirs"
        reason = "it is never launched under"
        distance_form = "a pair"

        def opendp(self):
            return dp.user_divergence(self.kind, self.kind)

    return Theirs.kind


def test_the_loss_of_nothing_is_kept_under_a_measure_of_another_package(theirs):
    outside = dataclasses.replace(PAIRS, measure=theirs, accumulator=basic())
    shape = json.loads(write_terms(outside))
    assert shape["measure"] == theirs
    assert shape["zero"] == [{"double": "0x0.0p+0"}] * 2
    assert read_terms(write_terms(outside)) == (outside, 2)
    unknown = json.dumps(shape | {"measure": "toy.Unknown"})
    with pytest.raises(UnregisteredError, match=r"toy\.Unknown.*measures\.register"):
        read_terms(unknown)
    del shape["zero"]
    refused_terms(shape)


def refused_terms(shape):
    text = json.dumps(shape, sort_keys=True, separators=(",", ":"))
    with pytest.raises(LedgerDamagedError, match="the terms are unreadable"):
        read_terms(text)


def test_terms_have_one_text_in_each_form():
    shape = json.loads(write_terms(PAIRS))
    first = json.loads(write_terms(PAIRS, 1))
    zero = [{"double": "0x0.0p+0"}] * 2
    for change in (
        {"zero": zero},
        {"measure": "Approximate(MaxDivergence)", "zero": zero},
        {"measure": {"approximate": {"order": 1}}},
        {"measure": {"unknown": {}}},
        {"measure": {"fixed-renyi": {}}},
        {"accumulator": {"Zcdp": {"delta_slack": {"double": "0x1.0000000000000p-2"}}}},
        {"more": 1},
        *({"form": form} for form in (1, 0, -1, "2", None, True, 2.0, [2])),
    ):
        refused_terms(shape | change)
    for change in ({"form": 1}, {"form": 2}, {"accounting": RECORDS["zcdp"][1]}, {"more": "1"}):
        refused_terms(first | change)
    for key in shape:
        refused_terms({name: one for name, one in shape.items() if name != key})


def test_a_newer_form_is_named():
    shape = json.loads(write_terms(PAIRS)) | {"form": 3}
    with pytest.raises(LedgerError, match="written in form 3; .* reads forms up to 2: use a newer"):
        read_terms(json.dumps(shape))


# --- budgets that were begun in the old form -------------------------------------------------


def of_tcdp(tools, *losses):
    measure = opendp_concurrent.truncated_concentrated_divergence(2.0)
    return measure, [
        dp.m.make_user_measurement(*tools.space(), measure, len, lambda _, loss=loss: loss)
        for loss in losses
    ]


def test_a_budget_goes_on_in_the_form_in_which_it_was_begun(store, tools):
    measure, queries = of_tcdp(
        tools, TruncatedConcentrated(0.25, 4.0), TruncatedConcentrated(0.125, 2.0)
    )
    bound = {"d_out": TruncatedConcentrated(1.0, 2.0), "measure": measure}
    tools.limit(store.create(), **bound)(queries[0])
    store.become_form_1()
    ((terms,),) = store.execute("SELECT terms FROM opendp_concurrent_budgets")
    assert '"accounting":"{\\"Truncated\\":{}}"' in terms
    first, second = (tools.limit(store.open(), **bound) for _ in range(2))
    first(queries[1])
    second(queries[1])
    assert store.execute("SELECT terms FROM opendp_concurrent_budgets") == [(terms,)]
    texts = [
        one[0]
        for one in store.execute("SELECT d_mid FROM opendp_concurrent_charges ORDER BY sequence")
    ]
    assert texts == [encode("x", one.map(1), 1) for one in (*queries, queries[1])]
    assert '"TruncatedConcentrated"' in texts[-1]
    ledger = store.open()
    assert ledger.summary().spent == TruncatedConcentrated(0.5, 2.0) == first.privacy_loss()
    assert ledger.summary().terms.accumulator == LeastOmega()
    with pytest.raises(LedgerMismatchError, match="d_out"):
        tools.limit(store.open(), d_out=TruncatedConcentrated(1.0, 3.0), measure=measure)


def test_a_charge_in_another_form_than_its_budget_is_refused(store, tools):
    measure, (query,) = of_tcdp(tools, TruncatedConcentrated(0.25, 4.0))
    tools.limit(store.create(), TruncatedConcentrated(1.0, 2.0), measure=measure)(query)
    store.become_form_1()
    store.open().close()
    text = store.execute("SELECT terms FROM opendp_concurrent_budgets")[0][0]
    now = write_terms(read_terms(text)[0])
    head = rewritten(store, tools.DATASET, now)
    store.execute(f"UPDATE opendp_concurrent_budgets SET terms = '{now}', head = '{head}'")
    store.forget()
    with pytest.raises(LedgerDamagedError, match="charge 1 is unreadable.*not an exact record"):
        store.open()


def rewritten(store, dataset, terms):
    """Hashes that fit together under other terms; return the last."""
    from opendp_concurrent.ledger.records.chain import first_hash, next_hash

    head = first_hash(dataset, terms)
    for *charge, _ in store.execute("SELECT * FROM opendp_concurrent_charges ORDER BY sequence"):
        head = next_hash(head, tuple(charge))
        store.execute(
            f"UPDATE opendp_concurrent_charges SET hash = '{head}' WHERE sequence = {charge[1]}"
        )
    return head


def test_what_the_old_form_cannot_say_is_refused(monkeypatch):
    monkeypatch.delitem(wire._NAMES_1, "tcdp")
    with pytest.raises(InvalidTypeError, match="older version created.*create another"):
        encode("d_mid", TruncatedConcentrated(0.25, 2.0), 1)


def test_text_that_is_none_has_no_record():
    for text in ("\0", "a\ud800"):
        with pytest.raises(InvalidTypeError, match="lone surrogate"):
            encode("d_in", text)
        for form in (1, 2):
            with pytest.raises(InvalidValueError, match="not an exact record"):
                decode(json.dumps(text), form)
    for metric in ("a\ud800", "\0"):
        shape = json.loads(write_terms(PAIRS)) | {"metric": metric}
        refused_terms(shape)


@pytest.mark.parametrize("name", ["measure", "metric"])
def test_names_in_terms_must_be_text(store, name):
    terms = dataclasses.replace(PAIRS, **{name: 1})
    with pytest.raises(InvalidTypeError, match=f"put_{name} must be a string"):
        store.create().book(terms)
