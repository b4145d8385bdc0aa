"""What a ledger says of itself: its command, sums by limit, label and block, and its report."""

import json
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser

import pytest

import opendp_concurrent as oc
from opendp_concurrent.ledger import book
from opendp_concurrent.ledger.command import main
from opendp_concurrent.ledger.report import NAMES, one_line, spending

from ..build import a_limit, an_odometer, by_tens
from .conftest import CHARGES, count, limit


@pytest.fixture
def run(capsys):
    def run_(*arguments):
        code = main(list(arguments))
        return code, *capsys.readouterr()

    return run_


# --- the command -------------------------------------------------------------------------------


@pytest.fixture
def three(sqlite):
    """The address of a ledger with three charges, with labels; nobody has it open."""
    root = limit(sqlite.create())
    for label in ("mean age", "x" * 60, "a\n\x1b[31mb\tc\u202e"):
        with oc.labelled(label):
            root(count(0.125))
    sqlite.close()
    return sqlite.address


def test_show_prints_each_charge_in_a_line(three, run):
    code, out, error = run("show", three)
    assert (code, error) == (0, "")
    table, facts = out.split("\n\n")
    lines = table.splitlines()
    assert lines[0].split() == ["time", "(UTC)", "label", "mechanism", "d_mid", "loss"]
    assert len(lines) == 4
    assert lines[1].split()[0] == "1"
    assert "count >> laplace(scale=8.0)" in lines[1]
    assert "x" * 37 + "..." in lines[2]
    assert "a  [31mb c" in lines[3]  # labels cannot move the cursor
    assert lines[3].endswith("0.125  0.375")
    assert all(one.isprintable() for line in out.splitlines() for one in line)
    known = dict(line.split(":", 1) for line in facts.splitlines())
    for name, value in (("spent", "0.375"), ("remaining", "0.625"), ("measure", "MaxDivergence")):
        assert known[name].strip() == value
    assert "the advantage at most 0.1854, true positives" in known["risk"]
    assert known["anchor"].strip().startswith("3:")


def test_show_prints_one_object_for_programs(three, run):
    code, out, _ = run("show", three, "--json")
    found = json.loads(out)
    assert (code, len(out.splitlines())) == (0, 1)
    charges = found["charges"]
    assert [(one["d_mid"], one["loss"]) for one in charges] == [
        *((0.125, 0.125), (0.125, 0.25), (0.125, 0.375))
    ]
    assert charges[2]["label"] == "a\n\x1b[31mb\tc\u202e"
    assert (found["spent"], found["d_in"], found["d_out"]) == (0.375, 1, 1.0)
    assert charges[2]["hash"] == found["anchor"].partition(":")[2]


def test_limits_are_shown_below_the_facts(sqlite, run):
    root = limit(sqlite.create())
    team = root(a_limit(0.5, "team"))
    for handle in (team(a_limit(0.25, "ann\x1b[31m")), team):
        handle(count(0.125))
    sqlite.close()
    *_, facts, limits = run("show", sqlite.address)[1].split("\n\n")
    assert "limit" not in facts
    header, *rows = limits.splitlines()
    assert header.split() == ["limit", "launches", "spent", "remaining", "d_out"]
    assert rows[0].split() == ["team", "2", "0.25", "0.25", "0.5"]
    assert rows[1].split() == ["team", ">", "ann", "[31m", "1", "0.125", "0.125", "0.25"]
    found = json.loads(run("show", sqlite.address, "--json")[1])
    assert [charge["limit"] for charge in found["charges"]] == [["team", "ann\x1b[31m"], ["team"]]
    assert [one["launches"] for one in found["limits"]] == [2, 1]


def test_verify_says_that_all_fits_or_what_was_edited(three, sqlite, run):
    code, out, error = run("verify", three)
    assert (code, error) == (0, "")
    assert out.startswith("3 charges are consistent; anchor 3:")
    anchor = out.split()[-1]
    assert run("verify", three, "--anchor", anchor)[0] == 0
    code, out, _ = run("verify", three, "--json")
    found = json.loads(out)
    assert (code, found["fits"], found["anchor"]) == (0, True, anchor)
    sqlite.execute(f"UPDATE {CHARGES} SET label = 'x' WHERE sequence = 2")
    for action in ("show", "verify"):
        code, out, error = run(action, three, "--anchor", anchor)
        assert (code, out, "charge 2 does not follow" in error) == (1, "", True)


