"""The report of a ledger: what it says, that text of analysts is text, and ledgers in trouble."""

from html import unescape
from html.parser import HTMLParser

import pytest

import opendp_concurrent as oc
from opendp_concurrent.ledger import book, command

from ..build import a_limit, an_odometer, by_tens

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
        self.tags.append((tag, dict(attrs)))
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


@pytest.fixture
def days(monkeypatch):
    """A clock that stands still until it is moved."""
    now = [1_795_000_000 * 10**9]
    monkeypatch.setattr(book, "time_ns", lambda: now[0])
    return now


def row(page, section, name):
    cells = Read(page).cells
    at = cells.index(name, cells.index(section))
    return cells[at : at + 8]


def test_a_report_says_who_spent_what_and_what_remains(sqlite, tools, days):
    ledger = sqlite.create()
    root = tools.limit(ledger)
    team = root(a_limit(0.5, "team"))
    ann, tom = team(a_limit(0.375, "ann")), root(a_limit(0.5, "tom"))
    for who in (ann, tom, ann):
        with oc.labelled("mean age"):
            who(tools.count(0.125))
        days[0] += DAY
    page = ledger.report({"ann": 3})
    cells = Read(page).cells
    assert cells[: cells.index("What remains")] == []
    assert cells[1:4] == ["0.375", "1", "0.625"]  # spent, cap, left
    # (bar), charges, spent, of, remains
    assert row(page, "Limits", "team > ann")[1:6] == ["", "2", "0.25", "0.375", "0.125"]
    assert row(page, "Limits", "tom")[1:6] == ["", "1", "0.125", "0.5", "0.375"]
    assert row(page, "Labels", "mean age")[1:3] == ["3", "0.375"]
    assert row(page, "Refused requests", "ann")[:2] == ["ann", "3"]
    assert [one for one in cells if one in ("the budget", "team", "team > ann", "tom")][:4] == [
        *("the budget", "team", "team > ann", "tom"),  # in the picture, the largest first
    ]


def test_text_of_analysts_is_text(sqlite, tools):
    ledger = sqlite.create(HOSTILE.replace("\u202e", "").replace("\x1b", ""))
    with oc.labelled(HOSTILE):
        tools.limit(ledger)(a_limit(0.5, HOSTILE))(tools.count(0.125))
    plain = Read(sqlite.create("plain").report())
    page = ledger.report({HOSTILE: 2})
    read = Read(page)
    assert "script" not in [tag for tag, _ in read.tags]
    assert not [one for _, given in read.tags for one in given if one.startswith(("on", "src"))]
    assert sum("<script>alert(1)</script>\"'&  [31m$title" in one for one in read.cells) >= 4
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert {tag for tag, _ in plain.tags} <= {tag for tag, _ in read.tags}


def test_a_ledger_without_charges_or_without_a_bound_has_a_report(sqlite, tools):
    ledger = sqlite.create()
    assert "Nothing was charged yet" in ledger.report()
    tools.limit(ledger)
    assert Read(ledger.report()).cells[:4] == ["What remains", "0", "1", "1"]
    endless = sqlite.create("endless")
    root = an_odometer(ledger=endless, d_in=1)([1])
    for _ in range(2):
        root(tools.count(0.125))
        cells = Read(endless.report()).cells
    assert cells[:4] == ["What remains", "0.25", "–", "–"]


def test_blocks_are_reported_by_key(sqlite, tools):
    by, ledger = oc.c.by_key(lambda record: record), sqlite.create()
    root = by_tens(blocks=by, keys=["<b>", "b"], ledger=ledger)([])
    ann = root(a_limit(0.5, "ann"))
    root(["b"], tools.count(0.125))
    assert {"block 'b'", "the budget"} <= set(Read(ledger.report()).cells)
    ann(["<b>", "b"], tools.count(0.125))
    ann(["<b>"], tools.count(0.125))
    root(["b"], tools.count(0.375))
    page = ledger.report()
    assert Read(page).cells[1:4] == ["0.625", "1", "0.375"]
    assert row(page, "Blocks", "'<b>'")[1:6] == ["", "2", "0.25", "1", "0.75"]
    assert row(page, "Limits", "ann")[1:6] == ["", "2", "0.25", "0.5", "0.25"]


def test_a_notebook_shows_the_report_in_a_frame(sqlite, tools):
    ledger = sqlite.create()
    tools.limit(ledger)(tools.count(0.125))
    ((tag, given), *_) = Read(ledger._repr_html_()).tags
    assert (tag, given["sandbox"]) == ("iframe", None)
    assert "What remains" in unescape(given["srcdoc"])
    ledger.close()
    ((_, given), *_) = Read(ledger._repr_html_()).tags
    assert "What remains" not in given["srcdoc"]
    assert "SqlLedger(" in given["srcdoc"]


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def run(capsys, tmp_path):
    def run_(ledger, *more, name="report.html"):
        path = tmp_path / name
        code = command.main(["report", ledger, "-o", str(path), *more])
        out, error = capsys.readouterr()
        return code, path, out, error

    return run_


def test_the_command_writes_a_page_for_its_owner_only(sqlite, tools, run):
    tools.limit(sqlite.create())(tools.count(0.125))
    code, path, out, _ = run(sqlite.address)
    assert (code, out.strip()) == (0, str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert "What remains" in path.read_text()


def test_the_command_does_not_write_over_a_ledger(sqlite, tools, run):
    tools.limit(sqlite.create())(tools.count(0.125))
    sqlite.close()
    for name in ("budget.db", "html"):
        code, path, _, error = run(sqlite.address, name=name)
        assert (code, "must end with .html" in error) == (1, True)
        assert not path.exists() or path.read_bytes()[:1] != b"<"
