"""Names of accounts, without accounts."""

import threading

import pytest

from opendp_concurrent.accounts.charge import current_label, labelled
from opendp_concurrent.accounts.lifecycle import Lifecycle
from opendp_concurrent.accounts.name import Name, name_of_account, named


def test_a_root_has_no_number_and_what_is_below_is_numbered_by_kind():
    root = Name("odometer")
    below = [Name(kind, root).text for kind in ("filter", "compositor", "filter")]
    assert root.text == "odometer"
    assert below == ["filter 1", "compositor 1", "filter 2"]


def test_a_label_stands_in_the_place_of_the_number_which_is_counted_all_the_same():
    root = Name("odometer")
    with labelled("report"):
        assert name_of_account("filter", root).text == "filter 'report'"
    assert name_of_account("filter", root).text == "filter 2"


def test_a_label_is_shown_on_one_line_and_not_at_any_length():
    with labelled("two\nlines"):
        assert name_of_account("filter", None).text == r"filter 'two\nlines'"
    with labelled("x" * 10_000):
        assert len(name_of_account("filter", None).text) < 250


def test_a_ledger_is_part_of_the_name():
    assert name_of_account("filter", None, "survey").text == "filter of ledger 'survey'"
    with labelled("report"):
        text = name_of_account("filter", None, "survey").text
    assert text == "filter 'report' of ledger 'survey'"


def test_a_block_gives_another_kind_and_label_and_takes_them_back():
    with labelled("outer"):
        with named("quotas"):
            assert name_of_account("compositor", None).text == "quotas 'outer'"
        with named("quota", "bob"):
            assert name_of_account("filter", None).text == "quota 'bob'"
        assert current_label() == "outer"
        assert name_of_account("filter", None).text == "filter 'outer'"
    with pytest.raises(ZeroDivisionError), named("quota", "bob"):
        raise ZeroDivisionError
    assert name_of_account("filter", None).text == "filter"


def test_threads_get_different_numbers():
    root, texts, start = Name("odometer"), [], threading.Barrier(8)

    def name():
        start.wait()
        texts.extend(Name("filter", root).text for _ in range(500))

    threads = [threading.Thread(target=name) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts) == sorted(f"filter {n}" for n in range(1, 4001))


def test_a_path_goes_from_the_root_by_what_has_a_name():
    root = Lifecycle(name=Name("filter"))
    between = Lifecycle(Lifecycle(root))
    child = Lifecycle(between, name=Name("odometer", between.name))
    assert child.path == ("filter", "odometer 1")
    assert between.path == ("filter",)
    assert Lifecycle().path == ()
    assert Lifecycle().name is None


def test_what_is_adopted_later_is_below_who_adopts_it():
    root, lost = Lifecycle(name=Name("filter")), Lifecycle(name=Name("odometer"))
    lost.adopt_by(root)
    lost.adopt_by(Lifecycle(name=Name("compositor")))
    assert lost.path == ("filter", "odometer")
