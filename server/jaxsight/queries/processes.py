"""Whether a function is the same program in each process of a job for several devices.

The processes of such a job wait for each other, while compiling and in collectives, so each must
run the same programs in the same order. `ProcessExplorer` traces a function again as each process
of a small job, in tracers of their own with other hash seeds. Where their StableHLO differs,
further traces tell whether the number of the process, the hash seed or something else decides, and
`first_difference` finds the first equation that differs.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from jaxsight.projects.project import Project
from jaxsight.projects.projects import Projects
from jaxsight.queries.long_work import SharedWork
from jaxsight.queries.memory import ComparedProcesses, ProcessDifference, SessionMemory
from jaxsight.queries.sandbox import Sandbox, Sandboxes
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.rules.rule import Decides
from jaxsight.targets.target import Target
from jaxsight.wire.chunks import Span
from jaxsight.wire.messages.replies import Lowered, Outlined, Traced
from jaxsight.wire.messages.requests import FakeProcess
from jaxsight.wire.program import INPUT, RESULT, Body, Step, TracedProgram

PROCESSES = 4
"""Processes of the job, a choice: the first, the last and two others, each a process to start."""

_FIRST_SEED = 1
"""The hash seed of process 0; the next process has the next one."""

_SEVERAL_DEVICES = re.compile(
    r"\b(?:shard_map|pmap|make_mesh|\w*Mesh|NamedSharding|PartitionSpec|with_sharding_constraint)\b"
)
_ASKS_INDEX = re.compile(
    r"\b(?:process_(?:index|count|indices)|host_(?:ids?|count)|local_device(?:s|_count))\b"
)
_MAY_DIFFER = re.compile(
    r"""\b(?:set|frozenset|hash|id|open|read_text|read_bytes|load\w*|default_rng)\s*\("""
    r"""|\b(?:time|perf_counter|monotonic|now|today|uuid\d|getpid|gethostname)\s*\("""
    r"""|\b(?:glob|rglob|listdir|iterdir|scandir|getenv|environ)\b"""
    r"""|\b(?:np|numpy|onp)\.random\b|\brandom\.(?:random|randint|choice|shuffle|sample|uniform)\("""
    r"""|\{[^{}:]*(?:,|\bfor\b)[^{}:]*\}"""
)
"""Code whose values may differ between two runs: orders of sets, times, files, random numbers."""


@dataclass(eq=False, slots=True)
class ProcessExplorer:
    """Traces functions as several processes, for each answer once.

    Starting the processes takes some seconds of a core, and they hold 200 MiB each while they run.
    """

    _projects: Projects
    _memory: SessionMemory
    running: SharedWork[tuple[str, str, str], ProcessDifference | None] = field(
        default_factory=SharedWork
    )
    _sandboxes: Sandboxes = field(default_factory=Sandboxes)

    async def difference(self, answer: Answer, target: Target) -> ProcessDifference | None:
        """Return how the programs of processes differ; `None` if they do not, or nobody knows."""
        if not isinstance(answer.reply, Traced):
            return None
        if (known := self._last(answer, target)) is not None and known[0] == answer.key:
            return known[1]
        key = answer.question.path, answer.key, target.platform
        return await self.running.get(key, functools.partial(self._compare, answer, target))

    def has_differed(self, answer: Answer, target: Target) -> bool:
        """Return whether the function differed when it was last compared."""
        last = self._last(answer, target)
        return last is not None and last[1] is not None

    def _last(self, answer: Answer, target: Target) -> ComparedProcesses | None:
        return self._memory.processes.get((answer.question.unit, target.platform))

    async def aclose(self) -> None:
        """Cancel all that runs, and end the processes."""
        await self.running.aclose()
        await self._sandboxes.aclose()

    async def _compare(self, answer: Answer, target: Target) -> ProcessDifference | None:
        difference: ProcessDifference | None = None
        if indices := self._to_compare(answer):
            project = self._projects.of(answer.question.path)
            difference = await _Job(project, answer, target, self._sandboxes).compare(indices)
        compared = answer.key, difference
        self._memory.processes.put((answer.question.unit, target.platform), compared)
        return difference

    def _to_compare(self, answer: Answer) -> range:
        """Return the processes that are compared with process 0, by what the code mentions."""
        texts = [chunk.text for chunk in answer.question.slice.chunks]
        files = (path for path in answer.versions if path.endswith(".py"))
        texts += map(self._projects.texts.current, files)
        if not any(map(_SEVERAL_DEVICES.search, texts)):
            return range(0)
        if any(map(_ASKS_INDEX.search, texts)):
            return range(1, PROCESSES)
        return range(1, 2 if any(map(_MAY_DIFFER.search, texts)) else 1)


@dataclass(frozen=True, slots=True)
class _Program:
    """The program of a function in one process."""

    lowered: Lowered
    outlined: Outlined


class _Unknown(Exception):
    """A process has no program, so nothing is known of a difference."""


@dataclass(frozen=True, slots=True)
class _Job:
    """The traces of one function as processes of a job."""

    project: Project
    answer: Answer
    target: Target
    sandboxes: Sandboxes

    async def compare(self, indices: range) -> ProcessDifference | None:
        """Return the first difference of a process from process 0."""
        try:
            first = await self._peer(0)
            for index in indices:
                other = await self._peer(index)
                if other.lowered.key != first.lowered.key:
                    return await self._explained(first, other, index)
        except _Unknown:
            pass
        return None

    async def _peer(self, index: int) -> _Program:
        """Return the program of a process, which has a hash seed of its own.

        Raises:
            _Unknown: it has none.
        """
        sandbox = self.sandboxes.of(self.project, hash_seed=str(_FIRST_SEED + index))
        try:
            return await self._program(sandbox, index)
        finally:
            sandbox.rest()

    async def _explained(
        self, first: _Program, other: _Program, index: int
    ) -> ProcessDifference | None:
        """Return what decides, where the programs of two processes differ.

        A program for one device is no matter of other processes.
        """
        lowered = first.lowered, other.lowered
        if all(each.request.distribution is None for each in lowered):
            return None
        decides = Decides.INDEX
        reseeded = await self._fresh_program(_FIRST_SEED + index)
        if reseeded.lowered.key != first.lowered.key:
            other, decides = reseeded, Decides.HASH_SEED
            again = await self._fresh_program(_FIRST_SEED)
            if again.lowered.key != first.lowered.key:
                other, decides = again, Decides.RUN
        step, span = first_difference(first.outlined.program, other.outlined.program)
        return ProcessDifference(decides, index, step.primitive if step is not None else "", span)

    async def _fresh_program(self, seed: int) -> _Program:
        """Return the program of process 0 in a tracer that has executed nothing before.

        Raises:
            _Unknown: it has none.
        """
        sandbox = Sandbox(self.project, hash_seed=str(seed))
        try:
            return await self._program(sandbox, 0)
        finally:
            await sandbox.aclose()

    async def _program(self, sandbox: Sandbox, index: int) -> _Program:
        """Return the program of a process.

        Raises:
            _Unknown: it has none, or a file that the answer was made of has changed.
        """
        process, question = FakeProcess(index, PROCESSES), self.answer.question
        trace = replace(question.trace, process=process, unasked=True)
        traced = await sandbox.trace(replace(question, trace=trace))
        if traced is None or not isinstance(traced.reply, Traced):
            raise _Unknown
        if not self.answer.agrees_with(traced.versions.items()):
            raise _Unknown
        lowered = await sandbox.lower(traced, self.target)
        outlined = await sandbox.outline(traced)
        if not isinstance(lowered, Lowered) or outlined is None:
            raise _Unknown
        return _Program(lowered, outlined)


# Where two programs of one function differ.


def first_difference(first: TracedProgram, other: TracedProgram) -> tuple[Step | None, Span | None]:
    """Return the first equation of one program that is not one of the other, and its place.

    Both are `None` if the equations are the same.
    """
    lines = itertools.zip_longest(_lines(first.body, None, first), _lines(other.body, None, other))
    for one, two in lines:
        if one is None or two is None or one[0] != two[0]:
            # Where one ends an equation, the other has further ones in it.
            line = two if one is None or (two is not None and one[1] and not two[1]) else one
            return line[2], next(_spans(line[2]), line[3])
    return None, None


_Line = tuple[object, bool, Step, Span | None]
"""What begins or ends an equation, whether it ends it, the equation, and a place around it."""


def _lines(body: Body, around: Span | None, program: TracedProgram) -> Iterator[_Line]:
    for step in body.steps:
        inputs = [inner.inputs for inner in step.bodies]
        yield (step.primitive, _operands(step, program), inputs), False, step, around
        for inner in step.bodies:
            yield from _lines(inner, step.span or around, program)
        yield _ends(step), True, step, around


def _operands(step: Step, program: TracedProgram) -> list[object]:
    """Return what an equation reads: numbers of values, and scalars and captured arrays."""
    values = [program.values[operand] for operand in step.operands]
    return [
        operand if value.origin in (INPUT, RESULT) else replace(value, weak=False)
        for operand, value in zip(step.operands, values, strict=True)
    ]


def _ends(step: Step) -> object:
    """Return what else an equation is."""
    return step.results, step.parameters, [(body.name, body.outputs) for body in step.bodies]


def _spans(step: Step) -> Iterator[Span]:
    """Yield the places of an equation, or else of those in it."""
    if step.span is not None:
        yield step.span
    for body in step.bodies:
        for inner in body.steps:
            yield from _spans(inner)
