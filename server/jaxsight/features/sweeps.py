"""Compile a function with one size after another."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxsight.examples.resizing import SizedInputs
from jaxsight.examples.sets import ExampleSet
from jaxsight.features.findings import failures
from jaxsight.features.named_function import traced_function
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.measurements import NotMeasured
from jaxsight.queries.programs.located_figures import Refused
from jaxsight.queries.sizes.explorer import inputs_of
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.query import Question, Unasked
from jaxsight.source.module import Module
from jaxsight.sweeps import table
from jaxsight.sweeps.memory_search import MemorySearch
from jaxsight.sweeps.picture import Picture, picture
from jaxsight.sweeps.points import (
    BadSizes,
    Sizes,
    Sweep,
    SweepPoint,
    SweptSize,
    combined,
    parse,
    point_of,
    written,
)
from jaxsight.targets.target import Target
from jaxsight.targets.target import parse as parse_target
from jaxsight.text.units import some
from jaxsight.wire.messages.inputs import Argument, ValueSpec
from jaxsight.workers.request_queue import Priority

# Example inputs with the sizes of a sweep: named sizes, and whole numbers that are arguments.

_WHOLE = re.compile(r"\d+")
_LISTED = 8
"""Names that an error lists, a choice: those of most functions."""


@dataclass(frozen=True, slots=True)
class ResizableInputs:
    """A function's example inputs, and what of them may have other values."""

    inputs: SizedInputs
    numbers: Mapping[str, int | None]
    """Parameters that are whole numbers, and their values; `None` for a default."""

    @staticmethod
    def of(question: Question) -> ResizableInputs:
        """Return the inputs of a question.

        Raises:
            LookupError: they are those of a call, which has its own sizes.
        """
        name, inputs = question.subject.name, question.set
        if inputs.dry_call is not None:
            raise LookupError(
                f"the inputs of {name} are those of a call, whose sizes are fixed; "
                "add example inputs with a size, such as `x: f32[B, 128]` and `where B=8`"
            )
        sized, by_number = inputs_of(question)
        if inputs.assumed and by_number is not None:
            sized = by_number
        numbers: dict[str, int | None] = {
            argument.name: int(argument.spec.source)
            for argument in inputs.arguments
            if isinstance(argument.spec, ValueSpec) and _WHOLE.fullmatch(argument.spec.source)
        }
        given = {argument.name for argument in inputs.arguments}
        for parameter in question.subject.function.parameters:
            if parameter.name not in given and _WHOLE.fullmatch(parameter.default or ""):
                numbers[parameter.name] = None
        return ResizableInputs(sized, numbers)

    @property
    def current_sizes(self) -> dict[str, int | None]:
        """What may be swept, with its given value; `None` for a default."""
        return {**self.inputs.sizes, **self.numbers}

    def check(self, names: Iterable[str], function: str) -> None:
        """Check that the inputs have these sizes.

        Raises:
            LookupError: one is not there; the message lists those that are.
        """
        for name in names:
            if name in self.current_sizes:
                continue
            if name in self.inputs.definitions:
                raise LookupError(f"{name} of {function} follows from other sizes; sweep those")
            raise LookupError(
                f"{function} has no size {name}; it has {some([*self.current_sizes], _LISTED)}"
                if self.current_sizes
                else f"{function} has no named size: write {name} in its example inputs, such as "
                f"`x: f32[{name}, 128]` and `where {name}=8`"
            )

    def at(self, sizes: Sizes) -> ExampleSet | None:
        """Return the example set with other sizes; `None` if one that follows would be negative.

        Its name tells it from the set that the user works with, of which caches know the last.
        """
        named = {name: size for name, size in sizes.items() if name in self.inputs.sizes}
        if (resized := self.inputs.resized({**self.inputs.sizes, **named})) is None:
            return None
        values = {name: size for name, size in sizes.items() if name not in named}
        arguments = [
            Argument(argument.name, ValueSpec(str(values.pop(argument.name)), literal=True))
            if argument.name in values
            else argument
            for argument in resized.arguments
        ]
        arguments += [
            Argument(name, ValueSpec(str(size), literal=True)) for name, size in values.items()
        ]
        name = f"{resized.name} {written(sizes)}".lstrip()
        return replace(resized, name=name, arguments=tuple(arguments), expects=())


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

    async def point(self, sizes: Sizes, *, measured: bool = False) -> SweepPoint:
        """Trace and compile the function with sizes; with `measured`, also run it."""
        if (example_set := self.inputs.at(sizes)) is None:
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
            view, self.target, urgency=Priority.BACKGROUND
        )
        if result is None:
            return SweepPoint(sizes, "cannot be lowered: the tracer ended")
        if isinstance(result, Refused):
            message = result.trouble.message
            is_full = any(words in message for words in _EXHAUSTED)
            return SweepPoint(sizes, message, result.trouble.kind == "xla" and is_full)
        point = point_of(sizes, result)
        if not measured or not point.is_compiled:
            return point
        try:
            run = await self.engine.measurements.run(view, self.target)
        except NotMeasured as error:
            return replace(point, problem=f"not measured: {error.message}")
        return replace(point, wall_seconds=run.times.wall.median)


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
    view = await traced_function(engine, path, function)
    inputs = ResizableInputs.of(view.answer.question)
    inputs.check((size.name for size in swept), function)
    document, subject = engine.documents.find(path, function)
    chosen = parse_target(target) if target else engine.choices.target(path)
    if measured:
        chosen = chosen if target else engine.measurements.target(path)
        try:
            engine.measurements.check(path, chosen)
        except NotMeasured as error:
            raise LookupError(str(error)) from error
    sweeping = _Sweeping(engine, document, subject, document.module, inputs, chosen)
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
    searches = [MemorySearch.of(swept[0], curve, capacity) for _, curve in found.curves()]
    for search in searches:
        while (sizes := search.following()) is not None:
            search.take(await sweeping.point(sizes))
    return replace(found, largest=tuple(search.largest() for search in searches))


