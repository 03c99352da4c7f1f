"""A browser as the panel's page is one, and as other pages are: requests as bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.parser import BytesParser
from typing import Any
from urllib.parse import urlsplit

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

    @classmethod
    async def opening(cls, link: str) -> Browser:
        """The page that a link of the server's leads to."""
        parts = urlsplit(link)
        assert (parts.scheme, parts.hostname, parts.port is not None) == ("http", "127.0.0.1", True)
        there = cls(parts.port or 0, parts.path)
        found = await there.get(parts.path)
        assert found.status == 303, found
        return cls(there.port, found.headers["Location"])

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
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        headers = BytesParser().parsebytes(fields, headersonly=True)
        return Response(int(line.split()[1]), dict(headers.items()), body)

    async def get(self, path: str = "", **headers: str) -> Response:
        return await self.ask("GET", path or self.path, **headers)

    async def say(self, **message: Any) -> int:
        """Post a message of the page, and return the status."""
        body = json.dumps(message).encode()
        return (await self.ask("POST", f"{self.path}messages", body)).status

    @asynccontextmanager
    async def events(self) -> AsyncIterator[Events]:
        """The messages to the page, which is ready."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
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
    """Messages that a page gets."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.read: list[dict[str, Any]] = []

    async def next(self, kind: str) -> dict[str, Any]:
        """The next message of a kind; those before it are skipped."""
        while True:
            line = await asyncio.wait_for(self._reader.readline(), PATIENCE)
            assert line, "the server has ended the stream"
            if line.startswith(b"data: "):
                message: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                self.read.append(message)
                if message["type"] == kind:
                    return message

    async def shown(self, function: str) -> dict[str, Any]:
        """What is shown of a function, once it is."""
        while True:
            shown: dict[str, Any] | None = (await self.next("show"))["shown"]
            if shown is not None and shown["function"] == function:
                return shown

    async def ended(self) -> bool:
        """Whether the server ends the stream."""
        return (await asyncio.wait_for(self._reader.read(), PATIENCE)).count(b"data: ") == 0
