"""Impossible rows with right hashes raised raw errors; a summary forgot what was rolled back."""

import json
import math
import random
import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import LedgerDamagedError, LedgerError
from opendp_concurrent.ledger import datasets, open_ledger
from opendp_concurrent.ledger.command import main
from opendp_concurrent.ledger.encoding import canonical, first_hash

from ..conftest import next_hash
from ..test_ledger import CASES, spawn

CHARGES, BUDGETS = "opendp_concurrent_charges", "opendp_concurrent_budgets"


def launched(root, query, count=3):
    for _ in range(count):
        root(query)


TEMPLATES = ["pure", "approximate, zcdp", "tCDP", "GDP", "Rényi on orders"]
TEMPLATES += ["f-DP, ladder", "f-DP, residue"]


def fill(store, name):
    with store.create(name) as ledger:
        launched(*spawn(CASES[name](), ledger))


# --- what is put into a row ------------------------------------------------------------------


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
VALUES = [  # of a column of any kind
    *(None, 0, -1, 1.5, b"", b"\xff\xfe", "\ud800".encode("utf-8", "surrogatepass"), 2**63 - 1),
    *(-(2**63), 9 * 10**17, 10**18, "x" * 10_000, "a\n\x1b[31mb\u202e", float("inf")),
]


def with_field(shape, field, text):
    """Terms with other text in one field, whether it is JSON or not."""
    parts = {key: canonical(one) for key, one in shape.items()} | {field: text}
    return "{" + ",".join(f"{canonical(key)}:{parts[key]}" for key in sorted(parts)) + "}"


def mutated(store, name, chance):
    """Write a hostile value somewhere, and make all hashes right again; return what was done."""
    texts = chance.sample(TEXTS, len(TEXTS))
    with closing(sqlite3.connect(store.address)) as connection, connection:
        for change in ("update", "delete"):
            connection.execute(f"DROP TRIGGER IF EXISTS opendp_concurrent_no_{change}")
        table = chance.choice([CHARGES, CHARGES, CHARGES, BUDGETS])
        columns = {
            CHARGES: ["time", "label", "mechanism", "d_mid", "d_mid", "d_mid", "d_mid", "sequence"],
            BUDGETS: ["created", "terms", "terms", "sequence", "head", "record", "record"],
        }[table]
        column, sequence = chance.choice(columns), chance.randint(1, 3)
        value = chance.choice(TEXTS if chance.random() < 0.7 else VALUES)
        if column == "terms":
            ((text,),) = connection.execute(
                f"SELECT terms FROM {BUDGETS} WHERE dataset = ?", [name]
            )
            shape = json.loads(text)
            field = chance.choice(sorted(shape))
            value = with_field(shape, field, value if isinstance(value, str) else texts[0])
        if isinstance(value, str) and any("\ud800" <= one <= "\udfff" for one in value):
            value = value.encode("utf-8", "surrogatepass")  # as text that is none
            write = f"UPDATE OR IGNORE {table} SET {column} = CAST(? AS TEXT) WHERE dataset = ?"
        else:
            write = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE dataset = ?"
        where = [name] if table == BUDGETS else [name, sequence]
        try:
            connection.execute(
                write + ("" if table == BUDGETS else " AND sequence = ?"), [value, *where]
            )
        except sqlite3.IntegrityError:
            return None
        make_hashes(connection, name, column not in ("head", "sequence"))
    return table, column, sequence, value


def make_hashes(connection, name, with_head):
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    ((terms,),) = connection.execute(f"SELECT terms FROM {BUDGETS} WHERE dataset = ?", [name])
    rows = connection.execute(
        "SELECT dataset, sequence, time, label, mechanism, d_mid "
        f"FROM {CHARGES} WHERE dataset = ? ORDER BY sequence",
        [name],
    ).fetchall()
    try:
        head = first_hash(name, terms)
        for row in rows:
            head = next_hash(head, row)
            connection.execute(
                f"UPDATE {CHARGES} SET hash = ? WHERE dataset = ? AND sequence = ?",
                [head, name, row[1]],
            )
        if with_head:
            connection.execute(f"UPDATE {BUDGETS} SET head = ? WHERE dataset = ?", [head, name])
    except (TypeError, ValueError):  # it has no hash
        pass


def asked(address, name):
    """Everything that reads a ledger: what is found, or the error that says what is wrong."""
    ledger = open_ledger(address, name, read_only=True)
    with ledger:
        ledger.summary()
        entries = ledger.entries()
        ledger.to_dp_events()
        repr(entries)
    return len(entries)


@pytest.fixture(scope="module")
def templates(tools, tmp_path_factory):
    """The file of a ledger."""
    dp.enable_features("contrib", "honest-but-curious")
    folder = tmp_path_factory.mktemp("templates")
    found = tools.SqliteStore(folder)
    for name in TEMPLATES:
        fill(found, name)
    found.close()
    return Path(found.address).read_bytes()


