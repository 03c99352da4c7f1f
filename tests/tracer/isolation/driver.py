"""Drives a real tracer over its pipes, the way the server does, without the server's
supervision.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from jaxsight import tracer
from jaxsight.files.ownership import WRITABLE
from jaxsight.source.module import Module
from jaxsight.source.slicing.slices import slice_for
from jaxsight.wire import frames as wire
from jaxsight.wire.messages.inputs import Argument, ArraySpec
from jaxsight.wire.messages.replies import Cancelled, Failed, Hello, Listing, Spoiled, Stage, Traced
from jaxsight.wire.messages.requests import FakeDevice, Overlay, Trace

BOOT = Path(tracer.__file__).parents[1] / "boot.py"

Answer = Traced | Failed | Cancelled | Listing | Spoiled


def paths(answer: Answer) -> tuple[str, ...]:
    """The files that an answer was made of, without modules that would be found before its own."""
    assert isinstance(answer, Traced | Failed)
    return tuple(path for path, version in answer.files if version or not path.endswith(".py"))


class Driver:
    """One tracer process.

    `project` is its root and the folder of all files that tests name relatively.
    """

    def __init__(
        self, project: Path, *, python: Sequence[str] = (sys.executable,), **environ: str
    ) -> None:
        self.project = project
        self._own = tempfile.TemporaryDirectory()
        """What the tracer may write, as a guardian gives it."""
        self.process = subprocess.Popen(
            [*python, str(BOOT), "tracer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "TMPDIR": self._own.name, WRITABLE: self._own.name, **environ},
        )
        self.stages: list[Stage] = []
        self._frames = wire.FrameReader()
        self._arrived: list[wire.Message] = []
        self._output = bytearray()
        self._ids = 0
        self._drain = threading.Thread(target=self._read_output, daemon=True)
        self._drain.start()
        hello = self.receive()
        assert isinstance(hello, Hello)
        self.hello = hello

    @property
    def output(self) -> str:
        """What came on the output pipe so far."""
        return self._output.decode()

    def prints(self, words: str) -> bool:
        """Whether that comes on the output pipe, which may be later than the answer."""
        deadline = time.monotonic() + 120
        while words not in self.output and time.monotonic() < deadline:
            time.sleep(0.01)
        return words in self.output

    def close(self) -> int:
        """Close the pipes; the exit status of the tracer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(timeout=60)
        self._drain.join(timeout=60)
        self.process.stdout.close()
        self._own.cleanup()
        return status

    def send(self, message: wire.Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(wire.encode(message))
        self.process.stdin.flush()

    def receive(self) -> wire.Message:
        """The next message. `EOFError` when the tracer is gone."""
        assert self.process.stdout is not None
        while not self._arrived:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise EOFError("the tracer closed the pipe")
            self._arrived += self._frames.feed(data)
        return self._arrived.pop(0)

    def answer(self) -> Answer:
        """The next answer; stages on the way are kept in `stages`."""
        while True:
            match self.receive():
                case Stage() as stage:
                    self.stages.append(stage)
                case (Traced() | Failed() | Cancelled() | Listing() | Spoiled()) as answer:
                    return answer
                case other:
                    raise AssertionError(other)

    def request(
        self,
        text: str,
        function: str = "f",
        *,
        file: str = "main.py",
        module: str = "",
        whole: bool = False,
        devices: int = 0,
        device: FakeDevice | None = None,
        **shapes: tuple[int, ...],
    ) -> Trace:
        """A request to trace `function` of a file with this text; without shapes, `x` is
        `f32[4]`.
        """
        self._ids += 1
        parsed = Module.parse(textwrap.dedent(text))
        chunks = slice_for(parsed, [function.partition(".")[0]], keep_all=whole).chunks
        shapes = shapes or {"x": (4,)}
        return Trace(
            id=self._ids,
            file=str(self.project / file),
            module=module or f"__jaxsight__.{Path(file).stem}",
            root=str(self.project),
            chunks=chunks,
            function=function,
            arguments=tuple(
                Argument(name, ArraySpec("float32", shape)) for name, shape in shapes.items()
            ),
            future_flags=parsed.bindings.future_flags,
            whole=whole,
            devices=devices,
            device=device,
        )

    def ask(self, text: str, function: str = "f", **how: object) -> Answer:
        """The answer to `request(text, function, …)`, asked again with the whole module where the
        tracer wants that.
        """
        self.send(self.request(text, function, **how))  # type: ignore[arg-type]
        answer = self.answer()
        if isinstance(answer, Failed) and answer.failure.stage == "whole":
            self.send(self.request(text, function, whole=True, **how))  # type: ignore[arg-type]
            answer = self.answer()
        return answer

    def trace(self, text: str, function: str = "f", **how: object) -> Traced:
        """The answer, which must be a success."""
        answer = self.ask(text, function, **how)
        assert isinstance(answer, Traced), answer
        return answer

    def fail(self, text: str, function: str = "f", **how: object) -> Failed:
        """The answer, which must be a failure."""
        answer = self.ask(text, function, **how)
        assert isinstance(answer, Failed), answer
        return answer

    def write(self, file: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.project / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def edit(self, file: str, text: str | None) -> None:
        """Give the editor's text of a file of the project; `None` closes it."""
        text = None if text is None else textwrap.dedent(text)
        self.send(Overlay(str(self.project / file), text))

    def _read_output(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as pipe:
            while data := os.read(pipe.fileno(), 1 << 16):
                if len(self._output) < 1 << 20:
                    self._output += data
