"""A PostgreSQL server that is started for the tests of the ledger and of tables."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

NOT_TESTED = "the ledger and tables were NOT tested on it"


class Server:
    """A PostgreSQL server of our own."""

    def __init__(self, url, folder):
        self.url, self._folder = url, folder
        self._data = self.execute("SHOW data_directory")[0][0]
        ((port,),) = self.execute("SHOW port")
        ((sockets,),) = self.execute("SHOW unix_socket_directories")
        self._options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={sockets}"
        )

    def execute(self, statements):
        import psycopg

        url = self.url.replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statements)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def stop(self, mode="immediate"):
        """Stop it: at once, which is a crash, or ``fast``."""
        self._control(f"-m {mode} -w stop")

    def start(self):
        """Start it again, as it was started."""
        self._control(f"-l {self._data}/log -o '{self._options}' -w start")

    def _control(self, how):
        as_user = ["su", "postgres", "-c"] if os.geteuid() == 0 else ["sh", "-c"]
        command = f"{self._folder}/pg_ctl -D {self._data} {how}"
        subprocess.run([*as_user, command], check=True, stdout=subprocess.DEVNULL, cwd="/")


def _helper():
    path = Path(__file__).parents[1] / "benchmarks" / "_postgres.py"
    specification = importlib.util.spec_from_file_location("_postgres", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server, for all tests; they are skipped, aloud, where there is none."""

    def skip(reason):
        pytest.skip(f"{reason}: {NOT_TESTED}")

    helper = _helper()
    if helper.binaries() is None or (os.geteuid() == 0 and shutil.which("su") is None):
        skip("PostgreSQL is not installed")
    if importlib.util.find_spec("psycopg") is None:
        skip("psycopg is not installed")
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(helper.server())
            found = Server(url, helper.binaries())
        except (OSError, subprocess.CalledProcessError) as error:
            skip(f"PostgreSQL cannot be started ({error})")
        yield found
