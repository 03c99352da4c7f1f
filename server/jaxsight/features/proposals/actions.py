"""The code actions *Add example inputs*: proposals that were traced, or the best guess."""

from __future__ import annotations

import asyncio
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from jaxsight.features.example_section import section_edit
from jaxsight.features.model import Action
from jaxsight.files import reading
from jaxsight.projects.projects import SETTINGS_FILE
from jaxsight.queries.documents import Document, Subject, module_name
from jaxsight.queries.engine import Engine
from jaxsight.queries.proposals.proposals import show
from jaxsight.queries.traces.traces import named
from jaxsight.settings.example_entries import with_entries
from jaxsight.settings.example_settings import LIBRARIES
from jaxsight.source.functions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.text import Edit, Position, Range
from jaxsight.text.inert import clause

if TYPE_CHECKING:
    from jaxsight.examples.proposals.inference import Inferred
    from jaxsight.examples.proposals.proposal import Proposal
    from jaxsight.queries.proposals.trying import Tried

ADD_EXAMPLES = "refactor.rewrite.jaxsight.addExamples"
PENDING = "examples of "
"""How the pending edits of an action begin that tries proposals first."""

PATIENCE = 1.0
"""Seconds that code actions wait for proposals that are being tried."""
_LONG_PATIENCE = 60.0
"""Seconds that an action waits for them after it was selected."""
_TITLE = "Add example inputs"
_LONGEST = 110


async def add_examples(
    engine: Engine, document: Document, subjects: tuple[Subject, ...], range: Range
) -> list[Action]:
    """Return *Add example inputs* for the function at the range, unless it has a section.

    There is an action for each of the best proposals that could be traced, or for the best guess.
    """
    innermost = document.module.function_at(range.start)
    if innermost is None:
        return []
    chunk, function = innermost
    has_section = any(
        s.chunk is chunk and s.name == function.qualname and s.examples.source == "docstring"
        for s in subjects
    )
    if function.refused or has_section:
        return []
    head = Range(function.range.start, function.body_start).shifted(chunk.first_line)
    if not range.touches(head):  # nothing is tried inside of a function's body
        known = await engine.proposals.known(document, chunk, function)
        if known is not None:
            return await _of_outcome(engine, document, chunk, function, known)
        return await _pending(engine, document, chunk, function)
    trying = asyncio.ensure_future(engine.proposals.outcome(document, chunk, function))
    engine.waiting.hold(trying)
    await asyncio.wait([trying], timeout=PATIENCE)
    if trying.done():
        return await _of_outcome(engine, document, chunk, function, trying.result())
    return await _pending(engine, document, chunk, function)


async def _pending(
    engine: Engine, document: Document, chunk: ModuleChunk, function: Function
) -> list[Action]:
    """Return an action that tries proposals when it is selected.

    Its edits are those of the best guess, for editors that need them at once.
    """
    inferred = await asyncio.to_thread(_inferred, document.module, chunk, function)
    if inferred is None:
        return []
    if _is_installed(document):
        return _actions(engine, document, chunk, function, inferred.proposal, "not tried yet")
    edit = section_edit(function, inferred.proposal.lines).shifted(chunk.first_line)
    title = f"{_TITLE} to {function.qualname}"
    pending = f"{PENDING}{function.qualname}"
    return [Action(title, ADD_EXAMPLES, (edit,), pending=pending)]


def _inferred(module: Module, chunk: ModuleChunk, function: Function) -> Inferred | None:
    """Return what a function's text says about its inputs; the first call imports what reads it."""
    from jaxsight.examples.proposals.inference import infer

    return infer(module, chunk, function)


def _is_installed(document: Document) -> bool:
    return not LIBRARIES.isdisjoint(PurePath(document.path).parts)


async def _of_outcome(
    engine: Engine,
    document: Document,
    chunk: ModuleChunk,
    function: Function,
    outcome: Tried | None,
) -> list[Action]:
    reason = ""
    if outcome is None:
        inferred = await asyncio.to_thread(_inferred, document.module, chunk, function)
        if inferred is None:
            return []
        proposals: tuple[Proposal, ...] = (inferred.proposal,)
        held_back = engine.projects.of(document.path).held_back
        reason = held_back or "no tracer"
    elif outcome.traced:
        proposals = outcome.traced
    else:
        proposals, reason = (outcome.guess,), outcome.reason or "no tracer"
    return [
        action
        for proposal in proposals
        for action in _actions(engine, document, chunk, function, proposal, reason)
    ]


