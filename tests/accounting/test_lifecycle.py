import itertools
import threading

import pytest

from opendp_concurrent.accounting.lifecycle import (
    TRANSITIONS,
    Event,
    Lifecycle,
    State,
    current_label,
    labelled,
    name_of_account,
    named,
)
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


# --- labels of launches --------------------------------------------------------------------------


def test_a_label_holds_inside_its_block():
    with labelled("outer"):
        with labelled("inner"):
            assert current_label() == "inner"
        assert current_label() == "outer"
    assert current_label() == ""


def test_a_thread_that_is_started_inside_has_none():
    seen = []
    with labelled("here"):
        thread = threading.Thread(target=lambda: seen.append(current_label()))
        thread.start()
        thread.join()
    assert seen == [""]


# --- names of accounts, without accounts ---------------------------------------------------------


def test_a_label_is_shown_on_one_line_and_not_at_any_length():
    with labelled("two\nlines"):
        assert name_of_account("filter", None) == r"filter 'two\nlines'"
    with labelled("x" * 10_000):
        assert len(name_of_account("filter", None)) < 250


def test_a_block_gives_another_kind_and_label_and_takes_them_back():
    with labelled("outer"):
        with named("blocks"):
            assert name_of_account("filter", None) == "blocks 'outer'"
        with named("limit", "bob"):
            assert name_of_account("filter", None) == "limit 'bob'"
        assert current_label() == "outer"
        assert name_of_account("filter", None) == "filter 'outer'"
    with pytest.raises(ZeroDivisionError), named("limit", "bob"):
        raise ZeroDivisionError
    assert name_of_account("filter", None) == "filter"


def test_a_path_goes_from_the_root_by_what_has_a_name():
    root = Lifecycle(name="filter")
    between = Lifecycle(Lifecycle(root))
    child = Lifecycle(between, name="odometer 1")
    assert child.path == ("filter", "odometer 1")
    assert between.path == ("filter",)
    assert (between.named, child.named) == (root, child)
    assert (Lifecycle().path, Lifecycle().named) == ((), None)


def test_what_is_adopted_later_is_below_who_adopts_it_first():
    root, lost = Lifecycle(name="filter"), Lifecycle(name="odometer")
    lost.adopt_by(root)
    lost.adopt_by(Lifecycle(name="compositor"))
    assert lost.path == ("filter", "odometer")