def test_the_dataset_must_be_named_if_there_are_several(three, sqlite, run):
    sqlite.create("another").close()
    code, _, error = run("show", three)
    assert code == 1
    assert "--dataset must be given: the ledger has 'another', 'survey 2026'" in error
    code, out, _ = run("show", three, "--dataset", "another", "--json")
    found = json.loads(out)
    assert (code, found["launches"], found["charges"]) == (0, 0, [])


@pytest.mark.parametrize("arguments", [[], ["burn"], ["show"], ["show", "a", "--colour"]])
def test_misuse_is_explained(arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert "opendp-concurrent ledger" in capsys.readouterr().err


def test_the_program_itself(three):
    command = [sys.executable, "-m", "opendp_concurrent", "ledger", "verify", three]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout[:28]) == (0, "3 charges are consistent; an"), done.stderr


def test_the_report_is_a_page_for_its_owner_only_and_never_written_over_a_ledger(
    three, run, tmp_path
):
    path = tmp_path / "report.html"
    code, out, _ = run("report", three, "-o", str(path))
    assert (code, out.strip()) == (0, str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert "What remains" in path.read_text()
    for wrong in (three, str(tmp_path / "html")):
        code, _, error = run("report", three, "-o", wrong)
        assert (code, "must end with .html" in error) == (1, True)
    assert run("verify", three)[0] == 0


# --- sums --------------------------------------------------------------------------------------


def drawn(ledger, by, **given):
    lines, number = spending(*ledger.read(), by, **given)
    found = {one.name: [[each.sequence for each in one.entries], one.heights] for one in lines}
    return found, number


def test_each_way_adds_up_its_own_charges(sqlite):
    ledger = sqlite.create()
    assert all(spending(*ledger.read(), by) == ([], 0) for by in NAMES)
    root = limit(ledger)
    team = root(a_limit(0.75, "team"))
    ann, tom = team(a_limit(0.5, "ann")), root(a_limit(0.5, "tom"))
    for who, label in ((ann, "a"), (team, ""), (tom, "a"), (root, "b")):
        with oc.labelled(label):
            who(count(0.125))
    two = [0.125, 0.25]
    assert drawn(ledger, "time") == ({"spent": [[1, 2, 3, 4], [0.125, 0.25, 0.375, 0.5]]}, 1)
    limits = {"team": [[1, 2], two], "team > ann": [[1], [0.125]], "tom": [[3], [0.125]]}
    assert drawn(ledger, "limit") == (limits, 3)
    labels = {"a": [[1, 3], two], "no label": [[2], [0.125]], "b": [[4], [0.125]]}
    assert drawn(ledger, "label") == (labels, 3)
    assert drawn(ledger, "block") == ({}, 0)
    assert drawn(ledger, "limit", most=1) == ({"team": [[1, 2], two]}, 3)


def test_losses_of_limits_are_at_their_own_distance(sqlite):
    """A limit over a transformation counts what its launches cost at its own d_in."""
    ledger = sqlite.create()
    limit(ledger, d_in=1)(a_limit(0.5, "pairs", d_in=2))(count(0.125))
    (entry,) = ledger.entries()
    assert (entry.loss, entry.limit_losses) == (0.125, (0.25,))
    assert "–" in ledger.report()


def test_the_fullest_block_stands_for_several(sqlite):
    ledger = sqlite.create()
    root = by_tens(keys=[1, 2, 3], ledger=ledger)([])
    ann = root(a_limit(0.5, "ann"))
    with oc.labelled("x"):
        root([1], count(0.25))
        ann([1, 2], count(0.125))
        ann([2], count(0.25))
    ann([3], count(0.0625))
    assert drawn(ledger, "time") == ({"spent": [[1, 2, 3, 4], [0.25, 0.375, 0.375, 0.375]]}, 1)
    assert drawn(ledger, "limit") == ({"ann": [[2, 3, 4], [0.125, 0.375, 0.375]]}, 1)
    assert drawn(ledger, "label")[0]["x"] == [[1, 2, 3], [0.25, 0.375, 0.375]]
    blocks = {"block 1": [[1, 2], [0.25, 0.375]], "block 2": [[2, 3], [0.125, 0.375]]}
    assert drawn(ledger, "block", most=2) == (blocks, 3)


def test_a_text_is_shown_on_one_line():
    for text, shown in (("a\nb\x1b[1m\u202e", "a b [1m "), ("x" * 11, "xxxxxxx...")):
        assert one_line(text, 10) == shown
    assert one_line("x" * 10, 10) == "x" * 10


# --- the report --------------------------------------------------------------------------------

DAY = 86_400 * 10**9
HOSTILE = "<script>alert(1)</script>\"'&\u202e\x1b[31m$title"
CELLS = ("td", "th", "dd", "b", "h2", "li")


class Read(HTMLParser):
    """The tags and the text of a page; each tag must be closed in order."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.cells = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag in CELLS:
            self.cells.append("")
        if tag not in ("meta", "br", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if any(tag in CELLS for tag in self.open):
            self.cells[-1] += data


def row(page, section, name):
    cells = Read(page).cells
    at = cells.index(name, cells.index(section))
    return cells[at : at + 8]


def test_a_report_says_who_spent_what_and_what_remains(sqlite, monkeypatch):
    now = [1_795_000_000 * 10**9]
    monkeypatch.setattr(book, "time_ns", lambda: now[0])
    ledger = sqlite.create()
    root = limit(ledger)
    team = root(a_limit(0.5, "team"))
    ann, tom = team(a_limit(0.375, "ann")), root(a_limit(0.5, "tom"))
    for who in (ann, tom, ann):
        with oc.labelled("mean age"):
            who(count(0.125))
        now[0] += DAY
    page = ledger.report({"ann": 3})
    cells = Read(page).cells
    assert cells[:4] == ["What remains", "0.375", "1", "0.625"]  # spent, cap, left
    # (bar), charges, spent, of, remains
    assert row(page, "Limits", "team > ann")[1:6] == ["", "2", "0.25", "0.375", "0.125"]
    assert row(page, "Limits", "tom")[1:6] == ["", "1", "0.125", "0.5", "0.375"]
    assert row(page, "Labels", "mean age")[1:3] == ["3", "0.375"]
    assert row(page, "Refused requests", "ann")[:2] == ["ann", "3"]
    names = ["the budget", "team", "team > ann", "tom"]  # in the picture, the largest first
    assert [one for one in cells if one in names][:4] == names


def test_text_of_analysts_is_text(sqlite):
    ledger = sqlite.create(HOSTILE.replace("\u202e", "").replace("\x1b", ""))
    with oc.labelled(HOSTILE):
        limit(ledger)(a_limit(0.5, HOSTILE))(count(0.125))
    page = ledger.report({HOSTILE: 2})
    read = Read(page)
    assert "script" not in [tag for tag, _ in read.tags]
    assert not [one for _, given in read.tags for one in given if one.startswith(("on", "src"))]
    assert sum("<script>alert(1)</script>\"'&  [31m$title" in one for one in read.cells) >= 4
    assert not {"\x1b", "\u202e"} & set(page)


def test_a_ledger_without_charges_or_without_a_bound_has_a_report(sqlite):
    ledger = sqlite.create()
    assert "Nothing was charged yet" in ledger.report()
    limit(ledger)
    assert Read(ledger.report()).cells[:4] == ["What remains", "0", "1", "1"]
    endless = sqlite.create("endless")
    root = an_odometer(ledger=endless, d_in=1)([1])
    for spent in ("0.125", "0.25"):
        root(count(0.125))
        assert Read(endless.report()).cells[:4] == ["What remains", spent, "–", "–"]


def test_blocks_are_reported_by_key(sqlite):
    by, ledger = oc.c.by_key(lambda record: record), sqlite.create()
    root = by_tens(blocks=by, keys=["<b>", "b"], ledger=ledger)([])
    ann = root(a_limit(0.5, "ann"))
    root(["b"], count(0.125))
    assert {"block 'b'", "the budget"} <= set(Read(ledger.report()).cells)
    ann(["<b>", "b"], count(0.125))
    ann(["<b>"], count(0.125))
    root(["b"], count(0.375))
    page = ledger.report()
    assert Read(page).cells[1:4] == ["0.625", "1", "0.375"]
    assert row(page, "Blocks", "'<b>'")[1:6] == ["", "2", "0.25", "1", "0.75"]
    assert row(page, "Limits", "ann")[1:6] == ["", "2", "0.25", "0.5", "0.25"]


def test_a_notebook_shows_the_report_in_a_frame(sqlite):
    ledger = sqlite.create()
    limit(ledger)(count(0.125))
    ((tag, given), *_) = Read(ledger._repr_html_()).tags
    assert (tag, given["sandbox"]) == ("iframe", None)
    assert "What remains" in unescape(given["srcdoc"])
    ledger.close()
    ((_, given), *_) = Read(ledger._repr_html_()).tags
    assert "What remains" not in given["srcdoc"]
    assert "SqlLedger(" in given["srcdoc"]
