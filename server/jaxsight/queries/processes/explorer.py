"""Trace a function as the processes of a job, in tracers of their own with other hash seeds."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from jaxsight.projects.project import Project
from jaxsight.projects.projects import Projects
from jaxsight.queries.long_work import forget
from jaxsight.queries.memory import ComparedProcesses, SessionMemory
from jaxsight.queries.processes.comparison import ProcessDifference, first_difference
from jaxsight.queries.sandbox import Sandbox
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.rules.rule import Decides
from jaxsight.targets.target import Target
from jaxsight.wire.messages.replies import Lowered, Outlined, Traced
from jaxsight.wire.seen_device import SeenProcess

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
    _running: dict[tuple[str, str], _Running] = field(default_factory=dict)
    _peers: _Peers = field(default_factory=lambda: _Peers())

    async def difference(self, answer: Answer, target: Target) -> ProcessDifference | None:
        """Return how the programs of processes differ; `None` if they do not, or nobody knows."""
        if not isinstance(answer.reply, Traced):
            return None
        if (known := self._last(answer, target)) is not None and known[0] == answer.key:
            return known[1]
        key = answer.key, target.platform
        if (running := self._running.get(key)) is None:
            task = asyncio.create_task(self._compare(answer, target))
            running = self._running[key] = _Running(answer.question.path, task)
            task.add_done_callback(lambda done: forget(self._running, key, done))
        try:
            return await asyncio.shield(running.task)
        except asyncio.CancelledError:
            if running.task.cancelled():
                return None
            raise

    def has_differed(self, answer: Answer, target: Target) -> bool:
        """Return whether the function differed when it was last compared."""
        last = self._last(answer, target)
        return last is not None and last[1] is not None

    def _last(self, answer: Answer, target: Target) -> ComparedProcesses | None:
        return self._memory.processes.get((answer.question.unit, target.platform))

    def cancel(self, path: str) -> None:
        """Cancel what runs for a file: its text changed, or it was closed."""
        for running in list(self._running.values()):
            if running.path == path:
                running.task.cancel()

    def cancel_all(self) -> None:
        """Cancel all that runs."""
        for running in list(self._running.values()):
            running.task.cancel()

    async def aclose(self) -> None:
        """Cancel all that runs, and end the processes."""
        self.cancel_all()
        await self._peers.aclose()

    async def _compare(self, answer: Answer, target: Target) -> ProcessDifference | None:
        difference: ProcessDifference | None = None
        if indices := self._to_compare(answer):
            project = self._projects.of(answer.question.path)
            with self._peers.in_use():
                difference = await _Job(project, answer, target, self._peers).compare(indices)
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
class _Running:
    path: str
    task: asyncio.Task[ProcessDifference | None]


@dataclass(frozen=True, slots=True)
class _Program:
    """The program of a function in one process."""

    lowered: Lowered
    outlined: Outlined


class _Unknown(Exception):
    """A process has no program, so nothing is known of a difference."""


class _Peers:
    """The sandboxes that show a process of a job each, with a hash seed of its own."""

    def __init__(self) -> None:
        self._open: dict[tuple[Project, int], Sandbox] = {}
        self._users = 0

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the processes in this block, and end them a while after the last one."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                for sandbox in self._open.values():
                    sandbox.rest()

    def of(self, project: Project, index: int) -> Sandbox:
        """Return the sandbox of a process."""
        if (project, index) not in self._open:
            self._open[project, index] = Sandbox(project, hash_seed=str(_FIRST_SEED + index))
        return self._open[project, index]

    async def aclose(self) -> None:
        """End the processes."""
        sandboxes = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(sandbox.aclose() for sandbox in sandboxes))


@dataclass(frozen=True, slots=True)
class _Job:
    """The traces of one function as processes of a job."""

    project: Project
    answer: Answer
    target: Target
    peers: _Peers

    async def compare(self, indices: range) -> ProcessDifference | None:
        """Return the first difference of a process from process 0."""
        try:
            first = await self._program(self.peers.of(self.project, 0), 0)
            for index in indices:
                other = await self._program(self.peers.of(self.project, index), index)
                if other.lowered.key != first.lowered.key:
                    return await self._explained(first, other, index)
        except _Unknown:
            pass
        return None

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
        process, question = SeenProcess(index, PROCESSES), self.answer.question
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
