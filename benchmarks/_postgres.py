"""A throw-away PostgreSQL server, with its default durability, from the system's packages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def binaries() -> Path | None:
    """Return the folder with ``initdb`` and ``pg_ctl``, if there is one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    on_path = shutil.which("pg_ctl")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@contextmanager
def server() -> Iterator[str | None]:
    """Start a server, yield the URL of its database, and stop it; None if there is none."""
    folder = binaries()
    if folder is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as home:
        as_user = ["su", "postgres", "-c"] if os.geteuid() == 0 else ["sh", "-c"]
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")

        def run(command: str) -> None:
            subprocess.run([*as_user, command], check=True, stdout=subprocess.DEVNULL, cwd="/")

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        run(f"{folder}/initdb -D {home}/data -A trust -U postgres")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home}"
        run(f'{folder}/pg_ctl -D {home}/data -o "{options}" -l {home}/log -w start')
        try:
            yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
        finally:
            run(f"{folder}/pg_ctl -D {home}/data -m immediate -w stop")
