"""An answer in the current text: the tracer's spans become ranges of the module.

An answer to the current question is moved exactly, chunk by chunk. An answer to an earlier question
(the function was edited since) is shifted through the edit and marked as stale; observations inside
the edit are dropped, never guessed.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from jaxsight.examples.sets import OutsideSet
from jaxsight.files.texts import Version
from jaxsight.queries.documents import Subject
from jaxsight.queries.sizes.naming import SizeNames, blanked
from jaxsight.queries.traces.query import Question
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.relocate import relocate
from jaxsight.source.slicing.chunk_roles import SliceCaveat, quoted, quoted_line
from jaxsight.source.supported_lines import lost_lines, names_bound
from jaxsight.source.text import Position, Range
from jaxsight.source.text_shift import TextShift, shift_between
from jaxsight.text import unknown_sizes
from jaxsight.text.units import count
from jaxsight.wire.chunks import CHUNK_FILE, Span, line_in_chunk
from jaxsight.wire.messages.replies import Failed, Traced
from jaxsight.wire.observations import ExprValue, Observation, Reused
from jaxsight.workers.results import Died

_MANY = 300
"""Observations from which finding their places takes noticeably long, see `source.module.SHORT`."""
_STOPPED = "was stopped after"
_PLACE = re.compile(rf"{CHUNK_FILE.pattern}(?::(?P<line>\d+))?")
"""The name of a chunk's file in a message or a jaxpr, as in `function at FILE:LINE`.

The text before it is in `path` too.
"""


def with_places(text: str, here: str, range_of: Callable[[Span], Range | None]) -> str:
    """Return a tracer's text with the file names of a file's chunks replaced by its lines.

    Args:
        text: a message or a jaxpr.
        here: the path of the file.
        range_of: returns the current range of a span.
    """
    if "§" not in text:
        return text

    def place(match: re.Match[str]) -> str:
        path, line = match["path"], match["line"]
        if line is None or not path.endswith(here):
            return path
        inside = line_in_chunk(match, int(line))
        range = range_of(Span(match["chunk"], inside, 0, inside, 0))
        name = path.removesuffix(here) + PurePath(here).name
        return f"{name}:{range.start.line + 1}" if range is not None else name

    return _PLACE.sub(place, text)


@dataclass(frozen=True)
class Answer:
    """The reply to a question.

    `versions` are those of the files that the reply was made of besides the question's own.
    """

    question: Question
    reply: Traced | Failed | Died
    versions: Mapping[str, Version] = field(default_factory=dict)

    @functools.cached_property
    def key(self) -> str:
        """Identifies what the answer was made of: the question, and the texts of other files."""
        files = "\0".join(f"{path}\0{text}" for path, text in sorted(self.versions.items()))
        return f"{self.stored_as} {hashlib.blake2b(files.encode(), digest_size=16).hexdigest()}"

    @property
    def asks_platform(self) -> bool:
        """Whether the answer is that for the question's device alone."""
        return isinstance(self.reply, Traced | Failed) and self.reply.asks_platform

    @property
    def stored_as(self) -> str:
        """The key of the question, with its device if the answer depends on it."""
        return self.question.key_on_device if self.asks_platform else self.question.key

    def answers(self, question: Question) -> bool:
        """Return whether it is the answer to an equal question, as far as texts do not matter."""
        if self.asks_platform and self.question.trace.device != question.trace.device:
            return False
        return self.question.key == question.key

    def agrees_with(self, files: Iterable[tuple[str, Version]]) -> bool:
        """Return whether another reply was made of the same texts, as far as of the same files."""
        return all(self.versions.get(path, version) == version for path, version in files)

    @property
    def wants_whole(self) -> bool:
        """Whether it only says that other modules import names from the file.

        Then the question must be asked again with the whole module.
        """
        return isinstance(self.reply, Failed) and self.reply.failure.stage == "whole"

    @property
    def values(self) -> tuple[ExprValue, ...]:
        return self.reply.seen if isinstance(self.reply, Traced | Failed) else ()

    @property
    def texts(self) -> Mapping[str, tuple[str, str]]:
        """By the chunk ids in spans: the id of the requested chunk, and the executed text."""
        slice = self.question.slice
        requested = (*slice.chunks, *(chunk for chunk, _ in slice.skipped))
        chunks = {chunk.id: (chunk.id, chunk.text) for chunk in requested}
        if isinstance(self.reply, Traced | Failed):
            chunks |= {chunk.executed: (chunk.asked, chunk.text) for chunk in self.reply.reused}
        return chunks

    @property
    def observations(self) -> tuple[Observation, ...]:
        return self.reply.observations if isinstance(self.reply, Traced | Failed) else ()


