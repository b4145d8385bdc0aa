"""The largest divergence of an order, over all analysts."""

import math

import pytest

from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE
from opendp_concurrent.verify.adversary import Item


def test_divergences_of_equal_launches_add_up():
    menu = verify.response_menu(0.5)
    for k in (1, 2, 7):
        start = (APPROXIMATE_MAX_DIVERGENCE.total(), k)
        found = verify.worst_renyi(menu, start, verify.Limited(Within((9.0, 0.0))), 3.0)
        assert found == pytest.approx(k * menu[0].mechanism.renyi(3.0), rel=1e-12)


def test_infinite_divergences_are_told():
    menu = [Item("fails", (0.5, 0.1), verify.randomized_response(0.5, 0.1))]
    start = APPROXIMATE_MAX_DIVERGENCE.total()
    assert verify.worst_renyi(menu, start, Within((1.0, 0.2)), 2.0) == math.inf
