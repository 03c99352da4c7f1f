"""Measured times of functions: they are run only when the user asks, one at a time.

A measurement runs the user's function, so nothing here starts by itself: `Measurements.measure`
alone runs something, and it is called by a command of the user. A tracer process of its own runs
the function; its end is how a measurement is cancelled, and costs no answer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from jaxsight.projects.project import Project
from jaxsight.projects.projects import Projects
from jaxsight.queries.choices import UserChoices
from jaxsight.queries.long_work import end
from jaxsight.queries.memory import Measurement, SessionMemory
from jaxsight.queries.programs.located_figures import Refused
from jaxsight.queries.programs.programs import Programs
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.queries.traces.query import Question
from jaxsight.targets.target import CPU, Target, parse, recognized
from jaxsight.wire.messages.measuring import Measured, MeasuringLimits
from jaxsight.wire.messages.replies import Cancelled, Failed, Stage, Traced
from jaxsight.wire.messages.requests import NEW, Measure
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.compilation.default_target import own_target
from jaxsight.workers.results import Died
from jaxsight.workers.supervisor import Priority, Tracers

Function = tuple[str, str]
"""A file and the qualified name of a function."""

OnStage = Callable[[Stage], None]


class NotMeasured(Exception):
    """A function was not measured; `message` is a clause for users, `help` what to do about it."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(f"{message}; {help}" if help else message)
        self.message = message
        self.help = help


class MeasuringCancelled(NotMeasured):
    """The user cancelled it, or the text has changed meanwhile."""

    def __init__(self) -> None:
        super().__init__("the measurement was cancelled")


