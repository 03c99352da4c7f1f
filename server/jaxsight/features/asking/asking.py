"""Put together the answer to a question of an agent: its parts, and what to try next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from jaxsight.features import inputs
from jaxsight.features.asking import parts
from jaxsight.features.asking.known import AgentQuestion, KnownFunction, Settle, Topic
from jaxsight.features.asking.parts import AgentAnswer, AnswerPart, AnswerRow
from jaxsight.features.findings.examined import examined
from jaxsight.features.fixes.scheduler import FixScheduler
from jaxsight.features.proposals.actions import keep_proposed
from jaxsight.queries.engine import Engine
from jaxsight.text import units
from jaxsight.text.inert import clause, one_line

# What an agent may do next, and the commands that answer more.


def to_try(known: KnownFunction) -> AnswerPart:
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
    return AnswerPart("try", tuple(AnswerRow(one_line(line), line) for line in lines))


def further_commands(known: KnownFunction) -> AnswerPart:
    """Return commands that answer more."""
    lines: list[str] = []
    question, name = known.question, known.question.name
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
    return AnswerPart("commands", tuple(AnswerRow(one_line(line), line) for line in lines), "more")


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
    yield to_try(known)
    yield further_commands(known)
