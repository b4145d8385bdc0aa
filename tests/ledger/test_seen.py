"""A process keeps the newest charge that it has seen of a budget."""

import pytest

pytest.importorskip("sqlalchemy")

from opendp_concurrent.ledger.book import Seen


def newest(seen):
    return [(one.sequence, one.head) for one in seen.milestones()]


def test_before_the_first_charge_nothing_is_required():
    assert newest(Seen()) == []


def test_the_newest_charge_is_required_in_whatever_order_they_are_seen():
    seen = Seen()
    seen.see(0, "a")
    assert newest(seen) == [(0, "a")]
    seen.see(3, "d")
    seen.see(1, "b")
    assert newest(seen) == [(3, "d")]
