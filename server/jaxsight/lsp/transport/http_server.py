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
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

from jaxsight.text.inert import one_line

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
_MOST_UNREAD = 1024 * 1024
"""Bytes of events that wait for a page, a choice; one that is further behind is disconnected."""
_MOST_LINKS = 16
"""Links that have not been used, a choice; the oldest stop working."""

_HEADERS = (
    "Cache-Control: no-store",
    "Connection: close",
    # That of frames counts in headers only; the page has its own policy for all else.
    "Content-Security-Policy: frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy: same-origin",
    "Cross-Origin-Resource-Policy: same-origin",
    "Referrer-Policy: no-referrer",
    "X-Content-Type-Options: nosniff",
    "X-Frame-Options: DENY",
)
"""The headers of every answer."""


Answer = Callable[[bytes], Awaitable[bytes]]


class RefusedRequest(Exception):
    """A request is not answered; the status says why."""

    def __init__(self, status: HTTPStatus, reason: str = "") -> None:
        super().__init__(reason or status.phrase)
        self.status = status


class LocalServer:
    """Serves one page, answers what it posts, and sends events to those that are open."""

    def __init__(self, page: Callable[[], str], answer: Answer) -> None:
        """Create a server that listens once there is a link.

        Args:
            page: returns the page as HTML.
            answer: answers JSON that is posted to `requests`, with JSON; cancelled if the page
                leaves. What it raises is the reason why there is no answer.
        """
        self._page = page
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._secret = secrets.token_urlsafe(32)
        self._links: dict[str, str] = {}
        """Links that open the page, each with what the page's address has after `#`."""
        self._streams: set[asyncio.StreamWriter] = set()
        """Those of pages that read `events`."""
        self._port = 0
        self._connections = 0
        self.last = b""
        """The event that a page gets when it connects."""

    async def link(self, fragment: str) -> str:
        """Return a URL that opens the page once; start to listen with the first."""
        if self._server is None:
            starting = asyncio.start_server(self._connected, _HOST, 0, limit=_LONGEST_HEAD)
            self._server = await starting
            self._port = self._server.sockets[0].getsockname()[1]
        link = secrets.token_urlsafe(32)
        self._links[link] = fragment
        while len(self._links) > _MOST_LINKS:
            del self._links[next(iter(self._links))]
        return f"http://{_HOST}:{self._port}/open/{link}"

    def send(self, event: bytes) -> None:
        """Send an event to all pages."""
        for writer in self._streams:
            if writer.transport.get_write_buffer_size() > _MOST_UNREAD:
                writer.transport.abort()
            else:
                writer.write(event)

    def close(self) -> None:
        """Stop listening, and disconnect the pages."""
        if self._server is not None:
            self._server.close()
        for writer in self._streams:
            writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            _require(self._connections <= _MOST_CONNECTIONS, HTTPStatus.SERVICE_UNAVAILABLE)
            await self._serve(reader, writer)
        except RefusedRequest as error:
            writer.write(_response(error.status, "text/plain", f"{error}\n".encode()))
        except (OSError, EOFError):  # the browser has gone, or sends too slowly (`TimeoutError`)
            pass
        except Exception as error:
            log.exception("a request of the panel's page failed")
            reason = one_line(str(error)) or type(error).__name__
            writer.write(_response(HTTPStatus.BAD_REQUEST, "text/plain", reason.encode()))
        finally:
            self._connections -= 1
            self._streams.discard(writer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_PATIENCE):
            method, path, body = await self._received(reader)
        secret, _, name = path.removeprefix("/").partition("/")
        if secret == "open":
            used = "This link has been used: run the command in your editor again."
            _require(method == "GET" and name in self._links, HTTPStatus.GONE, used)
            where = f"Location: /{self._secret}/#{self._links.pop(name)}"
            writer.write(_response(HTTPStatus.SEE_OTHER, "text/plain", b"", where))
            return
        _require(hmac.compare_digest(secret, self._secret), HTTPStatus.NOT_FOUND)
        match method, name:
            case "GET", "":
                html = (await asyncio.to_thread(self._page)).encode()
                writer.write(_response(HTTPStatus.OK, "text/html", html))
            case "GET", "events":
                writer.write(_response(HTTPStatus.OK, "text/event-stream", self.last))
                self._streams.add(writer)
                await _left(reader)
            case "POST", "requests":
                answer = await self._answered(body, reader)
                writer.write(_response(HTTPStatus.OK, "application/json", answer))
            case _:
                raise RefusedRequest(HTTPStatus.NOT_FOUND)

    async def _answered(self, body: bytes, reader: asyncio.StreamReader) -> bytes:
        """Answer a request, or cancel that as the browser leaves."""
        answering = asyncio.ensure_future(self._answer(body))
        leaving = asyncio.create_task(_left(reader))
        leaving.add_done_callback(lambda _: answering.cancel())
        try:
            return await answering
        finally:
            leaving.cancel()

    async def _received(self, reader: asyncio.StreamReader) -> tuple[str, str, bytes]:
        """Read a request that this page may send: its method, path and body.

        Raises:
            RefusedRequest: it is malformed, too long, or another page's.
        """
        from email.parser import BytesHeaderParser  # 1 MiB, which few sessions need

        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise RefusedRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from error
        line, _, fields = head.partition(b"\r\n")
        headers = BytesHeaderParser().parsebytes(fields)
        words = line.decode("ascii", "replace").split(" ")
        is_request = line.isascii() and len(words) == 3 and words[2] in ("HTTP/1.1", "HTTP/1.0")
        is_sound = not headers.defects and len(headers) <= _MOST_FIELDS
        _require(is_request and is_sound, HTTPStatus.BAD_REQUEST)
        method, path, _ = words
        self._check_source(headers, method)
        return method, path, await _body(reader, headers, method)

    def _check_source(self, headers: Message, method: str) -> None:
        """Refuse what another page sends, or has its own name resolve to."""
        hosts = [f"{name}:{self._port}" for name in (_HOST, "localhost")]
        host = headers.get_all("Host", [])
        _require(len(host) == 1 and host[0] in hosts, HTTPStatus.MISDIRECTED_REQUEST)
        origins = headers.get_all("Origin", [] if method != "GET" else [f"http://{host[0]}"])
        _require(origins == [f"http://{host[0]}"], HTTPStatus.FORBIDDEN)
        # Other pages may link to this one: a window of its own, which they cannot look into.
        fetched = {headers.get(f"Sec-Fetch-{name}", "") for name in ("Mode", "Dest")}
        is_opened = method == "GET" and fetched == {"navigate", "document"}
        is_own = headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        _require(is_own or is_opened, HTTPStatus.FORBIDDEN)


