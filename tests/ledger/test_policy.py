"""A policy as data: what it says, what it refuses with which line, and what it never changes."""

import json
import math
import sys
from datetime import date, datetime
from functools import partial

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    LedgerError,
)
from opendp_concurrent.errors.ledger import LedgerMismatchError
from opendp_concurrent.ledger import apply_policy, policy, read_policy
from opendp_concurrent.ledger.command import main

dp.enable_features("contrib", "honest-but-curious")
toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is in Python 3.11")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()
NOVEMBER, DECEMBER = date(2026, 11, 24), date(2026, 12, 1)

CLINIC = """\
dataset = "clinic"
d_in = 1
cap = { epsilon = 1.0 }   # of all together
people = ["kim"]

[teams]
cardiology = ["ann", "tom"]
oncology = ["eva"]
surgery = ["lee"]

[limits]
cardiology = { epsilon = 0.5 }
ann = { epsilon = 0.3, every = "month" }
eva = { epsilon = 0.25, until = 2026-11-30 }
"""

SITES = {
    "dataset": "attribution",
    "d_in": 1,
    "cap": {"epsilon": 1.0},
    "people": ["*", "shop.example"],
    "limits": {"*": {"epsilon": 0.25}, "shop.example": {"epsilon": 0.5}},
}


ONE = {"epsilon": 1.0}


def filters(measure=PURE, **given):
    return partial(oc.make_concurrent_filter, oc.make_concurrent_odometer(*SPACE, measure), **given)


LIMITED = partial(oc.c.make_limited, oc.make_concurrent_odometer(*SPACE, PURE))


@pytest.fixture
def written(tmp_path):
    def write(text=CLINIC):
        given = type(text) is dict
        path = tmp_path / ("policy.json" if given else "policy.toml")
        path.write_text(json.dumps(text, indent=1) if given else text)
        return path

    return write


@pytest.fixture
def day(monkeypatch):
    now = [NOVEMBER]
    monkeypatch.setattr(policy, "today", lambda: now[0])
    return now


