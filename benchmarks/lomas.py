"""The same queries to lomas' own server and to the example server.

    python benchmarks/lomas.py PYTHON

PYTHON is that of another environment, because lomas-server 0.4.1 pins OpenDP 0.10:
``pip install lomas-server==0.4.1 "setuptools<80" "scikit-learn==1.4.2" "numpy<2"``. Its users are
in its YAML database, which is kept in memory and written when the server ends; in 0.4.1 the first
query drops all other users from it, which is mended here. The example server waits for the disk at
each charge. Both have 10,000 rows in this process's folder, and a client of one thread for each
connection, in turn.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import opendp.prelude as dp

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")
ROWS = [18 + (7 * number) % 60 for number in range(10_000)]
NAMES = [f"analyst {number}" for number in range(100)]
EPSILON, DELTA = 5.222, 1e-6
EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "server.py"

LOMAS = """
import sys, json, uvicorn
from opendp_logger import enable_logging
import opendp.prelude as dp
enable_logging()
dp.enable_features("contrib", "floating-point")
count = dp.t.make_split_dataframe(separator=",", col_names=["age"])
count = count >> dp.t.make_select_column(key="age", TOA=str) >> dp.t.then_count()
made = [count >> noise for noise in (dp.m.then_laplace(2.0**20), dp.m.then_gaussian(10.0))]
open("queries.json", "w").write(json.dumps([one.to_json() for one in made]))
from lomas_server.admin_database.yaml_database import AdminYamlDatabase
def of_one_user(self, user_name, may_query):
    user = next(one for one in self.database["users"] if one["user_name"] == user_name)
    before, user["may_query"] = user["may_query"], may_query
    return before
AdminYamlDatabase.get_and_set_may_user_query = of_one_user
from lomas_server.app import app
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


def settings(folder: Path) -> None:
    """Write what both servers read. YAML reads JSON."""
    access = {"database_type": "PATH_DB"}
    data = folder / "ages.csv", folder / "metadata.yaml"
    budget = {"initial_epsilon": EPSILON, "initial_delta": DELTA}
    spent = {"total_spent_epsilon": 0.0, "total_spent_delta": 0.0}
    mine = [{"dataset_name": "ages", **budget, **spent}]
    kinds = "dataset_access", "metadata_access"
    paths = {kind: {**access, "path": str(one)} for kind, one in zip(kinds, data, strict=True)}
    users = [{"user_name": one, "may_query": True, "datasets_list": mine} for one in NAMES]
    age = {"type": "int", "precision": 32, "lower": 0, "upper": 120}
    server = {"time_attack": {"method": "jitter", "magnitude": 0.0}, "host_ip": "", "host_port": 1}
    server |= {"log_level": "error", "reload": False, "workers": 1}
    features = {"contrib": True, "floating_point": True, "honest_but_curious": True}
    runtime = {
        **{"develop_mode": False, "submit_limit": 1, "server": server},
        "admin_database": {"db_type": "yaml", "db_file": str(folder / "users.yaml")},
        **{"private_db_credentials": [], "dp_libraries": {"opendp": features}},
    }
    files: dict[str, Any] = {
        "users.yaml": {
            "users": users,
            "datasets": [{"dataset_name": "ages", **paths}],
            "queries": [],
        },
        "metadata.yaml": {
            **{"max_ids": 1, "rows": len(ROWS), "row_privacy": True},
            "columns": {"age": age},
        },
        "runtime.yaml": {"runtime_args": {"settings": runtime}},
        "secrets.yaml": {},
        "settings.json": {
            "rows": ROWS,
            "tokens": {one: hashlib.sha256(one.encode()).hexdigest() for one in NAMES},
            "limits": dict.fromkeys(NAMES, EPSILON),
            "cap": EPSILON * len(NAMES),
        },
    }
    for name, content in files.items():
        text = json.dumps(content).replace("1e-06", "1.0e-06")  # YAML takes the first for text
        (folder / name).write_text(text)
    data[0].write_text("age\n" + "\n".join(map(str, ROWS)) + "\n")


class Server:
    """A server in a process of its own."""

    def __init__(self, folder: Path, *command: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        files = {"CONFIG": "runtime.yaml", "SECRETS": "secrets.yaml"}
        paths = {f"LOMAS_{key}_PATH": str(folder / name) for key, name in files.items()}
        self.process = subprocess.Popen(
            [*command, str(port)],
            cwd=folder,
            env={**os.environ, **paths, "OTEL_SDK_DISABLED": "true"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.url = f"http://127.0.0.1:{port}"
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                assert self.process.poll() is None
                time.sleep(0.1)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def lomas_asks(server: Server, query: str, name: str, delta: float | None = None) -> Any:
    """Return lomas' request."""
    body = {"dataset_name": "ages", "opendp_json": query, "fixed_delta": delta}
    return {"url": f"{server.url}/opendp_query", "headers": {"user-name": name}, "json": body}


def we_ask(server: Server, query: str, name: str, key: int) -> Any:
    """Return the example's request."""
    body = {"key": f"key-{key}", "query": query}
    return {
        "url": f"{server.url}/launch",
        "headers": {"Authorization": f"Bearer {name}"},
        "json": body,
    }


def per_second(make: Any, connections: int, total: int) -> tuple[float, float]:
    """Return requests per second, and the milliseconds that 99 of 100 took at most."""
    numbers, lock, times = iter(range(total)), threading.Lock(), list[float]()

    def work(number: int) -> None:
        with httpx.Client(timeout=60.0) as client:
            while True:
                with lock:
                    if next(numbers, None) is None:
                        return
                begun = time.perf_counter()
                answer = client.post(**make(NAMES[number]))
                assert answer.status_code == 200, answer.text
                times.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(connections)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return total / (time.perf_counter() - begun), 1e3 * sorted(times)[int(0.99 * total) - 1]


def admitted(server: Server, query: str, deltas: list[float]) -> int:
    """Return how many queries of Gaussian noise lomas answers at most, each cast at one δ."""
    found = []
    for name, delta in zip(reversed(NAMES), deltas, strict=False):
        found.append(0)
        while httpx.post(**lomas_asks(server, query, name, delta)).status_code == 200:
            found[-1] += 1
    return max(found)


def main() -> None:
    """Measure, and print."""
    count = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    ours = oc.serialize(count >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0**20))
    keys = iter(range(10**9))
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        settings(folder)
        other = Server(folder, sys.argv[1], "-c", LOMAS)
        own = Server(folder, sys.executable, str(EXAMPLE), home, "--port")
        laplace, gaussian = json.loads((folder / "queries.json").read_text())
        most = admitted(other, gaussian, [DELTA, DELTA / 10, DELTA / 20, DELTA / 100])
        print(f"of 100 queries of rho = 0.005 within ({EPSILON}, {DELTA}): lomas answers {most}")
        for connections in (1, 16):
            rounds = []
            for _ in range(3):
                theirs = per_second(lambda name: lomas_asks(other, laplace, name), connections, 200)
                mine = per_second(
                    lambda name: we_ask(own, ours, name, next(keys)), connections, 600
                )
                rounds.append((*theirs, *mine, mine[0] / theirs[0]))
            found = [median(one) for one in zip(*rounds, strict=True)]
            print(
                f"{connections} connections: lomas {found[0]:.0f} per second, p99 {found[1]:.0f} "
                f"ms; the example {found[2]:.0f}, {found[3]:.0f} ms; ratio {found[4]:.1f}"
            )
        other.end()
        own.end()


if __name__ == "__main__":
    main()
