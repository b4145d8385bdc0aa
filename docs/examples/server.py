"""A query server: analysts with tokens ask over HTTP, under limits below one cap.

    python docs/examples/server.py FOLDER

It is an example, not a product: one process, one dataset, tokens in a file, no TLS. It shows what a
server has to do around OpenDP, in this order: who asks (a token), what is asked (a message, read by
an allow-list), was it asked before (an idempotency key), may it be asked (a limit below a cap, in a
ledger), and what is told (an answer, a child's id, or an error without data).

A request with a key that was seen before gets the stored answer and is not charged, also if both
arrive at once, and after a restart. Before a launch the key is stored; the ledger has the key in
the label of the charge; after the launch the answer is stored. If the process ends in between, a
repeated request finds its key without an answer. The ledger then says whether it was charged. If
so, the answer is lost, and the request is told so; it is not charged again.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import hmac
import json
import logging
import math
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any
from weakref import WeakValueDictionary

import opendp.prelude as dp
from fastapi import Depends, FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from opendp.mod import Measurement, OdometerQueryable, Queryable, Transformation
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.exceptions import HTTPException

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError, LedgerError, MechanismError, RefusalError
from opendp_concurrent.ledger import create_ledger, open_ledger

dp.enable_features("contrib", "honest-but-curious")
LOGGER = logging.getLogger("query_server")
MOST_BYTES = 2**20
MOST_CHILDREN = 50  # of one analyst at a time
LOST = "this request was charged, and its answer was lost; it is not charged again"
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
ALLOWED = [  # arguments of others could cost much time or memory
    dp.t.make_clamp,
    dp.t.make_count,
    dp.t.make_sum,
    dp.m.make_geometric,
    dp.m.make_laplace,
    oc.m.make_above_threshold,
    oc.m.make_sparse_vector,
    oc.make_concurrent_composition,
    oc.make_concurrent_odometer,
]

Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Purpose = Annotated[str, StringConstraints(pattern=r"^[\w ,.()-]{0,100}$")]


class Question(BaseModel):
    """What is asked: a message of ``dp.serialize``."""

    model_config = ConfigDict(extra="forbid", strict=True)
    query: Annotated[str, StringConstraints(max_length=MOST_BYTES)]


class Order(Question):
    """What is to be launched: the key makes it happen at most once."""

    key: Key
    purpose: Purpose = ""


@dataclass(frozen=True)
class Settings:
    """Where everything is kept, and what each analyst may spend.

    :ivar tokens: SHA-256 of each analyst's token, in hexadecimal digits
    :ivar limits: largest loss of each analyst
    """

    folder: Path
    rows: list[int]
    tokens: dict[str, str]
    limits: dict[str, float]
    cap: float
    seconds_to_live: float = 600.0


@dataclass
class Child:
    """A queryable that an analyst has launched."""

    owner: str
    handle: Any
    used: float = field(default_factory=time.monotonic)


class AnswerError(Exception):
    """An answer of the server that is no release: a status and a text without data."""

    def __init__(self, status: int, text: str, *, charged: bool | None = False) -> None:
        super().__init__(text)
        self.status, self.body = status, {"error": text, "charged": charged}


class Answers:
    """The keys that were seen, and what was answered. Each change is on disk when it returns.

    :param charged: returns whether a charge in the ledger has the label of a key
    """

    def __init__(self, path: Path, charged: Callable[[str], bool]) -> None:
        self._charged = charged
        self._lock = threading.Lock()
        self._busy: WeakValueDictionary[str, Busy] = WeakValueDictionary()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.run("PRAGMA journal_mode=WAL")
        self.run("PRAGMA synchronous=FULL")
        self.run(
            "CREATE TABLE IF NOT EXISTS answers (name TEXT PRIMARY KEY, digest TEXT NOT NULL, "
            "status INTEGER, body TEXT)"
        )

    def run(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement, and return its rows."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def one_at_a_time(self, name: str) -> Iterator[None]:
        """Let requests with the same key wait for each other."""
        with self._lock:
            busy = self._busy.setdefault(name, Busy())
        with busy.lock:
            yield

    def find(self, name: str, digest: str) -> JSONResponse | None:
        """Return the stored answer; None if the request is to be made. Call it one at a time."""
        found = self.run("SELECT digest, status, body FROM answers WHERE name = ?", name)
        if not found:
            return None
        known, status, body = found[0]
        if known != digest:
            raise AnswerError(422, "this key was used for another request; pass a new key")
        if status is not None:
            return JSONResponse(json.loads(body), status)
        # begun and not ended: this process failed, or an earlier one was killed
        if self._charged(name):
            return self.end(name, 409, {"error": LOST, "charged": True})
        self.forget(name)
        return None

    def begin(self, name: str, digest: str) -> None:
        """Store a key before its launch."""
        self.run("INSERT INTO answers (name, digest) VALUES (?, ?)", name, digest)

    def end(self, name: str, status: int, body: Any) -> JSONResponse:
        """Store the answer, then return it."""
        text = json.dumps(body)
        self.run("UPDATE answers SET status = ?, body = ? WHERE name = ?", status, text, name)
        return JSONResponse(body, status)

    def forget(self, name: str) -> None:
        """Forget a key that was not charged."""
        self.run("DELETE FROM answers WHERE name = ?", name)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class Busy:
    """A key whose request is running."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


