"""A query server: analysts with tokens ask over HTTP, under limits below one cap.

    python docs/examples/server.py FOLDER

It is an example, not a product: one process, one dataset, tokens in a file, no TLS. It shows what a
server has to do around OpenDP, in this order: who asks (a token), what is asked (a message, read by
an allow-list), was it asked before (an idempotency key), may it be asked (a limit below a cap, in a
ledger), and what is told (an answer, a child's id, or an error without data).

A request with a key that was seen before gets the stored answer and is not charged (AnswerStore).
A question that anybody asked before, at this level of noise or a finer one, costs nothing.
Launches run in threads: those that wait for the disk at the same time share a commit. ``client.py``
is a client, ``/docs`` lists the requests, and ``/owner`` is the report of the budget.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import hmac
import json
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import opendp.prelude as dp
from anyio import to_thread
from fastapi import Depends, FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from opendp.mod import Measurement, OdometerQueryable, Queryable, Transformation
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.exceptions import HTTPException

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    ConcurrentError,
    KeyReusedError,
    LedgerError,
    MechanismError,
    RefusalError,
    charged,
)
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.serving import AnswerStore, HandleStore, as_json

dp.enable_features("contrib", "honest-but-curious")
LOGGER = logging.getLogger("query_server")
MOST_BYTES = 2**20
MOST_SHORT = 2**12  # letters of a query that is kept
MOST_CHILDREN = 50  # of one analyst at a time
THREADS = 16  # launches at a time: those that wait for the disk together share a commit
SECONDS_TO_END = 5  # for requests that have begun when the server is told to end
LOST = "this request was charged, and its answer was lost; it is not charged again"
SHARED = "shared"  # the limit of what all analysts share
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

STATUSES: dict[int | str, dict[str, Any]] = {  # of all requests; the body says what was charged
    400: {"description": "the query is not one that this server answers; nothing is charged"},
    401: {"description": "the token is not known"},
    403: {"description": "refused by the limit or by the cap; nothing is charged"},
    409: {"description": "charged before, and the answer was lost"},
    413: {"description": "the body is too long"},
    422: {"description": "malformed, or a key that was used for another request"},
    429: {"description": "too many children are open"},
    500: {"description": "failed; `charged` is true, false, or null if that is unknown"},
}

Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Purpose = Annotated[str, StringConstraints(pattern=r"^[\w ,.()-]{0,100}$")]


class Question(BaseModel):
    """What is asked: a message of ``oc.serialize`` or ``dp.serialize``."""

    model_config = ConfigDict(extra="forbid", strict=True)
    query: Annotated[str, StringConstraints(max_length=MOST_BYTES)]


class Order(Question):
    """What is to be launched: the key makes it happen at most once."""

    key: Key
    purpose: Purpose = ""


class SharedQuestion(Question):
    """What all analysts share: a transformation to integers, and a level of noise."""

    level: Annotated[float, Field(ge=2.0**-30, le=2.0**20)]


@dataclass(frozen=True)
class Settings:
    """Where everything is kept, and what each analyst may spend.

    :ivar tokens: SHA-256 of each analyst's token, in hexadecimal digits
    :ivar limits: largest loss of each analyst
    :ivar shared: largest loss of all answers that analysts share
    :ivar owner: SHA-256 of the owner's token, for the report; without it, there is no report
    """

    folder: Path
    rows: list[int]
    tokens: dict[str, str]
    limits: dict[str, float]
    cap: float
    shared: float = 0.5
    seconds_to_live: float = 600.0
    owner: str = ""


class Server:
    """One dataset, its budget, and what its analysts have launched."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.answers = AnswerStore(settings.folder / "answers.db")  # one process has it open
        self.children = HandleStore(seconds=settings.seconds_to_live, most=MOST_CHILDREN)
        path = settings.folder / "budget.db"
        self.ledger = (open_ledger if path.exists() else create_ledger)(path, "server")
        odometer = oc.make_concurrent_odometer(*SPACE, dp.max_divergence(), opaque_errors=True)
        cap = oc.make_concurrent_filter(odometer, 1, settings.cap, ledger=self.ledger)
        self.cap = cap(settings.rows)
        self.handles = {
            name: self.cap(oc.c.make_limited(odometer, 1, limit, label=name))
            for name, limit in settings.limits.items()
        }
        pool = oc.c.make_limited(odometer, 1, settings.shared, label=f"/{SHARED}")
        self.shared = self.cap(pool)
        self.names = {digest: name for name, digest in settings.tokens.items()}
        self.refused = Counter[str]()  # since the start; the ledger records charges only

    def charged(self, label: str) -> bool:
        """Whether the ledger has a charge with this label."""
        return self.ledger.charged(label)

    def close(self) -> None:
        """Close all files."""
        self.answers.close()
        self.ledger.close()

    def who(self, authorization: str) -> str:
        """Return the analyst whose token this is.

        How long the look-up takes may tell something of the hash of the token that was sent. Nobody
        can choose that hash, so nothing follows from it.
        """
        kind, _, token = authorization.partition(" ")
        found = self.names.get(hashlib.sha256(token.encode(errors="replace")).hexdigest())
        if kind.lower() != "bearer" or found is None:
            raise HTTPException(401, "the token is not known")
        return found

    def report(self, authorization: str) -> str:
        """Return the report of the budget, if the password of a browser is the owner's token."""
        kind, _, sent = authorization.partition(" ")
        try:
            _, _, token = base64.b64decode(sent, validate=True).partition(b":")
        except (ValueError, binascii.Error):
            token = b""
        digest = hashlib.sha256(token).hexdigest()
        if kind.lower() != "basic" or not hmac.compare_digest(digest, self.settings.owner):
            asked = {"WWW-Authenticate": 'Basic realm="the owner of the data"'}
            raise HTTPException(401, "this page is for the owner of the data", asked)
        return self.ledger.report(self.refused)

    def child(self, analyst: str, name: str) -> Any:
        """Return the handle of an analyst's child. Those of others do not exist."""
        found = self.children.find(analyst, name)
        if found is None:
            raise HTTPException(404, "there is no such child; it expired, or the server restarted")
        return found

    def describe(self, handle: Any, question: Question) -> dict[str, Any]:
        """Return what a launch would cost, and whether it would be admitted; charges nothing."""
        if not hasattr(handle, "describe"):
            raise HTTPException(400, "this child answers queries; they are not charged one by one")
        found = handle.describe(read(question.query), d_in=1)
        return {**as_json(found), "admitted": found.admitted}

    def launch(self, analyst: str, where: str, handle: Callable[[], Any], order: Order) -> Any:
        """Launch or query, once for each key."""

        def ask() -> Any:
            asked, query = handle(), read(order.query)
            # nothing opens a child in answer to a transformation
            if not (isinstance(query, Transformation) or self.children.has_room(analyst)):
                raise HTTPException(429, f"at most {MOST_CHILDREN} children may be open; close one")
            answer = asked(query)
            if isinstance(answer, Queryable | OdometerQueryable):
                return {"child": self.children.keep(analyst, answer)}
            return {"answer": as_json(answer)}

        name, request = f"{analyst}/{order.key}", (where, order.query, order.purpose)
        return self.once(analyst, name, f"{name}: {order.purpose}", request, ask)

    def share(self, question: SharedQuestion) -> Any:
        """Answer a question at a level of noise, once for all analysts."""
        query = read(question.query)
        if not isinstance(query, Transformation):
            raise HTTPException(400, "query must be a transformation to integers, without noise")
        release = query >> oc.m.then_shared_release(dp.max_divergence())
        made = oc.serialize(release)  # in one form, however the message was written
        digest = hashlib.sha256(made.encode()).hexdigest()
        name = f"/{SHARED}/{digest}/{question.level!r}"  # no analyst's: those have one slash

        def ask() -> Any:
            return {"answer": as_json(self.shared(release)(question.level))}

        return self.once(SHARED, name, name, made, ask)

    def once(self, limit: str, name: str, label: str, request: Any, ask: Callable[[], Any]) -> Any:
        """Ask once for each name, under a label in the ledger, and store the answer."""

        def run() -> Any:
            try:
                with oc.labelled(label):
                    return 200, ask()
            except ConcurrentError as error:  # of a failed mechanism, the log has the cause
                charged = error.charged
                if charged is None and not isinstance(error, LedgerError):
                    charged = self.charged(label)
                if isinstance(error, RefusalError):
                    self.refused[limit] += 1
                if charged or isinstance(error, MechanismError):
                    return 500, {"error": str(error), "charged": charged}
                raise

        status, body = self.answers.once(
            name,
            request,
            run,
            charged=lambda: self.charged(label),
            lost=(409, {"error": LOST, "charged": True}),
        )
        return JSONResponse(body, status)


