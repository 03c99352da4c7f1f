"""Verify programs for `check --verify-import`: compare them with those of the imported module.

The file is imported whole in a process of its own, and its functions are traced there with the same
example inputs. If a program differs from the slice's, a bisection over the statements outside the
slice finds the one that changes it. User code may be random: functions whose programs differ from
one import to the next are not compared.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from jaxsight.examples.problems import quoted
from jaxsight.features.findings.findings import path_in_project
from jaxsight.features.findings.report import report
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question, Unasked
from jaxsight.rules.finding import Finding, Severity, finding_of
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.text import Range
from jaxsight.source.text_shift import common_prefix
from jaxsight.text import units
from jaxsight.text.inert import clause, words
from jaxsight.wire.messages.replies import Failed, Imported, ImportedProgram, Listing
from jaxsight.wire.messages.requests import CONSTANT, PROGRAM, Import
from jaxsight.wire.observations import Failure
from jaxsight.workers.importing import line_of
from jaxsight.workers.results import Death, Died, Reason, signal_name

DIFFERS = "JX912"
UNVERIFIED = "JX913"

_IMPORTS = 3
"""Imports that must agree before a difference counts, a choice: what is random differs in one."""
_RUNS = 64
"""Processes that look for the causes of one file's differences, a choice: each imports JAX."""
_LONGEST = 60
"""Characters of a quoted message or jaxpr in a finding, a choice: two fit a line."""
_BEFORE = 24
"""Characters of a quoted jaxpr before the first difference, a choice: the equation it is in."""

Lines = tuple[tuple[int, int], ...]
Run = Callable[[Import], Awaitable[Imported | Failed | Died]]
"""Imports a file in a process of its own."""