def _actions(
    engine: Engine,
    document: Document,
    chunk: ModuleChunk,
    function: Function,
    proposal: Proposal,
    reason: str,
) -> list[Action]:
    why = f" (not traced: {clause(reason, 50)})" if reason else ""
    inputs = proposal.title or f"{function.qualname} takes none"
    title = clause(f"{_TITLE}{why}: {inputs}", _LONGEST)
    if not _is_installed(document):
        edit = section_edit(function, proposal.lines).shifted(chunk.first_line)
        return [Action(title, ADD_EXAMPLES, (edit,))]
    file = str(Path(engine.projects.of(document.path).root, SETTINGS_FILE))
    edits = settings_edits(file, f"{module_name(document.path)}:{function.qualname}", proposal)
    if edits is None:
        return []
    return [Action(f"{title} (in {SETTINGS_FILE})", ADD_EXAMPLES, edits, file=file)]


def settings_edits(file: str, key: str, proposal: Proposal) -> tuple[Edit, ...] | None:
    """Return the edits that add a proposal to a settings file; `None` if that is not possible."""
    try:
        text = reading.source(file) if reading.exists(file) else ""
    except reading.UnreadableError:
        return None
    changed = with_entries(text, {key: proposal.text})
    if changed is None:
        return None
    before, after = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    first = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before)
    )
    kept = 0
    while kept < len(before) - first and before[-1 - kept] == after[-1 - kept]:
        kept += 1
    new = "".join(after[first : len(after) - kept])
    end = Position(len(before) - kept, 0)
    if before and not before[-1].endswith("\n") and not kept:
        end = Position(len(before) - 1, len(before[-1]))
    return (Edit(Range(min(Position(first, 0), end), end), new),)


async def _find(engine: Engine, path: str, name: str) -> tuple[Document, ModuleChunk, Function]:
    document = await engine.documents.read(path)
    functions = document.module.functions if document is not None else ()
    named = next((pair for pair in functions if pair[1].qualname == name), None)
    if document is None or named is None:
        raise LookupError(f"there is no function {name} in {path}")
    return document, *named


async def resolve(engine: Engine, path: str, pending: str) -> tuple[Edit, ...]:
    """Return the edits of an action that tries proposals after it was selected.

    Raises:
        LookupError: there is no such function, or its text cannot be read.
    """
    name = pending.removeprefix(PENDING)
    document, chunk, function = await _find(engine, path, name)
    trying = asyncio.ensure_future(engine.proposals.outcome(document, chunk, function))
    engine.waiting.hold(trying)
    await asyncio.wait([trying], timeout=_LONG_PATIENCE)
    outcome = trying.result() if trying.done() else None
    actions = await _of_outcome(engine, document, chunk, function, outcome)
    if not actions:
        raise LookupError(f"nothing can be proposed for {name}")
    return actions[0].edits


async def show_proposed(engine: Engine, path: str, name: str, *, hide: bool = False) -> None:
    """Trace a function with its best proposal for the rest of the session, or no longer.

    Raises:
        LookupError: no proposal could be traced; the message says why.
    """
    document, chunk, function = await _find(engine, path, name)
    if hide:
        document.hidden.add(name)
        show(document, name, None)
        return
    outcome = await engine.proposals.outcome(document, chunk, function)
    if outcome is None or not outcome.traced:
        reason = outcome.reason if outcome is not None else engine.projects.of(path).held_back
        raise LookupError(f"no proposed inputs of {name} can be traced: {reason}")
    document.hidden.discard(name)
    show(document, name, outcome)


async def keep_proposed(engine: Engine, path: str, name: str) -> Action:
    """Return the action that writes the proposal which a function is traced with.

    Raises:
        LookupError: there is none.
    """
    document, chunk, function = await _find(engine, path, name)
    outcome = await engine.proposals.outcome(document, chunk, function)
    actions = await _of_outcome(engine, document, chunk, function, outcome)
    if not actions:
        raise LookupError(f"no proposed inputs of {name} can be written")
    subject = named(engine.documents.subjects(document), name)
    chosen = engine.choices.set_of(document, subject) if subject is not None else None
    if subject is None or chosen is None or not subject.is_proposed:
        return actions[0]
    return actions[min(subject.examples.sets.index(chosen), len(actions) - 1)]
