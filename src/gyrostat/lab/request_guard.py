"""Which requests are accepted: those of this machine's own page and its owner, in JSON and of limited size.

The owner is who knows the token, which the address that ``gyrostat lab`` prints holds. The first visit with it leaves a cookie,
and the page's own requests carry that.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
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

BODY_SECONDS = 30.0
"""Seconds within which the body of a request must arrive."""


class TooLarge(GyrostatError):
    """A request that is larger than allowed; answered with status 413."""


class RequestGuard:
    """Middleware that refuses requests to another Host (any name can be made to point here), with another page's Origin, or
    without the token. Every answer gets the headers :data:`HEADERS`.
    """

    def __init__(self, app: ASGIApp, hosts: set[str], token: str):
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        answer = self._refusal(scope, headers) or self._welcome(scope, headers) or self.app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        reason = self._reason_to_refuse(scope, headers)
        return None if reason is None else PlainTextResponse(reason, status_code=403)

    def _welcome(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        """Who brings the token in the address gets a cookie, and is sent on to the address without it."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if self._is_known(headers):
            rest = [(name, value) for name, value in query if name != "token"]
            if len(rest) == len(query) or scope["method"] != "GET":
                return None
        elif not any(name == "token" and self._is_token(value) for name, value in query):
            return PlainTextResponse(
                "This laboratory is for the person who started it: open the address that gyrostat lab printed, with its token.",
                status_code=403,
            )
        rest = [(name, value) for name, value in query if name != "token"]
        where = scope["path"] if scope["path"] in ("/", "/index.html") else "/"
        answer = RedirectResponse(where + (f"?{urlencode(rest)}" if rest else ""), status_code=303)
        answer.set_cookie(self._cookie(headers), self.token, httponly=True, samesite="lax", path="/")
        return answer

    def _is_known(self, headers: dict[str, str]) -> bool:
        if self._is_token(headers.get("authorization", "").removeprefix("token ")):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie(headers))
        except CookieError:
            return False
        return cookie is not None and self._is_token(cookie.value)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    def _cookie(self, headers: dict[str, str]) -> str:
        """The name of the cookie: browsers send the cookies of one port to all ports of a machine."""
        return f"gyrostat-{headers['host'].rpartition(':')[2]}"

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
    data = await _read_bytes(request, most_bytes)
    try:
        body = json.loads(data.decode())
        if b"\\u" in data:  # JSON can write half of a character, which no file and no answer can hold
            json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise GyrostatError("the request must be a JSON object in UTF-8, not nested deeply.")
    return body


async def _read_bytes(request: Request, most_bytes: int) -> bytes:
    """The body. One that is announced as too large is refused without being read."""
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > most_bytes:
        raise TooLarge(
            f"the request has {announced[:20]} bytes; {most_bytes} are allowed: send less, or use gyrostat fit."
        )
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > most_bytes:
                    raise TooLarge(f"the request is larger than {most_bytes} bytes: send less, or use gyrostat fit.")
    except TimeoutError:
        raise GyrostatError(f"the request did not arrive within {BODY_SECONDS:.0f} s: send it again.") from None
    except ClientDisconnect:
        raise GyrostatError("the request broke off: send it again.") from None
    return bytes(data)


def read_field(body: dict[str, Any], name: str, kind: type) -> Any:
    """A field of the request, which must be of this type."""
    value = body.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise GyrostatError(f"{name} must be a {kind.__name__}; got {str(value)[:40]!r}.")
    return value