class View:
    """One answer in one module; `stale` if the module now asks a different question.

    If `failed` is given, it is the newest answer about the function, an error, and this is the last
    trace before it: then only observations that the error does not affect are visible.
    """

    def __init__(
        self,
        answer: Answer,
        module: Module,
        now: Question | None,
        subject: Subject,
        failed: View | None = None,
    ) -> None:
        self.failed = failed
        self.members = now.slice.module_chunks if now is not None else ()
        self.answer = answer
        self.module = module
        self.subject = subject
        self.stale = now is None or not answer.answers(now)
        self.outside = _outside(answer, now)
        traced = answer.question
        self._texts = answer.texts
        self._now: dict[str, ModuleChunk] = {}
        self._before: dict[str, ModuleChunk] = {}
        self._shift: TextShift | None = None
        self._skipped = now.caveats if now is not None else ()
        self.size_names = SizeNames()
        if now is not None and not self.stale:
            before = itertools.compress(traced.slice.chunks, traced.slice.keyed)
            keyed = itertools.compress(now.slice.module_chunks, now.slice.keyed)
            for old, member in zip(before, keyed, strict=True):
                # Of chunks with the same text this is the first: its execution fails.
                self._now.setdefault(old.id, member)
            for member in _all_chunks(now):
                self._now.setdefault(member.id, member)
            if subject.chunk.id in self._now:
                self._now[subject.chunk.id] = subject.chunk
        else:
            self._before = {chunk.id: chunk for chunk in _all_chunks(traced)}
            self._shift = shift_between(traced.module.text, module.text)
            self._skipped = tuple(
                replace(caveat, range=range)
                for caveat in traced.caveats
                if (range := self._shift.range(caveat.range)) is not None
            )

    def still(
        self, answer: Answer, module: Module, now: Question | None, failed: View | None
    ) -> bool:
        """Return whether a view of these arguments would be equal to this one."""
        stale = now is None or not answer.answers(now)
        same = self.answer is answer and self.module is module and self.failed is failed
        return same and self.stale == stale and self.outside == _outside(answer, now)

    def supports(self, place: Range) -> bool:
        """Return whether this trace is valid at a place, given the error of the newest one."""
        return self.failed is None or place.start.line not in self._lost

    def supports_any(self) -> bool:
        """Return whether any value that the function computes is still as it was observed."""
        return any(
            observation.kind != "parameter" and place.start in self.subject_range
            for place, observation in self.observed.items()
        )

    @functools.cached_property
    def _lost(self) -> frozenset[int]:
        """The lines on which the newest trace fails, or that depend on an error or a change."""
        failed, shift = self.failed, self._shift
        if failed is None or shift is None:
            return frozenset()
        before, after = self.answer.question, failed.answer.question
        reply = failed.answer.reply
        frames = reply.failure.frames if isinstance(reply, Failed) else ()
        places = [failed.range_of(frame.span) for frame in frames if frame.span is not None]
        lost = names_bound(before.slice.module_chunks, shift.keeps)
        inside = f"{self.subject.name}.<locals>."
        lost.setdefault(inside, set()).update(_changed_arguments(before, after))
        if isinstance(reply, Failed) and reply.failure.stage == "inputs":
            names = {parameter.name for parameter in self.subject.function.parameters}
            argument = reply.failure.argument.partition("@")[0]
            lost[inside].update({argument} if argument else names)
        chunks = {chunk.first_line: chunk for chunk in failed.members}
        for place in (*self._all_places, *(place for place in places if place is not None)):
            if (chunk := self.module.chunk_at(place.start)) is not None:
                chunks[chunk.first_line] = chunk
        return lost_lines(
            [chunks[line] for line in sorted(chunks)],
            self.subject.name.rpartition(".")[2],
            {place.start.line for place in places if place is not None},
            shift.is_unchanged,
            lost,
        )

    @functools.cached_property
    def _all_places(self) -> dict[Range, Observation]:
        return {
            range: observation
            for observation in self.answer.observations
            if (range := self.range_of(observation.span)) is not None
        }

    @property
    def caveats(self) -> tuple[SliceCaveat, ...]:
        """Statements of the module that this answer skipped, in text order.

        Statements that failed for one reason, such as an undefined name, are one caveat.
        """
        reply = self.answer.reply
        places: dict[str, dict[Range, str]] = {}
        for caveat in reply.caveats if isinstance(reply, Traced | Failed) else ():
            range = self.range_of(Span(caveat.chunk, caveat.line, 0, caveat.line, 0))
            chunk = self.module.chunk_at(range.start) if range is not None else None
            if caveat.reason.startswith(_STOPPED) and chunk is not None:
                chunk = None if chunk.id in self.answer.question.slice.harmless else chunk
            if range is not None and chunk is not None:
                is_first = caveat.line == 1
                line = (
                    quoted(chunk) if is_first else quoted_line(self.module.line(range.start.line))
                )
                places.setdefault(caveat.reason, {})[range] = line
        caveats = list(self._skipped)
        for reason, lines in places.items():
            first, *others = sorted(lines)
            more = f" and {count(len(others), 'other statement')}" if others else ""
            whose = "" if reason.startswith("`") else f"{lines[first]}{more} "
            caveats.append(SliceCaveat(first, f"{whose}{reason}"))
        return tuple(sorted(dict.fromkeys(caveats), key=lambda caveat: caveat.range))

    @property
    def is_traced(self) -> bool:
        """Whether the function was traced, not an error."""
        return isinstance(self.answer.reply, Traced)

    @property
    def name_range(self) -> Range:
        """The current range of the traced function's name."""
        return self.subject.name_range

    @property
    def subject_range(self) -> Range:
        """The current range of the traced function's whole definition."""
        return self.subject.range

    @property
    def example_places(self) -> Sequence[tuple[str, Range]]:
        """The arguments with the places of their example inputs, relative to the function's chunk.

        Empty if the example inputs are not from its docstring.
        """
        if self.subject.examples.source != "docstring":
            return ()
        return self.answer.question.set.places

    def argument_range(self, argument: str) -> Range:
        """Return the range of an argument's example in the docstring, or the function's name.

        `x@data` is the mesh axis `data` of the argument `x`, and `mesh` the mesh of the section.
        """
        chosen = self.answer.question.set
        range = dict((*chosen.axis_places, *chosen.places)).get(argument)
        return self.subject.placed.place(range) if range is not None else self.name_range

    def words(self, text: str) -> str:
        """Return a tracer's text with the file names of chunks replaced by lines of the file."""
        return with_places(text, self.answer.question.path, self.range_of)

    def add_texts(self, reused: Iterable[Reused]) -> None:
        """Take the texts of chunks as they were executed, which a later reply may refer to."""
        self._texts = {**self._texts, **{r.executed: (r.asked, r.text) for r in reused}}

    @property
    def is_large(self) -> bool:
        """Whether it takes long to find the places of all observations."""
        return len(self.answer.observations) > _MANY

    def range_of(self, span: Span) -> Range | None:
        """Return the current range of a span; `None` if it is gone."""
        requested, text = self._texts.get(span.chunk, ("", ""))
        if not requested:
            return None
        if self._shift is None:
            member = self._now.get(requested)
            return relocate(span, text, member) if member is not None else None
        before = self._before.get(requested)
        then = relocate(span, text, before) if before is not None else None
        return self._shift.range(then) if then is not None else None

    @functools.cached_property
    def observed(self) -> Mapping[Range, Observation]:
        """Every observation that has a place in the text, by its range."""
        return {place: each for place, each in self._all_places.items() if self.supports(place)}

    def enclosing(self, position: Position) -> list[Range]:
        """Return the places of observations that contain a position, innermost first.

        This is for a text that does not parse.
        """
        holding = [place for place in self.observed if position in place]
        return sorted(
            holding, key=lambda r: (r.end.line - r.start.line, r.end.column - r.start.column)
        )

    @property
    def set_name(self) -> str:
        """The current name of the example set: who calls it may have another name by now."""
        traced = self.answer.question.set
        sets = self.subject.examples.sets
        if any(current.name == traced.name for current in sets):
            return traced.name
        same = (current.name for current in sets if current.arguments == traced.arguments)
        return next(same, traced.name)

    def named(self, observation: Observation) -> tuple[str, ...]:
        """Return the types of an observation's values, with names of sizes where known."""
        if (names := self.size_names.values.get(observation)) and self.has_unknown_sizes:
            return tuple(map(unknown_sizes.named, names))
        return names or tuple(value.text for value in self.values(observation))

    def values(self, observation: Observation) -> tuple[ExprValue, ...]:
        """Return the values of an observation; types with assumed sizes have no numbers."""
        seen = tuple(self.answer.values[i] for i in observation.values)
        if not self.assumed and not self.is_run:
            return seen
        names = self.size_names.values.get(observation)
        texts = names or tuple(self._without_assumed(value.text) for value in seen)
        if self.has_unknown_sizes:
            texts = tuple(map(unknown_sizes.named, texts))
        if not self.assumed and texts == tuple(value.text for value in seen):
            return seen
        return tuple(
            replace(value, text=text, tree=None) for value, text in zip(seen, texts, strict=True)
        )

    @property
    def is_run(self) -> bool:
        """Whether it shows what a dry run computes in the function, which nothing has traced."""
        call = self.answer.question.set.dry_call
        return call is not None and call.is_run

    @property
    def compiled_as(self) -> str:
        """What the file's own program does with it: `inside`, `eager`; empty for others.

        It compiles others, of which this is a part, or runs it op by op. The author may say that it
        is compiled all the same.
        """
        compiled = self.outside.compiled if self.outside is not None else ""
        is_other = compiled in ("inside", "eager") and not self.subject.is_root
        return compiled if is_other else ""

    @property
    def would_be_compiled(self) -> bool:
        """Whether the file's own program compiles nothing: its kernels are those of a `jit`."""
        is_eager = self.outside is not None and self.outside.compiled == "only eager"
        return is_eager and not self.subject.is_root

    @property
    def has_unknown_sizes(self) -> bool:
        """Whether numbers may stand for sizes that only missing data would tell."""
        return self.is_run or (self.outside is not None and bool(self.outside.sizes))

    @property
    def is_proposed(self) -> bool:
        """Whether jaxsight assumed types of inputs, not only sizes."""
        origin = self.outside.origin if self.outside is not None else "proposed"
        return bool(self.assumed) and origin == "proposed"

    def _without_assumed(self, text: str) -> str:
        return blanked(text) if self.is_proposed else text

    @property
    def assumed(self) -> tuple[str, ...]:
        """The parameters whose inputs jaxsight assumed; sizes that follow from them are names."""
        return self.answer.question.set.assumed

    def with_sizes(self, traced: Traced) -> Traced:
        """Return a trace with the names of sizes, where they are known.

        Of assumed inputs, it has no number that follows from them, and no figures of trees.
        """
        names = self.size_names
        shown = unknown_sizes.named if self.has_unknown_sizes else str
        return replace(
            traced,
            parameters=tuple(
                (p, shown(names.parameters.get(p) or self._without_assumed(t)))
                for p, t in traced.parameters
            ),
            outputs=shown(names.outputs or self._without_assumed(traced.outputs)),
            jaxpr=shown(names.jaxpr if self.assumed else traced.jaxpr),
            trees=() if self.assumed else traced.trees,
        )


def _outside(answer: Answer, now: Question | None) -> OutsideSet | None:
    """Return the call whose inputs these are, as it is known now: `jit` may be around it since."""
    return (now or answer.question).set.outside


def _all_chunks(question: Question) -> Iterator[ModuleChunk]:
    """Yield the chunks that observations may be in."""
    yield from question.slice.module_chunks
    yield from (chunk for _, chunk in question.slice.skipped)


def _changed_arguments(before: Question, after: Question) -> set[str]:
    """Return the arguments whose example inputs differ."""
    first, second = before.trace, after.trace
    # All arguments of a request depend on these.
    shared = [
        (trace.sizes, trace.mesh, trace.mesh_source, trace.mesh_names) for trace in (first, second)
    ]
    if shared[0] != shared[1]:
        return {argument.name for argument in (*first.arguments, *second.arguments)}
    return {argument.name for argument in {*first.arguments} ^ {*second.arguments}}
