"""Errors of a file's own program, at their places in the current text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from jaxsight.queries.traces.located_answer import with_places
from jaxsight.source.module import Module
from jaxsight.source.relocate import relocate
from jaxsight.source.text import Position, Range
from jaxsight.source.text_shift import shift_between
from jaxsight.wire.chunks import Span
from jaxsight.wire.messages.replies import DryCalls
from jaxsight.wire.observations import Failure, Frame

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
        if ends and chunk.last_line >= min(ends) and not chunk.functions
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
        text = lines[frame.line - 1]
        start = len(text) - len(text.lstrip())
        row = frame.line - 1
        return shift.range(Range(Position(row, start), Position(row, len(text.rstrip()))))

    lines = then.text.split("\n")
    for error in reply.errors:
        failure = error.failure
        places = tuple(
            (frame, place) for frame in failure.frames if (place := place_of(frame)) is not None
        )
        if places:
            message = with_places(failure.message, path, range_of)
            yield LocatedError(replace(failure, message=message), error.is_certain, places)