_TRACED_AGAIN = 3
"""Times that a function is traced again if its tracer ended: some end it each time."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """A function's answer, its question, and its program (`protocol.PROGRAM`).

    `program` is `None` where the function cannot be traced.
    """

    view: View
    question: Question
    program: str | None


@dataclass(frozen=True, slots=True)
class VerifiedImports:
    """The result for one file. `functions` counts those with the same program as the import."""

    findings: tuple[Finding, ...] = ()
    functions: int = 0


async def verify(engine: Engine, path: str, deadline: float | None = None) -> VerifiedImports:
    """Compare the programs of a file's functions with those of the imported module.

    Args:
        engine: the engine.
        path: an open document.
        deadline: time limit of each import in seconds; by default that of the setting
            `timeouts.execute`.
    """
    document = await engine.documents.read(path)
    if document is None or document.module.syntax_problem is not None:
        return VerifiedImports()
    project = engine.projects.of(path)
    functions = [
        sliced
        for subject in engine.documents.subjects(document)
        if (sliced := await _sliced(engine, document, subject)) is not None
    ]
    if not functions:
        return VerifiedImports()
    seconds = project.settings.timeouts.execute if deadline is None else deadline
    work = Verification(document.module, functions, project.import_whole, seconds)
    verified = await work.verified()
    file = path_in_project(project.root, path)
    reported = report(document.module, (), verified.findings, project.settings, file)
    return replace(verified, findings=tuple(reported))


async def _sliced(engine: Engine, document: Document, subject: Subject) -> Sliced | None:
    """Return a function with its program; `None` if it is not traced or its tracer died."""
    project = engine.projects.of(document.path)
    for _ in range(_TRACED_AGAIN):
        view = await engine.traces.view(document, subject, None)
        question = await engine.traces.question(document, subject)
        if isinstance(view, Unasked) or isinstance(question, Unasked):
            return None
        if view.stale or isinstance(view.answer.reply, Died):
            return None
        if isinstance(view.answer.reply, Failed):
            return Sliced(view, question, None)
        shown = await tracer_requests.show(project, view.answer, PROGRAM)
        if isinstance(shown, Listing):
            return Sliced(view, question, shown.text)
        engine.traces.cache.drop(question)
    return None


class Verification:
    """The verification of one file, by as many imports as it takes."""

    def __init__(
        self, module: Module, functions: Sequence[Sliced], run: Run, deadline: float
    ) -> None:
        """Prepare a verification.

        Args:
            module: the file's text.
            functions: the functions to compare, at least one.
            run: runs an import.
            deadline: seconds for each import.
        """
        self._module = module
        self._functions = functions
        self._run = run
        traces = [function.question.trace for function in functions]
        self._request = Import(
            0,
            traces[0].file,
            traces[0].module,
            traces[0].root,
            tuple(replace(trace, id=number, chunks=()) for number, trace in enumerate(traces)),
            deadline=deadline,
        )
        self._causes: list[int] = []
        """Numbers of the chunks that were found to change a program."""
        self._runs = _RUNS

    async def verified(self) -> VerifiedImports:
        """Import the file, compare, and look for the cause of each difference."""
        imported = await self._run(self._request)
        if not isinstance(imported, Imported):
            return VerifiedImports((self._not_imported(imported),))
        different = [
            number
            for number, function in enumerate(self._functions)
            if function.program != _program(imported, number)
        ]
        if not different:
            return VerifiedImports((), len(self._functions))
        replies = [imported, *[await self._run(self._request) for _ in range(_IMPORTS - 1)]]
        findings = []
        for number in different:
            if len({_program(reply, number) for reply in replies}) > 1:
                view = self._functions[number].view
                name = quoted(view.subject.name)
                message = f"program of {name} differs between imports of the module"
                why = "the module may be random or depend on the time"
                notes = (f"imported {_IMPORTS} times; {why}",)
                findings.append(finding_of(UNVERIFIED, view.name_range, message, notes=notes))
            else:
                findings.append(await self._difference(number, imported))
        return VerifiedImports(tuple(findings), len(self._functions) - len(different))

    async def _difference(self, number: int, imported: Imported) -> Finding:
        """Return the finding for a function with another program, at the cause if it is found."""
        here, there = self._functions[number], _program(imported, number)
        cause = await self._cause(number, there)
        name = quoted(here.view.subject.name)
        caveats = here.view.caveats
        if cause is None:
            range = here.view.name_range
            message = f"program of {name} differs when the module is imported"
            help = ""
        else:
            range = self._line_range(cause.first_line)
            cut_short = self._module.number_of(cause) in self._kept(here)
            how = "running this statement in full" if cut_short else "this statement"
            help = await self._remedy(number, cause, there)
            message = f"{name} was traced without {how}, which changes its program"
        notes = (_contrast(here.program, imported.functions[number]),)
        # A difference that the answer's own caveats announce is only a warning.
        severity = Severity.WARNING if caveats else Severity.ERROR
        return finding_of(DIFFERS, range, message, severity=severity, help=help, notes=notes)

    async def _cause(self, number: int, wanted: str | None) -> ModuleChunk | None:
        """Return the statement that changes the program to the wanted one, if there is one.

        It is the first that does so when added to the slice, with those above it.
        """
        here = self._functions[number]
        chunks = self._module.chunks
        sliced = self._kept(here)
        skipped = [index for index in range(len(chunks)) if index not in sliced]
        equal: dict[int, bool] = {}

        async def gives(count: int) -> bool:
            if count not in equal:
                running = sliced.union(skipped[:count])
                equal[count] = await self._program_of(number, running) == wanted
            return equal[count]

        if await gives(0):
            # The tracer interrupted a statement of the slice; the caveats name it.
            named = self._named(here)
            return named[0] if len(named) == 1 else None
        for cause in self._causes:
            at = skipped.index(cause) if cause in skipped else None
            if at is not None and await gives(at + 1) and not await gives(at):
                return chunks[cause]
        if not await gives(len(skipped)):
            return None
        low, high = 0, len(skipped)
        while high - low > 1:
            middle = (low + high) // 2
            if await gives(middle):
                high = middle
            else:
                low = middle
        self._causes.append(skipped[high - 1])
        return chunks[skipped[high - 1]]

    async def _remedy(self, number: int, cause: ModuleChunk, wanted: str | None) -> str:
        """Return the help: which statements to mark so that the cause of a difference runs."""
        here = self._functions[number]
        own = self._module.number_of(cause)
        work = {self._module.number_of(chunk) for chunk in self._named(here)} - {own}
        above = set(range(own + 1))
        if (
            not work & above
            or await self._program_of(number, self._kept(here) | (above - work)) == wanted
        ):
            return "add `# jaxsight: always` to this statement"
        return "add `# jaxsight: always` to this statement and those above that it needs"

    def _named(self, function: Sliced) -> list[ModuleChunk]:
        """Return the chunks that a function's caveats name, in order."""
        places = (caveat.range.start for caveat in function.view.caveats)
        chunks = (self._module.chunk_at(place) for place in places)
        return list(dict.fromkeys(chunk for chunk in chunks if chunk is not None))

    def _kept(self, function: Sliced) -> set[int]:
        """Return the numbers of the chunks of a function's slice."""
        return {self._module.number_of(chunk) for chunk in function.question.slice.module_chunks}

    async def _program_of(self, number: int, running: set[int]) -> str | None:
        """Return a function's program when only some chunks run; `""` if they fail."""
        if self._runs <= 0:
            return ""
        self._runs -= 1
        chunks = self._module.chunks
        lines = tuple(
            (chunks[index].first_line + 1, chunks[index].last_line + 1) for index in sorted(running)
        )
        function = self._request.functions[number]
        request = replace(self._request, functions=(function,), lines=lines)
        return _program(await self._run(request), 0)

    def _not_imported(self, reply: Failed | Died) -> Finding:
        """Return the finding for a failed import, at the line where it failed."""
        line: int | None
        if isinstance(reply, Failed):
            own, frames = os.path.realpath(self._request.file), reply.failure.frames
            line = next((f.line for f in frames if os.path.realpath(f.file) == own), None)
            cause = f"raised {_raised(reply.failure)}"
        else:
            line = line_of(reply.death, self._request.file)
            cause = _ended(reply.death)
        name = self._functions[0].view.name_range
        range = name if line is None else self._line_range(line - 1)
        notes = ("none of the functions in this file were verified",)
        return finding_of(UNVERIFIED, range, f"importing the module {cause}", notes=notes)

    def _line_range(self, line: int) -> Range:
        return Range.of_line(line, self._module.line(line))


