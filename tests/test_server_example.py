"""The example of a query server: one charge for a key, nobody else's children, no way around it."""

import contextlib
import hashlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

from .build import PURE, SPACE, an_odometer

pytest.importorskip("fastapi", reason="!!! THE EXAMPLE OF A SERVER IS NOT RUN: no fastapi !!!")
httpx = pytest.importorskip("httpx", reason="!!! THE EXAMPLE OF A SERVER IS NOT RUN: no httpx !!!")
from fastapi.testclient import TestClient  # noqa: E402

ROOT = Path(__file__).parents[1]
PATH = ROOT / "docs" / "examples" / "server.py"
ROWS = [918273645] * 7
TOKENS = {"alice": "token of alice", "bob": "token of bob"}
DIGESTS = {name: hashlib.sha256(one.encode()).hexdigest() for name, one in TOKENS.items()}


def load(name):
    spec = importlib.util.spec_from_file_location(f"{name}_example", PATH.with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where the annotations of its requests are read
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example():
    return load("server")


LIMITS = {"limits": {"alice": 1.0, "bob": 1.0}, "cap": 1.5}


@pytest.fixture
def start(example, tmp_path):
    """Start a server on a folder; the one that was started before ends first."""
    with contextlib.ExitStack() as running:

        def run(again=False, **changes):
            if again:
                running.close()
            given = {**LIMITS, **changes}
            app = example.make_app(example.Settings(tmp_path / "kept", ROWS, DIGESTS, **given))
            return running.enter_context(TestClient(app, raise_server_exceptions=False))

        yield run


@pytest.fixture(scope="module")
def hostile(example, tmp_path_factory):
    """A server for requests that must change nothing."""
    folder = tmp_path_factory.mktemp("hostile")
    app = example.make_app(example.Settings(folder, ROWS, DIGESTS, **LIMITS))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client
        assert entries(client) == []


def on(name):
    return {"Authorization": f"Bearer {TOKENS[name]}"}


def count(scale=4.0):
    return SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=scale)


def svt(scale=8.0, threshold=5):
    return oc.m.make_above_threshold(*SPACE, PURE, 1, scale=scale, threshold=threshold)


def launch(client, who, key, query, where="/launch", **more):
    text = query if isinstance(query, str) else dp.serialize(query)
    return client.post(where, headers=on(who), json={"key": key, "query": text, **more})


def spent(client, who="alice"):
    return client.get("/budget", headers=on(who)).json()["spent"]


def entries(client):
    return client.app.state.server.ledger.entries()


# --- what it is for ------------------------------------------------------------------------------


def test_an_analyst_asks_under_a_limit_below_the_cap(start):
    client = start()
    answer = launch(client, "alice", "one", count(1.0), purpose="number of rows")
    assert answer.status_code == 200
    assert isinstance(answer.json()["answer"], int)
    refused = launch(client, "alice", "two", count(1.0))
    assert refused.status_code == 403
    assert "limit 'alice'" in refused.json()["error"]
    assert refused.json()["charged"] is False
    refused = launch(client, "bob", "one", count(1.0))
    assert (refused.status_code, "limit" in refused.json()["error"]) == (403, False)
    assert launch(client, "bob", "one", count(2.0)).status_code == 200
    budget = client.get("/budget", headers=on("bob")).json()
    assert budget == {"spent": 0.5, "remaining": 0.5, "remaining_of_the_cap": 0.0}
    assert [one.label for one in entries(client)] == ["alice/one: number of rows", "bob/one: "]


# --- one charge for a question -------------------------------------------------------------------


def share(client, who, query, level):
    asked = {"query": oc.serialize(query), "level": level}
    return client.post("/shared", headers=on(who), json=asked)


def adults(least):
    return SPACE >> dp.t.then_clamp((0, least)) >> dp.t.then_count()


def test_what_anybody_asked_before_costs_nothing(start):
    """Four times the same ten counts cost what ten cost, and no analyst's limit."""
    client = start(shared=0.5)
    for _ in range(2):
        for who in TOKENS:
            for least in range(10):
                assert share(client, who, adults(least), 0.05).status_code == 200
    charged = sum(one.d_mid for one in entries(client))
    assert 0.5 * (1 - 1e-6) < charged <= 0.5
    assert (len(entries(client)), spent(client, "alice"), spent(client, "bob")) == (10, 0.0, 0.0)
    finer = share(client, "alice", adults(3), 0.25)
    assert (finer.status_code, finer.json()["charged"]) == (403, False)
    assert "limit '/shared'" in finer.json()["error"]
    assert launch(client, "alice", "spent", count(1.0)).status_code == 200
    coarser = share(client, "alice", adults(3), 0.01).json()["answer"]  # without budget left
    assert share(client, "bob", dp.deserialize(dp.serialize(adults(3))), 0.01).json() == {
        "answer": coarser
    }
    assert len(entries(client)) == 11


