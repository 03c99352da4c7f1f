"""What a session remembers: every cache, with its key and when its entries are dropped.

Three events drop entries: a file is *closed*; settings, interpreters or decisions change, or the
user restarts, so that answers are *outdated*; files on disk or the target change, so that what
failed is *retried*. No other code enumerates caches. Most keys contain what their values depend on
(the text's meaning, the program, the compiler), so an edit drops nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from jaxsight.figures.figures import AnyFigures
from jaxsight.lru import Recent
from jaxsight.queries.programs.located_figures import Compilation, Refused
from jaxsight.queries.sizes.exploring import Explored
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.rules.rule import Decides
from jaxsight.targets.target import Target
from jaxsight.wire.chunks import Span
from jaxsight.wire.messages.compiling import Compiled, Folding
from jaxsight.wire.messages.measuring import Conditions, Measured, ProgramTimes
from jaxsight.wire.messages.replies import Listing, Lowered, Outlined, Traced
from jaxsight.wire.messages.requests import TransformedSource
from jaxsight.workers.compilation.compilers import Trouble

if TYPE_CHECKING:
    from jaxsight.queries.proposals.trying import Tried

# Caches with a policy: how many entries are kept, and which events drop them.

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


TEXTS = 16
"""Texts of one function that are remembered, a choice: enough to undo and redo some edits."""


class Cache(Recent[K, V]):
    """A map whose entries are dropped by its policy; `queries/memory.py` lists all of them."""

    def __init__(
        self,
        *,
        size: int | None = None,
        file: Callable[[K], str] | None = None,
        function: Callable[[K, V], Hashable] | None = None,
        outdated: bool = False,
        retried: bool = False,
    ) -> None:
        """State the policy.

        Args:
            size: maximum number of entries; those that were not used for the longest time go first.
            file: the file that a key is about, whose entries are dropped when it is closed.
            function: what an entry is about, whatever its text; only the last `TEXTS` of those are
                kept, as each edit adds one, and few of them are returned to.
            outdated: drop all entries when settings, interpreters or decisions change.
            retried: drop all entries when anything changes outside of the texts.
        """
        super().__init__(size)
        self._file = file
        self._function = function
        self.is_outdated, self.is_retried = outdated, retried

    def put(self, key: K, value: V) -> None:
        """Add an entry, or replace its value."""
        if self._function is not None and key not in self._entries:
            about = self._function(key, value)
            of_function = [k for k, v in self._entries.items() if self._function(k, v) == about]
            for old in of_function[: max(len(of_function) - TEXTS + 1, 0)]:
                del self._entries[old]
        super().put(key, value)

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield the entries at the time of the call."""
        yield from list(self._entries.items())

    def close(self, path: str) -> None:
        """Drop what is about a file that was closed."""
        if self._file is not None:
            for key in [key for key in self._entries if self._file(key) == path]:
                del self._entries[key]


@dataclass(frozen=True, slots=True)
class ProcessDifference:
    """Two processes trace different programs of a function."""

    decides: Decides
    process: int
    """The process whose program differs from that of process 0."""
    primitive: str
    """That of the first equation that differs; empty if only captured arrays do."""
    span: Span | None
    """Its place."""


ByFunction = tuple[str, str]
"""A file and the qualified name of a function."""
Unit = tuple[str, str, str]
"""A file, a function, and the name of an example set or of a target."""

OnPlatform = tuple[Unit, str]
"""A function, and a platform."""
ComparedProcesses = tuple[str, ProcessDifference | None]
"""The last comparison: the key of the answer, and where processes differ, if they do."""

_ANSWERS, _PROGRAMS, _COMPILED, _SOURCES = 512, 64, 256, 64
"""Kept answers and compiles: those of the open files, some texts each. Lowered programs and sources
hold whole texts, and are asked for by one function at a time."""
_ON_DISK = 64
"""Compiled programs that are read from disk otherwise; those that are shown are in `results`."""


