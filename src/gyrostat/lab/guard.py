"""What may come in: only this machine's own page, in small pieces."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gyrostat.errors import GyrostatError

HEADERS = {
    # Plotly writes style elements and draws pictures to save from data; nothing comes from elsewhere.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
MOST = 20_000
"""Bytes of an ordinary request."""


class Guard:
    """Refuses requests whose Host is not ours (another name may be made to point here) or whose Origin is another page."""

    def __init__(self, app: ASGIApp, hosts: set[str]):
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if (reason := self._reason(scope, headers)) is not None:
            await PlainTextResponse(reason, status_code=403)(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        await self.app(scope, receive, guarded)

    def _reason(self, scope: Scope, headers: dict[str, str]) -> str | None:
        if headers.get("host") not in self.hosts:
            return "This laboratory answers to its own address only."
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return "This laboratory does not answer to other pages."
        # A form of another page cannot send JSON without asking first, which nobody answers.
        if scope["method"] == "POST" and headers.get("content-type", "").split(";")[0] != "application/json":
            return "This laboratory takes JSON only."
        return None


async def body_of(request: Request, most: int = MOST) -> dict[str, Any]:
    """The JSON object of a request of at most so many bytes."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > most:
            raise GyrostatError(f"the request is larger than {most} bytes: send less.")
    try:
        body = json.loads(data)
    except ValueError:
        raise GyrostatError("the request must be a JSON object.") from None
    if not isinstance(body, dict):
        raise GyrostatError("the request must be a JSON object.")
    return body


def field(body: dict[str, Any], name: str, kind: type) -> Any:
    """A field of the request, of the kind that is needed."""
    value = body.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise GyrostatError(f"{name} must be a {kind.__name__}; got {str(value)[:40]!r}.")
    return value