# --- one charge for a key ------------------------------------------------------------------------


def test_a_repeated_request_has_the_same_answer_and_one_charge(start):
    client = start()
    answers = {launch(client, "alice", "one", count(9.0)).text for _ in range(5)}
    assert len(answers) == 1
    assert len(entries(client)) == 1
    assert launch(client, "alice", "one", count(8.0)).status_code == 422
    assert launch(client, "alice", "one", count(9.0), purpose="else").status_code == 422
    assert launch(client, "bob", "one", count(9.0)).status_code == 200
    assert len(entries(client)) == 2


def test_a_repeated_request_has_its_answer_after_a_restart(start):
    client = start()
    one = launch(client, "alice", "one", count(9.0)).text
    child = launch(client, "alice", "child", svt()).json()["child"]
    loss = spent(client)
    client = start(again=True)
    assert launch(client, "alice", "one", count(9.0)).text == one
    assert launch(client, "alice", "child", svt()).json()["child"] == child
    rows = SPACE >> dp.t.then_count()
    assert launch(client, "alice", "x", rows, f"/children/{child}").status_code == 404
    assert (spent(client), len(entries(client))) == (loss, 2)
    refused = launch(client, "alice", "more", count(1.0))
    assert refused.status_code == 403


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("lost", ["before the charge", "after the charge"])
def test_a_failure_between_the_charge_and_the_answer_is_told(
    start, example, monkeypatch, lost, restarted
):
    client = start()
    with monkeypatch.context() as failing:

        def fail(*_):
            raise OSError(f"disk full {ROWS}")

        if lost == "after the charge":
            failing.setattr(oc.serving.AnswerStore, "_end", fail)
        else:
            failing.setattr(example.oc, "labelled", fail)
        failed = launch(client, "alice", "one", count())
    assert (failed.status_code, failed.json()["charged"]) == (500, None)
    assert str(ROWS[0]) not in failed.text
    if restarted:
        client = start(again=True)
    again = [launch(client, "alice", "one", count()) for _ in range(3)]
    if lost == "after the charge":
        assert {one.status_code for one in again} == {409}
        assert again[0].json() == {"error": example.LOST, "charged": True}
    else:
        assert {one.status_code for one in again} == {200}
        assert len({one.text for one in again}) == 1
    assert len(entries(client)) == 1


def test_one_folder_has_one_server(start):
    start()
    with pytest.raises(oc.errors.LedgerError, match="no other process has open"):
        start()


# --- hostile clients -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [None, "Bearer ", "Basic token of alice", f"Bearer {DIGESTS['alice']}", b"Bearer \xff"],
)
def test_bad_tokens(hostile, header):
    headers = {} if header is None else {"Authorization": header}
    asked = {"key": "one", "query": dp.serialize(count())}
    for answer in (
        hostile.get("/budget", headers=headers),
        hostile.post("/launch", headers=headers, json=asked),
        hostile.post("/describe", headers=headers, json={"query": asked["query"]}),
        hostile.delete("/children/x", headers=headers),
    ):
        assert answer.status_code == 401
        assert answer.json() == {"error": "the token is not known", "charged": False}


def test_children_of_others_do_not_exist(start):
    client, rows = start(), SPACE >> dp.t.then_count()
    child = launch(client, "alice", "one", svt(threshold=10**6)).json()["child"]
    for answer in (
        launch(client, "bob", "a", rows, f"/children/{child}"),
        client.post(
            f"/children/{child}/describe", headers=on("bob"), json={"query": dp.serialize(rows)}
        ),
        client.delete(f"/children/{child}", headers=on("bob")),
        launch(client, "bob", "b", rows, "/children/unknown"),
    ):
        assert answer.status_code == 404
        assert answer.json()["error"].startswith("there is no such child")
    assert launch(client, "alice", "a", rows, f"/children/{child}").status_code == 200