def _file(key: tuple[str, ...]) -> str:
    """Return the file of a key that begins with one."""
    return key[0]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a function took on a target.

    `answer` is the trace that was measured: that of a view with the same `answer.key` is current.
    """

    answer: Answer
    target: Target
    measured: Measured

    @property
    def times(self) -> ProgramTimes:
        """The times of the function."""
        return self.measured.program

    @property
    def conditions(self) -> Conditions:
        """The machine while it measured."""
        return self.measured.conditions

    @property
    def trace_seconds(self) -> float | None:
        """How long JAX traced the function, with the observation of its expressions."""
        reply = self.answer.reply
        return dict(reply.seconds).get("trace") if isinstance(reply, Traced) else None


class SessionMemory:
    """The caches of a session."""

    def __init__(self) -> None:
        self.answers: Cache[str, Answer] = Cache(
            size=_ANSWERS, function=lambda key, answer: answer.question.unit, outdated=True
        )
        """Answers by the key of the question."""
        self.killed: Cache[str, Answer] = Cache(size=_ANSWERS, outdated=True)
        """Deaths of tracers that another process killed, by the key of the question."""
        self.latest: Cache[Unit, Answer] = Cache(file=_file)
        """The last answer about a function, for whatever text it had then."""
        self.traced: Cache[Unit, Answer] = Cache(file=_file)
        """The last answer about a function that is a trace, not an error."""
        self.views: Cache[tuple[str, str, str], View] = Cache(file=_file)
        """Answers in the current text, by file, function and role: spans take time to move."""
        self.sizes: Cache[tuple[Unit, str], Explored] = Cache(
            size=_ANSWERS, function=lambda key, explored: key[0], outdated=True
        )
        """What traces with other sizes showed, by function and key of the answer."""
        self.processes: Cache[OnPlatform, ComparedProcesses] = Cache(size=_ANSWERS, outdated=True)
        self.outlines: Cache[str, tuple[Answer, Outlined]] = Cache(
            size=_PROGRAMS, function=lambda key, outlined: outlined[0].question.unit
        )
        """Traced programs as plain data, by the key of the question."""
        self.sources: Cache[tuple[str, TransformedSource], tuple[Answer, Listing]] = Cache(
            size=_SOURCES
        )
        """Verified source, by the key of the question and the options."""
        self.lowered: Cache[tuple[str, str, str], tuple[Answer, Lowered | Trouble]] = Cache(
            size=_COMPILED, function=lambda key, of: (of[0].question.unit, *key[1:]), outdated=True
        )
        """StableHLO, by the key of the question, platform and compute capability."""
        self.compiled: Cache[str, Compiled | Trouble] = Cache(size=_ON_DISK, outdated=True)
        """Compiled programs, by the digest of program, compiler and target."""
        self.foldings: Cache[str, Folding | Trouble] = Cache(size=_COMPILED, outdated=True)
        """Measured constant folding, by the digest of the program."""
        self.results: Cache[tuple[str, str], tuple[Answer, AnyFigures | Refused]] = Cache(
            size=_COMPILED, function=lambda key, of: (of[0].question.unit, key[1]), outdated=True
        )
        """Compiled programs, by the key of the question and the target."""
        self.held: Cache[tuple[str, str, bool], asyncio.Task[Compilation | None]] = Cache(
            size=_PROGRAMS, outdated=True, retried=True
        )
        """Compiles for contracts and other machines, by answer, target and need of memory."""
        self.shown: Cache[ByFunction, tuple[Answer, AnyFigures]] = Cache(file=_file)
        """The last result of a function for the first target, shown until the next one is ready."""
        self.until_kernels: Cache[ByFunction, float] = Cache(file=_file)
        """Seconds that XLA last took until the kernels of a function were known."""
        self.refused: Cache[ByFunction, tuple[Answer, Refused]] = Cache(file=_file)
        """Results of functions that were last not compiled for the first target."""
        self.saved: Cache[Unit, Compiled] = Cache(file=_file)
        """The program of a function when its file was last saved, by function and target."""
        self.measured: Cache[tuple[str, str, str, str], Measurement] = Cache(
            file=_file, outdated=True
        )
        """The last measurement of a function, by file, function, example set and target."""
        self.proposals: Cache[Unit, Tried] = Cache(
            size=_ANSWERS, file=_file, function=lambda key, _: key[:2], outdated=True, retried=True
        )
        """Proposed example inputs that were tried, by file, function and what that means."""

    def close(self, path: str) -> None:
        """Drop what is about a file that was closed."""
        for cache in self._caches():
            cache.close(path)

    def outdate(self) -> None:
        """Drop all answers: settings, interpreters or decisions changed, or the user restarts."""
        for cache in self._caches():
            if cache.is_outdated:
                cache.clear()

    def retry(self) -> None:
        """Drop failures whose cause may be gone: files on disk or the target changed."""
        for cache in self._caches():
            if cache.is_retried:
                cache.clear()

    def _caches(self) -> list[Cache[object, object]]:
        return list(vars(self).values())
