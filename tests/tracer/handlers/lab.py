"""Traces sources as a world does, and renders what was observed so that a test reads like the
program.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
from dataclasses import dataclass, field
from typing import Any

from jaxsight.tracer.failures import UserError
from jaxsight.tracer.handlers.trace import Tracing
from jaxsight.tracer.observation.observer import NAME
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.messages import tracing as protocol
from jaxsight.wire.messages.tracing import Argument, ArraySpec, InputSpec, KeySpec, ValueSpec

PATH = "/project/file.py"

_DTYPES = {
    "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i32": "int32", "i64": "int64", "bool": "bool",
    "u8": "uint8", "c64": "complex64",
}  # fmt: skip


def spec(text: str) -> InputSpec:
    """`f32[3,4]`, `key<fry>[]`, `= expression`, else a literal."""
    if text.startswith("="):
        return ValueSpec(text[1:].strip(), literal=False)
    head, bracket, tail = text.partition("[")
    if bracket and head in _DTYPES:
        shape = tuple(int(size) for size in tail.rstrip("]").split(",") if size)
        return ArraySpec(_DTYPES[head], shape)
    if head.startswith("key<"):
        return KeySpec(head[4:-1], tuple(int(size) for size in tail.rstrip("]").split(",") if size))
    return ValueSpec(text, literal=True)


@dataclass
class Lab:
    """A file of one or several chunks, each executed once."""

    recorder: Recorder = field(default_factory=Recorder)
    tracing: Tracing = field(default_factory=Tracing)
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "file"})
    chunks: list[protocol.Chunk] = field(default_factory=list)
    requests: int = 0

    def run(self, source: str, key: str = "") -> protocol.Chunk:
        """Executes `source` as one chunk."""
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        chunk = protocol.Chunk(digest, key or digest, source)
        name = protocol.chunk_file(PATH, digest)
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        tree = self.recorder.instrument(ast.parse(source), chunk.id, chunk.key)
        self.namespace[NAME] = self.recorder.record
        with self.recorder.executing(chunk.id, chunk.key):
            exec(compile(tree, name, "exec", dont_inherit=True), self.namespace)
        self.chunks = [known for known in self.chunks if known.id != chunk.id] + [chunk]
        return chunk

    def request(
        self, function: str, sizes: dict[str, int], arguments: dict[str, str]
    ) -> protocol.Trace:
        self.requests += 1
        return protocol.Trace(
            self.requests,
            PATH,
            "file",
            "/project",
            tuple(self.chunks),
            function,
            tuple(Argument(name, spec(text)) for name, text in arguments.items()),
            sizes=tuple(sizes.items()),
        )

    def trace(
        self, function: str, /, sizes: dict[str, int] | None = None, **arguments: str
    ) -> protocol.Traced:
        return self.send(self.request(function, sizes or {}, arguments))

    def send(self, request: protocol.Trace) -> protocol.Traced:
        return self.tracing.trace(request, self.namespace, self.recorder, lambda *_: None)

    def fails(self, function: str, /, **arguments: str) -> UserError:
        """The error that tracing ends with."""
        try:
            traced = self.trace(function, **arguments)
        except UserError as error:
            return error
        raise AssertionError(f"traced: {traced.jaxpr}")

    def at(self, span: protocol.Span) -> str:
        """The text that a span covers."""
        text = next(chunk.text for chunk in self.chunks if chunk.id == span.chunk)
        lines = text.encode().split(b"\n")[span.line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return b" ".join(line.strip() for line in lines).decode()

    def seen(self, traced: Any) -> dict[str, str]:
        """What was seen, by text: expressions by theirs, parameters as `(x)`, targets as `x =`.

        Where the same text was seen as different things, these are separated by ` / `.
        """
        out: dict[str, str] = {}
        for observation in traced.observations:
            text = self.at(observation.span)
            name = {"parameter": f"({text})", "target": f"{text} ="}.get(observation.kind, text)
            shown = " | ".join(self.shown(traced.seen[index]) for index in observation.values)
            if observation.more:
                shown += f" | {observation.more} more"
            if out.setdefault(name, shown) != shown:
                out[name] += f" / {shown}"
        return out

    @staticmethod
    def shown(seen: protocol.Seen) -> str:
        weak = "~" if seen.weak else ""
        return weak + seen.text + "".join(f", {part}" for part in seen.inside)


def lab(*sources: str) -> Lab:
    made = Lab()
    for source in sources:
        made.run(source)
    return made
