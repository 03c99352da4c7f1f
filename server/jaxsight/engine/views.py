"""An answer seen in the text as it stands now: the spans that a tracer speaks in become ranges of the module.

An answer to the same question is moved exactly, chunk by chunk. An answer to an earlier question (the function was
edited since) is shifted through the edit and called stale; what stood inside the edit is dropped, never guessed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from jaxsight.engine.answers import Linked, Shown
from jaxsight.engine.documents import Subject
from jaxsight.engine.module import Module, ModuleChunk
from jaxsight.engine.questions import Question
from jaxsight.engine.relocate import relocate
from jaxsight.engine.shift import TextShift
from jaxsight.engine.text import Position, Range
from jaxsight.tracer import protocol
from jaxsight.tracer.protocol import Failed, Observation, Seen, Span, Traced
from jaxsight.workers.outcomes import Died

_PLACE = re.compile(rf"{protocol.CHUNK_FILE.pattern}(?::(?P<line>\d+))?")
"""Where a message or a jaxpr names a chunk's file, as in `function at FILE:LINE`; what stands before is in `path` too."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a question. `versions` are the project files that it stands and falls with."""

    question: Question
    reply: Traced | Failed | Died
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def seen(self) -> tuple[Seen, ...]:
        return self.reply.seen if isinstance(self.reply, Traced | Failed) else ()

    @property
    def texts(self) -> Mapping[str, tuple[str, str]]:
        """By the chunk ids that spans name: the id that was asked for, and the text that was executed."""
        chunks = {chunk.id: (chunk.id, chunk.text) for chunk in self.question.slice.chunks}
        if isinstance(self.reply, Traced | Failed):
            chunks |= {each.executed: (each.asked, each.text) for each in self.reply.reused}
        return chunks

    @property
    def observations(self) -> tuple[Observation, ...]:
        return self.reply.observations if isinstance(self.reply, Traced | Failed) else ()


class View:
    """One answer in one module. `stale` when the module now asks another question."""

    def __init__(
        self, answer: Answer, module: Module, now: Question | None, subject: Subject
    ) -> None:
        self.answer = answer
        self.module = module
        self.subject = subject
        self.stale = now is None or now.key != answer.question.key
        self._observed: dict[Range, Observation] | None = None
        traced = answer.question
        self._texts = answer.texts
        self._now: dict[str, ModuleChunk] = {}
        self._before: dict[str, ModuleChunk] = {}
        self._shift: TextShift | None = None
        if now is not None and not self.stale:
            for old, member in zip(traced.slice.chunks, now.slice.members, strict=True):
                # Of chunks with the same text the first is meant: it is the one whose execution fails.
                self._now.setdefault(old.id, member)
        else:
            self._before = {chunk.id: chunk for chunk in traced.slice.members}
            self._shift = TextShift(traced.module.text, module.text)

    def still(self, answer: Answer, module: Module, now: Question | None) -> bool:
        """Whether a view made of these would be this one."""
        stale = now is None or now.key != answer.question.key
        return self.answer is answer and self.module is module and self.stale == stale

    @property
    def name_range(self) -> Range:
        """The traced function's name, as it stands now."""
        return self.subject.name_range

    @property
    def subject_range(self) -> Range:
        """The traced function's whole definition, as it stands now."""
        return self.subject.range

    def argument_range(self, argument: str) -> Range:
        """The example of an argument in the docstring, else the function's name."""
        places = dict(self.answer.question.set.places)
        found = places.get(argument)
        return (
            found.shifted(self.subject.chunk.first_line) if found is not None else self.name_range
        )

    def words(self, text: str) -> str:
        """A tracer's text with the names under which chunks are compiled as lines of the file."""
        if "§" not in text:
            return text
        here = self.answer.question.path

        def place(match: re.Match[str]) -> str:
            said, line = match["path"], match["line"]
            if line is None or not said.endswith(here):
                return said
            range = self.range_of(Span(match["chunk"], int(line), 0, int(line), 0))
            name = said.removesuffix(here) + PurePath(here).name
            return f"{name}:{range.start.line + 1}" if range is not None else name

        return _PLACE.sub(place, text)

    def shown(self, title: str, shown: protocol.Shown) -> Shown:
        """A tracer's text with its links moved into the module."""
        # What this text was made of may be an older execution than what the answer speaks of.
        self._texts = {**self._texts, **{r.executed: (r.asked, r.text) for r in shown.reused}}
        links = tuple(
            Linked(link.line, link.path, self.range_of(link.span) if link.span else None)
            for link in shown.links
        )
        companion = base64.b64decode(shown.companion)
        return Shown(title, self.words(shown.text), links, self.stale, shown.equations, companion)

    def range_of(self, span: Span) -> Range | None:
        """Where the span stands now, or nothing when it is gone."""
        asked, text = self._texts.get(span.chunk, ("", ""))
        if not asked:
            return None
        if self._shift is None:
            return relocate(span, text, self._now[asked])
        before = self._before.get(asked)
        then = relocate(span, text, before) if before is not None else None
        return self._shift.range(then) if then is not None else None

    @property
    def observed(self) -> Mapping[Range, Observation]:
        """Every observation that has a place in the text, by its range."""
        if self._observed is None:
            self._observed = dict(self._places())
        return self._observed

    def around(self, position: Position) -> list[Range]:
        """The places of observations that hold a position, the innermost first: for a text that does not parse."""
        holding = [place for place in self.observed if position in place]
        return sorted(
            holding, key=lambda r: (r.end.line - r.start.line, r.end.column - r.start.column)
        )

    def seen(self, observation: Observation) -> tuple[Seen, ...]:
        return tuple(self.answer.seen[i] for i in observation.values)

    def _places(self) -> Iterator[tuple[Range, Observation]]:
        for observation in self.answer.observations:
            if (range := self.range_of(observation.span)) is not None:
                yield range, observation
