"""Which requests are accepted: those of this machine's own page, in JSON and of limited size."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gyrostat.errors import GyrostatError

HEADERS = {
    # Plotly adds style elements and saves pictures through data and blob addresses; nothing is fetched from elsewhere.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
MOST_BYTES = 20_000
"""The size of an ordinary request."""


class RequestGuard:
    """Middleware that refuses requests to another Host (any name can be made to point here) or with another page's Origin."""

    def __init__(self, app: ASGIApp, hosts: set[str]):
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if (reason := self._reason_to_refuse(scope, headers)) is not None:
            await PlainTextResponse(reason, status_code=403)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _reason_to_refuse(self, scope: Scope, headers: dict[str, str]) -> str | None:
        if headers.get("host") not in self.hosts:
            return "This laboratory answers to its own address only."
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return "This laboratory does not answer to other pages."
        # Another page's form cannot send JSON without a preflight request, and this server answers none.
        if scope["method"] == "POST" and headers.get("content-type", "").split(";")[0] != "application/json":
            return "This laboratory takes JSON only."
        return None


async def read_body(request: Request, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The JSON object that a request carries."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > most_bytes:
            raise GyrostatError(f"the request is larger than {most_bytes} bytes: send less.")
    try:
        body = json.loads(data)
    except ValueError:
        raise GyrostatError("the request must be a JSON object.") from None
    if not isinstance(body, dict):
        raise GyrostatError("the request must be a JSON object.")
    return body


def read_field(body: dict[str, Any], name: str, kind: type) -> Any:
    """A field of the request, which must be of this type."""
    value = body.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise GyrostatError(f"{name} must be a {kind.__name__}; got {str(value)[:40]!r}.")
    return value
