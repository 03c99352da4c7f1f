"""HTTP/1.1 for one user's browser on this machine, and nobody else.

The threats are other web pages (by requests across origins, frames, and names that they have
resolve to 127.0.0.1) and other users of the machine, who may connect to each port and read the
arguments of all processes, a browser's included. So the server listens on the loopback interface
only, checks `Host`, `Origin` and `Sec-Fetch-Site`, and serves only below a secret path.  That path
is never an argument of a process: a browser is started with a link that works once, and redirects.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from email.message import Message

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_LONGEST_HEAD = 16 * 1024
"""Bytes of a request's head: twice what browsers and servers commonly allow."""
_MOST_FIELDS = 100
"""Fields of a head, as in Python's `http.client`."""
_LONGEST_BODY = 1024 * 1024
"""Bytes of a body, a choice: messages of the page have some hundred."""
_MOST_CONNECTIONS = 32
"""Connections at a time, a choice: each page holds one, and a browser six at most for all pages."""
_PATIENCE = 10.0
"""Seconds for a request to arrive, a choice."""
_MOST_LINKS = 16
"""Links that have not been used, a choice; the oldest stop working."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The headers of every answer, unless it has its own."""

EventChunks = AsyncGenerator[bytes, None]
"""Server-sent events, encoded; closed when the browser leaves."""


class RefusedRequest(Exception):
    """A request is not answered; the status says why."""

    def __init__(self, status: HTTPStatus, reason: str = "") -> None:
        super().__init__(reason or status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request of the page, below the secret path."""

    method: str
    path: str
    """`/` is the page itself."""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class PageResponse:
    """What a request is answered with: a body, or server-sent events until the browser leaves."""

    body: bytes = b""
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)
    events: EventChunks | None = None


class LocalServer:
    """Serves one page, with its requests."""

    def __init__(self, answer: Callable[[PageRequest], Awaitable[PageResponse]]) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._secret = secrets.token_urlsafe(32)
        self._links: dict[str, None] = {}
        self._port = 0
        self._connections = 0

    async def link(self) -> str:
        """Return a URL that opens the page once; start to listen with the first."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._connected, _HOST, 0, limit=_LONGEST_HEAD
            )
            self._port = self._server.sockets[0].getsockname()[1]
        link = secrets.token_urlsafe(32)
        self._links[link] = None
        while len(self._links) > _MOST_LINKS:
            del self._links[next(iter(self._links))]
        return f"http://{_HOST}:{self._port}/open/{link}"

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections > _MOST_CONNECTIONS:
                response = _refusal(RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE))
            else:
                response = await self._response(reader)
            await _send(response, reader, writer)
        except (OSError, EOFError):  # the browser has gone
            pass
        except Exception:
            log.exception("a request of the panel's page failed")
        finally:
            self._connections -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _response(self, reader: asyncio.StreamReader) -> PageResponse:
        try:
            async with asyncio.timeout(_PATIENCE):
                request = await self._received(reader)
            if request.path.startswith("/open/"):
                return self._redirect(request)
            _, secret, path = (request.path + "/").split("/", 2)
            if not hmac.compare_digest(secret.encode(), self._secret.encode()):
                raise RefusedRequest(HTTPStatus.NOT_FOUND)
            path = f"/{path.removesuffix('/')}"
            return await self._answer(PageRequest(request.method, path, request.body))
        except TimeoutError:
            return _refusal(RefusedRequest(HTTPStatus.REQUEST_TIMEOUT))
        except RefusedRequest as error:
            return _refusal(error)

    def _redirect(self, request: PageRequest) -> PageResponse:
        """Lead to the page, once."""
        link = request.path.removeprefix("/open/")
        if request.method != "GET" or link not in self._links:
            used = "This link has been used: run the command in your editor again."
            raise RefusedRequest(HTTPStatus.GONE, used)
        del self._links[link]
        location = {"Location": f"/{self._secret}/"}
        return PageResponse(status=HTTPStatus.SEE_OTHER, headers=location)

    async def _received(self, reader: asyncio.StreamReader) -> PageRequest:
        """Read a request that this page may send.

        Raises:
            RefusedRequest: it is malformed, too long, or another page's.
        """
        from email.parser import BytesHeaderParser  # 1 MiB, which few sessions need

        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise RefusedRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from error
        line, _, fields = head.partition(b"\r\n")
        try:
            method, path, version = line.decode("ascii").split(" ")
        except ValueError as error:
            raise RefusedRequest(HTTPStatus.BAD_REQUEST) from error
        headers = BytesHeaderParser().parsebytes(fields)
        if (
            version not in ("HTTP/1.1", "HTTP/1.0")
            or headers.defects
            or len(headers) > _MOST_FIELDS
        ):
            raise RefusedRequest(HTTPStatus.BAD_REQUEST)
        self._check_source(headers, method)
        return PageRequest(method, path, await _body(reader, headers, method))

    def _check_source(self, headers: Message, method: str) -> None:
        """Refuse what another page sends, or has its own name resolve to."""
        hosts = [f"{name}:{self._port}" for name in (_HOST, "localhost")]
        host = headers.get_all("Host", [])
        if len(host) != 1 or host[0] not in hosts:
            raise RefusedRequest(HTTPStatus.MISDIRECTED_REQUEST)
        origins = headers.get_all("Origin", [])
        if origins not in ([], [f"http://{host[0]}"]) or (method != "GET" and not origins):
            raise RefusedRequest(HTTPStatus.FORBIDDEN)
        # Other pages may link to this one: a window of its own, which they cannot look into.
        fetched = {headers.get(f"Sec-Fetch-{name}", "") for name in ("Mode", "Dest")}
        is_opened = method == "GET" and fetched == {"navigate", "document"}
        if not is_opened and headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise RefusedRequest(HTTPStatus.FORBIDDEN)


async def _body(reader: asyncio.StreamReader, headers: Message, method: str) -> bytes:
    lengths = headers.get_all("Content-Length", [])
    if "Transfer-Encoding" in headers or len(lengths) > 1:
        raise RefusedRequest(HTTPStatus.BAD_REQUEST)
    if method == "GET":
        return b""
    if method != "POST":
        raise RefusedRequest(HTTPStatus.METHOD_NOT_ALLOWED)
    # No form of another page can have this type.
    if headers.get_content_type() != "application/json":
        raise RefusedRequest(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    if not lengths or not lengths[0].isdecimal() or not lengths[0].isascii():
        raise RefusedRequest(HTTPStatus.LENGTH_REQUIRED)
    length = int(lengths[0][:10])
    if length > _LONGEST_BODY:
        raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return await reader.readexactly(length)


def _refusal(error: RefusedRequest) -> PageResponse:
    text = {"Content-Type": "text/plain; charset=utf-8"}
    return PageResponse(f"{error}\n".encode(), error.status, text)


async def _send(
    response: PageResponse, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    headers = {**_HEADERS, **response.headers}
    if response.events is None:
        headers["Content-Length"] = str(len(response.body))
    else:
        headers["Content-Type"] = "text/event-stream"
    head = [f"HTTP/1.1 {response.status.value} {response.status.phrase}"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*head, "", ""]).encode() + response.body)
    await writer.drain()
    if response.events is not None:
        sending = asyncio.ensure_future(_send_events(response.events, writer))
        gone = asyncio.ensure_future(reader.read(1))  # a browser sends nothing more
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.wait((sending, gone))
        if not sending.cancelled():
            sending.result()


async def _send_events(events: EventChunks, writer: asyncio.StreamWriter) -> None:
    async with aclosing(events):
        async for chunk in events:
            writer.write(chunk)
            await writer.drain()
