"""A file's own program as a subject, so that its top-level statements show what they compute.

So is each program in it that XLA gets without that one function is all of it: an eager `scan`, or
`jit` of a lambda.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jaxsight.examples.jax_use import JaxUse
from jaxsight.examples.programs.entries import entries_in
from jaxsight.examples.sets import Examples, ExampleSet
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.dry_runs.labels import run_label
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.text import Position, Range
from jaxsight.wire.messages.inputs import PROGRAM, RUN, DryCall, EntryPoint
from jaxsight.wire.messages.replies import CallSeen, DryCalls

_NOWHERE = Range(Position(0, 0), Position(0, 0))


def acts(module: Module) -> bool:
    """Return whether a module's statements do something with JAX."""
    return JaxUse.of(module).uses is not None and entries_in(module.text).acts


def program_of(
    document: Document, ran: Mapping[tuple[EntryPoint, ...], DryCalls | None]
) -> Subject | None:
    """Return the program that begins at the top level of a document, if it is among those that ran.

    It has no name and no place, and its inputs are a run of it.
    """
    entries = (entry for batch, reply in ran.items() if reply is not None for entry in batch)
    own = (entry for entry in entries if entry.is_own(document.path))
    entry, chunks = next(own, None), document.module.chunks
    if entry is None or not chunks:
        return None
    return _subject(document, chunks[0], "", DryCall(entry, RUN), _NOWHERE)


def parts_of(
    document: Document, then: Module, calls: Iterable[tuple[CallSeen, DryCall]]
) -> Iterator[Subject]:
    """Yield the programs that XLA gets from a document's own program, at the calls that start them.

    Args:
        document: the document.
        then: its text when it was run.
        calls: what was called then.
    """
    now = {chunk.id: chunk for chunk in document.module.chunks}
    for number, (call, dry_call) in enumerate(calls):
        if not call.function.startswith(PROGRAM) or not dry_call.entry.is_own(document.path):
            continue
        line, chunk = call.line - 1, now.get(call.chunk)
        if not call.chunk:
            before = then.chunk_at(Position(line, 0))
            chunk = now.get(before.id) if before is not None else None
            line -= before.first_line if before is not None else 0
        if call.file == document.path and chunk is not None:
            place = Range(Position(line, 0), Position(line, 0))
            yield _subject(document, chunk, call.function, dry_call, place, f"{number}")


def _subject(
    document: Document, chunk: ModuleChunk, name: str, call: DryCall, place: Range, number: str = ""
) -> Subject:
    run = ExampleSet(
        name=run_label(document, call.entry),
        arguments=(),
        sizes=(),
        expects=(),
        line=place.start.line,
        may_fail=True,
        dry_call=call,
    )
    function = Function(name, "function", place, place, place.start, ())
    return Subject(chunk, function, Examples((run,), (), "program"), f"{name}{number}")
