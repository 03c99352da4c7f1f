"""The executions of a file's chunks, which are reused while nothing that they saw has changed.

A chunk is executed once for each `key` that the server sends; after that its bindings and effects
are applied again instead.
The number of executions is bounded, so that thousands of edits do not make the process grow.
"""

from __future__ import annotations

import contextlib
import linecache
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import FrameType

from jaxsight.files.texts import Version
from jaxsight.tracer.compat import eager_programs
from jaxsight.tracer.dry_runs import noted_calls
from jaxsight.tracer.dry_runs.captured import NotedCall
from jaxsight.tracer.dry_runs.noted_calls import ExecutedStatements, NotedCalls
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.importing.project_modules import Edges
from jaxsight.tracer.isolation.process_state import Effects
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.observations import ProgramError, Warned

VARIANTS = 2
"""Unused executions kept per chunk, so that undoing an edit runs nothing."""

SPARE = 256
"""Executions kept that no current slice uses; each keeps the objects that it made alive."""

Identity = tuple[str, int, tuple[int, ...]]
"""A chunk's key, its index among those with this key, and the serials of effects before it."""


@dataclass(slots=True)
class Execution:
    """An execution of a chunk, with all results that are needed to repeat it without a run."""

    chunk: Chunk
    """As executed: its id is in its frames and spans, even if later texts have the same meaning.

    Its key is unique for this execution.
    """
    file: str
    bindings: dict[str, object]
    unbound: tuple[str, ...]
    effects: Effects | None
    imports: Edges
    applied: frozenset[str]
    jax: bool
    warnings: tuple[Warned, ...] = ()
    names: frozenset[str] = frozenset()
    """Names in its code."""
    linked: bool = False
    """Whether `uses` is known."""
    failed: bool = False
    """Whether it raised an error, which chunks that need its names raise too."""
    error: ProgramError | None = None
    """That error, if it is the program's own."""
    is_absent: bool = False
    """Whether placeholders stand for its names, as something is missing."""
    stopped: bool = False
    """Whether it was skipped, as it takes too long; chunks that need its names run it."""
    caveat: str = ""
    """Why it did not complete; empty if it did, or if another caveat explains it."""
    acted_before: int = 0
    """Number of chunks above it that act."""
    failed_imports: dict[str, Version] = field(default_factory=dict)
    """Files whose import failed before it ended: it may have caught the error."""
    missing: set[str] = field(default_factory=set)
    """Modules and files that were missing; once one exists, the chunk runs again."""
    absences: tuple[str, ...] = ()
    """What it needed and is missing, in clauses, if it caught the error."""
    calls: NotedCalls | None = None
    """Those of the file's functions, if it called any."""
    uses: set[Identity] = field(default_factory=set)
    """The executions that bound those names.

    It may refer to their objects, so it must not outlive them.
    """


class ExecutionCache(OrderedDict[Identity, Execution]):
    """The executions of a file, by identity; the newest are last."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._effects: list[Effects] = []

    def put(self, identity: Identity, execution: Execution) -> None:
        """Add an execution, or mark it as the newest."""
        self[identity] = execution
        self.move_to_end(identity)

    def with_equal(self, effects: Effects | None) -> Effects | None:
        """Return equal effects of an earlier execution, so that chunks after them are reused."""
        if effects is not None:
            known = (earlier for earlier in self._effects if earlier.same_as(effects))
            if (equal := next(known, None)) is not None:
                return equal
            self._effects.append(effects)
        return effects

    def drop_failed(self, executions: Iterable[Execution]) -> None:
        """Drop the executions among these that are not in the cache, as they raised an error."""
        cached = {id(execution) for execution in self.values()}
        for execution in executions:
            if id(execution) not in cached:
                self._forget(execution)

    def trim(self, current: Iterable[Execution]) -> None:
        """Drop executions that are unlikely to be needed again, and those that refer to them.

        `current` are those of the current slice.
        """
        current = list(current)
        self._link(current)
        live = {id(execution) for execution in current}
        newest = reversed(self.items())
        spare = [(name, execution) for name, execution in newest if id(execution) not in live]
        variants: Counter[tuple[str, ...]] = Counter()
        gone: set[Identity] = set()
        for count, (identity, execution) in enumerate(spare):
            binds = execution.chunk.binds
            variants[binds] += 1
            if count >= SPARE or (binds and variants[binds] > VARIANTS):
                gone.add(identity)
        while gone:
            for identity in gone:
                self._forget(self.pop(identity))
            gone = {name for name, execution in self.items() if execution.uses & gone}

    def clear(self) -> None:
        """Drop all executions."""
        while self:
            self._forget(self.popitem()[1])
        self._effects.clear()

    def _link(self, current: list[Execution]) -> None:
        """Record which executions bind the names that new executions of the slice use.

        Functions may use names that are bound after them.
        """
        new = [execution for execution in current if not execution.linked]
        if not new:
            return
        identities = {id(execution): identity for identity, execution in self.items()}
        binding: dict[str, set[Identity]] = {}
        for execution in current:
            if (identity := identities.get(id(execution))) is not None:
                for name in execution.bindings:
                    binding.setdefault(name, set()).add(identity)
        for execution in new:
            execution.linked = True
            for name in execution.names & binding.keys():
                execution.uses |= binding[name]
            execution.uses.discard(identities.get(id(execution), ("", 0, ())))

    def _forget(self, execution: Execution) -> None:
        """Drop the observations and the lines of an execution that is not in the cache."""
        self._recorder.forget(execution.chunk.id, execution.chunk.key)
        # Executions of the same text in other states share its file name.
        if all(cached.file != execution.file for cached in self.values()):
            linecache.cache.pop(execution.file, None)


@contextlib.contextmanager
def observed(recorder: Recorder, execution: Execution) -> Iterator[None]:
    """Observe the execution of a chunk, and keep what it calls the file's functions with."""

    def report(number: int, frame: FrameType) -> None:
        noted().report(recorder, number, frame, {})

    def noted() -> NotedCalls:
        if execution.calls is None:
            execution.calls = NotedCalls()
        return execution.calls

    recorder.capture, placeholders.on_call = report, noted_calls.call_traced
    try:
        with (
            recorder.executing(execution.chunk.id, execution.chunk.key),
            eager_programs.telling(lambda program: noted().program(program)),
        ):
            yield
    finally:
        recorder.capture = placeholders.on_call = None


def executed_statements(executions: Iterable[Execution]) -> ExecutedStatements:
    """Return what the statements of a slice called, and which of them did not complete."""
    calls: dict[str, list[NotedCall]] = {}
    stopped = set()
    incomplete: dict[str, ProgramError | None] = {}
    for execution in executions:
        text = execution.chunk.text.strip()
        if execution.stopped or execution.is_absent:
            stopped.add(text)
        elif execution.failed or execution.caveat:
            incomplete[text] = execution.error
            # Not by its own error: a command line lacks arguments, or a name is not bound here.
            stopped |= {text} if execution.failed and execution.error is None else set()
        if execution.calls is not None:
            for name, of_function in execution.calls.by_function.items():
                known = calls.setdefault(name, [])
                known += [replace(call) for call in of_function]  # as its `compiled` may change
                noted_calls.unify_compiled(known)
                known.sort(key=noted_calls.rank)
    return ExecutedStatements(calls, frozenset(stopped), incomplete)