async def _body(reader: asyncio.StreamReader, headers: Message, method: str) -> bytes:
    lengths = headers.get_all("Content-Length", [])
    _require("Transfer-Encoding" not in headers and len(lengths) <= 1, HTTPStatus.BAD_REQUEST)
    if method == "GET":
        return b""
    _require(method == "POST", HTTPStatus.METHOD_NOT_ALLOWED)
    # No form of another page can have this type.
    kind = headers.get_content_type()
    _require(kind == "application/json", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    length = "".join(lengths)
    _require(length.isdecimal() and length.isascii(), HTTPStatus.LENGTH_REQUIRED)
    size = int(length[:10])
    _require(size <= _LONGEST_BODY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return await reader.readexactly(size)


async def _left(reader: asyncio.StreamReader) -> None:
    """Wait until the browser leaves: it sends nothing more."""
    with suppress(OSError):
        await reader.read(1)


def _require(is_met: bool, status: HTTPStatus, reason: str = "") -> None:
    if not is_met:
        raise RefusedRequest(status, reason)


def _response(status: HTTPStatus, media_type: str, body: bytes, *fields: str) -> bytes:
    """Return a response whose body, so far, ends with the connection."""
    own = (f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Type: {media_type}; charset=utf-8")
    return "\r\n".join((*own, *_HEADERS, *fields, "", "")).encode() + body
