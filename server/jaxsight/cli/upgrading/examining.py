"""Trace, compile and run the functions of files with one interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.options import InputsChoice
from jaxsight.cli.sources.texts import SourceFile
from jaxsight.features.findings import failures, inputs
from jaxsight.features.locked.functions import facts_of_kernels
from jaxsight.locks.facts import ProgramFacts
from jaxsight.queries.programs.compile_result import CompileResult
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.queries.sandbox import Sandbox, Sandboxes
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.targets.target import Target
from jaxsight.text.inert import clause
from jaxsight.wire.messages.replies import Evaluated, Lowered, Sampled, Traced
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.results import Died

_DEPRECATIONS = frozenset({"DeprecationWarning", "PendingDeprecationWarning", "FutureWarning"})
_LONGEST = 160
"""Characters of an error, a choice: two lines of a terminal."""

FunctionName = tuple[str, str]
"""A file and the qualified name of a function."""


@dataclass(frozen=True, slots=True)
class ExaminedFunction:
    """What a function is with one interpreter."""

    inputs: object = None
    """What it was traced with, to compare; `None` if it was not asked for."""
    described: str = ""
    """The inputs in a clause."""
    error: str = ""
    """Why it has no trace, or is not compiled."""
    place: int = 0
    """The line (from 1) of the error; 0 for none."""
    outputs: str = ""
    trace_seconds: float | None = None
    """How long JAX traced it and lowered it to StableHLO, of two times the shorter one."""
    compile_seconds: float | None = None
    costs: ProgramFacts | None = None
    deprecations: tuple[str, ...] = ()
    results: tuple[Sampled, ...] = ()
    not_run: str = ""
    """Why it was not run."""
    slopes: tuple[Sampled, ...] = ()
    """What its gradient is, if it has one."""
    slopes_not_run: str = ""
    """Why the gradient was not run, if only that was not."""

    @staticmethod
    def of(view: View) -> ExaminedFunction:
        """Return what is known of a function from its trace."""
        reply, question = view.answer.reply, view.answer.question
        trace = question.trace
        given = (trace.arguments, trace.sizes, trace.mesh)
        described = inputs.described(view)
        if not isinstance(reply, Traced):
            finding = next(failures.findings(view), None)
            words = finding.message if finding is not None else "it cannot be traced"
            code = f" ({finding.code})" if finding is not None else ""
            place = finding.range.start.line + 1 if finding is not None else 0
            return ExaminedFunction(given, described, f"{clause(words, _LONGEST)}{code}", place)
        warned = (each for each in reply.warnings if each.category in _DEPRECATIONS and each.span)
        return ExaminedFunction(
            given,
            described,
            outputs=reply.outputs,
            trace_seconds=dict(reply.seconds).get("trace"),
            deprecations=tuple(dict.fromkeys(clause(each.message, _LONGEST) for each in warned)),
        )

    def compiled(self, view: View, result: CompileResult) -> ExaminedFunction:
        """Return what is known of a traced function from its kernels, too."""
        kernels = Kernels.of(view, result)
        if kernels is None:
            assert isinstance(result.outcome, Trouble)
            words = f"not compiled: {result.outcome.message}"
            return replace(self, error=clause(words, _LONGEST))
        return replace(
            self,
            costs=facts_of_kernels(kernels),
            trace_seconds=(self.trace_seconds or 0.0) + kernels.lowered.seconds,
            compile_seconds=kernels.compiled.seconds,
        )


@dataclass(slots=True)
class ExaminedProject:
    """The functions of files with one interpreter."""

    jax: str = ""
    python: str = ""
    target: str = ""
    functions: dict[FunctionName, ExaminedFunction] = field(default_factory=dict)


async def examine(
    run: CommandRun,
    files: Sequence[SourceFile],
    target: str,
    patience: float,
    names: Mapping[str, Sequence[str]] | None = None,
) -> ExaminedProject:
    """Return what the functions of files are with the interpreter of a run.

    Args:
        run: the run.
        files: the files.
        target: the name of the target to compile for; empty for the project's.
        patience: seconds in which inputs that nobody wrote are looked for, in each file.
        names: the functions of each file that the other side has examined: those that are not found
            here are in the result, with the reason.

    Raises:
        CommandError: no tracer starts, or there is no such target.
    """
    examination = ExaminedProject(target=target)
    sandboxes = Sandboxes()
    try:
        for file in run.opened(files):
            path = str(file)
            if run.inputs is InputsChoice.ALL:
                await run.get(run.session.settle_inputs(path, patience=patience))
            await _examine_file(run, file, examination, sandboxes)
            for name in (names or {}).get(path, ()):
                if (path, name) not in examination.functions:
                    reason = await run.get(run.session.why_not_examined(path, name))
                    error = f"not examined: {reason or 'unknown function'}"
                    examination.functions[path, name] = ExaminedFunction(error=error)
            project = run.session.engine.projects.of(path)
            examination.jax = project.jax or examination.jax
            if project.interpreter is not None:
                examination.python = project.interpreter.path
    finally:
        await sandboxes.aclose()
    return examination


async def _examine_file(
    run: CommandRun, path: Path, examination: ExaminedProject, sandboxes: Sandboxes
) -> None:
    session, file = run.session, str(path)
    for name in session.functions(file):
        run.show_step(f"{path.name}:{name}")
        try:
            view = await run.get(session.view(file, name))
        except LookupError as error:
            examination.functions[file, name] = ExaminedFunction(error=str(error.args[0]))
            continue
        examined = ExaminedFunction.of(view)
        if isinstance(view.answer.reply, Traced):
            target = None
            try:
                _, result = await run.get(
                    session.kernels(file, name, examination.target or None, complete=True)
                )
                target = result.target
                examination.target = examination.target or target.name
                examined = examined.compiled(view, result)
            except LookupError as error:
                words = clause(f"not compiled: {error.args[0]}", _LONGEST)
                examined = replace(examined, error=words)
            examined = await _ran(run, file, view, examined, sandboxes, target)
        examination.functions[file, name] = examined


async def _ran(
    run: CommandRun,
    path: str,
    view: View,
    examined: ExaminedFunction,
    sandboxes: Sandboxes,
    target: Target | None,
) -> ExaminedFunction:
    """Return what is known of a function from running it in a process of its own, too.

    It is traced and lowered there a second time, as other work may have delayed the first one.
    """
    sandbox = sandboxes.of(run.session.engine.projects.of(path))
    answer = await run.get(sandbox.trace(view.answer.question))
    if answer is None or not isinstance(answer.reply, Traced):
        return replace(examined, not_run="it could not be traced again")
    lowered = await run.get(sandbox.lower(answer, target)) if target is not None else None
    if isinstance(lowered, Lowered) and examined.trace_seconds is not None:
        again = dict(answer.reply.seconds).get("trace", 0.0) + lowered.seconds
        examined = replace(examined, trace_seconds=min(examined.trace_seconds, again))
    results, problem = await _computed(run, sandbox, answer, gradients=False)
    if problem:
        of_mesh = answer.question.trace.mesh is not None
        return replace(examined, not_run="it needs the devices of its mesh" if of_mesh else problem)
    slopes, problem = await _computed(run, sandbox, answer, gradients=True)
    return replace(examined, results=results, slopes=slopes, slopes_not_run=problem)


async def _computed(
    run: CommandRun, sandbox: Sandbox, answer: Answer, *, gradients: bool
) -> tuple[tuple[Sampled, ...], str]:
    """Return what a function or its gradient computes, or why it was not run."""
    match await run.get(sandbox.evaluate(answer, gradients=gradients)):
        case Evaluated(results=results, problem=problem):
            return results, clause(problem, _LONGEST)
        case Died() as died:
            return (), died.message
        case _:
            return (), "it could not be run"
