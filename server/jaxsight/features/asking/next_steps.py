"""What an agent may do next, and the commands that answer more."""

from __future__ import annotations

from jaxsight.features.asking.answer import AnswerPart, AnswerRow
from jaxsight.features.asking.known import KnownFunction, Topic
from jaxsight.text.inert import one_line
from jaxsight_source import units


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
