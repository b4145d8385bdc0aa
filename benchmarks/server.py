"""What requests of the example server cost: launches, refusals, and repeated requests.

    python benchmarks/server.py [--quick] [--json] [--save]

Over HTTP, 16 and 64 connections launch at the same time, and are refused at the same time. Server
and clients are processes of their own. The framework alone is the same requests to a function that
does nothing.

1,000 analysts launch once each, which spends their limits, and then go on asking. A refused request
stores its key, is decided on the ledger, and forgets its key: it must not cost more than a launch.
It is measured with few charges in the ledger, and with 100,000 more (20,000 with ``--quick``). A
repeated request gets its stored answer. These requests are sent to the server's function for
launches, one at a time, without HTTP. The files are in a new folder on the disk of temporary files.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

os.environ["RUST_BACKTRACE"] = "0"

import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report
from ledger import fill

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")
PATH = Path(__file__).parents[1] / "docs" / "examples" / "server.py"
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ANALYSTS, AT_ONCE, STORED = 1000, 10_000, 100_000
CONNECTIONS = 16, 64


def example() -> Any:
    """Return the module of the example."""
    specification = importlib.util.spec_from_file_location("server_example", PATH)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["server_example"] = module
    specification.loader.exec_module(module)
    return module


class Analysts:
    """The analysts of a server, and their requests."""

    def __init__(self, folder: Path) -> None:
        self.example = example()
        names = [f"analyst {number}" for number in range(ANALYSTS)]
        tokens = {one: hashlib.sha256(one.encode()).hexdigest() for one in names}
        limits = dict.fromkeys(names, 1.0)
        settings = self.example.Settings(folder, [1, 2, 3], tokens, limits, cap=1e6)
        self.names, self.server = names, self.example.Server(settings)
        self._query = oc.serialize(SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0))

    def ask(self, count: int, key: str) -> tuple[float, int]:
        """Return the requests per second, and how many were refused."""
        refused, start = 0, time.perf_counter()
        for number in range(count):
            name = self.names[number % len(self.names)]
            order = self.example.Order(key=key, query=self._query)
            handle = partial(self.server.handles.get, name)
            try:
                self.server.launch(name, "/launch", handle, order)
            except oc.errors.BudgetExceededError:
                refused += 1
        return count / (time.perf_counter() - start), refused

    def charge(self, count: int) -> None:
        """Add charges to the ledger, with labels as others have them."""
        cheap = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1e6)
        for number in range(count // AT_ONCE):
            with oc.labelled(f"somebody/{number}: "):
                fill(self.server.ledger, cheap.map(1), AT_ONCE)


# --- over HTTP -----------------------------------------------------------------------------------


def bare(port: int) -> None:
    """Serve the same requests with a function that does nothing."""
    import uvicorn
    from fastapi import FastAPI

    app, order = FastAPI(), example().Order

    def launch(asked: Any) -> Any:
        return {"answer": 1}

    launch.__annotations__["asked"] = order
    app.post("/launch")(launch)
    uvicorn.run(app, port=port, log_level="warning")


class Process:
    """A server in a process of its own, and the seconds until it listened."""

    def __init__(self, *command: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        start = time.perf_counter()
        self.process = subprocess.Popen([sys.executable, *command, "--port", str(self.port)])
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                assert self.process.poll() is None
                time.sleep(0.01)
        self.seconds = time.perf_counter() - start

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Load:
    """Requests of many analysts, prepared as bytes so that the clients cost little."""

    def __init__(self, names: list[str]) -> None:
        self._names, self._number = names, count()
        self._queries = {
            scale: oc.serialize(SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=scale))
            for scale in (1.0, 2.0**20)
        }

    def request(self, scale: float) -> bytes:
        number = next(self._number)
        name = self._names[number % len(self._names)]
        body = json.dumps({"key": f"k{number}", "query": self._queries[scale]}).encode()
        head = f"POST /launch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {name}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    async def _ask(
        self, port: int, requests: list[bytes], times: list[float], status: bytes
    ) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while requests:
            request = requests.pop()
            start = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert status in head, head
            at = head.lower().index(b"content-length:")
            await reader.readexactly(int(head[at:].split(b"\r\n", 1)[0].split(b":")[1]))
            times.append(time.perf_counter() - start)
        writer.close()

    def run(self, port: int, connections: int, number: int, scale: float, status: int) -> Any:
        """Return the requests per second, and the seconds that 99 of 100 took at most."""
        requests, times = [self.request(scale) for _ in range(number)], list[float]()
        code = b" %d " % status

        async def all_of_them() -> None:
            tasks = [self._ask(port, requests, times, code) for _ in range(connections)]
            await asyncio.gather(*tasks)

        start = time.perf_counter()
        asyncio.run(all_of_them())
        return number / (time.perf_counter() - start), sorted(times)[int(0.99 * number)]


def over_http(folder: Path, number: int) -> tuple[list[Any], dict[str, float]]:
    """Return rows to print, and figures."""
    names = [f"token{number}" for number in range(ANALYSTS)]
    tokens = {one: hashlib.sha256(one.encode()).hexdigest() for one in names}
    limits = dict.fromkeys(names, 0.5)
    given = {"rows": [1, 2, 3], "tokens": tokens, "limits": limits, "cap": 1e6}
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(given))
    load, rows, figures = Load(names), [], {}
    server = Process(str(PATH), str(folder))
    load.run(server.port, 1, 50, 2.0**20, 200)
    for connections in CONNECTIONS:
        for name, scale, status in (("launched", 2.0**20, 200), ("refused", 1.0, 403)):
            speed, late = load.run(server.port, connections, number, scale, status)
            figures |= {f"{name}_{connections}": speed, f"{name}_{connections}_p99_ms": 1e3 * late}
            rows.append([name, connections, speed, 1e3 * late])
    server.end()
    stored = sqlite3.connect(folder / "answers.db")
    with stored:
        stored.executemany(
            "INSERT INTO answers VALUES (?, ?, '1')", ((f"x/{n}", "") for n in range(STORED))
        )
    stored.close()
    server = Process(str(PATH), str(folder))
    figures["restart_seconds"] = server.seconds
    server.end()
    server = Process(__file__, "--bare")
    for connections in CONNECTIONS:
        load.run(server.port, connections, 200, 1.0, 200)
        speed, late = load.run(server.port, connections, number, 1.0, 200)
        figures[f"framework_{connections}"] = speed
        rows.append(["framework alone", connections, speed, 1e3 * late])
    server.end()
    return rows, figures


def main() -> None:
    """Measure, print, report."""
    options = parser(__doc__)
    options.add_argument("--bare", action="store_true", help="serve requests that do nothing")
    options.add_argument("--port", type=int)
    options = options.parse_args()
    if options.bare:
        bare(options.port)
        return
    print_machine()
    with tempfile.TemporaryDirectory() as home:
        rows, over = over_http(Path(home) / "served", 1000 if options.quick else 4000)
    print_table(
        f"{ANALYSTS:,} analysts over HTTP",
        ["request", "connections", "per second", "p99 in ms"],
        rows,
    )
    with tempfile.TemporaryDirectory() as home:
        analysts, count = Analysts(Path(home) / "kept"), 200 if options.quick else ANALYSTS
        launched, none = analysts.ask(ANALYSTS, "launch")
        again, _ = analysts.ask(count, "launch")
        refused, all_of_them = analysts.ask(count, "more")
        assert (none, all_of_them) == (0, count)
        analysts.charge(20_000 if options.quick else 100_000)
        later, _ = analysts.ask(count, "later")
        charges = analysts.server.ledger.summary().launches
        analysts.server.close()
    print_table(
        f"{ANALYSTS:,} analysts: requests per second, one at a time",
        ["request", "charges in the ledger", "per second"],
        [
            ["launched", ANALYSTS, launched],
            ["repeated, with a stored answer", ANALYSTS, again],
            ["refused", ANALYSTS, refused],
            ["refused", charges, later],
        ],
    )
    figures = {
        **over,
        "launches_per_second": launched,
        "repeated_per_second": again,
        "refused_over_launched": refused / launched,
        "refused_over_launched_later": later / launched,
    }
    targets = {
        **{f"launched_{one}": ("at least", 600.0) for one in CONNECTIONS},
        **{f"launched_{one}_p99_ms": ("at most", 150.0) for one in CONNECTIONS},
        "restart_seconds": ("at most", 2.0),
        "refused_over_launched": ("at least", 0.5),
        "refused_over_launched_later": ("at least", 0.5),
    }
    report(figures, targets, {}, options)


if __name__ == "__main__":
    main()
