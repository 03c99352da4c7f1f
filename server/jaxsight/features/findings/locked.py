"""The facts of a file's functions for `jaxsight.lock`.

It has those with written or recorded inputs, and the programs that the file's own program compiles,
with the inputs of its calls, if these are fully known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxsight.examples.sets import ExampleSet
from jaxsight.features import inputs
from jaxsight.features.findings import failures
from jaxsight.locks.differences import FactDifference
from jaxsight.locks.facts import FactSources, ProgramFacts
from jaxsight.locks.notation import LockSection
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Unasked
from jaxsight.queries.traces.trace_cache import Superseded
from jaxsight.rules.finding import Finding, finding_of
from jaxsight.rules.jx502_changed_program.rule import RULE
from jaxsight.source.module import Module
from jaxsight.source.text import Range
from jaxsight.targets.target import Target, parse
from jaxsight.text.inert import clause
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.request_queue import Priority

_TOGETHER = 3
"""Functions that are traced and compiled together: as of findings, a tracer keeps few traces."""
_LONGEST = 160
"""Characters of a reason, a choice: two lines of a terminal."""


@dataclass(frozen=True, slots=True)
class LockableFunction:
    """A function with inputs that nobody guessed, compiled for a target; or why it is not."""

    name: str
    """Its qualified name; of a further example set, `decode[long]`."""
    section: LockSection
    range: Range
    """Its name in the text."""
    facts: ProgramFacts | None
    problem: str = ""
    """Why there are no facts, in a clause."""


@dataclass(frozen=True, slots=True)
class LockedFile:
    """The functions of a file that a lock may have."""

    path: str
    functions: tuple[LockableFunction, ...]


async def lockable(
    engine: Engine, path: str, targets: Sequence[str] = ()
) -> list[LockableFunction]:
    """Return the functions of an open file that a lock may have, in text order.

    Args:
        engine: the engine.
        path: the file.
        targets: the names of the targets to compile for; by default those of the project.

    Raises:
        LookupError: there is no such target.
    """
    if (document := await engine.documents.read(path)) is None:
        return []
    chosen = [parse(name) for name in targets] or [*engine.choices.targets(path)]
    turns = asyncio.Semaphore(_TOGETHER)

    async def of(subject: Subject, example_set: ExampleSet) -> list[LockableFunction]:
        is_first = example_set is subject.examples.sets[0]
        name = subject.name if is_first else f"{subject.name}[{example_set.name}]"
        async with turns:
            return await _compiled(engine, document, subject, example_set, name, chosen)

    found = await asyncio.gather(
        *(
            of(subject, example_set)
            for subject in engine.documents.subjects(document)
            for example_set in subject.examples.sets
            if _is_lockable(subject, example_set)
        )
    )
    return [each for functions in found for each in functions]


def _is_lockable(subject: Subject, example_set: ExampleSet) -> bool:
    if subject.examples.source in inputs.WRITTEN:
        return True
    outside = example_set.outside
    if outside is None or example_set.assumed:
        return False
    return outside.origin == "recorded" or outside.compiled == "root" or subject.is_root


async def _compiled(
    engine: Engine,
    document: Document,
    subject: Subject,
    example_set: ExampleSet,
    name: str,
    targets: Sequence[Target],
) -> list[LockableFunction]:
    """Return a function with one example set on each target."""

    jax = engine.projects.of(document.path).jax
    sections = [LockSection.of(target, jax) for target in targets]

    def without_facts(problem: str) -> list[LockableFunction]:
        words, at = clause(problem, _LONGEST), subject.name_range
        return [LockableFunction(name, section, at, None, words) for section in sections]

    question = await engine.traces.question(document, subject, example_set)
    if isinstance(question, Unasked):
        return without_facts(question.reason)
    try:
        answer = await engine.traces.answer(question)
    except Superseded:
        return []
    view = View(answer, document.module, question, subject)
    if view.assumed:
        return []
    if not view.is_traced:
        error = next(failures.findings(view), None)
        why = f": {error.message} ({error.code})" if error is not None else ""
        return without_facts(f"it cannot be traced{why}")
    found = []
    for target, section in zip(targets, sections, strict=True):
        there = await engine.traces.for_target(view, target)
        result = await engine.programs.result(there, target, complete=True, urgency=Priority.PERSON)
        facts, problem = None, ""
        if isinstance(result, Refused):
            problem = clause(f"not compiled: {result.trouble.message}", _LONGEST)
        elif result is not None:
            origins = {"program": "observed", "recorded": "recorded"}
            origin = origins.get(subject.examples.source, "")
            facts = replace(facts_of_kernels(result), origin=origin)
        found.append(LockableFunction(name, section, subject.name_range, facts, problem))
    return found


def facts_of_kernels(figures: LocatedFigures) -> ProgramFacts:
    """Return the facts of a function that is compiled completely."""
    reply = figures.view.answer.reply
    assert isinstance(reply, Traced)
    inputs = [type for _, type in reply.parameters]
    return FactSources(figures, inputs, reply.outputs, figures.line).facts()


# The finding of a function that differs from its lock, at the line of the cause.


_MESSAGE = 100
"""Characters of a finding's message."""


def finding_of_differences(
    found: LockableFunction, differences: Sequence[FactDifference], module: Module, help: str
) -> Finding:
    """Return the finding of a function that differs from its lock, at the line of the cause.

    The message is the difference that explains the others, which are notes.
    """
    first, *others = differences
    line = next((each.line for each in differences if each.line), 0)
    on = found.section.target.partition(" ")[0]
    words = "; ".join(filter(None, (f"{first.change} on {on}", first.cause)))
    return finding_of(
        RULE.code,
        Range.of_line(line - 1, module.line(line - 1)) if line else found.range,
        clause(words, _MESSAGE),
        help=help,
        notes=(f"`{found.name}` differs from jaxsight.lock", *(each.words for each in others)),
    )
