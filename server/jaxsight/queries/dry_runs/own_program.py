"""A file's own program as a subject, so that its top-level statements show what they compute.

So is each program in it that XLA gets without that one function is all of it: an eager `scan`, or
`jit` of a lambda.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from jaxsight.examples.jax_use import JaxUse
from jaxsight.examples.programs.entries import entries_in
from jaxsight.examples.sets import Examples, ExampleSet
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.traces.located_answer import with_places
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.relocate import relocate
from jaxsight.source.text import Position, Range
from jaxsight.source.text_shift import shift_between
from jaxsight.text.inert import clause
from jaxsight.wire.chunks import Span
from jaxsight.wire.messages.inputs import PROGRAM, RUN, DryCall, EntryPoint
from jaxsight.wire.messages.replies import CallRecord, DryCalls
from jaxsight.wire.observations import Failure, Frame

# Names of example sets from dry runs: who calls the function, and where.

_LONGEST = 60
"""Characters of a name or a condition, a choice: it is part of a lens."""


def label(document: Document, call: CallRecord, entry: EntryPoint) -> str:
    """Return the name of an example set, such as `as called in train_test.py:31`.

    In the document itself the function that calls is named: edits would change a line.
    """
    condition = f" if {clause(call.condition, _LONGEST)}" if call.condition else ""
    return f"{_caller(document, call, entry)}{condition}"


def _caller(document: Document, call: CallRecord, entry: EntryPoint) -> str:
    file = clause(PurePath(call.file or entry.file).name, _LONGEST)
    if call.file != document.path:
        is_notebook = PurePath(file).suffix == ".ipynb"
        line = "" if is_notebook or call.line <= 0 else f":{call.line}"
        return f"as called in {file}{line}"
    first = document.line_of(call.chunk) if call.chunk else 1
    row = max((first or 1) + call.line - 2, 0)
    around = document.module.function_at(Position(row, 0))
    if around is not None and around[1].qualname != call.function:
        return f"as called by `{clause(around[1].qualname.rpartition('<locals>.')[2], _LONGEST)}`"
    if entry.file != document.path:
        return f"as called in a run of {clause(PurePath(entry.file).name, _LONGEST)}"
    if entry.text:
        return "as called in a dry run"
    lines = document.module.text.split("\n")
    called = lines[row].strip() if call.line > 0 and row < len(lines) else ""
    return f"as in `{clause(called, _LONGEST)}`" if called else "as called in this file"


def compiled_as(compiled: str, others: Collection[str], *, has_parts: bool) -> str:
    """Return `OutsideSet.compiled` of a call, given what all calls in its program are.

    Parts of a program without a function of its own, such as the body of a `scan`, are inside of
    it; they are compiled alone if no call in the file is known to start one (`has_parts`).
    """
    if compiled == "eager" and {*others} <= {"eager", ""}:
        return "only eager"
    return compiled.replace("part", "inside" if has_parts else "")


def run_label(document: Document, entry: EntryPoint) -> str:
    """Return the name of the example set of a function that is itself part of a program."""
    if entry.file == document.path:
        return "as in a run of this file"
    return f"as in a run of {clause(PurePath(entry.file).name, _LONGEST)}"


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
    document: Document, then: Module, calls: Iterable[tuple[CallRecord, DryCall]]
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


# Errors of a file's own program, at their places in the current text.

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class LocatedError:
    """An error of a file's own program.

    `places` are those of its frames in the file, outermost first.
    """

    failure: Failure
    is_certain: bool
    """Whether each run of the program ends with it."""
    places: tuple[tuple[Frame, Range], ...]


def unreached(errors: Iterable[LocatedError], module: Module) -> frozenset[str]:
    """Return the names in statements that a program does not run to their end, due to an error.

    What functions would have been called with there is not known.
    """
    ends = [
        place.start.line
        for error in errors
        for frame, place in error.places[:1]
        if error.is_certain and frame.function == "<module>"
    ]
    return frozenset(
        name
        for chunk in module.chunks
        if ends and chunk.last_line >= min(ends) and not chunk.statement.functions
        for name in _NAME.findall(chunk.text)
    )


def located(path: str, reply: DryCalls, then: Module, now: Module) -> Iterator[LocatedError]:
    """Yield the errors of a reply whose places are still there.

    Args:
        path: the file.
        reply: what its program did.
        then: the text that was run.
        now: the current text.
    """
    texts = {chunk.id: (chunk, chunk.text) for chunk in then.chunks}
    asked = {chunk.id: chunk for chunk in then.chunks}
    for reused in reply.reused:
        if reused.asked in asked:
            texts[reused.executed] = asked[reused.asked], reused.text
    shift = shift_between(then.text, now.text)

    def range_of(span: Span) -> Range | None:
        if span.chunk not in texts:
            return None
        chunk, text = texts[span.chunk]
        range = relocate(span, text, chunk)
        return shift.range(range) if range is not None else None

    def place_of(frame: Frame) -> Range | None:
        if frame.span is not None:
            return range_of(frame.span)
        if frame.file != path or not 0 < frame.line <= len(lines):
            return None
        # A statement that ran dry: only its line is known.
        return shift.range(Range.of_line(frame.line - 1, lines[frame.line - 1]))

    lines = then.text.split("\n")
    for error in reply.errors:
        failure = error.failure
        places = tuple(
            (frame, place) for frame in failure.frames if (place := place_of(frame)) is not None
        )
        if places:
            message = with_places(failure.message, path, range_of)
            yield LocatedError(replace(failure, message=message), error.is_certain, places)
