"""Labels of launches."""

import threading

import pytest

from opendp_concurrent.accounting.lifecycle import current_label, labelled
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


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


@pytest.mark.parametrize("bad", ["\0", "a\ud800b", "\udfff"])
def test_a_label_is_text_that_every_database_takes(bad):
    with pytest.raises(InvalidValueError, match="^label"), labelled(bad):
        pass


def test_a_label_is_a_str():
    with pytest.raises(InvalidTypeError, match="^label"), labelled(3):
        pass