@toml
def test_a_clinic_with_three_teams(written, tmp_path, tools, day, capsys):
    found, path = read_policy(written()), tmp_path / "budget.db"
    ledger, made = apply_policy(found, path, filters(), create=True)
    with ledger:
        root = made([1, 2, 3])
        ann, tom, kim = (found.handle(root, name, LIMITED) for name in ("ann", "tom", "kim"))
        assert kim is root
        ann(tools.count(0.25))
        with pytest.raises(BudgetExceededError, match="limit 'ann, 2026-11'"):
            ann(tools.count(0.125))
        tom(tools.count(0.125))
        with pytest.raises(BudgetExceededError, match="limit 'cardiology'"):
            tom(tools.count(0.25))
        assert found.handle(root, "lee", LIMITED) is root  # a team without a limit has the cap
        day[0] = DECEMBER
        found.handle(root, "ann", LIMITED)(tools.count(0.0625))
        with pytest.raises(InvalidValueError, match="limit of 'eva' ended on 2026-11-30"):
            found.handle(root, "eva", LIMITED)
        with pytest.raises(InvalidValueError, match="'bob'.*must be in teams or in people"):
            found.handle(root, "bob", LIMITED)
        assert ledger.summary().spent == 0.4375
    before = path.read_bytes()
    ledger, made = apply_policy(found, path, filters(), create=True)  # changes nothing
    with ledger:
        root = made([1])
        assert root.remaining() == 0.5625
        assert found.handle(root, "ann", LIMITED, NOVEMBER).remaining() == pytest.approx(0.05)
    assert path.read_bytes() == before
    assert main(["policy", str(path), str(tmp_path / "policy.toml")]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["limit", "d_out", "every", "until", "spent"]
    assert rows[0].split() == ["the", "budget", "1", "-", "-", "0.4375"]
    assert rows[1].split() == ["cardiology", "0.5", "-", "-", "0.4375"]


def test_quotas_of_sites_within_a_budget_of_each_week(written, tmp_path, tools):
    """As in W3C attribution: a device has a budget for each week, and each site a quota of it."""
    found = read_policy(written(SITES))
    weeks = oc.c.by_key(lambda record: record // 100)
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    make = partial(oc.c.make_block_filter, odometer, blocks=weeks, keys=[1, 2])
    for again in range(2):
        ledger, made = apply_policy(found, tmp_path / "budget.db", make, create=True)
        with ledger:
            root = made([101, 102, 201])
            news, shop = (found.handle(root, name, LIMITED) for name in ("news", "shop.example"))
            news([1, 2], tools.count(0.125))
            assert (shop.remaining(2), news.remaining(2)) == (0.5, 0.125 - 0.125 * again)
    assert found.path("blog") == [("blog", 0.25)]
    with pytest.raises(InvalidValueError, match=r"policy.json, line 4: .* does not match"):
        apply_policy(
            read_policy(written({**SITES, "cap": {"epsilon": 2.0}})), tmp_path / "budget.db", make
        )


def test_all_others_may_be_a_team(written):
    """A limit of this team is above that of each person."""
    given = {"teams": {"all": ["*", "shop.example"]}, "people": []}
    found = read_policy(written({**SITES, **given, "limits": {**SITES["limits"], "all": ONE}}))
    assert found.path("news") == [("all", 1.0), ("news", 0.25)]
    assert found.path("shop.example") == [("all", 1.0), ("shop.example", 0.5)]


def test_a_later_period_may_have_another_limit(written, tmp_path, tools, day):
    """What was promised is the limit of a period that has charges; the cap bounds all of them."""

    def monthly(epsilon):
        limits = {"shop.example": {"epsilon": epsilon, "every": "month"}}
        return read_policy(written({**SITES, "limits": limits}))

    path = tmp_path / "budget.db"
    ledger, made = apply_policy(monthly(0.5), path, filters(), create=True)
    with ledger:
        monthly(0.5).handle(made([1]), "shop.example", LIMITED)(tools.count(0.5))
    with pytest.raises(InvalidValueError, match="is not what was promised"):
        apply_policy(monthly(0.25), path, filters())
    day[0] = DECEMBER
    ledger, made = apply_policy(monthly(0.25), path, filters())
    with ledger:
        root = made([1])
        assert monthly(0.25).handle(root, "shop.example", LIMITED).remaining() == 0.25
        assert root.remaining() == 0.5


def other(old, new):
    assert old in CLINIC
    return CLINIC.replace(old, new)


@toml
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (other("d_in = 1", "d_in = 1\nbudget = 3"), "line 3: budget is unknown"),
        (other("d_in = 1\n", ""), "d_in must be given, as int"),
        (other("d_in = 1", 'd_in = "1"'), "line 2: d_in must be given, as int"),
        (other("d_in = 1", "d_in = 0"), r"line 2: d_in \(0\) must be at least 1"),
        (other("epsilon = 1.0", "epsilon = inf"), "line 3: epsilon must be"),
        (other("epsilon = 1.0", "epsilon = 1e400"), "line 3: epsilon must be"),
        (other("d_in = 1", "d_in = true"), "line 2: d_in must be given, as int"),
        (other("d_in = 1", "d_in = 1\nd_in = 2"), "line 3"),
        (other("epsilon = 1.0", "epsilon = -1.0"), r"line 3: epsilon \(-1.0\) must be"),
        (other("epsilon = 1.0", "epsilon = nan"), r"line 3: epsilon"),
        (other("epsilon = 1.0", "sigma = 1.0"), "line 3: a privacy loss must have .*; found sigma"),
        (other("ann = {", "ghost = {"), "line 13: limit of 'ghost', who is neither"),
        (other('["kim"]', '["kim", "ann"]'), "line 7: 'ann' must be"),
        (other('["kim"]', '["kim", 3]'), "3 must be a name"),
        (other('["kim"]', '["kim", ""]'), "'' must be a name"),
        (other('["eva"]', '"eva"'), "oncology must be a list of names"),
        (other("ann = { epsilon", "ann = { rho"), "line 13: a limit must have the keywords"),
        (
            other("ann = { epsilon = 0.3,", "ann = { "),
            "line 13: a privacy loss must have .*; found none",
        ),
        (other('"month"', '"moon"'), "line 13: every must be one of day, week"),
        (other('"month"', '["month"]'), "line 13: every must be one of day, week"),
        (other('"month"', "{}"), "line 13: every must be one of day, week"),
        (other("2026-11-30", '"soon"'), "line 14: every must be"),
        (other("2026-11-30", "3"), "line 14: every must be"),
        (
            other("ann = { epsilon = 0.3,", "ann = { dose = 1, epsilon = 0.3,"),
            "line 13: a privacy loss must have",
        ),
        (other("eva = {", "eva = 0.3 # {"), "line 14: limit of 'eva' must be a table"),
        (other("[limits]", "[limits"), "line 11"),
        ("x = " + "[" * 100_000, "recursion"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_nothing_is_made(written, text, said):
    with pytest.raises(InvalidValueError, match=rf"^policy.toml.*{said}"):
        read_policy(written(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        '{"dataset": "a", "dataset": "b"}',
        '{"cap": NaN}',
        json.dumps({**SITES, "cap": {"epsilon": math.inf}}),
        "[" * 10**5,
        "\0",
    ],
)
def test_a_file_that_is_no_policy_is_refused(tmp_path, text):
    path = tmp_path / "policy.json"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=r"^policy.json"):
        read_policy(path)


def test_a_file_that_is_not_in_utf_8_is_refused(tmp_path):
    path = tmp_path / "policy.json"
    path.write_bytes(b'{"dataset": "\xff"}')
    with pytest.raises(InvalidValueError, match=r"^policy.json: .*utf-8"):
        read_policy(path)


@pytest.mark.parametrize("day", [datetime(2026, 11, 24), "2026-11-24", 3])
def test_a_day_is_a_date(written, day):
    with pytest.raises(InvalidTypeError, match="day must be a datetime.date"):
        read_policy(written(SITES)).path("anybody", day)


def test_a_key_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(SITES).replace('"cap"', '"cap": {"epsilon": 0.5}, "cap"'))
    with pytest.raises(InvalidValueError, match="a key is there twice"):
        read_policy(path)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (filters(dp.zero_concentrated_divergence()), InvalidValueError, "cap is under"),
        (filters(dp.approximate(PURE)), TypeError, "d_out"),
        (filters(halt=True), InvalidValueError, "halt must be False"),
        (lambda **_: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_if_no_filter_can_be_made_nothing_is_created(written, tmp_path, make, error, said):
    found = read_policy(written(SITES))
    with pytest.raises(error, match=said):
        apply_policy(found, tmp_path / "budget.db", make, create=True)
    with pytest.raises(LedgerError):  # without create, a mistyped name begins no budget
        apply_policy(found, tmp_path / "budget.db", filters())
    assert [one.name for one in tmp_path.iterdir()] == ["policy.json"]


def test_a_second_dataset_is_made_beside_the_first(written, tmp_path):
    for dataset in ("attribution", "another"):
        found = read_policy(written({**SITES, "dataset": dataset}))
        apply_policy(found, tmp_path / "budget.db", filters(), create=True)[0].close()
    with pytest.raises(LedgerMismatchError, match="dataset"):
        apply_policy(
            read_policy(written({**SITES, "dataset": "x"})), tmp_path / "budget.db", filters()
        )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"cap": {"epsilon": 2.0}},
            r"line 4: cap \(2\) is not what was prom.*has 1, with 0.75",
        ),
        ({"cap": {"epsilon": 0.5}}, r"line 4: cap \(0.5\) is not what was promised"),
        ({"cap": {"epsilon": 0.5, "delta": 0.5}}, "keywords of the cap"),
        ({"d_in": 2}, "line 3: d_in"),
        (
            {"limits": {**SITES["limits"], "shop.example": {"epsilon": 0.75}}},
            r"line 15: shop.example \(0.75\) is not what was promised",
        ),
        ({"limits": {"*": {"epsilon": 0.5}}}, r"line 12: news \(0.5\) is not what was promised"),
        ({"limits": {}}, "has a limit 'shop.example', which this file lacks"),
        (
            {"limits": {"*": {"epsilon": 0.25}}},
            r"line 12: shop.example \(0.25\) is not what was promised",
        ),
        (
            {"limits": {**SITES["limits"], "shop.example": {"epsilon": 0.5, "every": "week"}}},
            "has a limit 'shop.example', which this file lacks",
        ),
        ({"teams": {"all": ["news"]}, "limits": {**SITES["limits"], "all": ONE}}, "limit 'news'"),
    ],
)
def test_a_promise_is_never_changed(written, tmp_path, tools, change, said, capsys):
    path = tmp_path / "budget.db"
    found = read_policy(written(SITES))
    ledger, made = apply_policy(found, path, filters(), create=True)
    with ledger:
        root = made([1])
        found.handle(root, "shop.example", LIMITED)(tools.count(0.5))
        found.handle(root, "news", LIMITED)(tools.count(0.25))
    before = path.read_bytes()
    with pytest.raises(InvalidValueError, match=said):
        apply_policy(read_policy(written({**SITES, **change})), path, filters(), create=True)
    if "d_in" not in change:
        assert main(["policy", str(path), str(tmp_path / "policy.json")]) == 1
        assert "line" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main(["policy", str(path), str(written(SITES))]) == 0


def test_decimals_are_read_exactly(written, tmp_path):
    given = {**SITES, "limits": {"*": {"epsilon": 0.1}}}
    found = read_policy(written(given))
    ledger, made = apply_policy(found, tmp_path / "budget.db", filters(), create=True)
    with ledger:
        handle = found.handle(made([1]), "news", LIMITED)
        tenth = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=100.0)
        for _ in range(9):
            handle(tenth)
        assert handle.remaining() > 0.0
    apply_policy(found, tmp_path / "budget.db", filters())[0].close()