def message(name, **changes):
    made = json.loads(dp.serialize(svt()))
    assert made["__kwargs__"].keys() >= {"scale", "threshold", "d_in"}
    made["__function__"] = name
    made["__kwargs__"] |= changes
    return json.dumps(made)


BAD_QUERIES = {
    "NaN": message("make_above_threshold", scale=float("nan")),
    "promise": message("make_above_threshold", monotone=True),
    "not offered": message("make_guess_and_check"),
    "a limit": message("make_limited"),
    "unknown": message("__import__"),
    "empty": "",
    "deep": "[" * 100_000,
    "another space": dp.serialize(
        (dp.vector_domain(dp.atom_domain(T=int), 3), SPACE[1])
        >> dp.t.then_count()
        >> dp.m.then_laplace(1.0)
    ),
    "another measure": dp.serialize(oc.c.cast(count(), dp.zero_concentrated_divergence())),
    "a transformation": dp.serialize(SPACE >> dp.t.then_count()),
}


def test_bad_queries_are_refused_and_not_charged(start):
    client = start()
    for name, query in BAD_QUERIES.items():
        for answer in (
            launch(client, "alice", "one", query),
            client.post("/describe", headers=on("alice"), json={"query": query}),
        ):
            assert answer.status_code == 400, (name, answer.text)
            assert answer.json()["charged"] is False, name
            assert len(answer.text) < 1500, name
    exact = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=0.0)
    assert launch(client, "alice", "one", exact).status_code == 403  # its loss is infinite
    assert (spent(client), entries(client)) == (0.0, [])
    assert launch(client, "alice", "one", count()).status_code == 200


BODY = {"key": "one", "query": "x"}
BAD_BODIES = [
    *(b"", b"\xff\xfe", b'{"key": NaN, "query": 1}', b'{"key": "one"}'),
    *(json.dumps(BODY | {"key": key}).encode() for key in ("a" * 65, "a/b", "one\n", "\u0661")),
    *(json.dumps(BODY | {"purpose": text}).encode() for text in ("a:b", "a" * 101)),
    json.dumps(BODY | {"analyst": "bob"}).encode(),
    b'{"key": "one", "query": ' + b"[" * 50_000,
    json.dumps({f"{number}": "x" * 50 for number in range(10_000)}).encode(),
]


def post(client, body):
    """Send bytes."""
    headers = {**on("alice"), "Content-Type": "application/json"}
    return client.post("/launch", headers=headers, content=body)


@pytest.mark.parametrize("number", range(len(BAD_BODIES)))
def test_malformed_bodies(hostile, number):
    answer = post(hostile, BAD_BODIES[number])
    assert answer.status_code in (400, 422)
    assert answer.json()["charged"] is False
    assert len(answer.text) < 500


def test_huge_bodies_are_not_read(hostile, example):
    long = "x" * example.MOST_BYTES
    assert launch(hostile, "alice", "one", long).status_code in (400, 413)

    def endless():
        for _ in range(100):
            yield b"x" * 2**18

    for content in (json.dumps(BODY | {"query": long + "x" * 2**20}), endless()):
        answer = post(hostile, content)
        assert (answer.status_code, answer.json()["charged"]) == (413, False)


def test_the_owner_reads_the_report_with_a_password_of_a_browser(start):
    client = start(owner=hashlib.sha256(b"secret").hexdigest())
    launch(client, "alice", "one", count(1.0), purpose="number of rows")
    for key in ("two", "three"):
        assert launch(client, "alice", key, count(1.0)).status_code == 403
    page = client.get("/owner", auth=("owner", "secret"))
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "alice/one: number of rows" in page.text
    assert "alice</bdi></td><td>2</td>" in page.text  # refused
    for auth in (None, ("owner", "token of alice"), ("owner", "")):
        refused = client.get("/owner", auth=auth)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic")
    for header in (b"Basic", b"Basic \xff", b"Basic !", b"Bearer secret"):
        assert client.get("/owner", headers={"Authorization": header}).status_code == 401
    client = start(again=True)  # without an owner nobody reads it
    assert client.get("/owner", auth=("owner", "")).status_code == 401


@pytest.fixture
def analyst(start, client_example, monkeypatch):
    """The client of the example, whose requests go to a server here."""
    there = start()
    one = client_example.Client("http://testserver", TOKENS["alice"])
    one.http.close()
    one.http = there
    there.headers["Authorization"] = f"Bearer {TOKENS['alice']}"
    return one


