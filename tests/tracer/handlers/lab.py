"""Traces sources as a tracer does, and renders what was observed so that a test reads like the
program.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from jaxsight.rewriting.rewriter import CALLED, SEEN
from jaxsight.tracer.calls.inputs import Evaluator
from jaxsight.tracer.failures import UserError
from jaxsight.tracer.handlers.table import HANDLERS
from jaxsight.tracer.job import ExecutedModule, Job, Traces
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.chunks import Chunk, Span, chunk_file
from jaxsight.wire.messages.inputs import Argument, ArraySpec, InputSpec, KeySpec, ValueSpec
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.messages.requests import Request, Trace
from jaxsight.wire.observations import ExprValue

PATH = "/project/file.py"

R = TypeVar("R")

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
    traces: Traces = field(default_factory=Traces)
    evaluator: Evaluator = field(default_factory=Evaluator)
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "file"})
    chunks: list[Chunk] = field(default_factory=list)
    requests: int = 0

    def run(self, source: str, key: str = "") -> Chunk:
        """Executes `source` as one chunk."""
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        chunk = Chunk(digest, key or digest, source)
        name = chunk_file(PATH, digest)
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        tree = self.recorder.instrument(ast.parse(source), chunk.id, chunk.key)
        self.namespace[SEEN] = self.recorder.record
        self.namespace[CALLED] = self.recorder.call
        with self.recorder.executing(chunk.id, chunk.key):
            exec(compile(tree, name, "exec", dont_inherit=True), self.namespace)
        self.chunks = [known for known in self.chunks if known.id != chunk.id] + [chunk]
        return chunk

    def request(self, function: str, sizes: dict[str, int], arguments: dict[str, str]) -> Trace:
        self.requests += 1
        return Trace(
            self.requests,
            PATH,
            "file",
            "/project",
            tuple(self.chunks),
            function=function,
            arguments=tuple(Argument(name, spec(text)) for name, text in arguments.items()),
            sizes=tuple(sizes.items()),
        )

    def trace(
        self, function: str, /, sizes: dict[str, int] | None = None, **arguments: str
    ) -> Traced:
        return self.ask(self.request(function, sizes or {}, arguments))

    def ask(self, request: Request[R]) -> R:
        """The reply of the handler."""
        slice = request.executes
        module = slice and ExecutedModule(slice, self.namespace, self.recorder, self.evaluator)
        reply = HANDLERS[type(request)].answer(Job(request, self.traces, executed=module))
        assert isinstance(reply, request.reply)
        return cast("R", reply)

    def stored(self, trace: int) -> Any:
        """An earlier trace, as JAX's stage."""
        return self.traces.of(trace).shown

    def fails(self, function: str, /, **arguments: str) -> UserError:
        """The error that tracing ends with."""
        try:
            traced = self.trace(function, **arguments)
        except UserError as error:
            return error
        raise AssertionError(f"traced: {traced.jaxpr}")

    def at(self, span: Span) -> str:
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
    def shown(seen: ExprValue) -> str:
        weak = "~" if seen.weak else ""
        return weak + seen.text + "".join(f", {part}" for part in seen.inside)


def lab(*sources: str) -> Lab:
    made = Lab()
    for source in sources:
        made.run(source)
    return made
