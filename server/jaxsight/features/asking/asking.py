"""Put together the answer to a question of an agent: its parts, and what to try next."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from jaxsight.features import inputs
from jaxsight.features.asking import parts
from jaxsight.features.asking.parts import AgentAnswer, AnswerPart, AnswerRow, values_at
from jaxsight.features.findings import failures
from jaxsight.features.findings.examined import examined
from jaxsight.features.findings.findings import Findings, findings
from jaxsight.features.findings.locked import facts_of_kernels
from jaxsight.features.fixes.scheduler import FixScheduler
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.named_function import compiled_function, name_sizes
from jaxsight.features.proposals.actions import keep_proposed
from jaxsight.figures.summary import estimated_time
from jaxsight.locks.facts import ProgramFacts
from jaxsight.queries.documents import Document, Subject, subject_at
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.traces import named
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.text import units
from jaxsight.text.inert import clause, one_line
from jaxsight.wire.messages.replies import Traced


class Topic(StrEnum):
    """What a question is about."""

    OVERVIEW = "overview"
    SHAPES = "shapes"
    KERNELS = "kernels"
    WHY = "why"
    FIX = "fix"
    MEMORY = "memory"
    COMPARE = "compare"


@dataclass(frozen=True, slots=True)
class ComparedProgram:
    """What a function is compared with: its facts, or why there are none."""

    name: str
    """`HEAD`, `model.py:slow`."""
    facts: ProgramFacts | None = None
    summary: str = ""
    problem: str = ""

    @staticmethod
    async def of(
        engine: Engine, path: str, function: str, target: str | None, name: str
    ) -> ComparedProgram:
        """Return a function of an open document, compiled."""
        try:
            _, result = await compiled_function(engine, path, function, target, complete=True)
        except LookupError as error:
            return ComparedProgram(name, problem=str(error.args[0]))
        if isinstance(result, Refused):
            return ComparedProgram(name, problem="it is not compiled")
        return ComparedProgram(name, facts_of_kernels(result), summary(result))


@dataclass(frozen=True, slots=True)
class AgentQuestion:
    """A question about a function, a line, or a whole file.

    Attributes:
        path: an open document.
        function: the qualified name; empty for that around `line`, or for the file.
        line: from 0.
        topic: what is asked.
        target: the name of a target, by default the project's.
        name: what commands name the function with, such as `model.py:loss`.
        before: what the function is compared with, if that is asked.
    """

    path: str
    function: str = ""
    line: int | None = None
    topic: Topic = Topic.OVERVIEW
    target: str | None = None
    name: str = ""
    before: ComparedProgram | None = None


Settle = Callable[[str], Awaitable[object]]
"""Looks for the inputs of a function that nobody wrote; without a name, for those of all."""


@dataclass(slots=True)
class FunctionAnswers:
    """What was found out about the function of a question.

    Without `subject`, it has no inputs; without `function`, the question is about the whole file.
    """

    question: AgentQuestion
    document: Document
    function: str = ""
    subject: Subject | None = None
    view: View | None = None
    """Its trace, or that of a function that calls it."""
    kernels: LocatedFigures | None = None
    problem: str = ""
    """Why it was not traced, or not compiled."""
    findings: list[Finding] = field(default_factory=list)
    elsewhere: int = 0
    """The number of findings in the rest of the file."""
    fixes: dict[Finding, Fix] = field(default_factory=dict)

    @property
    def own_view(self) -> View | None:
        """Its trace, with its own inputs."""
        return self.view if self.subject is not None else None

    @property
    def traced(self) -> Traced | None:
        """The reply to its trace, or to that of a function that calls it, unless it failed."""
        reply = self.view.answer.reply if self.view is not None else None
        return reply if isinstance(reply, Traced) else None

    @property
    def is_reported(self) -> bool:
        """Whether findings are part of the answer: those of a failed trace always are."""
        return self.question.topic is not Topic.SHAPES or self.traced is None

    @property
    def lines(self) -> tuple[int, int] | None:
        """Its first and last line (from 0); `None` for a whole file."""
        functions = self.document.module.functions
        ranges = (each.range for each in functions if each.function.qualname == self.function)
        return next(((range.start.line, range.end.line) for range in ranges), None)

    @property
    def summary(self) -> str:
        """Its kernels in a line; empty if it is not compiled."""
        return summary(self.kernels) if self.kernels is not None else ""

    async def find(self, engine: Engine, settle: Settle) -> None:
        """Find the function that the question is about, and trace it.

        A function without inputs is looked for in the traces of others, which may call it.

        Raises:
            LookupError: there is no such function or line; the message says which.
        """
        question, document = self.question, self.document
        line, position, around = question.line, None, None
        if line is not None:
            position = first_column(document.module, line)
            around = document.module.function_at(position)
        self.function = around[1].qualname if around is not None else question.function
        if not self.function:
            if line is not None:
                self.problem = f"line {line + 1} is in no function; this is the whole file"
            await settle("")
            return
        if self.lines is None:
            raise LookupError(f"no function {self.function}")
        if not self._take_subject(engine, position):
            await settle(self.function)
            self._take_subject(engine, position)
        if self.subject is not None:
            view = await engine.traces.view(document, self.subject, None)
            if not isinstance(view, View):
                self.problem = view.reason
                return
            self.view = view
            await engine.traces.placed(view)
            if view.is_traced:
                await name_sizes(engine, view)
            return
        reasons = (e.reason for e in await examined(engine, question.path, self.function))
        self.problem = next(reasons, "") or "it has no inputs"
        for subject in engine.documents.subjects(document) if line is not None else ():
            view = await engine.traces.view(document, subject, None)
            if isinstance(view, View) and view.is_traced:
                await engine.traces.placed(view)
                if line is not None and values_at(view, line).rows:
                    self.view = view
                    return

    def _take_subject(self, engine: Engine, position: Position | None) -> bool:
        subjects = engine.documents.subjects(self.document)
        self.subject = named(subjects, self.function)
        if self.subject is None and position is not None:
            self.subject = subject_at(subjects, position)
        return self.subject is not None

    async def compile(self, engine: Engine) -> None:
        """Compile the function, if it was traced.

        Raises:
            LookupError: there is no such target; the message says which.
        """
        if self.traced is None or self.subject is None:
            return
        question = self.question
        _, result = await compiled_function(
            engine, question.path, self.subject.id, question.target, complete=True
        )
        if isinstance(result, Refused):
            self.problem = f"not compiled for {result.target.name}: {result.trouble.message}"
            return
        self.kernels = result
        if question.before is not None and question.before.facts is None:
            self.problem = f"not compared with {question.before.name}: {question.before.problem}"

    async def report(self, engine: Engine, fixing: FixScheduler) -> None:
        """Find what rules report of the function, and verify fixes."""
        path = self.question.path
        only = self.subject.id if self.subject is not None else ""
        report = await findings(engine, path, kernels=True, only=only)
        first, last = self.lines or (0, len(self.document.text))
        wanted = [f for f in report.reported if first <= f.range.start.line <= last]
        owners = tuple((view, finding) for view, finding in report.owners if finding in wanted)
        self.elsewhere = len(report.reported) - len(wanted)
        self.findings = [*wanted]
        if self.own_view is not None:
            failed = failures.findings(self.own_view)
            self.findings += [f for f in failed if not any(map(f.repeats, wanted))]
        if report.module is not None:
            fixing.start(path, Findings(wanted, report.module, owners, report.target), pause=0)
            fixes = await fixing.fixes(path, report.module, None, None)
            self.fixes = {fix.finding: fix for fix in fixes}
        order = list(Severity)  # errors first
        self.findings.sort(key=lambda f: (order.index(f.severity), f not in self.fixes, f.range))


def summary(kernels: LocatedFigures) -> str:
    """Return `7 kernels · 7 launches · temp 4 MiB · h100 · ≈ 38 µs estimated`."""
    time = estimated_time(kernels.graph, kernels.target)
    return f"{kernels.headline} · {time} estimated" if time else kernels.headline


def first_column(module: Module, line: int) -> Position:
    """Return the position of the first word on a line (from 0).

    Raises:
        LookupError: there is no such line.
    """
    if line >= len(module.lines):
        raise LookupError(f"the file has {units.count(len(module.lines), 'line')}")
    return Range.of_line(line, module.line(line)).start


# What an agent may do next, and the commands that answer more.


def to_try(known: FunctionAnswers) -> AnswerPart:
    """Return what an agent may do next."""
    lines: list[str] = []
    name, view = known.question.name, known.own_view
    if known.fixes:
        codes = ", ".join(dict.fromkeys(finding.code for finding in known.fixes))
        lines.append(f"apply the edit of {codes}, then ask again")
    if known.function and view is None:
        lines.append(
            "give it inputs: a section `Example inputs:` in its docstring, a line `x: f32[8, 128]` "
            "for each parameter"
        )
    if view is not None and known.traced is None:
        lines.append(
            f"one file that fails alone: jaxsight repro {name}; jaxsight repro reduce repro.py"
        )
    sizes = view.answer.question.set.sizes if view is not None else ()
    if known.question.topic is Topic.MEMORY and known.kernels is not None and sizes:
        size, target = sizes[0][0], known.kernels.target.name
        swept = f"jaxsight sweep {name} {size}=1..65536 --target {target}"
        lines.append(f"the largest {size} that fits: {swept}")
    return _commands("try", lines)


def further_commands(known: FunctionAnswers) -> AnswerPart:
    """Return commands that answer more."""
    lines, question, name = list[str](), known.question, known.question.name
    if known.elsewhere:
        file = name.rpartition(":")[0] or name
        lines.append(f"jaxsight ask {file}  # {units.count(known.elsewhere, 'finding')} elsewhere")
    if known.kernels is not None:
        target = f" --target {question.target}" if question.target else ""
        topics = (Topic.KERNELS, Topic.WHY, Topic.MEMORY)
        others = [topic for topic in topics if topic is not question.topic]
        lines.append(f"jaxsight ask {name}{target} --question {'|'.join(others)}")
    if known.findings:
        lines.append(f"jaxsight explain {known.findings[0].code}")
    return _commands("commands", lines, "more")


def _commands(name: str, lines: list[str], title: str = "") -> AnswerPart:
    return AnswerPart(name, tuple(AnswerRow(one_line(line), line) for line in lines), title)


_FEW_KERNELS = 3
"""Kernels of an overview, which answers what to look at first."""
_SAID_IF_EMPTY = ("findings", "differences")
"""Parts that say something without rows."""
_LONGEST = 300
"""Characters of a problem, a choice: some quote a message of XLA."""


async def answer(
    engine: Engine, fixing: FixScheduler, settle: Settle, question: AgentQuestion
) -> AgentAnswer:
    """Return the answer to a question.

    Raises:
        LookupError: there is no such function, line or target; the message says which.
    """
    if (document := await engine.documents.read(question.path)) is None:
        raise LookupError(f"cannot read {Path(question.path).name}")
    known = FunctionAnswers(question, document)
    await known.find(engine, settle)
    if question.topic not in (Topic.FIX, Topic.SHAPES):
        await known.compile(engine)
    if known.is_reported:
        await known.report(engine, fixing)
    shown = [part async for part in _parts(engine, known)]
    said = tuple(part for part in shown if part.rows or part.name in _SAID_IF_EMPTY)
    return _headed(known, engine.projects.of(question.path).jax, said)


def _headed(known: FunctionAnswers, jax: str, shown: tuple[AnswerPart, ...]) -> AgentAnswer:
    """Return the answer with what it is about, in text and as JSON."""
    question, lines, view = known.question, known.lines, known.own_view
    path = Path(question.path).name
    name = f"{path}:{known.function}" if known.function else path
    where = f", lines {lines[0] + 1}–{lines[1] + 1}" if lines is not None else ""
    problem = clause(known.problem, _LONGEST)
    texts = [f"{name}{where}" + (f" · JAX {jax}" if jax else "")]
    if view is not None:
        label = "assumed inputs" if view.assumed else "inputs"
        texts.append(f"{label}: {inputs.described(view)}")
    before = question.before.summary if question.before is not None else ""
    was = f"{question.before.name}: {before}" if question.before is not None and before else ""
    texts += filter(None, [was, known.summary, f"problem: {problem}" if problem else ""])
    head = {
        "filename": question.path,
        "function": known.function or None,
        "row": lines[0] + 1 if lines is not None else None,
        "end_row": lines[1] + 1 if lines is not None else None,
        "question": question.topic.value,
        "jax": jax,
        "inputs": inputs.record(view) if view is not None else None,
        "target": known.kernels.target.name if known.kernels is not None else None,
        "summary": known.summary or None,
        "before": before or None,
        "problem": problem or None,
    }
    return AgentAnswer("\n".join(map(one_line, texts)), head, shown)


async def _parts(engine: Engine, known: FunctionAnswers) -> AsyncIterator[AnswerPart]:
    """Yield the parts of an answer, the most important first."""
    question, view, kernels = known.question, known.view, known.kernels
    line, module, topic = question.line, known.document.module, question.topic
    if known.function and (known.own_view is None or known.own_view.assumed):
        with contextlib.suppress(LookupError):
            action = await keep_proposed(engine, question.path, known.function)
            if action.edits and not action.file:
                yield parts.proposal(action.title, action.edits, module)
    reported = parts.findings(known.findings, known.fixes, module)
    comes_first = topic is Topic.FIX or known.traced is None
    if comes_first:
        yield reported
    if line is not None and view is not None and topic in (Topic.OVERVIEW, Topic.SHAPES):
        yield parts.values_at(view, line)
    if not known.function:
        yield parts.functions(await examined(engine, question.path))
    before = question.before
    if kernels is not None and before is not None and before.facts is not None:
        yield parts.differences(kernels, before.facts, before.name)
    if kernels is not None:
        match topic:
            case Topic.KERNELS:
                yield parts.kernels(kernels)
            case Topic.WHY:
                yield parts.boundaries(kernels, line)
                yield parts.notes(kernels)
            case Topic.MEMORY:
                yield parts.memory(kernels)
                yield parts.temporaries(kernels)
            case _:
                yield parts.kernels(kernels, _FEW_KERNELS)
        yield parts.collectives(kernels)
    if known.is_reported and not comes_first:
        yield reported
    if known.own_view is not None and known.traced is not None:
        for part in parts.signature(known.own_view, known.traced):
            yield part
        if topic is Topic.SHAPES:
            yield parts.shapes(known.own_view)
    yield to_try(known)
    yield further_commands(known)
