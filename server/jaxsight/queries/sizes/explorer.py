"""What is known of the sizes of functions, and the traces in the background that show it."""

from __future__ import annotations

import asyncio
import functools
import time
from dataclasses import dataclass, field, replace

from jaxsight.examples.resizing import SizedInputs, has_numbers, sized_inputs, with_assumed_names
from jaxsight.projects.project import Project
from jaxsight.projects.projects import Projects
from jaxsight.queries.long_work import SharedWork
from jaxsight.queries.memory import SessionMemory
from jaxsight.queries.sizes.exploring import Explored, Sizes, Stopped, explore
from jaxsight.queries.sizes.naming import with_literals
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.queries.traces.query import Question
from jaxsight.source.analysis.shape_unpacking import named_dimensions
from jaxsight.source.statements import tree_of
from jaxsight.wire.messages.replies import Failed, Traced
from jaxsight.workers.supervisor import Priority

_SHARE = 10
"""Times as long as with the given sizes that a trace may take: unrolled loops take longer."""
_LEAST = 2.0
"""Seconds that each trace may take at least, a choice: a busy machine delays short ones."""
_MOST = 20.0
"""Seconds that the traces of one function may take together, a choice: the tracer is busy."""


@dataclass(eq=False, slots=True)
class SizeExplorer:
    """Traces functions with other sizes, for each answer once."""

    _projects: Projects
    _memory: SessionMemory
    running: SharedWork[tuple[str, str], Explored] = field(default_factory=SharedWork)
    _seconds: dict[str, float] = field(default_factory=dict)

    def cached(self, answer: Answer) -> Explored | None:
        """Return what is known about an answer's function; `None` if it was not explored."""
        return self._memory.sizes.get((answer.question.unit, answer.key))

    def is_quick(self, question: Question, patience: float) -> bool:
        """Return whether the function was last explored within `patience` seconds."""
        return self._seconds.get(_unit(question), patience) < patience

    async def explored(self, answer: Answer) -> Explored:
        """Trace the function of an answer with other sizes, unless that was done; see `explore`."""
        known = self.cached(answer)
        if known is not None or not isinstance(answer.reply, Traced):
            return known or Explored()
        exploring = functools.partial(self._explore, answer, answer.reply)
        return await self.running.get((answer.question.path, answer.key), exploring) or Explored()

    async def _explore(self, answer: Answer, first: Traced) -> Explored:
        question = answer.question
        inputs, by_number = inputs_of(question)
        began = time.monotonic()
        seconds = sum(seconds for _, seconds in first.seconds)
        tracing = _Tracing(self._projects.of(question.path), answer, seconds)
        explored = await explore(inputs, by_number, first, tracing.trace)
        assumed = by_number if inputs.is_assumed else None
        used = explored.names.inputs or assumed or inputs
        explored = replace(explored, names=with_literals(explored.names, used))
        self._seconds[_unit(question)] = time.monotonic() - began
        self._memory.sizes.put((question.unit, answer.key), explored)
        return explored


@dataclass(slots=True)
class _Tracing:
    """The traces of one question with other sizes."""

    project: Project
    answer: Answer
    seconds: float
    """Duration of the trace with the given sizes."""
    spent: float = 0.0

    async def trace(self, inputs: SizedInputs, sizes: Sizes) -> Traced | Failed:
        """Trace with other sizes, behind all that somebody waits for.

        Raises:
            Stopped: it takes too long, has effects that are refused, the tracer ended, or a file
                that the answer was made of has changed.
        """
        if (resized := inputs.resized(sizes)) is None or self.spent > _MOST:
            raise Stopped
        arguments, named = resized.arguments, resized.sizes
        trace = self.answer.question.trace
        request = replace(trace, arguments=arguments, sizes=named, unasked=True, keep=False)
        begun: list[float] = []
        asking = asyncio.ensure_future(
            self.project.ask(
                request,
                priority=Priority.BACKGROUND,
                on_stage=lambda stage: begun.append(time.monotonic()),
            )
        )
        limit = max(_LEAST, _SHARE * self.seconds)
        try:
            while not asking.done():
                await asyncio.wait([asking], timeout=limit)
                if begun and time.monotonic() - begun[0] > limit:
                    break
        finally:
            asking.cancel()
        self.spent += time.monotonic() - begun[0] if begun else 0.0
        if not asking.done() or asking.cancelled():
            raise Stopped
        reply = asking.result()
        if not isinstance(reply, Traced | Failed):
            raise Stopped
        if not self.answer.agrees_with(reply.files):
            raise Stopped
        if isinstance(reply, Failed) and reply.failure.was_refused:
            raise Stopped
        return reply


def inputs_of(question: Question) -> tuple[SizedInputs, SizedInputs | None]:
    """Return a question's example inputs with named sizes, also with equal numbers as one size."""
    subject = question.subject
    try:
        unpacked = named_dimensions(tree_of(subject.chunk.text), subject.function)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        unpacked = ()
    inputs = sized_inputs(question.set, subject.function, unpacked)
    if question.set.assumed:
        return (
            with_assumed_names(inputs, subject.function),
            with_assumed_names(inputs, subject.function, by_number=True),
        )
    if not has_numbers(inputs):
        return inputs, None
    return inputs, sized_inputs(question.set, subject.function, unpacked, by_number=True)


def _unit(question: Question) -> str:
    return f"{question.path}:{question.subject.id}"
