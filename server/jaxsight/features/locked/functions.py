"""The facts of a file's functions for `jaxsight.lock`.

It has those with written or recorded inputs, and the programs that the file's own program compiles,
with the inputs of its calls, if these are fully known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jaxsight.examples.sets import ExampleSet
from jaxsight.features.findings import failures, inputs
from jaxsight.locks.facts import FactSources, ProgramFacts
from jaxsight.locks.notation import LockSection
from jaxsight.queries.choices import named_target
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Unasked
from jaxsight.queries.traces.trace_cache import Superseded
from jaxsight.source.text import Range
from jaxsight.targets.target import Target
from jaxsight.text.inert import clause
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.compilation.queue import Urgency

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
    document = await engine.documents.read(path)
    if document is None:
        return []
    chosen = [named_target(name) for name in targets] or [*engine.choices.targets(path)]
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

    def without_facts(problem: str) -> Iterator[LockableFunction]:
        for target in targets:
            section = LockSection.of(target, engine.projects.of(path).jax)
            words = clause(problem, _LONGEST)
            yield LockableFunction(name, section, subject.name_range, None, words)

    path = document.path
    question = await engine.traces.question(document, subject, example_set)
    if isinstance(question, Unasked):
        return list(without_facts(question.reason))
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
        return list(without_facts(f"it cannot be traced{why}"))
    found = []
    for target in targets:
        section = LockSection.of(target, engine.projects.of(path).jax)
        there = await engine.traces.for_target(view, target)
        result = await engine.programs.result(there, target, complete=True, urgency=Urgency.ASKED)
        facts, problem = None, ""
        if isinstance(result, Refused):
            problem = clause(f"not compiled: {result.trouble.message}", _LONGEST)
        elif result is not None:
            facts = replace(facts_of_kernels(result), origin=_origin(subject))
        found.append(LockableFunction(name, section, subject.name_range, facts, problem))
    return found


def _origin(subject: Subject) -> str:
    return {"program": "observed", "recorded": "recorded"}.get(subject.examples.source, "")


def facts_of_kernels(figures: LocatedFigures) -> ProgramFacts:
    """Return the facts of a function that is compiled completely."""
    reply = figures.view.answer.reply
    assert isinstance(reply, Traced)
    inputs = [type for _, type in reply.parameters]
    return FactSources(figures, inputs, reply.outputs, figures.line).facts()
