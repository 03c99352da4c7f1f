"""A module's text as chunks: its top-level statements, each at its current line.

A `Module` never changes. An edit makes a new one that shares all untouched chunks with the old one,
so the cost of an edit is that of the edited statement, however long the file is. The result is
exactly that of parsing the new text from the start. Text that does not parse is confined to the
broken statement.
"""

from __future__ import annotations

import bisect
import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from jaxsight.source import limits
from jaxsight.source.analysis.name_effects import Mark, NameEffects, mark_in
from jaxsight.source.bindings import Bindings
from jaxsight.source.definitions import Function, Static
from jaxsight.source.statement_splitter import first_start, split_at
from jaxsight.source.statements import SyntaxProblem, TopLevelStatement, first_line
from jaxsight.source.text import Position, Range, normalized, text_in
from jaxsight.source.text_shift import common_prefix, common_suffix

SHORT = 16_000
"""Characters of a text that is parsed without a noticeable delay. This and the limits below keep a
turn of the event loop below 50 ms (`tools/perf/turns.py`); starting a thread takes time, too."""
_NOT_LONG = 64_000
"""Characters of a text that is searched for a closing quote without a noticeable delay."""
_DELIMITERS = frozenset("\"'()[]{}\\#")
_FEW_CHUNKS = 2_000
"""Chunks that are moved to new lines without a noticeable delay."""
_LONG = 4_000
"""Characters of a statement whose meaning takes noticeably long to compute."""
_MANY_CHUNKS = 300
"""Chunks from which their effects on each other take noticeably long to compute."""


@dataclass(frozen=True, slots=True)
class ModuleChunk:
    """A statement at its place. All lines in the statement count from `first_line`."""

    first_line: int
    statement: TopLevelStatement
    mark: Mark
    """`always` or `never`: the comment `# jaxsight: …` on it or above it."""

    @property
    def text(self) -> str:
        return self.statement.text

    @property
    def id(self) -> str:
        return self.statement.id

    @property
    def broken(self) -> SyntaxProblem | None:
        """Why it does not parse, relative to the chunk."""
        return self.statement.broken

    @property
    def name_effects(self) -> NameEffects:
        """Its effects on the module's names."""
        return self.statement.name_effects

    @property
    def last_line(self) -> int:
        return self.first_line + self.statement.line_count - 1


class PlacedFunction(NamedTuple):
    """A function in its chunk. Ranges of the function count from there, these from the file."""

    chunk: ModuleChunk
    function: Function

    @property
    def range(self) -> Range:
        """The whole definition, with decorators."""
        return self.place(self.function.range)

    @property
    def name_range(self) -> Range:
        """Its name."""
        return self.place(self.function.name_range)

    @property
    def body(self) -> Range:
        """Its body, with the docstring."""
        return self.place(Range(self.function.body_start, self.function.range.end))

    def place(self, range: Range) -> Range:
        """Return where a part of its chunk is."""
        return range.shifted(self.chunk.first_line)


@dataclass(frozen=True, slots=True)
class _Step:
    """The text that was read from a chunk's start, in characters.

    `size` is the distance to the next chunk, `reach` to the end of the text that was examined; it
    is `None` at the end of the file.
    """

    size: int
    reach: int | None


