"""Who may use the page: whoever has its token, from a page of this server, at an address of this server.

The address that is opened holds the token once; it is moved into a cookie that scripts cannot read and that other sites'
requests do not carry. Every request must name this server in Host (a site that points its own name here is refused) and, where
the browser says which page sends it, come from this one. What writes must be a POST of JSON with a header that holds a second
secret, which only this server's page knows: forms and links of other pages cannot send it. Bodies are limited.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

WRITES = "x-glasses-write"  # header of every request that changes anything
LARGEST = 64 * 1024  # bytes of a body
LARGEST_IMPORT = 4 * 1024 * 1024  # bytes of one that holds a table of results

# Observable Plot puts one style sheet, always the same, into each chart: it is allowed by its hashes (with and without a ramp).
CHART_STYLES = "'sha256-jSYQUrW7J0b3jPqhZP9C2Xh1PyJKHKXd4s0fpGGKrww=' 'sha256-/jg3HOQ97BIOLIR7iXhepLJanBbw11P39q1Ne1E+6Jc='"
HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' {CHART_STYLES}; img-src 'self' data:; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """ASGI middleware around the page."""

    def __init__(self, app: ASGIApp, *, token: str, host: str, port: int) -> None:
        self.app, self.token, self.host, self.port = app, token, host, port
        self.cookie = f"glasses-{hashlib.sha256(token.encode()).hexdigest()[:8]}"  # pages at other ports keep theirs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send))
            return
        limit = LARGEST_IMPORT if scope["path"].startswith("/api/import/") else LARGEST
        if scope["method"] == "POST":
            body = await _read(receive, limit)
            if body is None:
                words = f"The request is larger than {limit // 1024} KiB: send less at once."
                await JSONResponse({"error": words}, 413)(scope, receive, _with_headers(send))
                return
            receive = _again(body, receive)
        await self.app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that is not let through."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not is_own(host, self.host, self.port):
            return PlainTextResponse("This address is not one of this server: open the address that it printed.", 421)
        origin = headers.get("origin")
        opened = scope["method"] == "GET" and scope["path"] == "/"  # a link to the page may stand anywhere
        foreign = headers.get("sec-fetch-site", "none") == "cross-site" and not opened
        if foreign or (origin is not None and origin != f"http://{host}"):
            return _refused("This request comes from another page: use the page itself.", 403)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _refused("Expected GET to read or POST to write.", 405)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and given:
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return _wrong_token(headers)
            return self._moved_into_a_cookie()
        if not hmac.compare_digest(_cookie(headers, self.cookie).encode(), self.token.encode()):
            return _wrong_token(headers)
        if scope["method"] == "POST":
            if headers.get("content-type", "").split(";")[0].strip() != "application/json":
                return _refused("Expected JSON (Content-Type: application/json).", 415)
            if not hmac.compare_digest(headers.get(WRITES, "").encode(), write_secret(self.token).encode()):
                return _refused("The page is out of date: load it again.", 403)
        return None

    def _moved_into_a_cookie(self) -> Response:
        answer = RedirectResponse("/", 303, {"cache-control": "no-store"})
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/", max_age=30 * 86400)
        return answer


def write_secret(token: str) -> str:
    """What a page sends with everything that it changes. Not the token, which its scripts never see."""
    return hmac.new(token.encode(), b"writes", hashlib.sha256).hexdigest()[:32]


def is_own(host: str, listening: str, port: int) -> bool:
    """Whether a Host header names this server.

    A server for this machine alone answers to its loopback names. One that listens everywhere answers to any number, which no
    foreign site can point here, and to the machine's own name.
    """
    name, _, number = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "80")
    if number != str(port):
        return False
    name = name.strip("[]").lower()
    if name == listening.lower():
        return True
    if _is_loopback(listening):
        return name in ("localhost", "127.0.0.1", "::1")
    if listening in ("0.0.0.0", "::"):
        return _is_number(name) or name in ("localhost", socket.gethostname().lower(), socket.getfqdn().lower())
    return False


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_number(name) and ipaddress.ip_address(name).is_loopback)


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _wrong_token(headers: Headers) -> Response:
    words = "This page needs its token: open the address that `glasses serve` printed."
    if "text/html" in headers.get("accept", ""):
        return PlainTextResponse(words, 403)
    return _refused(words, 403)


def _refused(words: str, status: int) -> Response:
    return JSONResponse({"error": words}, status)


async def _read(receive: Receive, limit: int) -> bytes | None:
    """A body of at most ``limit`` bytes, or None."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        parts.append(message.get("body", b""))
        if sum(map(len, parts)) > limit:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read, and then whatever comes."""
    given: Iterable[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def next_message() -> Message:
        for message in given:
            return message
        return await receive()

    return next_message


def _with_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in message["headers"]}
            more = {"cache-control": "no-store", **HEADERS}
            message["headers"] = [
                *message["headers"],
                *((name.encode(), value.encode()) for name, value in more.items() if name.encode() not in names),
            ]
        await send(message)

    return with_headers


def loads(body: bytes) -> dict[str, object]:
    """A body of JSON; NaN and infinity are no numbers there."""
    try:
        found = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ValueError("The request could not be read: expected a JSON object.") from None
    if not isinstance(found, dict):
        raise ValueError("The request could not be read: expected a JSON object.")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(name)
