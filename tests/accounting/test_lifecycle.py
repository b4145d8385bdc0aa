import itertools

import pytest

from opendp_concurrent.accounting.lifecycle import TRANSITIONS, Event, Lifecycle, State
from opendp_concurrent.errors import (
    ClosedChildError,
    EndedError,
    HaltedError,
    InterruptedHandleError,
)


def test_the_table_is_complete_and_nothing_opens_again():
    assert set(TRANSITIONS) == set(itertools.product(State, Event))
    assert State.OPEN not in TRANSITIONS.values()


@pytest.mark.parametrize(("state", "event"), list(TRANSITIONS))
def test_a_lifecycle_follows_the_table(state, event):
    one = Lifecycle(reason="why")
    one.state = state
    one.happen(event)
    assert one.state is TRANSITIONS[state, event]
    with pytest.raises((HaltedError, InterruptedHandleError, ClosedChildError, EndedError)):
        one.check()


def test_a_child_is_open_while_all_that_it_was_launched_from_are():
    root = Lifecycle()
    child = Lifecycle(Lifecycle(root))
    child.check()
    root.happen(Event.REFUSED_WITH_HALT)
    with pytest.raises(HaltedError):
        child.check()


def test_closing_a_child_leaves_its_parent_open():
    root = Lifecycle()
    child = Lifecycle(root, "why")
    child.happen(Event.SUPERSEDED)
    root.check()
    with pytest.raises(ClosedChildError, match="why"):
        child.check()
