"""Requests made of source text, for tests with the real tracer."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from jaxsight.wire.chunks import Chunk
from jaxsight.wire.messages.inputs import Argument, ArraySpec
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.messages.requests import NEW, Trace
from jaxsight.workers.results import Died, Outcome, Reason
from jaxsight.workers.supervisor import Tracers

SANE = """
import jax.numpy as jnp

def f(x):
    return jnp.sin(x) * 2
"""


def trace(tracers: Tracers, file: str, source: str) -> Trace:
    """A request that runs the whole source and traces its `f(x: f32[3])`."""
    chunks = []
    key = ""
    for statement in ast.parse(source).body:
        text = ast.unparse(statement)
        key = hashlib.sha256((key + text).encode()).hexdigest()[:16]
        binds = tuple(
            node.id
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            binds = (statement.name,)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            binds = tuple(a.asname or a.name.split(".")[0] for a in statement.names)
        chunks.append(Chunk(hashlib.sha256(text.encode()).hexdigest()[:16], key, text, binds))
    x = Argument("x", ArraySpec("float32", (3,)))
    path = Path("/project", file)
    return Trace(NEW, str(path), path.stem, "/project", tuple(chunks), function="f", arguments=(x,))


async def ask(tracers: Tracers, file: str, source: str) -> Outcome:
    return await tracers.ask(trace(tracers, file, source))


async def sane_works(tracers: Tracers) -> None:
    """An everyday request is answered; within a short limit a busy machine may need another try or
    two.
    """
    for _ in range(3):
        answer = await ask(tracers, "sane.py", SANE)
        if not (isinstance(answer, Died) and answer.death.reason is Reason.TIMEOUT):
            break
    assert isinstance(answer, Traced), answer
    assert "sin" in answer.jaxpr
