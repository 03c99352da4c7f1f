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

    async def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Response:
        """Send a request as this page does; `headers` replace its own, empty ones remove them."""
        own = {"Host": f"127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin"}
        if method == "POST":
            own |= {"Origin": self.origin, "Content-Type": "application/json"}
            own |= {"Content-Length": str(len(body))}
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        fields = "".join(f"{name}: {value}\r\n" for name, value in own.items() if value)
        return await self.raw(f"{method} {path} HTTP/1.1\r\n{fields}\r\n".encode() + body)

    async def raw(self, data: bytes) -> Response:
        """Send bytes, and read all of the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        try:
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
        finally:
            writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        headers = BytesParser().parsebytes(fields, headersonly=True)
        return Response(int(line.split()[1]), dict(headers.items()), body)

    async def get(self, path: str = "", **headers: str) -> Response:
        return await self.ask("GET", path or self.path, **headers)

    async def post(self, body: bytes, **headers: str) -> Response:
        """Post a request of the page's script."""
        return await self.ask("POST", f"{self.path}requests", body, **headers)

    async def request(self, method: str, params: object) -> Any:
        """Send a request of the editor's own, and return what is answered."""
        found = await self.post(json.dumps({"method": method, "params": params}).encode())
        assert found.status == 200, found
        return json.loads(found.body)

    async def execute(self, name: str, *arguments: str) -> Any:
        """Run a command."""
        params = {"command": name, "arguments": arguments}
        return await self.request("workspace/executeCommand", params)

    @asynccontextmanager
    async def events(self, limit: int = 2**24) -> AsyncIterator[Events]:
        """The notifications to the page, which reads no more than a limit ahead."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=limit)
        head = f"GET {self.path}events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n"
        writer.write(head.encode())
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        assert b" 200 " in answer
        assert b"text/event-stream" in answer
        try:
            yield Events(reader)
        finally:
            writer.close()


class Events:
    """Notifications that a page gets."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def next(self, method: str) -> dict[str, Any]:
        """Parameters of the next notification of a method; those before it are skipped."""
        while True:
            line = await asyncio.wait_for(self._reader.readline(), PATIENCE)
            assert line, "the server has ended the stream"
            if line.startswith(b"data: "):
                message = json.loads(line.removeprefix(b"data: "))
                if message["method"] == method:
                    params: dict[str, Any] = message["params"]
                    return params

    async def cursor(self) -> dict[str, int]:
        """Where the cursor is next."""
        position: dict[str, int] = (await self.next("jaxsight/cursor"))["position"]
        return position

    async def rest(self) -> bytes:
        """What is left to read, once the server ends the stream."""
        read = b""
        with suppress(ConnectionResetError):
            while data := await asyncio.wait_for(self._reader.read(2**20), PATIENCE):
                read += data
        return read
