"""Strategies are read, followed and printed."""

import math

import pytest

from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.verify.adversary import Item, Send, Stop


def test_the_strategy_can_be_read():
    menu = verify.response_menu(0.5, 1.0)
    found = verify.worst_analyst(menu, APPROXIMATE_MAX_DIVERGENCE.total(), Within((1.5, 0.0)), 1.0)
    assert isinstance(found.strategy, Send)
    text = str(found.strategy)
    assert text.startswith("launch 0.5\n  answer 0 (0.6225 | 0.3775): launch 1")
    assert "stop at loss 1.5" in text
    nothing = verify.worst_analyst(
        menu, APPROXIMATE_MAX_DIVERGENCE.total(), Within((0.1, 0.0)), 1.0
    )
    assert isinstance(nothing.strategy, Stop)
    assert nothing.delta == 0.0


def test_the_worse_order_of_the_datasets_is_told_and_answers_keep_their_numbers():
    one = verify.FiniteMechanism((0.0, 0.5, 0.5, 0.0), (0.0, 0.7, 0.2, 0.1))
    for mechanism, swapped in ((one, True), (one.swapped, False)):
        found = verify.worst_analyst(
            [Item("x", 1.0, mechanism)], MAX_DIVERGENCE.total(), Within(1.0), 1.0
        )
        assert found.swapped is swapped
        assert found.delta == pytest.approx(0.1)
        assert found.view.delta(1.0) == pytest.approx(0.1)
        branches = found.strategy.branches
        assert [pair[:2] for pair in branches] == list(
            zip(mechanism.first, mechanism.second, strict=True)
        )
        assert branches[3][2].loss == (-math.inf if swapped else math.inf)
