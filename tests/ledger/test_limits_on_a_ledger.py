"""Limits on a ledger: charged with the cap in one transaction, and found again."""

import contextlib
from collections import Counter

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    LedgerMismatchError,
    LimitMismatchError,
)
from opendp_concurrent.ledger import book

from ..build import PURE, SPACE, a_limit, an_odometer, in_threads
from .conftest import Child, count, counted, limit

EPSILON = 2.0**-10


def limited(handle, label="alice", d_out=0.5, d_in=1):
    """A limit on a handle."""
    return handle(a_limit(d_out, label, d_in=d_in))


def spent(summary):
    return {one.path: (one.launches, one.spent, one.remaining) for one in summary.limits}


def test_the_cap_and_all_limits_are_found_again(store):
    with store.create() as ledger:
        root = limit(ledger, 2.0)
        team = limited(root, "team", 1.0)
        ann = limited(team, "ann", 0.5)
        assert (team.remaining(), ann.remaining()) == (1.0, 0.5)
        for handle in (ann, team, root):
            handle(count(0.25))
        assert (ann.privacy_loss(), team.privacy_loss(), root.privacy_loss()) == (0.25, 0.5, 0.75)
        assert "limit 'team', 2 launches, spent 0.5 of 1 at d_in=1" in repr(team)
    with store.open() as ledger:
        summary, entries = ledger.read()
        assert summary.spent == 0.75
        assert spent(summary) == {("team",): (2, 0.5, 0.5), ("team", "ann"): (1, 0.25, 0.25)}
        assert [entry.limit for entry in entries] == [("team", "ann"), ("team",), ()]
        assert [entry.loss for entry in entries] == [0.25, 0.5, 0.75]
        root = limit(ledger, 2.0)
        team = limited(root, "team", 1.0)
        ann = limited(team, "ann", 0.5)
        assert (ann.remaining(), team.remaining(), root.remaining()) == (0.25, 0.5, 1.25)
        ann(count(0.25))
        said = "^limit 'ann' of limit 'team' of the filter of ledger 'survey 2026' refuses"
        with pytest.raises(BudgetExceededError, match=said):
            ann(count(0.25))
        bob = limited(team, "bob", 0.5)
        bob(count(0.25))
        with pytest.raises(BudgetExceededError, match="^limit 'team' of the filter of ledger"):
            bob(count(0.25))
        assert (bob.remaining(), team.remaining()) == (0.25, 0.0)
        assert ledger.summary().launches == 5


def test_terms_of_a_limit_do_not_change(store):
    with store.create() as ledger:
        limited(limit(ledger))  # no launch: it leaves no trace
    with store.open() as ledger:
        limited(limit(ledger), d_out=0.75)(count(0.25))
    with store.open() as ledger:
        root = limit(ledger)
        with pytest.raises(LimitMismatchError, match="^d_out of the limit 'alice' does not match"):
            limited(root, d_out=0.5)
        with pytest.raises(LimitMismatchError, match="^d_in of the limit 'alice'"):
            limited(root, d_out=0.75, d_in=2)
        assert limited(root, d_out=0.75).remaining() == 0.5


def test_another_process_may_have_opened_it_under_other_terms(store):
    root, other = limit(store.create()), limit(store.open())
    alice = limited(root, d_out=0.5)
    limited(other, d_out=0.75)(count(0.25))
    query, ran = counted(0.125)
    for ask in (lambda: alice(query), alice.remaining, alice.privacy_loss):
        with pytest.raises(LimitMismatchError, match="^d_out of the limit 'alice' does not match"):
            ask()
    assert ran == []
    assert store.charges() == 1
    assert root(count(0.125)) is not None  # the connection is usable


def test_charges_below_a_limit_or_with_a_label_are_read(store):
    with store.create() as ledger:
        root = limit(ledger, 2.0)
        team = limited(root, "team", 1.0)
        ann = limited(team, "ann", 0.5)
        for number, handle in enumerate((root, team, ann, team)):
            with oc.labelled(f"query {number % 3}"):
                handle(count(0.25))

        def numbers(**which):
            return [entry.sequence for entry in ledger.entries(**which)]

        assert numbers() == numbers(limit=None, label=None) == [1, 2, 3, 4]
        assert numbers(limit="team") == numbers(limit=["team"]) == [2, 3, 4]
        assert numbers(limit=("team", "ann")) == [3]
        assert numbers(label="query 0") == [1, 4]
        assert numbers(limit="team", label="query 0") == [4]
        assert numbers(limit="ann") == numbers(limit=("ann", "team")) == numbers(label="") == []
        for hostile in ({"limit": []}, {"limit": [1]}, {"limit": 7}, {"label": 7}):
            with pytest.raises(InvalidTypeError, match=next(iter(hostile))):
                ledger.entries(**hostile)


def test_each_account_on_the_path_is_charged_in_its_own_units(store):
    twice = dp.t.make_user_transformation(
        *SPACE, *SPACE, lambda rows: rows * 2, lambda d_in: 2 * d_in
    )
    odometer = an_odometer()

    def opened(ledger):
        root = limit(ledger, 2.0)
        team = root(oc.c.make_limited(twice >> odometer, 1, 1.0, label="team"))
        return root, team, team(oc.c.make_limited(twice >> odometer, 1, 0.5, label="ann"))

    with store.create() as ledger:
        handles = opened(ledger)
        handles[2](count(0.125))
        assert [one.privacy_loss() for one in handles] == [0.5, 0.5, 0.25]
    with store.open() as ledger:
        handles = opened(ledger)
        assert [one.privacy_loss() for one in handles] == [0.5, 0.5, 0.25]
        handles[1](count(0.125))
        assert [one.remaining() for one in handles] == [1.25, 0.25, 0.25]