class Module:
    """The text of one file at one moment, with line ends as `\\n` (see `text.normalized`)."""

    def __init__(
        self,
        text: str,
        chunks: tuple[ModuleChunk, ...],
        starts: list[int],
        steps: list[_Step],
        bindings: Bindings | None = None,
        too_large: str = "",
    ) -> None:
        self.text = text
        self.too_large = too_large
        """Why the file is not analyzed: then it has no chunks."""
        self.chunks = chunks
        self._starts = starts
        self._steps = steps
        if bindings is not None:
            # It replaces the cached property: an edit in a body changes no binding.
            self.bindings = bindings

    @classmethod
    def parse(cls, text: str) -> Module:
        """Parse a whole text."""
        return cls("", (), [], []).edited(text)

    def edited(self, text: str) -> Module:
        """Return the module with another text; only the text around the edit is parsed again."""
        text = normalized(text)
        if text == self.text:
            return self
        if reason := limits.file_problem(text):
            return Module(text, (), [], [], too_large=reason)
        # A text that is not analyzed has no chunks to keep.
        return _Reparse(self if not self.too_large else _EMPTY, text).result()

    def quickly_edited(self, text: str) -> bool:
        """Return whether `edited` would parse little for another text."""
        if max(len(text), len(self.text)) > limits.LONGEST_FILE:
            return True
        if len(self.chunks) > _FEW_CHUNKS:
            return False
        reparse = _Reparse(self, normalized(text))
        if len(text) > _NOT_LONG and _DELIMITERS & {*reparse.replaced}:
            return False  # a quote or a bracket may join all that follows
        return reparse.size <= SHORT

    @functools.cached_property
    def bindings(self) -> Bindings:
        """Which chunks bind, change and need which names."""
        return Bindings([chunk.name_effects for chunk in self.chunks])

    @property
    def is_large(self) -> bool:
        """Whether it takes long to analyze how its chunks affect each other.

        An edit that keeps the bindings keeps this.
        """
        return len(self.chunks) > _MANY_CHUNKS

    def precompute(self) -> None:
        """Compute now what is slow and cached: bindings, and the meanings of long statements."""
        _ = self.bindings
        for chunk in self.chunks:
            if len(chunk.text) > _LONG:
                _ = chunk.statement.reads, chunk.statement.meaning, chunk.statement.effects_of_call

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return self.text.split("\n")

    def line(self, number: int) -> str:
        """Return a line's text; empty past the end."""
        return self.lines[number] if 0 <= number < len(self.lines) else ""

    def slice_text(self, range: Range) -> str:
        """Return the text of a range."""
        return text_in(self.lines, range)

    @functools.cached_property
    def functions(self) -> tuple[PlacedFunction, ...]:
        """Every function with its chunk, in text order."""
        return tuple(each for chunk in self.chunks for each in self._functions_of(chunk))

    @functools.cached_property
    def defining(self) -> Mapping[str, ModuleChunk]:
        """The chunk that defines each function, by its qualified name.

        Of a function that is defined again, the last: that is what a call by its name reaches.
        """
        return {function.qualname: chunk for chunk, function in self.functions}

    @functools.cached_property
    def ids(self) -> tuple[str, ...]:
        """What identifies each of `functions`: its qualified name, or which one of that name it is.

        The name alone stands for the last of several, as in `defining`; the first one is `f@1`.
        """
        total = Counter(function.qualname for _, function in self.functions)
        seen, ids = Counter[str](), []
        for _, function in self.functions:
            name = function.qualname
            seen[name] += 1
            ids.append(name if seen[name] == total[name] else f"{name}@{seen[name]}")
        return tuple(ids)

    @property
    def syntax_problems(self) -> Iterator[SyntaxProblem]:
        """The syntax errors and the parts that are too large, at absolute ranges."""
        if self.too_large:
            yield SyntaxProblem(first_line(self.text), self.too_large, too_large=True)
        for chunk in self.chunks:
            if chunk.broken is not None:
                yield replace(chunk.broken, range=chunk.broken.range.shifted(chunk.first_line))

    @property
    def syntax_problem(self) -> SyntaxProblem | None:
        """The first syntax error or too large part; `None` without any."""
        return next(self.syntax_problems, None)

    def number_of(self, chunk: ModuleChunk) -> int:
        """Return the number of one of this module's chunks in file order."""
        return bisect.bisect_left(self.chunks, chunk.first_line, key=lambda c: c.first_line)

    def chunk_at(self, position: Position) -> ModuleChunk | None:
        """Return the chunk whose lines contain the position; `None` between chunks."""
        at = bisect.bisect_right(self.chunks, position.line, key=lambda chunk: chunk.first_line) - 1
        if at >= 0 and position.line <= self.chunks[at].last_line:
            return self.chunks[at]
        return None

    def function_at(self, position: Position) -> PlacedFunction | None:
        """Return the innermost function whose definition, with decorators, contains a position."""
        chunk = self.chunk_at(position)
        if chunk is None:
            return None
        around = [each for each in self._functions_of(chunk) if position in each.range]
        return around[-1] if around else None

    @functools.cached_property
    def _static(self) -> dict[str, Static]:
        """Static arguments by function of statements such as `f = jax.jit(f, static_argnums=1)`."""
        return {
            name: static for c in self.chunks for name, static in c.statement.name_effects.static
        }

    def _functions_of(self, chunk: ModuleChunk) -> Iterator[PlacedFunction]:
        for function in chunk.statement.functions:
            static = self._static.get(function.qualname)
            if static is not None and not function.static_names:
                function = replace(function, static_names=static.among(function.parameters))
            yield PlacedFunction(chunk, function)


_EMPTY = Module("", (), [], [])


