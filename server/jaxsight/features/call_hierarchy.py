"""Which functions of a file call which, as seen in the current traces of its functions.

A function is listed if a trace ran its body. A call is listed if its value was observed and it
names such a function: `dense(x)`, `self.attend(x)`, `lax.scan(step, …)`.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Unasked
from jaxsight.source.module import Module, ModuleChunk, PlacedFunction
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Position, Range, SourceText

PATIENCE = 1.5
"""Seconds to wait for a trace, as a hover does; functions without a current one are left out."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call; `range` is where the caller names the callee."""

    caller: PlacedFunction
    callee: PlacedFunction
    range: Range


@dataclass(frozen=True, slots=True)
class TracedCalls:
    """The traced functions of a file, and the calls among them in text order."""

    functions: tuple[PlacedFunction, ...] = ()
    calls: tuple[FunctionCall, ...] = ()

    def at(self, position: Position) -> PlacedFunction | None:
        """Return the function whose name, in its definition or a call, is at a position."""
        for function in self.functions:
            if position in function.name_range:
                return function
        return next((call.callee for call in self.calls if position in call.range), None)


async def traced_calls(engine: Engine, path: str) -> TracedCalls:
    """Return the traced functions of a file and their calls."""
    if (document := await engine.documents.read(path)) is None:
        return TracedCalls()
    module = document.module
    views: list[View] = []
    for subject in engine.documents.subjects(document):
        view = await engine.traces.view(document, subject, PATIENCE)
        if not isinstance(view, Unasked) and not view.stale:
            views.append(await engine.traces.placed(view))
    if document.module is not module or not views:
        return TracedCalls()
    return await asyncio.to_thread(_traced_calls, module, views)


def _traced_calls(module: Module, views: list[View]) -> TracedCalls:
    observed = {place for view in views for place in view.observed}
    reached: dict[str, PlacedFunction] = {}
    for place in observed:
        if (owner := module.function_at(place.start)) is None:
            continue
        # What is evaluated when the function is called, not when it is defined.
        parameters = (owner.place(each.range).start for each in owner.function.parameters)
        if place.start in parameters or place.start >= owner.body.start:
            reached[owner.function.qualname] = owner
    calls: dict[Range, FunctionCall] = {}
    for chunk in {chunk.first_line: chunk for chunk, _ in reached.values()}.values():
        for mention, place in _mentions(chunk, observed):
            owner = module.function_at(place.start)
            caller = reached.get(owner.function.qualname) if owner is not None else None
            if caller is None:
                continue
            names = _meant(mention, caller.function.qualname)
            if (callee := next(filter(None, map(reached.get, names)), None)) is not None:
                calls[place] = FunctionCall(caller, callee, place)
    return TracedCalls(
        tuple(sorted(reached.values(), key=lambda function: function.range)),
        tuple(calls[place] for place in sorted(calls)),
    )


def _mentions(
    chunk: ModuleChunk, observed: set[Range]
) -> Iterator[tuple[ast.Name | ast.Attribute, Range]]:
    """Yield the names in observed calls, with their absolute ranges."""
    if chunk.broken is not None:
        return
    source = SourceText(chunk.text)
    for call in ast.walk(tree_of(chunk.text)):
        if not isinstance(call, ast.Call):
            continue
        if source.range(call).shifted(chunk.first_line) not in observed:
            continue
        for node in ast.walk(call):
            if isinstance(node, ast.Name | ast.Attribute):
                yield node, source.range(node).shifted(chunk.first_line)


def _meant(mention: ast.Name | ast.Attribute, caller: str) -> Iterator[str]:
    """Yield the qualified names that a name in a function may stand for, innermost first."""
    if isinstance(mention, ast.Attribute):
        if isinstance(mention.value, ast.Name):
            around = mention.value.id
            if around in ("self", "cls"):
                around = caller.partition(".<locals>")[0].rpartition(".")[0]
            yield f"{around}.{mention.attr}"
        return
    while caller:
        yield f"{caller}.<locals>.{mention.id}"
        caller = caller.rpartition(".<locals>.")[0]
    yield mention.id