@pytest.fixture(scope="module")
def client_example():
    return load("client")


def test_the_client_launches_describes_and_tells_refusals(analyst, client_example):
    assert isinstance(analyst.launch(count(2.0), "number of rows"), int)
    assert analyst.describe(count(2.0))["admitted"] is True
    child = analyst.launch(an_odometer())
    assert isinstance(analyst.launch(count(4.0), child=child), int)
    assert analyst.budget()["spent"] == 0.75
    with pytest.raises(client_example.RequestError, match="limit 'alice'") as refused:
        analyst.launch(count(1.0))
    assert (refused.value.status, refused.value.charged) == (403, False)


def test_the_client_repeats_a_launch_with_its_key(analyst, client_example, monkeypatch):
    request, failed = analyst.http.request, []

    def lossy(*arguments, **given):
        answer = request(*arguments, **given)
        if len(failed) < 2:
            failed.append(answer)
            raise httpx.ReadError("cut")
        return answer

    monkeypatch.setattr(client_example.time, "sleep", lambda _: None)
    monkeypatch.setattr(analyst.http, "request", lossy)
    assert analyst.launch(count(2.0)) == failed[0].json()["answer"]
    assert len(entries(analyst.http)) == 1
    monkeypatch.setattr(client_example, "TRIES", 2)
    failed.clear()
    with pytest.raises(httpx.ReadError):
        analyst.launch(count(2.0))


def test_no_answer_has_data_in_it(start, example, monkeypatch):
    client = start()

    def fail(*_):
        raise ValueError(f"row {ROWS[0]}")

    monkeypatch.setattr(example, "as_json", fail)
    answer = launch(client, "alice", "one", count())
    assert answer.status_code == 500
    assert str(ROWS[0]) not in answer.text


# --- kills ---------------------------------------------------------------------------------------


class Running:
    """The server in a process of its own."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, str(PATH), str(folder), "--port", str(self.port)],
            stderr=subprocess.DEVNULL,
        )
        self.url = f"http://127.0.0.1:{self.port}"
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                assert self.process.poll() is None
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 20])
def test_kills_under_load(tmp_path, kills, request):
    """Two clients ask in parallel; the server is killed; each key is asked until it is answered."""
    settings = {
        "rows": ROWS,
        "tokens": DIGESTS,
        "limits": {"alice": 90.0, "bob": 90.0},
        "cap": 150.0,
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    query, answers = dp.serialize(count(2.0**10)), {}
    stop, running = threading.Event(), [Running(tmp_path)]
    request.addfinalizer(lambda: running[0].kill())

    clients = {who: httpx.Client() for who in TOKENS}  # each reads certificates once

    def ask(who, key):
        try:
            found = clients[who].post(
                f"{running[0].url}/launch",
                headers=on(who),
                json={"key": key, "query": query},
                timeout=60.0,
            )
        except httpx.TransportError:
            return None
        answers.setdefault((who, key), set()).add((found.status_code, found.text))
        return found

    def client(who):
        index = 0
        while not stop.is_set():
            if ask(who, f"k{index}") is None:  # asked again with its key, until it is answered
                time.sleep(0.05)
            else:
                index += 1
        while ask(who, f"k{index}") is None:
            time.sleep(0.05)

    most = 20 * kills
    threads = [threading.Thread(target=client, args=(who,), daemon=True) for who in TOKENS]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        time.sleep(0.4)
        running[0].kill()
        running[0] = Running(tmp_path)
    time.sleep(0.3)
    stop.set()
    for thread in threads:
        thread.join()
    for who, key in list(answers)[-most:]:
        ask(who, key)
    running[0].kill()
    for one in clients.values():
        one.close()
    again = oc.ledger.open_ledger(tmp_path / "budget.db", "server")
    with again:
        labels = [one.label.partition(":")[0] for one in again.entries()]
    assert len(labels) == len(set(labels)), "a key was charged twice"
    assert all(len(found) == 1 for found in answers.values()), "a key has two answers"
    answered = {f"{who}/{key}" for who, key in answers}
    assert answered == set(labels), "an answer without a charge, or a charge that nobody was told"
    assert {status for found in answers.values() for status, _ in found} <= {200, 409}
    print(
        f"{kills} kills, {len(labels)} charges, {len(answers)} keys answered, "
        f"{sum('lost' in text for found in answers.values() for _, text in found)} told as lost"
    )
