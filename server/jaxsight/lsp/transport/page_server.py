"""A page, and the socket that it speaks through, for one user's browser on this machine alone.

The socket carries JSON-RPC: requests of the page, answers, and notifications of the server.

The threats are other web pages (by requests across origins, frames, and names that they have
resolve to 127.0.0.1) and other users of the machine, who may connect to each port and read the
arguments of all processes, a browser's included. So the server listens on the loopback interface
only, checks `Host`, `Origin` and `Sec-Fetch-Site`, and serves only below a secret path.  That path
is never an argument of a process: a browser is started with a link that works once, and redirects.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

from jaxsight.lsp.transport.streams import JsonObject
from jaxsight.text.inert import one_line

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.datastructures import Headers
    from websockets.http11 import Request, Response

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_LONGEST_MESSAGE = 1024 * 1024
"""Bytes of a page's message, a choice: they have some hundred."""
_MOST_UNREAD = 1024 * 1024
"""Bytes that wait for a page, a choice; one that is further behind is disconnected."""
_MOST_LINKS = 16
"""Links that have not been used, a choice; the oldest stop working."""

_HEADERS = {
    "Cache-Control": "no-store",
    # That of frames counts in headers only; the page has its own policy for all else.
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The headers of every answer."""


class PageServer:
    """Serves one page, answers its requests, and notifies those pages that are open."""

    def __init__(
        self, page: Callable[[], str], answer: Callable[[str, JsonObject], Awaitable[object]]
    ) -> None:
        """Create a server that listens once there is a link.

        Args:
            page: returns the page as HTML.
            answer: answers a request, of which it gets the method and the parameters as they came;
                cancelled if the page leaves. What it raises is the reason why there is no answer.
        """
        self._page = page
        self._answer = answer
        self._server: Server | None = None
        self._secret = secrets.token_urlsafe(32)
        self._links: dict[str, str] = {}
        """Links that open the page, each with what the page's address has after `#`."""
        self.last: JsonObject | None = None
        """The notification that a page gets when it connects."""

    async def link(self, fragment: str) -> str:
        """Return a URL that opens the page once; start to listen with the first."""
        if self._server is None:
            from websockets.asyncio.server import serve  # 5 MiB, which few sessions need

            self._server = await serve(
                self._converse,
                _HOST,
                0,
                process_request=self._admit,
                compression=None,
                max_size=_LONGEST_MESSAGE,
                server_header=None,
                logger=log,
            )
        link = secrets.token_urlsafe(32)
        self._links[link] = fragment
        while len(self._links) > _MOST_LINKS:
            del self._links[next(iter(self._links))]
        return f"http://{_HOST}:{_port(self._server)}/open/{link}"

    def notify(self, notification: JsonObject) -> None:
        """Send a notification to all pages."""
        if self._server is None:
            return
        from websockets.asyncio.server import broadcast

        for socket in self._server.connections:
            if socket.transport.get_write_buffer_size() > _MOST_UNREAD:
                socket.transport.abort()
        broadcast(self._server.connections, json.dumps(notification))

    def close(self) -> None:
        """Stop listening, and disconnect the pages."""
        if self._server is not None:
            self._server.close()

    async def _admit(self, socket: ServerConnection, request: Request) -> Response | None:
        """Let the page's own socket pass; answer or refuse all other requests."""
        status, text = await self._answered(request, _port(socket.server))
        if status is HTTPStatus.SWITCHING_PROTOCOLS:
            return None
        response = socket.respond(status, text or status.phrase)
        if status is HTTPStatus.OK:
            del response.headers["Content-Type"]
            response.headers["Content-Type"] = "text/html; charset=utf-8"
        elif status is HTTPStatus.SEE_OTHER:
            response.headers["Location"] = text
        response.headers.update(_HEADERS)
        return response

    async def _answered(self, request: Request, port: int) -> tuple[HTTPStatus, str]:
        """Return the status of an answer, and its text: the page, or where it is."""
        secret, _, name = request.path.removeprefix("/").partition("/")
        if request.method != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, ""
        refused = _refusal(request.headers, port, opens=name != "socket")
        if refused is not None:
            return refused, ""
        if secret == "open":
            if (fragment := self._links.pop(name, None)) is None:
                used = "This link has been used: run the command in your editor again."
                return HTTPStatus.GONE, used
            return HTTPStatus.SEE_OTHER, f"/{self._secret}/#{fragment}"
        if hmac.compare_digest(secret.encode(errors="replace"), self._secret.encode()):
            if name == "socket":
                return HTTPStatus.SWITCHING_PROTOCOLS, ""
            if not name:
                return HTTPStatus.OK, await asyncio.to_thread(self._page)
        return HTTPStatus.NOT_FOUND, ""

    async def _converse(self, socket: ServerConnection) -> None:
        """Answer a page's requests, several at a time, until it leaves."""
        from websockets.exceptions import ConnectionClosed

        answering: dict[int, asyncio.Task[None]] = {}
        try:
            if self.last is not None:
                await socket.send(json.dumps(self.last))
            async for text in socket:
                match json.loads(text):
                    case {"method": "$/cancelRequest", "params": {"id": int(number)}}:
                        if number in answering:
                            answering[number].cancel()
                    case {"id": int(number), "method": str(method), "params": params}:
                        reply = self._reply(socket, number, method, params)
                        answering = {n: task for n, task in answering.items() if not task.done()}
                        answering[number] = asyncio.create_task(reply)
                    case _:
                        raise ValueError("not a request")
        except ConnectionClosed:
            pass
        except (ValueError, RecursionError) as error:
            await socket.close(1008, one_line(f"invalid message: {error}")[:100])
        finally:
            for task in answering.values():
                task.cancel()

    async def _reply(
        self, socket: ServerConnection, number: int, method: str, params: JsonObject
    ) -> None:
        from websockets.exceptions import ConnectionClosed

        reply: JsonObject = {"id": number}
        try:
            reply["result"] = await self._answer(method, params)
        except Exception as error:
            log.exception("a request of the panel's page failed")
            reply["error"] = {"message": one_line(str(error)) or type(error).__name__}
        with suppress(ConnectionClosed):
            await socket.send(await asyncio.to_thread(json.dumps, reply))


def _port(server: Server) -> int:
    port: int = next(iter(server.sockets)).getsockname()[1]
    return port


def _refusal(headers: Headers, port: int, *, opens: bool) -> HTTPStatus | None:
    """Refuse what another page sends, or has its own name resolve to.

    `opens` is a request for the page, which people and links may send, not its script alone.
    """
    host = headers.get_all("Host")
    if host not in ([f"{name}:{port}"] for name in (_HOST, "localhost")):
        return HTTPStatus.MISDIRECTED_REQUEST
    own = [f"http://{host[0]}"]
    if headers.get_all("Origin") not in (own, [] if opens else own):
        return HTTPStatus.FORBIDDEN
    # Other pages may link to this one: a window of its own, which they cannot look into.
    fetched = [headers.get_all(f"Sec-Fetch-{name}") for name in ("Mode", "Dest")]
    is_link = opens and fetched == [["navigate"], ["document"]]
    is_own = headers.get_all("Sec-Fetch-Site") in ([], ["none"], ["same-origin"])
    return None if is_own or is_link else HTTPStatus.FORBIDDEN
