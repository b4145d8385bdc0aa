"""Labels of launches."""

import threading

from opendp_concurrent.accounting.lifecycle import current_label, labelled


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
