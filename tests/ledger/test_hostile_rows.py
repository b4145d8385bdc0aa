"""Impossible values with right hashes: each reader answers, or says which row is wrong."""

import contextlib
import json
import math
import sqlite3
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest

from opendp_concurrent.errors import LedgerDamagedError, LedgerError
from opendp_concurrent.ledger import open_ledger
from opendp_concurrent.ledger.audit import Known, replay
from opendp_concurrent.ledger.charges import Limits, agreed_total, read_terms, write_terms
from opendp_concurrent.ledger.command import main
from opendp_concurrent.ledger.encoding import canonical, empty_total, first_hash
from opendp_concurrent.ledger.ledger import events

from .conftest import BUDGETS, CHARGES, DATASET, chained, count, counted, limit, rehash
from .test_ledger import CASES, spawn

# --- texts ---------------------------------------------------------------------------------------


def doubles(*values):
    return {"doubles": b64encode(np.array(values, "<f8").tobytes()).decode("ascii")}


def double(value):
    return {"double": float(value).hex()}


def finite(**changes):
    zero = double(0.0)
    shape = {
        "losses": doubles(-0.5, 0.5),
        "masses": doubles(0.4, 0.6),
        "gaussian": double("inf"),
        "infinite": zero,
        "limit": double("inf"),
        "loss_error": zero,
        "mass_error": zero,
        "never": zero,
        "slack": zero,
        "symmetric": False,
    }
    return {"Finite": {**shape, **changes}}


def function(factor, count=1, squares="0x0"):
    return {"TradeoffFunction": {"factors": [[factor, count]], "squares": squares}}


def laplace(epsilon, steps):
    return {"Laplace": {"epsilon": double(epsilon), "steps": double(steps)}}


def deep(levels, left="[", right="]", middle=""):
    return left * levels + middle + right * levels


NUMBERS = ["nan", "inf", "-inf", -1.0, 0.0, 5e-324, 1e-300, 1e300, 1.7976931348623157e308, 0.125]
SHAPES = [
    *(double(number) for number in NUMBERS),
    *(10**power for power in (0, 19, 400)),
    *(None, True, "text", "\ud800", "\0", [], [[]], {}, {"os": {}}, {"double": "x"}),
    *([double(one), double(other)] for one in ("nan", 0.1) for other in ("inf", -1.0)),
    [double(0.1)] * 3,
    {"tcdp": {"omega": double("nan"), "rho": double(1.0)}},
    {"tcdp": {"omega": double(64.0), "rho": double(1e300)}},
    {"curve": {"orders": [double(2.0), double(4.0)], "values": [double(-1.0), double(1e300)]}},
    {"curve": {"orders": [double(2.0), double(4.0)], "values": [1, "x"]}},
    {"basic": {}},
    {"ladder": {"unit": double(1.0)}},
    {"zcdp": {"slack": double(-1.0)}},
    *(function(laplace(*one)) for one in ((1.0, 1e300), ("nan", 1.0), (-1.0, 2.0), (1.0, 0.5))),
    *(function(laplace(*one)) for one in ((1e300, 1.0), (5e-324, "inf"), ("inf", 3.0), (0, 1))),
    *(function(laplace(0.125, 1.0), count) for count in (0, -1, 10**6, 10**18, 10**400, "2")),
    *(
        {"function": {"factors": [], "squares": squares}}
        for squares in ("0x0", "-0x1", hex(2**1080), hex(2**2200), hex(10**4000), "", 7)
    ),
    function(finite()),
    function({"swapped": finite()}),
    function({"swapped": {"swapped": finite()}}),
    *(
        function(finite(losses=doubles(*losses), masses=doubles(*masses)))
        for losses, masses in (
            *(((), ()), ((0.0,), (0.5,)), ((0.5, -0.5), (0.5, 0.5)), ((0.5,), (0.5, 0.5))),
            *(((-0.5, 0.5), masses) for masses in ((math.nan, 0.5), (-1.0, 2.0), (1e300, 1e300))),
            *(
                (losses, (0.5, 0.5))
                for losses in ((math.nan, 0.5), (-1e300, 1e300), (0.5, math.inf))
            ),
        )
    ),
    *(
        function(finite(**{name: value}))
        for name in ("infinite", "never", "mass_error", "limit", "slack", "gaussian", "symmetric")
        for value in (double("nan"), double(-1.0), double(2.0), "x", None)
    ),
]
TEXTS = [
    *("", "[", "nan", "NaN", "Infinity", " 1", "1.5", "9" * 5000, "-", "\ud800", "\0", "漢" * 999),
    *(deep(levels) for levels in (100, 900, 5000, 200_000)),
    *(deep(levels, '{"swapped":', "}", "1") for levels in (100, 900, 200_000)),
    *(deep(levels, '{"double":', "}", "1") for levels in (900, 200_000)),
    *(json.dumps(shape, sort_keys=True, separators=(",", ":")) for shape in SHAPES),
]