class _Reparse:
    """Builds the module of a new text from the old one: keeps unchanged chunks, parses the rest."""

    def __init__(self, old: Module, text: str) -> None:
        self.old = old
        self.text = text
        prefix = common_prefix(old.text, text)
        suffix = common_suffix(old.text, text, limit=min(len(old.text), len(text)) - prefix)
        self.changed_from = text.rfind("\n", 0, prefix) + 1
        """Offset of the first changed line, in both texts."""
        line_end = text.find("\n", len(text) - suffix)
        self.unchanged_from = len(text) if line_end < 0 else line_end + 1
        """Offset of the first line after the change, in the new text."""
        self.replaced = (
            text[prefix : len(text) - suffix] + old.text[prefix : len(old.text) - suffix]
        )
        """The inserted and the deleted text."""
        self.longer = len(text) - len(old.text)
        touched = bisect.bisect_right(old._starts, self.changed_from) - 1
        self.size = max(self.unchanged_from - self.changed_from, 0) + (
            len(old.chunks[touched].text) if touched >= 0 else 0
        )
        """Approximate number of characters to parse again."""
        self.chunks: list[ModuleChunk] = []
        self.starts: list[int] = []
        self.steps: list[_Step] = []

    def result(self) -> Module:
        old = self.old
        position = first_start(self.text)
        line = self.text.count("\n", 0, position)
        read_from: int | None = None
        tail = len(old.chunks)
        while position < len(self.text):
            index = bisect.bisect_left(old._starts, position)
            if position < self.changed_from and self._is_unchanged(index, position):
                step = old._steps[index]
                self._keep(old.chunks[index], position, step)
            elif (
                position >= self.unchanged_from
                and (after := bisect.bisect_left(old._starts, position - self.longer)) < tail
                and old._starts[after] == position - self.longer
            ):
                tail = after
                break
            else:
                read_from = len(self.chunks) if read_from is None else read_from
                split = split_at(self.text, position)
                reach = None if split.reach is None else split.reach - position
                step = _Step(split.next - position, reach)
                if split.statement is not None:
                    self._keep(self._chunk(line, position, split.statement), position, step)
                if reason := limits.statements_problem(len(self.chunks)):
                    return Module(self.text, (), [], [], too_large=reason)
            line += self.text.count("\n", position, position + step.size)
            position += step.size
        read_to = len(self.chunks)
        if reason := limits.statements_problem(read_to + len(old.chunks) - tail):
            return Module(self.text, (), [], [], too_large=reason)
        if tail < len(old.chunks):
            self._keep_tail(tail, line - old.chunks[tail].first_line)
        return Module(
            self.text,
            tuple(self.chunks),
            self.starts,
            self.steps,
            self._bindings(read_to if read_from is None else read_from, read_to),
        )

    def _is_unchanged(self, index: int, position: int) -> bool:
        """Return whether old chunk `index` is at `position` and was read from unchanged text."""
        if index >= len(self.old.chunks) or self.old._starts[index] != position:
            return False
        # A chunk that was read up to the end of the file depends on what is typed there.
        reach = self.old._steps[index].reach
        return reach is not None and position + reach <= self.changed_from

    def _keep(self, chunk: ModuleChunk, position: int, step: _Step) -> None:
        self.chunks.append(chunk)
        self.starts.append(position)
        self.steps.append(step)

    def _keep_tail(self, index: int, down: int) -> None:
        old = self.old
        first, *following = old.chunks[index:]
        start = old._starts[index] + self.longer
        # The edit may have changed the line above the first chunk, and a mark in it.
        self.chunks.append(self._chunk(first.first_line + down, start, first.statement))
        # The chunks themselves are kept where they do not move, as most edits add no line.
        if down:
            following = [
                ModuleChunk(chunk.first_line + down, chunk.statement, chunk.mark)
                for chunk in following
            ]
        self.chunks.extend(following)
        self.starts.extend([start + self.longer for start in old._starts[index:]])
        self.steps.extend(old._steps[index:])

    def _chunk(self, line: int, position: int, statement: TopLevelStatement) -> ModuleChunk:
        # The mark of a statement may be in a comment above it, which is no part of its chunk.
        above = self.text[self.text.rfind("\n", 0, max(position - 1, 0)) + 1 : position]
        mark: Mark = mark_in(above) if above.lstrip().startswith("#") else ""
        return ModuleChunk(line, statement, statement.name_effects.mark or mark)

    def _bindings(self, read_from: int, read_to: int) -> Bindings | None:
        """Return the old module's bindings if they are still valid, otherwise `None`.

        They are if there are as many chunks, and the parsed ones have the same effects on names.
        """
        old = self.old
        bindings: Bindings | None = old.__dict__.get("bindings")
        # They are computed when they are first asked for, see `bindings`.
        if bindings is None or len(old.chunks) != len(self.chunks):
            return None
        parsed = slice(read_from, read_to + 1)
        are_same = all(
            before.mark == now.mark and before.name_effects == now.name_effects
            for before, now in zip(old.chunks[parsed], self.chunks[parsed], strict=True)
        )
        return bindings if are_same else None