def lock(path: Path) -> Any:
    """Return an open file that no other process has locked; a killed process has not."""
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


class Server:
    """One dataset, its budget, and what its analysts have launched."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        settings.folder.mkdir(parents=True, exist_ok=True)
        self._alone = lock(settings.folder / "lock")  # the keys of another process are not lost
        path = settings.folder / "budget.db"
        self.ledger = (open_ledger if path.exists() else create_ledger)(path, "server")
        self.answers = Answers(settings.folder / "answers.db", self.charged)
        odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence(), opaque_errors=True)
        cap = oc.make_concurrent_filter(odometer, 1, settings.cap, ledger=self.ledger)
        self.cap = cap(settings.rows)
        self.handles = {
            name: self.cap(oc.c.make_limited(odometer, 1, limit, label=name))
            for name, limit in settings.limits.items()
        }
        self._children: dict[str, Child] = {}
        self._lock = threading.Lock()

    def charged(self, name: str) -> bool:
        """Whether the ledger has a charge under this key."""
        return any(one.label.rpartition(":")[0] == name for one in self.ledger.entries())

    def close(self) -> None:
        """Close all files."""
        self.answers.close()
        self.ledger.close()
        self._alone.close()

    def who(self, authorization: str) -> str:
        """Return the analyst whose token this is. All tokens are compared, in constant time."""
        kind, _, token = authorization.partition(" ")
        digest = hashlib.sha256(token.encode(errors="replace")).hexdigest()
        found = [
            name
            for name, known in self.settings.tokens.items()
            if hmac.compare_digest(digest, known)
        ]
        if kind.lower() != "bearer" or not found:
            raise AnswerError(401, "the token is not known")
        return found[0]

    # --- children --------------------------------------------------------------------------------

    def child(self, analyst: str, name: str) -> Any:
        """Return the handle of an analyst's child. Those of others do not exist."""
        with self._lock:
            self._expire()
            child = self._children.get(name)
            if child is None or child.owner != analyst:
                raise AnswerError(
                    404, "there is no such child; it may have expired, or the server restarted"
                )
            child.used = time.monotonic()
            return child.handle

    def adopt(self, analyst: str, handle: Any) -> str:
        """Keep a handle, and return the child's id, which nobody can guess."""
        name = secrets.token_urlsafe(16)
        with self._lock:
            self._children[name] = Child(analyst, handle)
        return name

    def check_room(self, analyst: str) -> None:
        """Raise if an analyst has too many children."""
        with self._lock:
            self._expire()
            if sum(one.owner == analyst for one in self._children.values()) >= MOST_CHILDREN:
                raise AnswerError(429, f"at most {MOST_CHILDREN} children may be open; close one")

    def discard(self, analyst: str, name: str) -> None:
        """Close an analyst's child."""
        self.child(analyst, name)
        with self._lock:
            self._children.pop(name, None)

    def _expire(self) -> None:
        oldest = time.monotonic() - self.settings.seconds_to_live
        for name, child in list(self._children.items()):
            if child.used < oldest:
                del self._children[name]

    # --- requests --------------------------------------------------------------------------------

    def describe(self, handle: Any, question: Question) -> dict[str, Any]:
        """Return what a launch would cost, and whether it would be admitted; charges nothing."""
        if not hasattr(handle, "describe"):
            raise AnswerError(400, "this child answers queries; they are not charged one by one")
        found = handle.describe(read(question.query), d_in=1)
        refusal = None if found.refusal is None else str(found.refusal)
        return jsonable(
            {
                **{one.name: getattr(found, one.name) for one in fields(found)},
                "refusal": refusal,
                "admitted": found.admitted,
            }
        )

    def launch(self, analyst: str, where: str, handle: Callable[[], Any], order: Order) -> Any:
        """Launch or query, once for each key."""
        name = f"{analyst}/{order.key}"
        digest = hashlib.sha256(repr((where, order.query, order.purpose)).encode()).hexdigest()
        with self.answers.one_at_a_time(name):
            found = self.answers.find(name, digest)
            if found is not None:
                return found
            query, asked = read(order.query), handle()  # refused before anything is stored
            if not isinstance(query, Transformation):  # nothing opens a child in answer to one
                self.check_room(analyst)
            self.answers.begin(name, digest)
            try:
                with oc.labelled(f"{name}: {order.purpose}"):
                    answer = asked(query)
            except LedgerError:
                raise  # whether it was charged is read from the ledger when the key is seen again
            except ConcurrentError as error:  # of a failed mechanism, the log has the cause
                charged = self.charged(name)
                if charged or isinstance(error, MechanismError):
                    told = {"error": str(error), "charged": charged}
                    return self.answers.end(name, 500, told)
                self.answers.forget(name)
                status = 403 if isinstance(error, RefusalError) else 400
                raise AnswerError(status, str(error)) from None
            if isinstance(answer, Queryable | OdometerQueryable):
                return self.answers.end(name, 200, {"child": self.adopt(analyst, answer)})
            return self.answers.end(name, 200, {"answer": jsonable(answer)})


