"""A browser as the panel's page is one, and as other pages are: requests as bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

PATIENCE = 30


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Browser:
    """What has a URL of the page."""

    port: int
    path: str
    asked: Mapping[str, list[str]] = field(default_factory=dict)
    """The function that the page was opened for."""

    @classmethod
    async def opening(cls, link: str) -> Browser:
        """The page that a link of the server's leads to."""
        parts = urlsplit(link)
        assert (parts.scheme, parts.hostname, parts.port is not None) == ("http", "127.0.0.1", True)
        there = cls(parts.port or 0, parts.path)
        found = await there.get(parts.path)
        assert found.status == 303, found
        where = urlsplit(found.headers["Location"])
        return cls(there.port, where.path, parse_qs(where.fragment))

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def get(self, path: str = "", method: str = "GET", **headers: str) -> Response:
        """Send a request as this page does; `headers` replace its own, empty ones remove them."""
        own = {"Host": f"127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin"}
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        fields = "".join(f"{name}: {value}\r\n" for name, value in own.items() if value)
        return await self.raw(f"{method} {path or self.path} HTTP/1.1\r\n{fields}\r\n".encode())

    async def upgrade(self, **headers: str) -> int:
        """Ask for the socket as this page's script does; return the status."""
        own = {"Origin": self.origin, "Upgrade": "websocket", "Connection": "Upgrade"}
        key = {"Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec_WebSocket_Version": "13"}
        return (await self.get(f"{self.path}socket", **own | key | headers)).status

    async def raw(self, data: bytes) -> Response:
        """Send bytes, and read all of the answer, of a socket's only the head."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        try:
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            is_socket = answer.startswith(b"HTTP/1.1 101")
            body = b"" if is_socket else await asyncio.wait_for(reader.read(), PATIENCE)
        finally:
            writer.close()
        line, _, fields = answer.partition(b"\r\n")
        headers = BytesParser().parsebytes(fields, headersonly=True)
        return Response(int(line.split()[1]), dict(headers.items()), body)

    @asynccontextmanager
    async def socket(self, *, reads: bool = True) -> AsyncIterator[Socket]:
        """The socket of a page; without `reads`, the page reads nothing by itself."""
        address = f"ws://127.0.0.1:{self.port}{self.path}socket"
        queue = None if reads else 1
        async with connect(address, origin=Origin(self.origin), max_queue=queue) as connection:
            yield Socket(connection)

    async def request(self, method: str, params: object) -> Any:
        """Send a request of the editor's own through a socket of its own, and return the answer."""
        async with self.socket() as socket:
            return (await socket.ask(method, params))["result"]

    async def refusal(self, method: str, params: object) -> str:
        """Send a request that fails, and return the reason."""
        async with self.socket() as socket:
            reason: str = (await socket.ask(method, params))["error"]["message"]
            return reason

    async def execute(self, name: str, *arguments: str) -> Any:
        """Run a command."""
        params = {"command": name, "arguments": arguments}
        return await self.request("workspace/executeCommand", params)


class Socket:
    """What a page gets and sends."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def ask(self, method: str, params: object) -> dict[str, Any]:
        """The answer to a request; what comes before it is skipped."""
        await self.connection.send(json.dumps({"id": 1, "method": method, "params": params}))
        while (message := await self._message()).get("id") != 1:
            pass
        return message

    async def next(self, method: str) -> dict[str, Any]:
        """Parameters of the next notification of a method; what comes before it is skipped."""
        while (message := await self._message()).get("method") != method:
            pass
        params: dict[str, Any] = message["params"]
        return params

    async def cursor(self) -> dict[str, int]:
        """Where the cursor is next."""
        position: dict[str, int] = (await self.next("jaxsight/cursor"))["position"]
        return position

    async def rest(self) -> list[str | bytes]:
        """What is left to read, once the server has closed the socket."""
        read = []
        with suppress(ConnectionClosed):
            while True:
                read.append(await asyncio.wait_for(self.connection.recv(), PATIENCE))
        return read

    async def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(
            await asyncio.wait_for(self.connection.recv(), PATIENCE)
        )
        return message
