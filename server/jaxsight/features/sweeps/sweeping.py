"""Compile a function with one size after another."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxsight.features.findings import failures
from jaxsight.features.named_function import traced_function
from jaxsight.features.sweeps.resized import ResizableInputs
from jaxsight.queries.choices import named_target
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.measurements import NotMeasured
from jaxsight.queries.programs.compile_result import CompileResult
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.query import Unasked
from jaxsight.source.module import Module
from jaxsight.sweeps.memory_search import MemorySearch
from jaxsight.sweeps.points import LargestSize, Sweep, SweepPoint, point_of
from jaxsight.sweeps.swept_sizes import Sizes, SweptSize, combined, written
from jaxsight.targets.target import Target
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.compilation.queue import Urgency
from jaxsight.workers.request_queue import Priority

OnPoint = Callable[[SweepPoint, int, int], None]
"""Called with a point, how many points there are by now, and how many there will be."""

_AT_A_TIME = 2
"""Points at a time: the tracer traces the next one while the compiler compiles the one before."""

_EXHAUSTED = ("RESOURCE_EXHAUSTED", "Ran out of memory", "exceeds the memory")
"""Words of XLA's errors for a program that is too large for the device, such as of TPUs, whose
compiler rejects it (`xla/service/hlo_rematerialization.cc`, libtpu)."""


@dataclass(frozen=True, slots=True)
class _Sweeping:
    """A function that is swept for a target."""

    engine: Engine
    document: Document
    subject: Subject
    module: Module
    inputs: ResizableInputs
    target: Target

    @staticmethod
    async def of(
        engine: Engine,
        path: str,
        function: str,
        swept: Sequence[SweptSize],
        target: str | None,
        measured: bool,
    ) -> _Sweeping:
        """Return the sweep of a function, once it is traced with its given sizes."""
        view = await traced_function(engine, path, function)
        inputs = ResizableInputs.of(view.answer.question)
        inputs.check((size.name for size in swept), function)
        document, subject = engine.documents.find(path, function)
        chosen = named_target(target) if target else engine.choices.target(path)
        if measured:
            chosen = chosen if target else engine.measurements.target(path)
            try:
                engine.measurements.check(path, chosen)
            except NotMeasured as error:
                raise LookupError(str(error)) from error
        return _Sweeping(engine, document, subject, document.module, inputs, chosen)

    async def point(self, sizes: Sizes, *, measured: bool = False) -> SweepPoint:
        """Trace and compile the function with sizes; with `measured`, also run it."""
        example_set = self.inputs.at(sizes)
        if example_set is None:
            return SweepPoint(sizes, "a size would be negative")
        traces = self.engine.traces
        if self.document.module is not self.module:
            return SweepPoint(sizes, "the text was edited meanwhile")
        question = await traces.question(self.document, self.subject, example_set)
        if isinstance(question, Unasked):
            return SweepPoint(sizes, question.reason)
        tracing = functools.partial(
            tracer_requests.trace, self.engine.projects.of(self.document.path)
        )
        answer = await traces.cache.for_device(question, tracing, Priority.DOCUMENT)
        view = traces.located(
            answer, self.module, question, self.subject, role=f"sweep {written(sizes)}"
        )
        if not view.is_traced:
            return SweepPoint(sizes, f"cannot be traced: {failures.summary(view)}")
        result = await self.engine.programs.with_temporaries(
            view, self.target, urgency=Urgency.UNSEEN
        )
        if result is None:
            return SweepPoint(sizes, "cannot be lowered: the tracer ended")
        point = _point(sizes, result)
        if not measured or not point.is_compiled:
            return point
        try:
            run = await self.engine.measurements.run(view, self.target)
        except NotMeasured as error:
            return replace(point, problem=f"not measured: {error.message}")
        return replace(point, wall_seconds=run.times.wall.median)


def _point(sizes: Sizes, result: CompileResult) -> SweepPoint:
    match result.outcome:
        case Trouble(kind=kind, message=message):
            is_too_large = kind == "xla" and any(words in message for words in _EXHAUSTED)
            return SweepPoint(sizes, message, is_too_large)
        case Compiled() as compiled:
            equations = result.lowered.equations if result.lowered is not None else ()
            return point_of(
                sizes,
                compiled.graph,
                result.target,
                temporaries=compiled.temporaries,
                temporaries_at_most=compiled.temporaries_at_most,
                aliases=compiled.aliases,
                program=tuple(f"{each.path} {each.primitive}" for each in equations),
            )


async def sweep(
    engine: Engine,
    path: str,
    function: str,
    swept: Sequence[SweptSize],
    target: str | None = None,
    *,
    memory: int | None = None,
    largest: bool = True,
    measured: bool = False,
    on_point: OnPoint | None = None,
) -> Sweep:
    """Return a function's figures with each combination of sizes.

    Args:
        engine: the engine.
        path: an open document.
        function: the function's qualified name.
        swept: the sizes; that of the curves is the first.
        target: the target's name; by default the first.
        memory: the bytes that programs may need; by default those of the target's chip. This
            machine's CPU has none.
        largest: whether to look for the largest first size that fits.
        measured: whether to run the function with each size; the user must have asked for it. The
            target is then one that is here, by default this machine's device.
        on_point: called with each point when it is compiled.

    Raises:
        LookupError: no such function, size or target, or it cannot be traced as it is.
        BadSizes: there are too many points, or a size is there twice.
    """
    every = combined(swept)
    sweeping = await _Sweeping.of(engine, path, function, swept, target, measured)
    chosen = sweeping.target
    # Nothing else compiles while the function runs.
    turns, done = asyncio.Semaphore(1 if measured else _AT_A_TIME), 0

    async def compiled(sizes: Sizes) -> SweepPoint:
        nonlocal done
        async with turns:
            point = await sweeping.point(sizes, measured=measured)
        done += 1
        if on_point is not None:
            on_point(point, done, len(every))
        return point

    points = await asyncio.gather(*map(compiled, every))
    found = Sweep(function, chosen.name, tuple(swept), tuple(points))
    capacity = chosen.chip.memory if memory is None and chosen.chip is not None else memory
    if not largest or capacity is None:
        return found
    searches = [
        await _largest(sweeping, swept[0], points, capacity) for _, points in found.curves()
    ]
    return replace(found, largest=tuple(searches))


async def _largest(
    sweeping: _Sweeping, size: SweptSize, points: Sequence[SweepPoint], capacity: int
) -> LargestSize:
    """Return the largest size of a curve that fits in memory."""
    search = MemorySearch.of(size, points, capacity)
    while (sizes := search.following()) is not None:
        search.take(await sweeping.point(sizes))
    return search.found()
