"""Put together the answer to a question of an agent: its parts, and what to try next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from jaxsight.features.asking import next_steps, parts
from jaxsight.features.asking.answer import AgentAnswer, AnswerPart
from jaxsight.features.asking.known import AgentQuestion, KnownFunction, Settle, Topic
from jaxsight.features.findings import inputs
from jaxsight.features.findings.examined import examined
from jaxsight.features.fixes.scheduler import FixScheduler
from jaxsight.features.proposals.actions import keep_proposed
from jaxsight.queries.engine import Engine
from jaxsight.text.inert import clause, one_line

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
    document = await engine.documents.read(question.path)
    if document is None:
        raise LookupError(f"cannot read {Path(question.path).name}")
    known = KnownFunction(question, document)
    await known.find(engine, settle)
    if question.topic not in (Topic.FIX, Topic.SHAPES):
        await known.compile(engine)
    if known.is_reported:
        await known.report(engine, fixing)
    shown = [part async for part in _parts(engine, known)]
    said = tuple(part for part in shown if part.rows or part.name in _SAID_IF_EMPTY)
    return _headed(known, engine.projects.of(question.path).jax, said)


def _headed(known: KnownFunction, jax: str, shown: tuple[AnswerPart, ...]) -> AgentAnswer:
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


async def _parts(engine: Engine, known: KnownFunction) -> AsyncIterator[AnswerPart]:
    """Yield the parts of an answer, the most important first."""
    question, view, kernels = known.question, known.view, known.kernels
    line, module, topic = question.line, known.document.module, question.topic
    if known.function and (known.own_view is None or known.own_view.assumed):
        try:
            action = await keep_proposed(engine, question.path, known.function)
        except LookupError:
            action = None
        if action is not None and action.edits and not action.file:
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
    yield next_steps.to_try(known)
    yield next_steps.further_commands(known)