def _program(reply: Imported | Failed | Died, number: int) -> str | None:
    """Return a function's program, `None` if it cannot be traced, or `""` if the import failed."""
    if not isinstance(reply, Imported):
        return ""
    made = reply.functions[number]
    return made.program if made.failure is None else None


def _raised(failure: Failure) -> str:
    name = failure.type.rpartition(".")[2]
    left = _LONGEST - len(f"{name}: “”")
    return f"{name}: {words(clause(failure.message, left))}" if failure.message else name


def _ended(death: Death) -> str:
    match death.reason:
        case Reason.TIMEOUT:
            return f"took longer than {death.limit:g} s"
        case Reason.MEMORY:
            return f"used {units.size(death.used)} of memory, limit {units.size(death.limit)}"
        case Reason.PROCESSES:
            return f"started {death.used:g} processes, limit {death.limit:g}"
        case Reason.CRASHED:
            return f"crashed the process ({signal_name(death.signal)})"
        case _:
            return f"exited the process with status {death.code}"


def _contrast(here: str | None, there: ImportedProgram) -> str:
    """Return a note with both programs around their first difference."""
    if there.failure is not None:
        return f"tracing raises {_raised(there.failure)} when the module is imported"
    if here is None:
        return "tracing fails unless the module is imported"
    traced, imported = here.split("\n"), there.program.split("\n")
    differing = (pair for pair in zip(traced, imported, strict=False) if pair[0] != pair[1])
    pair = next(differing, ("", ""))
    if any(line.startswith(CONSTANT) for line in pair):
        return "a captured array has different values"
    begin = max(0, common_prefix(*pair) - _BEFORE)
    before, after = (("…" if begin else "") + clause(line[begin:], _LONGEST) for line in pair)
    return f"`{after}` when imported, `{before}` when traced"
