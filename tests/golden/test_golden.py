"""Ledgers that earlier versions wrote are read, and go on, as they did there."""

import gzip
import importlib.util
import json
import shutil
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

import opendp.prelude as dp

from opendp_concurrent.arguments.written import KINDS
from opendp_concurrent.errors import LedgerError, LedgerMismatchError, PrivacyMapError
from opendp_concurrent.ledger import datasets, open_ledger, restore_ledger
from opendp_concurrent.ledger.command import main
from opendp_concurrent.ledger.records.measures import written
from opendp_concurrent.ledger.records.terms import read_terms
from opendp_concurrent.ledger.records.wire import FORM_1, is_outside
from opendp_concurrent.measures import registered

GOLDEN = Path(__file__).parent


def _make():
    specification = importlib.util.spec_from_file_location("golden", GOLDEN / "make.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


make = _make()
make.budgets = cache(make.budgets)  # makes all of them, to be asked for one
# a later version is added, none is changed
FORM = {"0.1.0": 1, "0.2.0.dev0": 1, **dict.fromkeys(map("0.2.0.dev{}".format, (1, 2, 3)), 2)}
FORM |= {"0.2.0": 2}
# what came with a version: budgets, and the tags that they write
CAME = {
    "0.2.0.dev2": {"ladder of pairs": "ladder-at-delta", "subsampled": "subsampled"},
    "0.2.0.dev3": {
        "limits": "limited",
        "limits of a team": "limit",
        "limits of an odometer": "limited",
    },
    "0.2.0": {
        "subsampled, both directions": None,  # no new tag
        "any_time": "any_time",
        "odometer, any_time": "any_time",
    },
}
ENDED = {  # budgets that nobody makes any more
    "training": "rounds",
    "training, batches": "round",
    "truncated gaussian": "truncated-gaussian",
    "truncated laplace": "truncated-laplace",
}
WRITTEN = {
    version: json.loads((GOLDEN / version / "expected.json").read_text(encoding="utf-8"))
    for version in FORM
}
for _said in WRITTEN.values():
    for _name in ENDED:
        _said["budgets"].pop(_name, None)
EVERY = [(version, name) for version, said in WRITTEN.items() for name in said["budgets"]]
CLOSED = [(version, name) for version, name in EVERY if name != "killed"]
SOME = ("pure", "ladder", "functions")  # of a version whose form another one has, too
TWICE = [name for version, name in CLOSED if version == "0.1.0"]  # in both other forms, too
LAUNCHED = [
    (version, name)
    for version, name in CLOSED
    if (
        version == "0.1.0"
        or name in (*SOME, *CAME.get(version, ()))
        or (version == "0.2.0.dev1" and (name not in TWICE or name in TWICE[::3]))
    )
    and name != make.ONE_WAY
]
NEVER = "created, and never used"
# their readings are ends of brackets, which may become narrower
ENDS = {"ladder of pairs"}
NO_LONGER = {"0.2.0": {"subsampled"}}  # tags that are read only
OF_BLOCKS = {"on-each-block", "on-blocks"}  # whose ledger is in the folder ``blocks``


def later(version):
    """Return the budgets, and their tags, that came after a version."""
    order = list(FORM)
    new = [one for one in CAME if order.index(one) > order.index(version)]
    return dict(one for version in new for one in CAME[version].items())


NOT_NOTED = {"0.1.0"}  # versions of which a copy is not told from the ledger


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """What each version wrote, for reading: by version, a folder."""
    folders = {version: tmp_path_factory.mktemp(version) for version in WRITTEN}
    for version, folder in folders.items():
        for file in (GOLDEN / version).glob("*.gz"):
            (folder / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
    return folders


@pytest.fixture
def copied(unpacked, tmp_path):
    """Makes a copy on which one budget can be launched."""

    def copy(version, name, base="closed.db"):
        for file in unpacked[version].glob(f"{base}*"):
            shutil.copyfile(file, tmp_path / file.name)
        if version not in NOT_NOTED:
            with pytest.raises(LedgerError, match="is in a copy"):
                open_ledger(tmp_path / base, name)
            anchor = WRITTEN[version]["budgets"][name]["anchor"]
            restore_ledger(tmp_path / base, name, anchor=anchor)
        return tmp_path / base

    return copy


def close(found, expected, exactly=True):
    """Equal: bit for bit; of functions, whose δ is the end of a bracket, about."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            close(found[name], expected[name], exactly and name not in ("delta", "curve"))
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            close(*pair, exactly)
    elif exactly or not (isinstance(expected, str) and expected.lstrip("-").startswith("0x")):
        assert found == expected
    else:
        assert float.fromhex(found) == pytest.approx(float.fromhex(expected), rel=1e-3)


def as_written(budget, terms):
    """The budget; its functions as they are written, as NumPy may have made them elsewhere."""
    if terms.measure != "Tradeoff":
        return budget
    if budget.d_out is not None:
        close(make.plain(terms.d_out), make.plain(budget.d_out))
    unit = getattr(budget.accumulator, "unit", None)
    if unit is not None:
        close(make.plain(terms.accumulator.unit), make.plain(unit))
    return budget._replace(d_out=terms.d_out, accumulator=terms.accumulator)


def test_there_is_a_ledger_of_each_version_that_was_released():
    folders = sorted(one.parent.name for one in GOLDEN.glob("*/expected.json"))
    assert folders == sorted(WRITTEN)
    assert "0.1.0" in folders


@pytest.mark.parametrize("version", WRITTEN)
def test_each_version_wrote_a_budget_for_each_measure_and_accumulator(version, unpacked):
    """Only what it could not make is missing, with the reason."""
    said = WRITTEN[version]
    every = {*make.budgets(), *(f"function {one}" for one in make.FUNCTIONS)}
    assert every >= said["left out"].keys()
    known = {*make.budgets(), NEVER, "killed"} - later(version).keys()
    assert known - said["left out"].keys() == said["budgets"].keys()
    found = [name for name in datasets(unpacked[version] / "closed.db") if name not in ENDED]
    assert [*found, "killed"] == [name for name in sorted(said["budgets"]) if name != "killed"] + [
        "killed"
    ]


@pytest.mark.parametrize("version", WRITTEN)
def test_each_version_wrote_every_tag(version, unpacked):
    """So no class, and no measure, is forgotten that can be kept."""
    with closing(sqlite3.connect(unpacked[version] / "closed.db")) as connection:
        terms = connection.execute(
            "SELECT terms FROM opendp_concurrent_budgets WHERE terms IS NOT NULL"
        ).fetchall()
        ended = [f'{{"{tag}":' for tag in ENDED.values()]
        terms = [(text,) for (text,) in terms if not any(tag in text for tag in ended)]
        d_mids = connection.execute("SELECT d_mid FROM opendp_concurrent_charges").fetchall()
    texts = [text for (text,) in terms + d_mids]
    assert {read_terms(text)[1] for (text,) in terms} == {FORM[version]}
    whole = "".join(texts).replace("\\", "")
    names = FORM_1 if FORM[version] == 1 else {tag: tag for tag in KINDS if not is_outside(tag)}
    missing = {name for name in names if f'{{"{name}":' not in whole}
    came = OF_BLOCKS | NO_LONGER.get(version, set()) | set(later(version).values()) - {None}
    assert missing == (came if FORM[version] == 2 else set())
    found = {tag for (text,) in terms for tag in written(read_terms(text)[0].measure)}
    assert {one.tag for one in registered() if one.tag} - found == {
        "approximate-zcdp"
    }  # for which there are no ledgers


@pytest.mark.parametrize(("version", "name"), CLOSED)
def test_every_budget_says_what_it_said(unpacked, version, name):
    expected = WRITTEN[version]["budgets"][name]
    anchor = expected["anchor"]
    path = unpacked[version] / "closed.db"
    with open_ledger(path, name, anchor=anchor, read_only=True) as ledger:
        close(make.told(ledger), expected, name not in ENDS)


@pytest.mark.parametrize(("version", "name"), LAUNCHED)
def test_every_budget_goes_on_in_a_copy(copied, capsys, version, name):
    """It launches what it launched before once more, under the terms that were settled then."""
    if name == NEVER:
        budget, before = make.budgets()["pure"](), 0
    else:
        budget, before = make.budgets()[name](), WRITTEN[version]["budgets"][name]["launches"]
    after = before + len(budget.queries)
    path = copied(version, name)
    with open_ledger(path, name) as ledger:
        if name != NEVER:
            budget = as_written(budget, ledger.summary().terms)
        make.launch(ledger, budget)
        assert ledger.summary().launches == after
        again = make.told(ledger)
        at = () if budget.d_out is not None else (budget.d_in,)
        spent = budget.root(ledger).privacy_loss(*at)
        assert make.plain(spent) == again["spent"]
    with open_ledger(path, name, anchor=again["anchor"]) as ledger:
        close(make.told(ledger), again)
    for action in ("show", "verify"):
        assert main([action, str(path), "--dataset", name, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["launches"], facts["anchor"]) == (after, again["anchor"])
    assert len(facts) > 5


@pytest.mark.parametrize(
    "version", [one for one, said in WRITTEN.items() if make.ONE_WAY in said["budgets"]]
)
def test_losses_of_one_direction_are_read_and_no_longer_launched(copied, version):
    budget, expected = make.budgets()[make.ONE_WAY](), WRITTEN[version]["budgets"][make.ONE_WAY]
    with open_ledger(copied(version, make.ONE_WAY), make.ONE_WAY) as ledger:
        budget = as_written(budget, ledger.summary().terms)
        with pytest.raises(PrivacyMapError, match="both_directions"):
            make.launch(ledger, budget)
        assert ledger.summary().launches == expected["launches"]
        assert (
            make.plain(budget.root(ledger).privacy_loss(budget.d_in)) == make.told(ledger)["spent"]
        )


def test_a_copy_goes_on_under_the_same_terms_only(copied):
    version, name = "0.1.0", "zcdp"
    path, budget = copied(version, name), make.budgets()[name]()
    changes = {
        "d_out": {"d_out": (2.5, 1e-6)},
        "d_in": {"d_in": 2},
        "accumulator": {"accumulator": make.public("zcdp")(2e-7)},
        "output_measure": {"measure": dp.max_divergence(), "d_out": 1.0, "accumulator": None},
    }
    for argument, change in changes.items():
        with open_ledger(path, name) as ledger:
            with pytest.raises(LedgerMismatchError) as raised:
                budget._replace(**change).root(ledger)
            assert raised.value.name == argument
            assert ledger.summary().anchor == WRITTEN[version]["budgets"][name]["anchor"]


@pytest.mark.parametrize("version", WRITTEN)
def test_what_a_killed_process_left_is_read_and_goes_on(copied, version):
    path, expected = copied(version, "killed", "killed.db"), WRITTEN[version]["budgets"]["killed"]
    with open_ledger(path, "killed", anchor=expected["anchor"]) as ledger:
        close(make.told(ledger), expected)
        make.launch(ledger, make.budgets()["pure"]())
        assert ledger.summary().launches == 2 * expected["launches"]


@pytest.mark.parametrize("version", WRITTEN)
def test_a_backup_of_each_is_read_and_restored(copied, tmp_path, version):
    name = "ladder"
    path = copied(version, name)
    with open_ledger(path, name) as ledger:
        anchor = ledger.backup(tmp_path / "backup.db").anchor
    assert anchor == WRITTEN[version]["budgets"][name]["anchor"]
    assert restore_ledger(tmp_path / "backup.db", name, anchor=anchor).anchor == anchor
    with open_ledger(tmp_path / "backup.db", name) as ledger:
        make.launch(ledger, as_written(make.budgets()[name](), ledger.summary().terms))


@pytest.mark.parametrize("version", WRITTEN)
@pytest.mark.parametrize("name", ["pure", "approximate", "zCDP", "GDP", "functions"])
def test_charges_of_each_are_exported_as_events(unpacked, version, name):
    pytest.importorskip("dp_accounting")
    with open_ledger(unpacked[version] / "closed.db", name, read_only=True) as ledger:
        events = ledger.to_dp_events().events
    assert len(events) == WRITTEN[version]["budgets"][name]["launches"]
    kinds = {type(event).__name__ for event in events}
    expected = {
        "pure": "DiscreteLaplaceDpEvent",
        "approximate": "DiscreteLaplaceDpEvent",
        "zCDP": "ZCDpEvent",
        "GDP": "GaussianDpEvent",
        "functions": "LaplaceDpEvent",
    }
    assert expected[name] in kinds


@pytest.mark.parametrize("version", WRITTEN)
@pytest.mark.parametrize("read_only", [False, True])
def test_labels_are_looked_up_in_ledgers_of_each_version(copied, version, read_only):
    """Before there was an index of them; a version that does not know the index goes on."""
    name, told = "pure", WRITTEN[version]["budgets"]["pure"]
    path = copied(version, name)
    with open_ledger(path, name, read_only=read_only) as ledger:
        labels = {entry.label for entry in ledger.entries()}
        assert labels
        for label in labels:
            assert ledger.charged(label)
            assert not ledger.charged(f"{label}.")
        assert ledger.summary().anchor == told["anchor"]
    with closing(sqlite3.connect(path)) as connection:
        known = "SELECT count(*) FROM sqlite_master WHERE name = 'opendp_concurrent_labels'"
        found = connection.execute(known)
        assert found.fetchone()[0] == (0 if read_only else 1)
