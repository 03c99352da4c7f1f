"""A real server and what is said to it: whatever was said, it lives, answers each request, logs no
traceback, and is right about sane files."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.lsp.client import recorded
from tests.quiet import QUIET
from tools.fuzz.pieces import odd_value
from tools.fuzz.report import Failure, Report, chance, smaller

log = logging.getLogger(__name__)

PATIENCE = 120.0
"""Seconds until an answer counts as one that never comes: the machine may be busy."""

TOP = Path(__file__).parents[2]

SANE = "sane.py"
_SANE_TEXT = '''\
import jax.numpy as jnp


def sane(x):
    """
    Example inputs:
        x: f32[{size}]
    """
    return jnp.sin(x)
'''
MODEL = "model.py"
MODEL_TEXT = '''\
import jax
import jax.numpy as jnp

SCALE = 2.0; emoji = "😋𝒳é"


def attention(q, k, v):
    """Attend.

    Example inputs:
        q, k, v: f32[2, 8, 2, 4]

    Example inputs (decode):
        q: f32[2, 1, 2, 4]
    """
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * SCALE; "😋"; weights = jax.nn.softmax(scores)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)
'''

_EXPECTED = re.compile(
    r"^(pygls\.exceptions\.JsonRpc(?!InternalError)\w+|asyncio\.exceptions\.CancelledError)"
)
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n((?:  .*\n|\n)+)(\S.*)$", re.MULTILINE
)
_CAUSE = "\n\nThe above exception was the direct cause of"
_CODES = frozenset((-32700, -32600, -32601, -32602, -32800, -32801, -32803))


class Broken(Exception):
    """What must hold does not."""


class Talk:
    """A server's process, its client, and what was said."""

    def __init__(
        self,
        encoding: str = "utf-16",
        environment: dict[str, str] | None = None,
        odd: Random | None = None,
    ) -> None:
        """Args: `odd`: draw half of the answers to the server's requests from this."""
        self._odd = odd
        self._folder = tempfile.TemporaryDirectory(prefix="jaxsight-fuzz-")
        self.root = Path(self._folder.name).resolve()
        (self.root / "pyproject.toml").touch()
        (self.root / MODEL).write_text(MODEL_TEXT)
        self._log = (self.root / "server.log").open("w+b")
        self._seen = 0
        self._buffer = b""
        self._number = 0
        self.size = 3
        self._answers: dict[object, dict[str, Any]] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jaxsight", "server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
            cwd=TOP,
            env={**os.environ, **(environment or {})},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in = self.process.stdin.fileno()
        self._out = self.process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._introduce(encoding)

    def _introduce(self, encoding: str) -> None:
        uri = self.root.as_uri()
        params = {
            **recorded("vscode_139")["initialize"],
            "processId": os.getpid(),
            "rootUri": uri,
            "rootPath": str(self.root),
            "workspaceFolders": [{"uri": uri, "name": "fuzz"}],
            "initializationOptions": {**QUIET, "python": sys.executable},
        }
        capabilities = json.loads(json.dumps(params["capabilities"]))
        capabilities["general"]["positionEncodings"] = [encoding]
        result = self.request("initialize", {**params, "capabilities": capabilities})
        if result["capabilities"]["positionEncoding"] != encoding:
            raise Broken(f"the server speaks {result['capabilities']['positionEncoding']}")
        self.post({"method": "initialized", "params": {}})
        self.open(self.uri(SANE), _SANE_TEXT.format(size=self.size))
        self.sane()

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def open(self, uri: str, text: str) -> None:
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.post({"method": "textDocument/didOpen", "params": {"textDocument": item}})

    def post(self, message: dict[str, Any]) -> None:
        self.write(framed({"jsonrpc": "2.0", **message}))

    def write(self, data: bytes) -> None:
        """Write, and read meanwhile, as clients do."""
        rest = memoryview(data)
        end = time.monotonic() + PATIENCE
        while rest:
            readable, writable, _ = select.select([self._out], [self._in], [], 1.0)
            try:
                if writable:
                    rest = rest[os.write(self._in, rest) :]
            except OSError as error:
                raise Broken(f"the server does not read: {self._ending()}") from error
            if readable:
                self._take()
            if time.monotonic() > end:
                raise Broken("the server does not read on")

    def request(self, method: str, params: Any) -> Any:
        self._number += 1
        number = f"own-{self._number}"
        self.post({"id": number, "method": method, "params": params})
        message = self.answer(number)
        if "error" in message:
            raise Broken(f"{method} is answered by {message['error']}")
        return message["result"]

    def answer(self, number: object, patience: float = PATIENCE) -> dict[str, Any]:
        """The answer to a request that was posted."""
        end = time.monotonic() + patience
        while number not in self._answers:
            if not select.select([self._out], [], [], max(end - time.monotonic(), 0))[0]:
                raise Broken(f"no answer to {number!r} in {patience:g} s")
            self._take()
        return self._answers.pop(number)

    def sane(self, patience: float = PATIENCE) -> float:
        """Edit the sane file and hover over it: seconds until the answer is the right one. Those
        that are none yet are asked again."""
        begin = time.monotonic()
        self.size = self.size % 4000 + 1
        uri = self.uri(SANE)
        text = _SANE_TEXT.format(size=self.size)
        change = {
            "textDocument": {"uri": uri, "version": self.size},
            "contentChanges": [{"text": text}],
        }
        self.post({"method": "textDocument/didChange", "params": change})
        where = {"line": 8, "character": 19}
        asked = {"textDocument": {"uri": uri}, "position": where}
        while True:
            self._number += 1
            self.post(
                {"id": f"own-{self._number}", "method": "textDocument/hover", "params": asked}
            )
            left = patience - (time.monotonic() - begin)
            shown = json.dumps(self.answer(f"own-{self._number}", max(left, 1)).get("result"))
            if f"f32[{self.size}]" in shown and "stale" not in shown:
                return time.monotonic() - begin
            if left < 0:
                raise Broken(f"a sane hover shows {shown}, not f32[{self.size}]")
            time.sleep(0.02)

    def heal(self) -> None:
        """Say again what a client says at the start, whatever was said since."""
        uri = self.root.as_uri()
        settings = {**QUIET, "python": sys.executable}
        folder = {"event": {"added": [{"uri": uri, "name": "fuzz"}], "removed": []}}
        for method, params in (
            ("jaxsight/trust", {"trusted": True}),
            ("jaxsight/interpreters", {"interpreters": {}}),
            ("workspace/didChangeWorkspaceFolders", folder),
            ("workspace/didChangeConfiguration", {"settings": {"jaxsight": settings}}),
        ):
            self.post({"method": method, "params": params})
        self.open(self.uri(SANE), _SANE_TEXT.format(size=self.size))

    def tracebacks(self) -> list[str]:
        """The unexpected ones that were logged since the last look."""
        self._log.seek(self._seen)
        data = self._log.read()
        self._seen += len(data)
        text = data.decode(errors="replace")
        found = [
            f"{m[2]}\n{m[1]}"
            for m in _TRACEBACK.finditer(text)
            # That of a cause belongs to the one that it brought about.
            if not (_EXPECTED.match(m[2]) or text.startswith(_CAUSE, m.end()))
        ]
        return [_with_place(each) for each in found]

    def close(self) -> int:
        """Say good-bye; the exit status."""
        try:
            self.request("shutdown", None)
            self.post({"method": "exit", "params": None})
            return self.process.wait(PATIENCE)
        finally:
            self.end()

    def drop(self) -> None:
        """Close the connection without a word."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def end(self) -> None:
        """Be done with it at once."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._log.close()
        self._folder.cleanup()

    def _take(self) -> None:
        data = os.read(self._out, 1 << 16)
        if not data:
            raise Broken(f"the server ended: {self._ending()}")
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, rest = self._buffer.partition(b"\r\n\r\n")
            length = int(
                dict(line.split(b": ", 1) for line in head.split(b"\r\n"))[b"Content-Length"]
            )
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            self._receive(json.loads(rest[:length]))

    def _receive(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._answers[message["id"]] = message
        elif "id" in message:
            body = framed({"jsonrpc": "2.0", "id": message["id"], **self._reply(message)})
            with contextlib.suppress(OSError):
                os.write(self._in, body)

    def _reply(self, message: dict[str, Any]) -> dict[str, Any]:
        """What the client says to a request of the server's."""
        if self._odd is not None and self._odd.random() < 0.5:
            return {self._odd.choice(("result", "error")): odd_value(self._odd)}
        match message["method"]:
            case "workspace/configuration":
                return {"result": [None] * len(message["params"]["items"])}
            case "window/showDocument":
                return {"result": {"success": True}}
            case _:
                return {"result": None}

    def _ending(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self._log.seek(0)
        return (
            f"status {self.process.returncode}, {self._log.read()[-3000:].decode(errors='replace')}"
        )


def framed(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _with_place(traceback: str) -> str:
    """A traceback's last line, then its last places, which are what tells two apart."""
    lines = traceback.splitlines()
    return "\n".join([lines[0][:300], *lines[-6:]])


Message = dict[str, Any]


def converse(
    draw: Callable[[Random, Talk], list[Message]],
    count: int,
    seed: int,
    encodings: Sequence[str] = ("utf-16",),
    odd_answers: bool = False,
) -> Report:
    """Draw batches of messages, `count` in all, and say them to servers, one for each encoding;
    check after each batch."""
    report = Report()
    batches = max(count // 10, 1)
    shown: set[str] = set()
    for number, encoding in enumerate(encodings):
        odd = chance(f"{seed} answers") if odd_answers else None
        talk = Talk(encoding, odd=odd)
        try:
            for batch in range(number, batches, len(encodings)):
                name = f"{seed}:{batch}"
                messages = draw(chance(name), talk)
                report.cases += len(messages)
                problem = _said(talk, messages, report)
                if problem is None:
                    continue
                kind = _kind(problem)
                log.warning("seed %s: %s", name, problem)
                if kind not in shown:
                    shown.add(kind)
                    found = _smallest(messages, encoding, kind, talk.root)
                    lines = "\n".join(json.dumps(message)[:2000] for message in found)
                    report.failures.append(Failure(f"{name} ({encoding})", problem, lines))
                talk.end()
                talk = Talk(encoding, odd=odd)
            status = talk.close()
            if status != 0:
                report.failures.append(Failure(str(seed), f"the server ended by {status}", ""))
        finally:
            talk.end()
    return report


def _kind(problem: str) -> str:
    """What two failures of one cause have in common."""
    lines = problem.split("\n")
    return re.sub(r"-?\d+", "N", lines[0][:60] + lines[-1])


def _smallest(messages: list[Message], encoding: str, kind: str, root: Path) -> list[Message]:
    """The fewest that bring the same about in a server of their own."""
    text = json.dumps(messages)

    def fails(fewer: Sequence[int]) -> bool:
        talk = Talk(encoding)
        try:
            here = text.replace(str(root), str(talk.root))
            problem = _said(talk, [json.loads(here)[at] for at in fewer], Report())
            return problem is not None and _kind(problem) == kind
        finally:
            talk.end()

    everything = range(len(messages))
    if not fails(everything):
        return messages  # what was said before has a part in it
    return [messages[at] for at in smaller(everything, fails, tries=12)]


def _said(talk: Talk, messages: Sequence[Message], report: Report) -> str | None:
    """Say them; what is wrong then."""
    try:
        asked = []
        for message in messages:
            if "method" in message and "id" in message:
                asked.append(message)
            talk.post(message)
        for message in asked:
            answer = talk.answer(message["id"])
            code = answer.get("error", {}).get("code")
            report.count("answered" if code is None else f"error {code}")
            if code is not None and code not in _CODES:
                return f"{message['method']} is answered by {answer['error']}"
        talk.heal()
        talk.sane()
    except Broken as error:
        return str(error)
    found = talk.tracebacks()
    return found[0] if found else None


def numbers() -> Iterator[int]:
    """Ids of requests: no two of one process are the same."""
    number = 0
    while True:
        number += 1
        yield number
