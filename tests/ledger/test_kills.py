"""Whether a ledger forgets a charge when processes are killed, and when its server crashes."""

import os

import pytest

from .conftest import PostgresqlStore
from .kills import SCENARIOS, crash, kill_many

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
KINDS = pytest.mark.parametrize("kind", SCENARIOS)


@pytest.fixture
def files(tmp_path):
    """Addresses of ledgers that are not there yet."""
    return (str(tmp_path / f"{number}.db") for number in range(10**6))


@pytest.fixture
def schemas(server):
    """The same on a server."""

    def make():
        for number in range(10**6):
            store = PostgresqlStore(server, f"kills_{number}")
            try:
                yield store.address
            finally:  # the last one, too
                store.drop()

    made = make()
    yield made
    made.close()


@KINDS
def test_killed_processes_leave_a_charge_for_every_answer(files, kind):
    assert kill_many(files.__next__, 4, SCENARIOS[kind]) > 0


def test_killed_clients_leave_a_charge_for_every_answer(schemas):
    assert kill_many(schemas.__next__, 4, SCENARIOS["single"]) > 0


@pytest.mark.slow
@KINDS
def test_hundreds_of_killed_processes_leave_a_charge_for_every_answer(files, kind):
    assert kill_many(files.__next__, 180, SCENARIOS[kind]) > 0


@pytest.mark.slow
@KINDS
def test_hundreds_of_killed_clients_leave_a_charge_for_every_answer(schemas, kind):
    assert kill_many(schemas.__next__, 90, SCENARIOS[kind]) > 0


@pytest.mark.slow
@KINDS
def test_a_server_that_crashes_leaves_a_charge_for_every_answer(server, schemas, kind):
    def restart():
        server.stop()
        server.start()

    for _ in range(4):
        assert crash(next(schemas), restart, SCENARIOS[kind]) > 0