def test_a_child_odometer_has_no_name_for_limits_on_a_ledger(store):
    root = limit(store.create())
    child = root(an_odometer())
    with pytest.raises(InvalidTypeError, match="^a limit in a ledger must be opened on"):
        limited(child)
    below = limited(root)(an_odometer())
    below(count(0.25))  # a child odometer below a limit is charged as any launch
    assert [one.path for one in store.open().summary().limits] == [("alice",)]


# --- threads and processes -----------------------------------------------------------------


D_OUTS = {"team": 20, "ann": 7, "bob": 12}  # Ann's is below the team's


@pytest.mark.parametrize(
    ("processes", "launches", "threads", "scale", "cap"),
    [
        *((4, 60, 1, 1, 10**6), (3, 40, 4, 1, 25)),
        pytest.param(8, 2000, 2, 200, 5000, marks=pytest.mark.slow),
    ],
)
def test_threads_of_processes_launch_exactly_what_cap_and_limits_admit(
    store, processes, launches, threads, scale, cap
):
    def work(number):
        ledger = store.open()
        root, answers = limit(ledger, cap * EPSILON), []
        d_outs = {name: scale * share * EPSILON for name, share in D_OUTS.items()}
        team = limited(root, "team", d_outs["team"])
        ann, bob = limited(team, "ann", d_outs["ann"]), limited(root, "bob", d_outs["bob"])
        handles = {"team": team, "ann": ann, "bob": bob}

        def one(_):
            for turn in range(launches // threads):
                name = list(handles)[(turn + number) % 3]
                with contextlib.suppress(BudgetExceededError):
                    handles[name](count(EPSILON))
                    answers.append(name)

        in_threads(one, range(threads))
        assert root.privacy_loss() <= cap * EPSILON
        ledger.close()
        return answers

    store.create().close()
    children = [Child(lambda number=number: work(number)) for number in range(processes)]
    answers = Counter(name for child in children for name in child.result())
    summary = store.open().summary()
    assert answers.total() == summary.launches == store.charges()
    told = {path[-1]: launches for path, (launches, *_) in spent(summary).items()}
    assert told == {**answers, "team": answers["team"] + answers["ann"]}
    assert answers["ann"] <= 7 * scale
    if cap == 10**6:
        assert (told["team"], told["bob"]) == (20, 12)
    else:
        assert (summary.spent, summary.remaining) == (cap * EPSILON, 0.0)


def test_the_first_of_several_processes_settles_the_terms(store):
    store.create().close()

    def settle(d_out):
        try:
            limit(store.open(), d_out)
        except LedgerMismatchError as error:
            return error.name
        return d_out

    children = [Child(lambda d=d: settle(d)) for d in (1.0, 2.0, 3.0, 4.0)]
    found = [child.result() for child in children]
    (settled,) = (one for one in found if one != "d_out")
    assert found.count("d_out") == 3
    assert store.open().summary().terms.d_out == settled


def test_refusals_read_the_charges_of_others_once(sqlite, monkeypatch):
    sqlite.create().close()
    one, other = (limit(sqlite.open()) for _ in range(2))
    for _ in range(150):
        one(count(EPSILON))
    read, replay = [], book.replay
    monkeypatch.setattr(book, "replay", lambda *some: read.append(len(some[1])) or replay(*some))
    for _ in range(3):
        with pytest.raises(BudgetExceededError):
            other(count(2.0))
    assert read == [150]
    other(count(EPSILON))
    assert other.privacy_loss() == one.privacy_loss() == 151 * EPSILON


# --- shared releases -----------------------------------------------------------------------


def shared():
    return SPACE >> dp.t.then_count() >> oc.m.then_shared_release(PURE)


def pool(handle):
    """A limit for all that is shared."""
    return handle(a_limit(1.0, "shared"))


def test_steps_are_recorded_and_free_levels_are_not(store):
    with store.create() as ledger:
        root = limit(ledger, 2.0)
        release = pool(root)(shared())
        for level in (0.25, 0.125, 0.5, 0.25, 0.375):
            release(level)
        with oc.labelled("the finest"):
            release(0.75)
        entries = ledger.entries()
        assert [(one.d_mid, one.loss, one.limit) for one in entries] == [
            (0.25, 0.25, ("shared",)),
            (0.25, 0.5, ("shared",)),
            (0.25, 0.75, ("shared",)),
        ]
        assert [one.label for one in entries] == ["", "", "the finest"]
        assert "shared_release(level=0.75)" in entries[-1].mechanism
    with store.open() as ledger:
        root = limit(ledger, 2.0)
        again = pool(root)(shared())
        assert (again.finest, root.privacy_loss()) == (0.0, 0.75)  # a chain ends with its process
        with pytest.raises(BudgetExceededError, match="limit 'shared'"):
            again(0.5)
        again(0.25)
        assert root.remaining() == 1.0