def attack(tools, templates, folder, capsys, seed):
    """One hostile value: every reader answers, or says which row is wrong."""
    chance, found = random.Random(seed), tools.SqliteStore(folder)
    Path(found.address).write_bytes(templates)
    name = chance.choice(list(TEMPLATES))
    done = mutated(found, name, chance)
    if done is None:
        return
    try:
        asked(found.address, name)
    except LedgerError as error:
        said = str(error)
        assert len(said) < 3000
        assert said.isprintable()
        if done[0] == CHARGES and done[1] != "sequence":
            row = f"charge {done[2]} " if "unreadable" in said else "running total|charge"
            assert any(part in said for part in row.split("|")), said
    for action in ("show", "verify"):
        arguments = [action, found.address, "--dataset", name]
        assert main(arguments) in (0, 1)
    capsys.readouterr()
    assert main(["show", found.address, "--dataset", name, "--json"]) in (0, 1)
    shown = json.loads(capsys.readouterr().out)
    losses = [one[key] for one in shown.get("charges", ()) for key in ("d_mid", "loss")]
    assert "nan" not in repr([*losses, *(shown.get(key) for key in ("d_out", "spent"))])


def attack_all(tools, templates, tmp_path, capsys, seeds):
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            attack(tools, templates, folder, capsys, seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}"[:2000]) from error


def test_hostile_rows_are_refused_by_name(tools, templates, tmp_path, capsys):
    attack_all(tools, templates, tmp_path, capsys, range(40))


@pytest.mark.slow
def test_many_hostile_rows_are_refused_by_name(tools, templates, tmp_path, capsys):
    attack_all(tools, templates, tmp_path, capsys, range(1000, 4000))


# --- one by one ------------------------------------------------------------------------------


def charge_anew(store, name, column, value):
    """Edit the newest charge, and make all hashes right."""
    with closing(sqlite3.connect(store.address)) as connection, connection:
        connection.execute("DROP TRIGGER IF EXISTS opendp_concurrent_no_update")
        connection.execute(
            f"UPDATE {CHARGES} SET {column} = ? WHERE dataset = ? AND sequence = 3", [value, name]
        )
        make_hashes(connection, name, with_head=True)


def test_a_hostile_charge_is_refused_by_a_process_that_has_the_ledger_open(sqlite, tools):
    query, ran = tools.counted(0.125)
    root, other = tools.limit(sqlite.create()), tools.limit(sqlite.open())
    launched(root, query, 3)
    charge_anew(sqlite, tools.DATASET, "time", 9 * 10**17)
    for ask in (other.privacy_loss, lambda: other(query)):
        with pytest.raises(LedgerDamagedError, match="charge 3 is unreadable"):
            ask()
    for value in ("'x'", "x'ff'", -1):
        sqlite.execute(f"UPDATE {BUDGETS} SET sequence = {value}")
        for one in (root, other):
            with pytest.raises(LedgerError):
                one(query)
    assert len(ran) == 3


# --- after a rollback ------------------------------------------------------------------------


def roll_back(store, launches):
    """Set a ledger back so that it fits together, with all its traces."""
    ((head,),) = store.execute(f"SELECT hash FROM {CHARGES} WHERE sequence = {launches}")
    store.execute(f"DELETE FROM {CHARGES} WHERE sequence > {launches}")
    total = json.dumps(hex(launches * 2**1071))
    store.execute(
        f"UPDATE {BUDGETS} SET sequence = {launches}, head = '{head}', record = '{total}'"
    )


def test_a_summary_does_not_forget_what_this_process_has_seen(store, tools):
    ledger = store.create()
    root = tools.limit(ledger)
    launched(root, tools.count(0.125), 5)
    reader = store.open()
    assert reader.summary().launches == 5
    roll_back(store, 3)
    assert store.open().summary().launches == 3  # who comes later cannot know, without an anchor
    said = "there are 3 charges, but the newest charge that this process has seen is number 5"
    for one in (ledger, reader):
        for read in (one.summary, one.entries, one.read, one.to_dp_events):
            with pytest.raises(LedgerDamagedError, match=said):
                read()
    launched(tools.limit(store.open()), tools.count(0.125), 3)
    with pytest.raises(LedgerDamagedError, match="charge 5 is not the charge of the newest"):
        reader.summary()


# --- encodings of a server -------------------------------------------------------------------


def test_a_client_of_another_encoding_reads_and_writes_text(postgresql, tools, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    for address in (postgresql.address, postgresql.address + "%20-cclient_encoding%3DSQL_ASCII"):
        name = f"Zoë 漢 {len(address)}"
        postgresql.address = address
        with postgresql.create(name) as ledger, oc.labelled("é 漢"):
            launched(tools.limit(ledger), tools.count(0.125), 1)
        assert name in datasets(address)
        with open_ledger(address, name) as ledger:
            assert [entry.label for entry in ledger.entries()] == ["é 漢"]


def test_a_database_that_knows_no_text_is_refused(postgresql, tools):
    postgresql.server.execute(
        "CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    url = postgresql.server.url.replace("/postgres?", "/bytes?").removesuffix("postgres") + "bytes"
    from opendp_concurrent.ledger import create_ledger

    with pytest.raises(LedgerError, match="SQL_ASCII, which does not check text.*ENCODING 'UTF8'"):
        create_ledger(url, tools.DATASET)
