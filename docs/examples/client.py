"""A client of the query server, which sends a launch again with the same key if it is lost."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import httpx

import opendp_concurrent as oc

TRIES = 5


class RequestError(Exception):
    """A status of ``/docs``, such as 403 for a refusal; ``charged`` is None if nobody knows."""

    def __init__(self, status: int, text: str, charged: bool | None) -> None:
        super().__init__(text)
        self.status, self.charged = status, charged


class Client:
    """An analyst of the server."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=60.0)

    def launch(self, query: Any, purpose: str = "", child: str = "", key: str = "") -> Any:
        """Return the answer, or the id of a child, which then takes queries as ``child``."""
        path = f"/children/{child}" if child else "/launch"
        order = {"key": key or uuid4().hex, "query": oc.serialize(query), "purpose": purpose}
        found = self._send("POST", path, order)
        return found.get("child", found.get("answer"))

    def describe(self, query: Any) -> dict[str, Any]:
        """Return what a launch would cost, and whether it would be admitted."""
        return self._send("POST", "/describe", {"query": oc.serialize(query)})

    def budget(self) -> dict[str, Any]:
        """Return what is spent, and what remains of the limit and of the cap."""
        return self._send("GET", "/budget", None)

    def _send(self, method: str, path: str, body: Any) -> dict[str, Any]:
        for left in reversed(range(TRIES)):
            try:
                answer = self.http.request(method, path, json=body)
            except httpx.TransportError:
                if not left:
                    raise
                time.sleep(0.1)
                continue
            found: dict[str, Any] = answer.json()
            if answer.status_code == 200:
                return found
            if not left or answer.status_code != 500 or found["charged"] is not None:
                raise RequestError(answer.status_code, found["error"], found["charged"])
        raise AssertionError
