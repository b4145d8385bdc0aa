"""``opendp-concurrent ledger``: what it prints, and what it returns."""

import json
import subprocess
import sys

import pytest

import opendp_concurrent as oc
from opendp_concurrent.ledger.command import main

from ..build import a_limit


@pytest.fixture
def ledger(store, tools):
    """Three charges, with labels; nobody has it open."""
    root = tools.limit(store.create())
    for label in ("mean age", "x" * 60, "a\n\x1b[31mb\tc\u202e"):
        with oc.labelled(label):
            root(tools.count(0.125))
    store.close()
    return store


@pytest.fixture
def run(capsys):
    def run_(*arguments):
        code = main(list(arguments))
        out, error = capsys.readouterr()
        return code, out, error

    return run_


def test_show_prints_each_charge_in_a_line(ledger, run):
    code, out, error = run("show", ledger.address)
    assert (code, error) == (0, "")
    table, facts = out.split("\n\n")
    lines = table.splitlines()
    assert lines[0].split() == ["time", "(UTC)", "label", "mechanism", "d_mid", "loss"]
    assert len(lines) == 4
    assert lines[1].split()[0] == "1"
    assert "count >> laplace(scale=8.0)" in lines[1]
    assert "a  [31mb c" in lines[3]  # labels cannot move the cursor
    assert lines[3].endswith("0.125  0.375")
    assert all(one.isprintable() for line in out.splitlines() for one in line)
    assert "x" * 37 + "..." in lines[2]
    known = dict(line.split(":", 1) for line in facts.splitlines())
    assert known["spent"].strip() == "0.375"
    assert known["remaining"].strip() == "0.625"
    assert known["measure"].strip() == "MaxDivergence"
    assert "the advantage at most 0.1854, true positives" in known["risk"]
    assert known["anchor"].strip().startswith("3:")


def test_limits_are_shown_below_the_facts(store, tools, run):
    root = tools.limit(store.create())
    team = root(a_limit(0.5, "team"))
    ann = team(a_limit(0.25, "ann\x1b[31m"))
    for handle in (ann, team):
        handle(tools.count(0.125))
    store.close()
    _, out, _ = run("show", store.address)
    *_, facts, limits = out.split("\n\n")
    assert "limit" not in facts
    header, *rows = limits.splitlines()
    assert header.split() == ["limit", "launches", "spent", "remaining", "d_out"]
    assert rows[0].split() == ["team", "2", "0.25", "0.25", "0.5"]
    assert rows[1].split() == ["team", ">", "ann", "[31m", "1", "0.125", "0.125", "0.25"]
    found = json.loads(run("show", store.address, "--json")[1])
    assert [charge["limit"] for charge in found["charges"]] == [["team", "ann\x1b[31m"], ["team"]]
    assert [one["launches"] for one in found["limits"]] == [2, 1]


def test_show_prints_one_object_for_programs(ledger, run):
    code, out, _ = run("show", ledger.address, "--json")
    found = json.loads(out)
    assert (code, len(out.splitlines())) == (0, 1)
    assert [charge["d_mid"] for charge in found["charges"]] == [0.125] * 3
    assert [charge["loss"] for charge in found["charges"]] == [0.125, 0.25, 0.375]
    assert found["charges"][2]["label"] == "a\n\x1b[31mb\tc\u202e"
    assert (found["spent"], found["d_in"], found["d_out"]) == (0.375, 1, 1.0)
    assert found["charges"][2]["hash"] == found["anchor"].partition(":")[2]


def test_verify_says_that_all_fits_and_the_anchor(ledger, run):
    code, out, error = run("verify", ledger.address)
    assert (code, error) == (0, "")
    assert out.startswith("3 charges are consistent; anchor 3:")
    anchor = out.split()[-1]
    assert run("verify", ledger.address, "--anchor", anchor)[0] == 0
    code, out, _ = run("verify", ledger.address, "--json")
    found = json.loads(out)
    assert (code, found["fits"], found["anchor"]) == (0, True, anchor)


@pytest.mark.parametrize("action", ["show", "verify"])
def test_an_edited_ledger_is_reported(ledger, run, action):
    _, out, _ = run("verify", ledger.address)
    anchor = out.split()[-1]
    code, out, error = run(action, ledger.address, "--anchor", f"3:{64 * '0'}")
    assert (code, out) == (1, "")
    assert "charge 3 is not the charge of the anchor" in error
    ledger.execute("UPDATE opendp_concurrent_charges SET label = 'x' WHERE sequence = 2")
    code, out, error = run(action, ledger.address, "--anchor", anchor)
    assert (code, out) == (1, "")
    assert "charge 2 does not follow" in error


def test_the_dataset_must_be_named_if_there_are_several(ledger, run):
    ledger.create("another").close()
    code, _, error = run("show", ledger.address)
    assert code == 1
    assert "--dataset must be given: the ledger has 'another', 'survey 2026'" in error
    code, out, _ = run("show", ledger.address, "--dataset", "another", "--json")
    assert (code, json.loads(out)["launches"]) == (0, 0)
    assert json.loads(out)["charges"] == []


@pytest.mark.parametrize("arguments", [[], ["burn"], ["show"], ["show", "a", "--colour"]])
def test_misuse_is_explained(arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert "opendp-concurrent ledger" in capsys.readouterr().err


def test_the_program_itself(sqlite, tools):
    tools.limit(sqlite.create())(tools.count())
    command = [sys.executable, "-m", "opendp_concurrent", "ledger", "verify", sqlite.address]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout[:28]) == (0, "1 charges are consistent; an"), done.stderr
