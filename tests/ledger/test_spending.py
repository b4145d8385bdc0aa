"""Who spent what, over time: sums by limit, label and block."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.ledger.report import NAMES, one_line, spending

from ..build import a_limit, by_tens


def drawn(ledger, by, **given):
    lines, number = spending(*ledger.read(), by, **given)
    numbers = [[one.sequence for one in line.entries] for line in lines]
    heights = [line.heights for line in lines]
    return {line.name: pair for line, *pair in zip(lines, numbers, heights, strict=True)}, number


def test_each_way_adds_up_its_own_charges(sqlite, tools):
    ledger = sqlite.create()
    assert all(spending(*ledger.read(), by) == ([], 0) for by in NAMES)
    root = tools.limit(ledger)
    team = root(a_limit(0.75, "team"))
    ann, tom = team(a_limit(0.5, "ann")), root(a_limit(0.5, "tom"))
    for who, label in ((ann, "a"), (team, ""), (tom, "a"), (root, "b")):
        with oc.labelled(label):
            who(tools.count(0.125))
    assert drawn(ledger, "time") == ({"spent": [[1, 2, 3, 4], [0.125, 0.25, 0.375, 0.5]]}, 1)
    assert drawn(ledger, "limit") == (
        {
            "team": [[1, 2], [0.125, 0.25]],
            "team > ann": [[1], [0.125]],
            "tom": [[3], [0.125]],
        },
        3,
    )
    assert drawn(ledger, "label") == (
        {"a": [[1, 3], [0.125, 0.25]], "no label": [[2], [0.125]], "b": [[4], [0.125]]},
        3,
    )
    assert drawn(ledger, "block") == ({}, 0)
    assert drawn(ledger, "limit", most=1) == ({"team": [[1, 2], [0.125, 0.25]]}, 3)


def test_losses_of_limits_are_at_their_own_distance(sqlite, tools):
    """A limit over a transformation counts what its launches cost at its own d_in."""
    ledger = sqlite.create()
    root = tools.limit(ledger, d_in=1)
    root(a_limit(0.5, "pairs", d_in=2))(tools.count(0.125))
    (entry,) = ledger.entries()
    assert (entry.loss, entry.limit_losses) == (0.125, (0.25,))
    assert "–" in ledger.report()


def test_the_fullest_block_stands_for_several(sqlite, tools):
    ledger = sqlite.create()
    root = by_tens(keys=[1, 2, 3], ledger=ledger)([])
    ann = root(a_limit(0.5, "ann"))
    with oc.labelled("x"):
        root([1], tools.count(0.25))
        ann([1, 2], tools.count(0.125))
        ann([2], tools.count(0.25))
    ann([3], tools.count(0.0625))
    assert drawn(ledger, "time") == ({"spent": [[1, 2, 3, 4], [0.25, 0.375, 0.375, 0.375]]}, 1)
    assert drawn(ledger, "limit") == ({"ann": [[2, 3, 4], [0.125, 0.375, 0.375]]}, 1)
    assert drawn(ledger, "label")[0]["x"] == [[1, 2, 3], [0.25, 0.375, 0.375]]
    assert drawn(ledger, "block", most=2) == (
        {"block 1": [[1, 2], [0.25, 0.375]], "block 2": [[2, 3], [0.125, 0.375]]},
        3,
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\nb\x1b[1m\u202e", "a b [1m "), ("x" * 9, "x" * 9), ("x" * 11, "xxxxxxx...")],
)
def test_a_text_is_shown_on_one_line(text, shown):
    assert one_line(text, 10) == shown
