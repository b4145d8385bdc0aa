"""Values out of range are refused, and the error names the argument."""

import numpy as np
import pytest

from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE

MENU, EMPTY = verify.response_menu(0.5), APPROXIMATE_MAX_DIVERGENCE.empty()
ANY = Within((9.0, 0.0))
PRESENCE = verify.events_differ(1)


def played(most):
    tape = verify.Tape()
    moves = [verify.Move("ask", lambda session: tape.draw([0.5, 0.5]))]
    return verify.Played(tape, lambda side: None, moves, most=most)


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("most", lambda: verify.worst_analyst(MENU, EMPTY, ANY, 0.5, most=3)),
        ("order", lambda: verify.worst_renyi(MENU, EMPTY, ANY, 1.0)),
        ("first", lambda: verify.FiniteMechanism((0.5, 0.4), (0.5, 0.5))),
        (r"first\[1", lambda: verify.FiniteMechanism((1.5, -0.5), (1.0, 0.0))),
        ("second", lambda: verify.FiniteMechanism((1.0,), (0.5, 0.5))),
        (r"tables\[0\]", lambda: verify.FiniteInteractiveMechanism((np.ones((2, 2)),))),
        (r"tables\[0\]", lambda: verify.FiniteInteractiveMechanism((np.ones((2, 1, 2)),))),
        ("epsilon", lambda: verify.randomized_response(-1.0)),
        ("delta", lambda: verify.randomized_response(1.0, 2.0)),
        ("size", lambda: verify.truncated_geometric(1.0, 4, 4)),
        ("categories", lambda: verify.k_ary_response(0.5, 1)),
        ("low", lambda: verify.clamped_noise(1, 1)),
        ("side", lambda: verify.Identifier(None, 2, PRESENCE)),
        ("n", lambda: verify.audit(float, 1, 0, float, 3)),
        ("confidence", lambda: verify.audit(float, 1, 0, float, 10, confidence=1.0)),
        ("most", lambda: played(1).worst_loss(2)),
        ("rounds", lambda: played(9).worst_loss(0)),
        ("order", lambda: played(9).renyi(1.0, 1)),
    ],
)
def test_a_value_out_of_range_is_named(named, call):
    with pytest.raises(InvalidValueError, match=f"^{named}"):
        call()


@pytest.mark.parametrize(
    ("named", "call"),
    [
        (r"menu\[0\]", lambda: verify.worst_analyst([1], EMPTY, ANY, 0.5)),
        ("tables must", lambda: verify.FiniteInteractiveMechanism(())),
        (r"tables\[0\]", lambda: verify.FiniteInteractiveMechanism(("text",))),
        ("moves must", lambda: verify.Played(verify.Tape(), lambda side: None, [])),
        ("tape must", lambda: verify.Played(None, lambda side: None, [])),
        (r"mechanisms\[0\]", lambda: verify.sequential_delta([3], 1.0)),
    ],
)
def test_a_value_of_another_type_is_named(named, call):
    with pytest.raises(InvalidTypeError, match=f"^{named}"):
        call()