def read(message: str) -> Any:
    """Return what a message describes. Analysts ask the same queries, so short ones are kept."""
    return (read_short if len(message) <= MOST_SHORT else read_anew)(message)


def read_anew(message: str) -> Any:
    """Return the measurement, odometer or query that a message describes."""
    found = oc.deserialize(message, allow=ALLOWED)
    if not isinstance(found, Measurement | Transformation | dp.Odometer):
        raise HTTPException(400, "query must be a measurement, a transformation or an odometer")
    return found


read_short = lru_cache(maxsize=256)(read_anew)


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


async def server_of(request: Request) -> Server:
    """Return the server of this application."""
    found: Server = request.app.state.server
    return found


There = Annotated[Server, Depends(server_of)]


async def analyst_of(there: There, authorization: Annotated[str, Header()] = "") -> str:
    """Return the analyst who asks."""
    return there.who(authorization)


Who = Annotated[str, Depends(analyst_of)]


def make_app(settings: Settings) -> FastAPI:
    """Return the application. The folder is locked while it runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        app.state.server = Server(settings)
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield
        app.state.server.close()

    app = FastAPI(
        title="A query server",
        lifespan=lifespan,
        docs_url="/docs",
        redoc_url=None,
        responses=STATUSES,
    )
    app.add_middleware(LimitedBody)

    @app.get("/owner", response_class=HTMLResponse)
    def owner(there: There, authorization: Annotated[str, Header()] = "") -> Any:
        return HTMLResponse(there.report(authorization))

    @app.get("/budget")
    def budget(there: There, who: Who) -> Any:
        own = there.handles[who]
        return as_json(
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

    @app.post("/shared")
    def share(there: There, who: Who, question: SharedQuestion) -> Any:
        return there.share(question)

    @app.post("/children/{name}")
    def ask(there: There, who: Who, name: str, order: Order) -> Any:
        return there.launch(who, f"/children/{name}", lambda: there.child(who, name), order)

    @app.post("/children/{name}/describe")
    def describe_in(there: There, who: Who, name: str, question: Question) -> Any:
        return there.describe(there.child(who, name), question)

    @app.delete("/children/{name}")
    def close(there: There, who: Who, name: str) -> Any:
        there.child(who, name)
        there.children.drop(who, name)
        return {"closed": name}

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        body = {"error": error.detail, "charged": False}
        return JSONResponse(body, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        places = sorted({".".join(map(str, one["loc"][:2])) for one in error.errors()})
        return JSONResponse(
            {"error": f"malformed: {', '.join(places)[:200]}", "charged": False}, 422
        )

    @app.exception_handler(ConcurrentError)
    async def refused(_: Request, error: ConcurrentError) -> JSONResponse:
        if isinstance(error, LedgerError):
            return await failed(_, error)  # what the ledger says is for its owner
        statuses = {RefusalError: 403, KeyReusedError: 422, ConcurrentError: 400}
        status = next(one for kind, one in statuses.items() if isinstance(error, kind))
        return JSONResponse({"error": str(error)[:1000], "charged": False}, status)

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> JSONResponse:
        LOGGER.error("a request has failed", exc_info=error)
        text = "the server failed; ask again with the same key, which is charged at most once"
        return JSONResponse({"error": text, "charged": charged(error)}, 500)

    return app


def main() -> None:
    """Serve a folder that has ``settings.json``."""
    import uvicorn

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    try:
        known = json.loads((given.folder / "settings.json").read_text())
    except (OSError, ValueError) as error:
        parser.error(
            f"no settings can be read ({error}); docs/examples/server.rst shows how to write them"
        )
    settings = Settings(given.folder, **known)
    uvicorn.run(
        make_app(settings),
        port=given.port,
        log_level="warning",
        timeout_graceful_shutdown=SECONDS_TO_END,  # after SIGTERM, also for half-sent requests
    )


if __name__ == "__main__":
    main()
