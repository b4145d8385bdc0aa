"""A PostgreSQL server that did not answer blocked launches without limit."""

import contextlib
import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from opendp_concurrent.accounting.store import Charge
from opendp_concurrent.errors import LedgerError
from opendp_concurrent.ledger import backends, create_ledger, open_ledger


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    monkeypatch.setattr(backends, "GRACE", 1.2)


def processes(server):
    """The server and all that it has started."""
    ((folder,),) = server.execute("SHOW data_directory")
    postmaster = int((Path(folder) / "postmaster.pid").read_text().split()[0])
    found = [postmaster]
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == postmaster:
                found.append(int(status.parent.name))
    return found


class Stopped:
    """Processes that are stopped, and go on in the end, whatever happens."""

    def __init__(self):
        self._stopped = []

    def stop(self, found):
        for one in found:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(one, signal.SIGSTOP)
                self._stopped.append(one)

    def go_on(self):
        for one in self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)
        self._stopped.clear()


@pytest.fixture
def stopped():
    found = Stopped()
    yield found
    found.go_on()


def outcome(function):
    """What it returned, or the text of its LedgerError; fails if it takes for ever."""
    found = []

    def work():
        try:
            found.append(("answered", function()))
        except LedgerError as error:
            found.append(("refused", str(error)))
        except BaseException as error:
            found.append(("raised", repr(error)))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(60.0)
    assert found, "it waits without limit"
    return found[0]


@pytest.mark.parametrize(
    ("statement", "in_flight"),
    [("BEGIN", {0}), ("INSERT", {0, 1})],  # the second message commits, too
)
def test_a_server_that_stops_in_the_middle_of_a_launch_runs_nothing(
    postgresql, tools, intercept, stopped, statement, in_flight
):
    query, ran = tools.counted()
    root = tools.limit(postgresql.create(wait=0.3))
    family, stops = processes(postgresql.server), [True]

    def stop(driver, execute, text):
        if text.startswith(statement) and stops:
            stops.pop()
            backend = driver.connection.connection.driver_connection.info.backend_pid
            stopped.stop({*family, backend})
        return execute()

    monkeypatch = intercept(stop)
    kind, said = outcome(lambda: root(query))
    assert (kind, ran, stops) == ("refused", [], []), said
    assert "has not answered for 1.5 s; the connection failed: check the server" in said
    monkeypatch.undo()
    stopped.go_on()
    answers = tools.launch_until_refused(root, query)  # a commit that was sent may be charged
    assert 4 - answers in in_flight
    assert (len(ran), postgresql.charges(), root.privacy_loss()) == (answers, 4, 1.0)


def test_whatever_is_asked_of_a_stopped_server_ends(postgresql, tools, stopped):
    query, ran = tools.counted()
    ledger = postgresql.create(wait=0.3)
    root = tools.limit(ledger)
    root(query)
    address = postgresql.address
    stopped.stop(processes(postgresql.server))
    for ask in (
        lambda: root(query),
        root.privacy_loss,
        lambda: open_ledger(address, tools.DATASET, wait=0.3),
        lambda: create_ledger(address, "another", wait=0.3),
    ):
        kind, said = outcome(ask)
        assert kind == "refused"
        assert "check the server" in said
    ledger.close()
    stopped.go_on()
    assert len(ran) == postgresql.charges() == 1
    assert postgresql.open().summary().launches == 1


def test_a_client_that_stops_with_the_lock_loses_it(postgresql, tools):
    query, ran = tools.counted()
    root = tools.limit(postgresql.create(wait=0.3))
    other = tools.limit(postgresql.open(wait=30.0))
    account = root._session.account
    found = []

    def hold():
        with account.store._book.turn() as turn:  # and goes on when others have launched
            found.append(outcome(lambda: other(query)))
            turn.write(Charge(0.25, "", ""), turn.accumulator.after(0.25))

    with pytest.raises(LedgerError, match="terminating connection due to idle-in-transaction"):
        hold()
    assert found[0][0] == "answered"
    assert len(ran) == postgresql.charges() == 1


def test_an_address_where_nobody_answers_is_given_up(tools):
    """As behind a firewall that lets nothing through."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        address = f"postgresql+psycopg://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        for ask in (
            lambda: open_ledger(address, tools.DATASET, wait=0.1),
            lambda: create_ledger(address, tools.DATASET, wait=0.1),
        ):
            kind, said = outcome(ask)
            assert kind == "refused"
            assert "check the server" in said