def read(message: str) -> Any:
    """Return the measurement, odometer or query that a message describes."""
    found = oc.deserialize(message, allow=ALLOWED)
    if not isinstance(found, Measurement | Transformation | dp.Odometer):
        raise AnswerError(400, "query must be a measurement, a transformation or an odometer")
    return found


def jsonable(value: Any) -> Any:
    """Return what JSON has for a value; infinity is text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Enum):
        return value.name
    if is_dataclass(value):
        return {one.name: jsonable(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(one) for one in value]
    return value


class LimitedBody:
    """Refuse a request whose body is too long, before all of it is read."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        left = MOST_BYTES + 2**14

        async def limited() -> Any:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, "the body is too long")
            return message

        await self.app(scope, limited, send)


def server_of(request: Request) -> Server:
    """Return the server of this application."""
    found: Server = request.app.state.server
    return found


def analyst_of(request: Request, authorization: Annotated[str, Header()] = "") -> str:
    """Return the analyst who asks."""
    return server_of(request).who(authorization)


There = Annotated[Server, Depends(server_of)]
Who = Annotated[str, Depends(analyst_of)]


def make_app(settings: Settings) -> FastAPI:
    """Return the application. The folder is locked while it runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        app.state.server = Server(settings)
        yield
        app.state.server.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(LimitedBody)

    @app.get("/budget")
    def budget(there: There, who: Who) -> Any:
        own = there.handles[who]
        return jsonable(
            {
                "spent": own.privacy_loss(),
                "remaining": own.remaining(),
                "remaining_of_the_cap": there.cap.remaining(),
            }
        )

    @app.post("/describe")
    def describe(there: There, who: Who, question: Question) -> Any:
        return there.describe(there.handles[who], question)

    @app.post("/launch")
    def launch(there: There, who: Who, order: Order) -> Any:
        return there.launch(who, "/launch", lambda: there.handles[who], order)

    @app.post("/children/{name}")
    def ask(there: There, who: Who, name: str, order: Order) -> Any:
        return there.launch(who, f"/children/{name}", lambda: there.child(who, name), order)

    @app.post("/children/{name}/describe")
    def describe_in(there: There, who: Who, name: str, question: Question) -> Any:
        return there.describe(there.child(who, name), question)

    @app.delete("/children/{name}")
    def close(there: There, who: Who, name: str) -> Any:
        there.discard(who, name)
        return {"closed": name}

    @app.exception_handler(AnswerError)
    async def told(_: Request, error: AnswerError) -> JSONResponse:
        return JSONResponse(error.body, error.status)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": error.detail, "charged": False}, error.status_code)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        places = sorted({".".join(map(str, one["loc"][:2])) for one in error.errors()})
        return JSONResponse(
            {"error": f"malformed: {', '.join(places)[:200]}", "charged": False}, 422
        )

    @app.exception_handler(ConcurrentError)
    async def refused(_: Request, error: ConcurrentError) -> JSONResponse:
        if isinstance(error, LedgerError):
            return await failed(_, error)
        return JSONResponse({"error": str(error)[:1000], "charged": False}, 400)

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> JSONResponse:
        LOGGER.error("a request has failed", exc_info=error)
        text = "the server failed; ask again with the same key, which is charged at most once"
        return JSONResponse({"error": text, "charged": None}, 500)

    return app


def main() -> None:
    """Serve a folder that has ``settings.json``."""
    import uvicorn

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    known = json.loads((given.folder / "settings.json").read_text())
    settings = Settings(given.folder, **known)
    uvicorn.run(make_app(settings), port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
