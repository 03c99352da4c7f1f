"""An editor as the server sees one: it starts the process, writes messages, and waits for answers
in the measuring thread itself.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.quiet import QUIET

PATIENCE = 120.0
"""Seconds after which a benchmark gives up."""

_ASK_AGAIN = 0.02
"""Seconds until a hover that was stale is asked for again."""

ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT |= {"JAXSIGHT_TRUST": "always", "JAXSIGHT_SERVER": "no"}
"""For every process that is measured: modules have bytecode, as they have wherever they are
installed; nobody is asked, and commands run in processes of their own.
"""

SERVER = [sys.executable, "-m", "jaxsight", "server"]

CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-8"]},
    "textDocument": {
        "hover": {"contentFormat": ["markdown"]},
        "inlayHint": {},
        "diagnostic": {},
    },
    "workspace": {"inlayHint": {"refreshSupport": True}},
}


class BenchError(Exception):
    """What was to be measured did not happen."""


class Editor:
    """One client with its server, to be used in a `with` block."""

    def __init__(
        self,
        root: Path,
        command: list[str] = SERVER,
        *,
        patience: float = PATIENCE,
        environment: Mapping[str, str] = ENVIRONMENT,
    ) -> None:
        self._root = root
        self._patience = patience
        self._buffer = b""
        self._number = 0
        self._versions: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._asked: Counter[str] = Counter()
        self.told: dict[str, Any] = {}
        """The parameters of the last notification of each kind."""
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.request("shutdown", None)
            self.notify("exit", None)
        else:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def initialize(
        self, python: str = sys.executable, settings: Mapping[str, object] = QUIET
    ) -> None:
        """Introduce the client, with the Python that traces; returns when the server has
        answered.
        """
        uri = self._root.as_uri()
        self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": "bench"}],
                "capabilities": CAPABILITIES,
                "initializationOptions": {**settings, "python": python},
            },
        )
        self.notify("initialized", {})

    def open(self, name: str, text: str) -> None:
        """Open a document of the workspace."""
        self._texts[name], self._versions[name] = text, 1
        item = {"uri": self.uri(name), "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def replace(self, name: str, old: str, new: str) -> None:
        """Edit the one place where `old` stands."""
        text = self._texts[name]
        at = text.index(old)
        self._texts[name] = text[:at] + new + text[at + len(old) :]
        self._versions[name] += 1
        where = {"start": _position(text, at), "end": _position(text, at + len(old))}
        document = {"uri": self.uri(name), "version": self._versions[name]}
        change = {"range": where, "text": new}
        self.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [change]}
        )

    def insert(self, name: str, at: int, typed: str) -> None:
        """Type at an offset."""
        text = self._texts[name]
        self._texts[name] = text[:at] + typed + text[at:]
        self._versions[name] += 1
        where = _position(text, at)
        document = {"uri": self.uri(name), "version": self._versions[name]}
        change = {"range": {"start": where, "end": where}, "text": typed}
        self.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [change]}
        )

    def begin_hover(self, name: str, word: str) -> int:
        """Ask about the first place of `word`; the number is for `answer`."""
        where = _position(self._texts[name], self._texts[name].index(word))
        document = {"uri": self.uri(name)}
        return self.send("textDocument/hover", {"textDocument": document, "position": where})

    def hover(self, name: str, word: str) -> str:
        """The text of a hover that tells of the document as it stands now.

        A server that is slow answers with a stale one, and is asked again.
        """
        end = time.monotonic() + self._patience
        while True:
            result = self.answer(self.begin_hover(name, word))
            if is_fresh(result) or time.monotonic() > end:
                return checked(result)
            time.sleep(_ASK_AGAIN)

    def request(self, method: str, params: Any) -> Any:
        """A request's result."""
        return self.answer(self.send(method, params))

    def send(self, method: str, params: Any) -> int:
        """Send a request, without waiting."""
        self._number += 1
        self._post({"id": self._number, "method": method, "params": params})
        return self._number

    def notify(self, method: str, params: Any) -> None:
        self._post({"method": method, "params": params})

    def answer(self, number: int) -> Any:
        """The result of a request that was sent.

        What the server asks in the meantime is answered with `null`.
        """
        while number not in self._answers:
            self._take()
        message = self._answers.pop(number)
        if "error" in message:
            raise BenchError(f"the server answered {message['error']}")
        return message["result"]

    def wait(self, numbers: list[int], seconds: float) -> None:
        """Wait for the answers to some requests, but not longer; nobody looks at what they are."""
        end = time.monotonic() + seconds
        assert self.process.stdout is not None
        while not all(number in self._answers for number in numbers):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return
            self._take()

    def answered(self, number: int) -> bool:
        """Whether the answer has come, among what has been read so far."""
        return number in self._answers

    def hints_with(self, name: str, label: str) -> None:
        """Ask for the hints of a document until one of them has `label`."""
        self.hints_until(name, lambda line, shown: label in shown)

    def hints_until(self, name: str, wanted: Callable[[int, str], bool]) -> None:
        """Ask for the hints of a document until one is `wanted`, by its line and label.

        They are asked for again whenever the server says that there are new ones.
        """
        refresh = "workspace/inlayHint/refresh"
        lines = self._texts[name].count("\n")
        everywhere = {"start": _position("", 0), "end": {"line": lines, "character": 0}}
        params = {"textDocument": {"uri": self.uri(name)}, "range": everywhere}
        while True:
            known = self._asked[refresh]
            hints = self.request("textDocument/inlayHint", params)
            if any(wanted(hint["position"]["line"], str(hint["label"])) for hint in hints):
                return
            while self._asked[refresh] == known:
                self._take()

    def _take(self) -> None:
        """Read one message."""
        message = self._receive()
        if "method" not in message:
            self._answers[message["id"]] = message
        elif "id" in message:
            asked = message.get("params")
            nothing = [None] * len(asked["items"]) if "items" in (asked or {}) else None
            self._asked[message["method"]] += 1
            self._post({"id": message["id"], "result": nothing})
        else:
            self.told[message["method"]] = message.get("params")

    def uri(self, name: str) -> str:
        """Of a document of the workspace."""
        return (self._root / name).as_uri()

    def _post(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def _receive(self) -> dict[str, Any]:
        while b"\r\n\r\n" not in self._buffer:
            self._read()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
        length = int(fields[b"Content-Length"])
        while len(self._buffer) < length:
            self._read()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        message: dict[str, Any] = json.loads(body)
        return message

    def _read(self) -> None:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        ready, _, _ = select.select([descriptor], [], [], self._patience)
        data = os.read(descriptor, 65536) if ready else b""
        if not data:
            raise BenchError("the server does not answer")
        self._buffer += data


def is_fresh(result: Any) -> bool:
    """Whether a hover shows a trace of the text as it stands."""
    text: str = result["contents"]["value"] if result is not None else ""
    return "stale" not in text and "lambda" in text


def checked(result: Any) -> str:
    """A hover's text, which must be fresh."""
    text: str = result["contents"]["value"] if result is not None else "no hover"
    if not is_fresh(result):
        raise BenchError(f"no fresh jaxpr in the hover:\n{text}")
    return text


def _position(text: str, at: int) -> dict[str, int]:
    line = text.count("\n", 0, at)
    return {"line": line, "character": at - (text.rfind("\n", 0, at) + 1)}


def milliseconds(begin: float) -> float:
    """Since `begin`, a reading of `time.perf_counter`."""
    return (time.perf_counter() - begin) * 1000
