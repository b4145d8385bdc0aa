"""Limits on a ledger: charged with the cap in one transaction, and found again."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    LimitMismatchError,
)

from ..build import PURE, a_limit, an_odometer

EPSILON = 2.0**-10


def limited(handle, tools, label="alice", d_out=0.5, d_in=1):
    """A limit on a handle."""
    return handle(a_limit(d_out, label, d_in=d_in))


def spent(summary):
    return {one.path: (one.launches, one.spent, one.remaining) for one in summary.limits}


def test_the_cap_and_all_limits_are_found_again(store, tools):
    with store.create() as ledger:
        root = tools.limit(ledger, 2.0)
        team = limited(root, tools, "team", 1.0)
        ann = limited(team, tools, "ann", 0.5)
        assert (team.remaining(), ann.remaining()) == (1.0, 0.5)
        for handle in (ann, team, root):
            handle(tools.count(0.25))
        assert (ann.privacy_loss(), team.privacy_loss(), root.privacy_loss()) == (0.25, 0.5, 0.75)
        assert "limit 'team', 2 launches, spent 0.5 of 1 at d_in=1" in repr(team)
    with store.open() as ledger:
        summary, entries = ledger.read()
        assert summary.spent == 0.75
        assert spent(summary) == {("team",): (2, 0.5, 0.5), ("team", "ann"): (1, 0.25, 0.25)}
        assert [entry.limit for entry in entries] == [("team", "ann"), ("team",), ()]
        assert [entry.loss for entry in entries] == [0.25, 0.5, 0.75]
        root = tools.limit(ledger, 2.0)
        team = limited(root, tools, "team", 1.0)
        ann = limited(team, tools, "ann", 0.5)
        assert (ann.remaining(), team.remaining(), root.remaining()) == (0.25, 0.5, 1.25)
        ann(tools.count(0.25))
        said = "^limit 'ann' of limit 'team' of the filter of ledger 'survey 2026' refuses"
        with pytest.raises(BudgetExceededError, match=said):
            ann(tools.count(0.25))
        bob = limited(team, tools, "bob", 0.5)
        bob(tools.count(0.25))
        with pytest.raises(BudgetExceededError, match="^limit 'team' of the filter of ledger"):
            bob(tools.count(0.25))
        assert (bob.remaining(), team.remaining()) == (0.25, 0.0)
        assert ledger.summary().launches == 5


def test_terms_of_a_limit_do_not_change(store, tools):
    with store.create() as ledger:
        limited(tools.limit(ledger), tools)  # no launch: it leaves no trace
    with store.open() as ledger:
        limited(tools.limit(ledger), tools, d_out=0.75)(tools.count(0.25))
    with store.open() as ledger:
        root = tools.limit(ledger)
        with pytest.raises(LimitMismatchError, match="^d_out of the limit 'alice' does not match"):
            limited(root, tools, d_out=0.5)
        with pytest.raises(LimitMismatchError, match="^d_in of the limit 'alice'"):
            limited(root, tools, d_out=0.75, d_in=2)
        assert limited(root, tools, d_out=0.75).remaining() == 0.5


def test_another_process_may_have_opened_it_under_other_terms(store, tools):
    root, other = tools.limit(store.create()), tools.limit(store.open())
    alice = limited(root, tools, d_out=0.5)
    limited(other, tools, d_out=0.75)(tools.count(0.25))
    query, ran = tools.counted(0.125)
    for ask in (lambda: alice(query), alice.remaining, alice.privacy_loss):
        with pytest.raises(LimitMismatchError, match="^d_out of the limit 'alice' does not match"):
            ask()
    assert ran == []
    assert store.charges() == 1
    assert root(tools.count(0.125)) is not None  # the connection is usable


def test_charges_below_a_limit_or_with_a_label_are_read(store, tools):
    with store.create() as ledger:
        root = tools.limit(ledger, 2.0)
        team = limited(root, tools, "team", 1.0)
        ann = limited(team, tools, "ann", 0.5)
        for number, handle in enumerate((root, team, ann, team)):
            with oc.labelled(f"query {number % 3}"):
                handle(tools.count(0.25))

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


def test_each_account_on_the_path_is_charged_in_its_own_units(store, tools):
    twice = dp.t.make_user_transformation(
        *tools.space(), *tools.space(), lambda rows: rows * 2, lambda d_in: 2 * d_in
    )
    odometer = an_odometer()

    def opened(ledger):
        root = tools.limit(ledger, 2.0)
        team = root(oc.c.make_limited(twice >> odometer, 1, 1.0, label="team"))
        return root, team, team(oc.c.make_limited(twice >> odometer, 1, 0.5, label="ann"))

    with store.create() as ledger:
        handles = opened(ledger)
        handles[2](tools.count(0.125))
        assert [one.privacy_loss() for one in handles] == [0.5, 0.5, 0.25]
    with store.open() as ledger:
        handles = opened(ledger)
        assert [one.privacy_loss() for one in handles] == [0.5, 0.5, 0.25]
        handles[1](tools.count(0.125))
        assert [one.remaining() for one in handles] == [1.25, 0.25, 0.25]


def test_a_child_odometer_has_no_name_for_limits_on_a_ledger(store, tools):
    root = tools.limit(store.create())
    child = root(an_odometer())
    with pytest.raises(InvalidTypeError, match="^a limit in a ledger must be opened on"):
        limited(child, tools)
    below = limited(root, tools)(an_odometer())
    below(tools.count(0.25))  # a child odometer below a limit is charged as any launch
    assert [one.path for one in store.open().summary().limits] == [("alice",)]


D_OUTS = {"team": 20, "ann": 7, "bob": 12}


def share(store, tools, processes, launches, scale, cap):
    """What the processes launched on the team's limit, on Ann's below it, and on Bob's."""

    def work(number):
        ledger = store.open()
        root = tools.limit(ledger, cap * EPSILON)
        d_outs = {name: scale * share * EPSILON for name, share in D_OUTS.items()}
        team = limited(root, tools, "team", d_outs["team"])
        handles = {
            "team": team,
            "ann": limited(team, tools, "ann", d_outs["ann"]),
            "bob": limited(root, tools, "bob", d_outs["bob"]),
        }
        query, found = tools.count(EPSILON), dict.fromkeys(handles, 0)
        for turn in range(launches):
            name = list(handles)[(turn + number) % 3]
            try:
                handles[name](query)
            except BudgetExceededError:
                continue
            found[name] += 1
        ledger.close()
        return found

    store.create().close()
    children = [tools.Child(lambda number=number: work(number)) for number in range(processes)]
    results = [child.result() for child in children]
    answers = {name: sum(one[name] for one in results) for name in D_OUTS}
    summary = store.open().summary()
    assert sum(answers.values()) == summary.launches
    told = {path[-1]: launches for path, (launches, *_) in spent(summary).items()}
    assert told == {**answers, "team": answers["team"] + answers["ann"]}
    return told


def test_processes_launch_exactly_what_limits_admit(store, tools):
    found = share(store, tools, 4, 60, 1, 10**6)
    assert {name: found[name] for name in ("team", "bob")} == {"team": 20, "bob": 12}
    assert found["ann"] <= 7


def shared(tools):
    return tools.space() >> dp.t.then_count() >> oc.m.then_shared_release(PURE)


def pool(handle, tools):
    """A limit for all that is shared."""
    return handle(a_limit(1.0, "shared"))


def test_steps_are_recorded_and_free_levels_are_not(store, tools):
    with store.create() as ledger:
        root = tools.limit(ledger, 2.0)
        release = pool(root, tools)(shared(tools))
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
        root = tools.limit(ledger, 2.0)
        again = pool(root, tools)(shared(tools))
        assert (again.finest, root.privacy_loss()) == (0.0, 0.75)  # a chain ends with its process
        with pytest.raises(BudgetExceededError, match="limit 'shared'"):
            again(0.5)
        again(0.25)
        assert root.remaining() == 1.0