@dataclass(eq=False, slots=True)
class Measurements:
    """The measurements of a session."""

    _projects: Projects
    _choices: UserChoices
    _memory: SessionMemory
    _programs: Programs
    _running: dict[Function, asyncio.Task[Measurement]] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def last(self, view: View, target: Target | None = None) -> tuple[Measurement, bool] | None:
        """Return the last measurement of a function, and whether it is stale; measure nothing.

        It is if the function, or what it depends on, has changed since.

        Args:
            view: the function.
            target: the target, by default the first.
        """
        question = view.answer.question
        target = target or self._choices.target(question.path)
        if (found := self._memory.measured.get((*question.unit, target.name))) is None:
            return None
        return found, view.stale or found.answer.key != view.answer.key

    def target(self, path: str) -> Target:
        """Return the target that a file's functions are measured on, unless another is named.

        It is the first one if that is here, else the CPU.
        """
        first = self._choices.target(path)
        return first if first.is_here else parse(CPU)

    def check(self, path: str, target: Target) -> None:
        """Check that a file's functions may be run on a target, without running anything.

        Raises:
            NotMeasured: they may not, or the target is not here.
        """
        project = self._projects.of(path)
        if not target.is_own:
            machine = target.host or "this machine"
            raise NotMeasured(
                f"{target.name} is compiled for, but it is no device of {machine}",
                f"measure on {CPU}, or on the machine's own GPU or TPU: cuda, rocm or tpu",
            )
        if project.held_back:
            project.ask_consent()
            raise NotMeasured(project.held_back)
        if project.interpreter is None:
            raise NotMeasured(project.problem)

    def is_running(self, path: str, function: str) -> bool:
        """Return whether a function is being measured, or waits for its turn."""
        return (path, function) in self._running

    async def measure(
        self,
        view: View,
        target: Target | None = None,
        *,
        against: View | None = None,
        limits: MeasuringLimits | None = None,
        on_stage: OnStage = lambda stage: None,
    ) -> Measurement:
        """Run a function and return what it took; the user must have asked for it.

        It waits for other measurements of this machine. Cancelling the caller cancels it, and so
        does another measurement of the same function. Its process ends with it.

        Args:
            view: the function, which is traced.
            target: a machine's own device, of this or another machine; by default see `target`.
            against: another function of the same project, whose runs alternate with its own; only
                on this machine.
            limits: what ends the runs.
            on_stage: called with each stage: `execute`, `inputs`, `trace`, `wait`, `compile`,
                `measure` and `profile`; `detail` is for users.

        Raises:
            NotMeasured: the target is not here, code may not run, or it fails.
            MeasuringCancelled: the user cancelled it.
        """
        question = view.answer.question
        target = target or self.target(question.path)
        function = question.path, view.subject.id
        self.cancel(*function)
        running = self.run(view, target, against=against, limits=limits, on_stage=on_stage)
        task = self._running[function] = asyncio.create_task(running)
        try:
            measurement = await task
            self._memory.measured.put((*question.unit, target.name), measurement)
            return measurement
        except asyncio.CancelledError:
            if not task.cancelled():
                task.cancel()
                raise
            if (current := asyncio.current_task()) is not None and current.cancelling():
                raise
            raise MeasuringCancelled from None
        finally:
            if self._running.get(function) is task:
                del self._running[function]

    async def run(
        self,
        view: View,
        target: Target,
        *,
        against: View | None = None,
        limits: MeasuringLimits | None = None,
        on_stage: OnStage = lambda stage: None,
    ) -> Measurement:
        """Run a function as `measure` does, without remembering it: for sizes of a sweep.

        Only cancelling the caller cancels it.
        """
        limits = limits or MeasuringLimits()
        self.check(view.answer.question.path, target)
        if target.host and against is not None:
            raise NotMeasured("two functions are compared on this machine only")
        async with self._turn:
            if target.host:
                reply = await self._on_host(view, target, limits, on_stage)
            else:
                views = (view, against) if against is not None else (view,)
                reply = await self._here(views, target, limits, on_stage)
        on = recognized(target, reply.conditions.device_kind if target.platform != CPU else "")
        # With the answer that is shown: its key says whether the texts are still the same.
        return Measurement(view.answer, on, reply)

    async def _on_host(
        self, view: View, target: Target, limits: MeasuringLimits, on_stage: OnStage
    ) -> Measured:
        """Run a function's program on another machine, which has nothing else of it.

        Raises:
            NotMeasured: the host is not allowed or not reached, or the program fails there.
        """
        result = await self._programs.result(view, target, urgency=Priority.PERSON)
        if result is None:
            raise NotMeasured(f"{view.subject.name} cannot be lowered: the tracer ended")
        if isinstance(result, Refused):
            raise NotMeasured(result.trouble.message)
        project = self._projects.of(view.answer.question.path)
        assert project.interpreter is not None
        on_stage(Stage(NEW, "measure", f"{view.subject.name} on {target.host}"))
        compiling, timeouts = self._programs.compiling(), project.settings.timeouts
        prepared = await compiling.prepared(result.lowered, target, project.interpreter.path)
        if isinstance(prepared, Trouble):
            raise NotMeasured(prepared.message)
        _, request, environment = prepared
        outcome = await compiling.compilers.run(
            target,
            environment,
            replace(request, complete=True, runs=limits),
            timeouts.compile + timeouts.measure,
        )
        if isinstance(outcome, Trouble):
            raise NotMeasured(outcome.message)
        measured = outcome.measured
        assert measured is not None
        names = result.lowered.parameters
        times = measured.program
        drawn = tuple(names) if len(names) == len(times.drawn) else times.drawn
        return replace(measured, program=replace(times, drawn=drawn))

    async def _here(
        self, views: Sequence[View], target: Target, limits: MeasuringLimits, on_stage: OnStage
    ) -> Measured:
        """Run a function in a tracer of its own, which ends with it.

        Raises:
            NotMeasured: it fails, or exceeds a limit.
        """
        project = self._projects.of(views[0].answer.question.path)
        platforms = CPU if target.platform == CPU else f"{target.platform},{CPU}"
        tracers = project.other_tracers({"JAX_PLATFORMS": platforms}, confined=False)
        try:
            answers = [
                await _traced(tracers, project, each.answer.question, target, on_stage)
                for each in views
            ]
            ids = [answer.reply.id for answer in answers if isinstance(answer.reply, Traced)]
            request = Measure(NEW, ids[0], ids[1] if len(ids) > 1 else 0, limits)
            reply = await tracers.ask(request, priority=Priority.PERSON, on_stage=on_stage)
        finally:
            await asyncio.shield(tracers.aclose())
        match reply:
            case Measured():
                return reply
            case Failed(failure=failure):
                raise NotMeasured(f"{views[0].subject.name} fails: {failure.message}")
            case Died() as died:
                raise NotMeasured(died.message, died.help)
            case Cancelled():
                raise MeasuringCancelled
        assert_never(reply)

    def cancel(self, path: str, function: str = "") -> bool:
        """Cancel the measurements of a file, or of one function; return whether there was one.

        The process that runs them is killed at once.
        """
        chosen = [
            task
            for (of, name), task in self._running.items()
            if of == path and function in ("", name)
        ]
        for task in chosen:
            task.cancel()
        return bool(chosen)

    async def aclose(self) -> None:
        """Cancel everything, and wait until the processes have ended."""
        await end(self._running.values())


async def _traced(
    tracers: Tracers, project: Project, question: Question, target: Target, on_stage: OnStage
) -> Answer:
    """Return the answer to a question of the process that will run it.

    Raises:
        NotMeasured: it has no answer there.
    """
    trace = replace(
        question.trace,
        device=own_target(target, os.environ).device,
        with_values=True,
        unasked=False,
    )
    reply = await project.sources.collect(
        tracers.ask(trace, priority=Priority.PERSON, on_stage=on_stage, texts=project.texts.open)
    )
    name = question.subject.name
    match reply:
        case Traced():
            return Answer(question, reply, dict(reply.files))
        case Failed(failure=failure):
            raise NotMeasured(f"{name} cannot be traced: {failure.message}")
        case Died() as died:
            raise NotMeasured(died.message, died.help)
    raise MeasuringCancelled