def refusal(function, *arguments):
    """What its error says, which can be printed; None if it has none."""
    try:
        function(*arguments)
    except LedgerError as error:
        said = str(error)
    else:
        return None
    assert len(said) < 3000
    assert said.isprintable()
    return said


@pytest.mark.parametrize("name", ["approximate, zcdp", "tCDP", "Rényi on orders", "f-DP, ladder"])
def test_a_hostile_text_is_refused_wherever_it_is(sqlite, name):
    ledger = sqlite.create()
    root, query = spawn(CASES[name](), ledger)
    root(query)
    terms, ((good,),) = ledger.summary().terms, sqlite.execute(f"SELECT d_mid FROM {CHARGES}")
    shape = {key: canonical(one) for key, one in json.loads(write_terms(terms)).items()}
    start = Known(0, first_hash("survey", None), empty_total(terms), Limits())
    for text in TEXTS:
        entries = []
        charges = enumerate((good, text, good), 1)
        rows = chained([("survey", number, 0, "", "", d_mid) for number, d_mid in charges])
        said = refusal(replay, start, rows, entries.append)
        assert said is None or "charge 2 " in said
        if said is None:
            assert "nan" not in repr([(one.d_mid, one.loss) for one in entries])
            events(terms, [one.d_mid for one in entries])
        refusal(agreed_total, terms, text, empty_total(terms))
        for field in shape:
            parts = shape | {field: text}
            made = ",".join(f"{canonical(key)}:{parts[key]}" for key in sorted(parts))
            refusal(read_terms, f"{{{made}}}")


# --- columns -------------------------------------------------------------------------------------

VALUES = ["NULL", "-1", "1.5", "9e999", "x'fffe'", "CAST(x'eda080' AS TEXT)", str(2**63 - 1)]
VALUES += ["'a\\n\\x1b[31mb\\u202e'", str(10**18)]
COLUMNS = {
    CHARGES: ["time", "label", "mechanism", "d_mid", "sequence"],
    BUDGETS: ["created", "terms", "sequence", "head", "record"],
}


def read_all(address):
    with open_ledger(address, DATASET, read_only=True) as ledger:
        ledger.summary()
        repr(ledger.entries())
        ledger.to_dp_events()


@pytest.mark.parametrize("table", COLUMNS)
def test_a_hostile_column_is_refused_by_every_reader(sqlite, capsys, table):
    root = limit(sqlite.create())
    for _ in range(3):
        root(count(0.125))
    sqlite.close()
    content = Path(sqlite.address).read_bytes()
    for column in COLUMNS[table]:
        where = " WHERE sequence = 2" if table == CHARGES else ""
        for value in VALUES:
            Path(sqlite.address).write_bytes(content)
            sqlite.execute(f"UPDATE OR IGNORE {table} SET {column} = {value}{where}")
            if column not in ("sequence", "head"):
                with contextlib.suppress(TypeError, sqlite3.OperationalError):  # it has no hash
                    rehash(sqlite)
            refusal(read_all, sqlite.address)
            for arguments in (["show"], ["show", "--json"]):
                capsys.readouterr()
                assert main([*arguments, sqlite.address]) in (0, 1)
            shown = json.loads(capsys.readouterr().out)
            losses = [one[key] for one in shown.get("charges", ()) for key in ("d_mid", "loss")]
            assert "nan" not in repr([*losses, *(shown.get(key) for key in ("d_out", "spent"))])


def test_a_hostile_charge_is_refused_by_a_process_that_has_the_ledger_open(sqlite):
    query, ran = counted(0.125)
    root, other = limit(sqlite.create()), limit(sqlite.open())
    for _ in range(3):
        root(query)
    sqlite.execute(f"UPDATE {CHARGES} SET time = {9 * 10**17} WHERE sequence = 3")
    rehash(sqlite)
    for ask in (other.privacy_loss, lambda: other(query)):
        with pytest.raises(LedgerDamagedError, match="charge 3 is unreadable"):
            ask()
    for value in ("'x'", "x'ff'", -1):
        sqlite.execute(f"UPDATE {BUDGETS} SET sequence = {value}")
        for one in (root, other):
            with pytest.raises(LedgerError):
                one(query)
    assert len(ran) == 3