# A sweep as an editor shows it: curves, a table, and what may be swept.


_AT_LEAST = 64
"""The last value of a suggested sweep at least, a choice: seven points."""


@dataclass(frozen=True, slots=True)
class DrawnSweep:
    """What a panel shows of a sweep; before one, only what may be swept."""

    suggested: str
    """Sizes with values, `B=1..64`, of the first that may be swept; empty if there is none."""
    sizes: tuple[str, ...]
    """The names of all that may be swept."""
    picture: Picture | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = ()
    trouble: str = ""
    """Why there is no picture."""


async def drawn_sweep(
    engine: Engine, path: str, function: str, texts: Sequence[str], figure: str
) -> DrawnSweep:
    """Return a sweep of a function for the first target.

    Args:
        engine: the engine.
        path: an open document.
        function: the function's qualified name.
        texts: the sizes, as on the command line (`B=1..64`); none for what may be swept.
        figure: the name of the figure that is drawn.
    """
    suggested, names = "", tuple[str, ...]()
    try:
        view = await traced_function(engine, path, function)
        given = ResizableInputs.of(view.answer.question).current_sizes
        names = tuple(given)
        for name, value in [*given.items()][:1]:
            suggested = f"{name}=1..{max(_AT_LEAST, 4 * (value or 0))}"
        if not texts:
            return DrawnSweep(suggested, names)
        swept = []
        for text in texts:
            if (size := parse(text)) is None:
                raise BadSizes(f"invalid sizes {text!r}; write e.g. {suggested or 'B=1..64'}")
            swept.append(size)
        shown = drawn(await sweep(engine, path, function, swept), figure)
    except (LookupError, BadSizes) as error:
        return DrawnSweep(suggested, names, trouble=str(error.args[0]))
    return replace(shown, suggested=suggested, sizes=names)


def drawn(found: Sweep, figure: str) -> DrawnSweep:
    """Return a sweep with the curves of a figure.

    Raises:
        LookupError: no point has this figure.
    """
    curves = picture([found], table.FIGURES[figure])
    return DrawnSweep(
        "",
        tuple(size.name for size in found.swept),
        curves,
        table.titles(found),
        tuple(table.rows(found)),
        tuple(table.remarks(found)),
    )
