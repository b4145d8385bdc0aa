"""0.2.0.dev kept a turn of a ledger open if the interrupt that cut it was kept, as consoles do."""

import signal
from functools import partial

import pytest

import opendp_concurrent as oc
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.serving import AnswerStore

from ..build import DATA, PURE, a_filter, a_limit, by_tens, laplace, opened
from ..moments import ALL, interrupted_at

# Python drops what is raised while an object is destroyed
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
COUNT = laplace(2.0**-10)


@pytest.fixture(autouse=True)
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(moment, function, kept):
    """Whether an interrupt comes at any moment of a call, whoever's code runs then."""
    return interrupted_at(moment, function, events=ALL, within="", kept=kept)


def root_of(ledger):
    return opened(1e6, ledger=ledger)


def blocks_of(ledger):
    root = by_tens(1e6, ledger=ledger)(DATA)
    return lambda: root([1, 2], COUNT)


LAUNCHES = {
    "filter": lambda ledger: partial(root_of(ledger), COUNT),
    "limit": lambda ledger: partial(root_of(ledger)(a_limit(1e5)), COUNT),
    "blocks": blocks_of,
    "reading": lambda ledger: root_of(ledger).privacy_loss,
    "summary": lambda ledger: ledger.summary,
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_no_moment_leaves_a_ledger_locked_though_the_exception_is_kept(name, tmp_path):
    path = tmp_path / "ledger.db"
    kept, moment, came = [], 0, True
    with (
        create_ledger(path, dataset="survey") as ledger,
        open_ledger(path, dataset="survey", wait=1.0) as another,
    ):
        launch = LAUNCHES[name](ledger)
        beside = LAUNCHES["blocks" if name == "blocks" else "filter"](another)
        launch()
        while came:
            moment += 1 + moment // 10
            before = ledger.summary().launches
            came = interrupted(moment, launch, kept)
            assert ledger.summary().launches - before <= 2
            beside()  # raised LedgerError: the database is locked
            launch()
    assert len(kept) > 25


def test_no_moment_loses_an_answer_that_is_charged_or_charges_a_key_twice(tmp_path):
    kept, moment, came = [], 0, True
    with (
        create_ledger(tmp_path / "ledger.db", dataset="survey") as ledger,
        AnswerStore(tmp_path / "answers.db") as answers,
    ):
        root, labels = root_of(ledger), []

        def ask():
            label = labels[-1]

            def run():
                with oc.labelled(label):
                    return root(COUNT)

            return answers.once(
                label,
                "count",
                run,
                charged=lambda: bool(ledger.entries(label=label)),
                lost="lost",
            )

        while came:
            moment += 1 + moment // 10
            labels.append(f"key {moment}")
            came = interrupted(moment, ask, kept)
            found = ask()
            assert ask() == found
            assert len(ledger.entries(label=labels[-1])) == 1
    assert len(kept) > 25


def test_an_update_reaches_all_counters_of_a_stream_or_none():
    space = oc.integer_stream(0, 9), oc.event_presence()
    counter = oc.m.make_counter(*space, PURE, 1e-3)
    kept, moment, came = [], 0, True
    made = a_filter(1e9, space=space)
    while came:
        moment += 1 + moment // 10
        stream = oc.c.make_concurrent_continual(made)([])
        counters = [stream(counter) for _ in range(2)]
        came = interrupted(moment, lambda stream=stream: stream.update(5), kept)
        stream.update(2)
        one, other = (counter(None) for counter in counters)
        assert one == other
        assert one in (2, 7)
    assert len(kept) > 10
