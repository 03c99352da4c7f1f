"""Hover texts: what a function is once traced, and what any expression inside it is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from jaxsight import units
from jaxsight.engine import caveats, stale, trees
from jaxsight.engine.answers import Hover
from jaxsight.engine.documents import Subject
from jaxsight.engine.failures import explanation
from jaxsight.engine.functions import Function
from jaxsight.engine.inert import one_line
from jaxsight.engine.markdown import escaped, fenced, prose, span
from jaxsight.engine.text import Range
from jaxsight.engine.views import View
from jaxsight.tracer.protocol import Observation, Seen, Traced

_WIDTH = 88
_TREE_LINES = 24
"""What one value's display may take before its inner containers are folded."""
_LONGEST_NAME = 72


def function_hover(subject: Subject, view: View, targets: str = "", notes: str = "") -> Hover:
    """Signature with avals, outputs, what it is on each target (`targets`), the folded jaxpr; or
    why there is none.

    Args:
        notes: what the answer leaves out (`caveats.markdown`).
    """
    answer = view.answer
    parts: list[str] = []
    if isinstance(answer.reply, Traced):
        traced = answer.reply
        parts.append(fenced(signature(subject.name, traced)))
        parts.append(_facts(subject, view, traced))
        parts.append(updates(traced, quoted=True))
        parts.append(notes)
        parts.append(targets)
        parts.append(fenced(view.words(traced.jaxpr), "text"))
        if traced.folded:
            parts.append(
                "*folded; the whole jaxpr is in its own document (`jaxsight: show jaxpr`)*"
            )
        if traced.views:
            named = ", ".join(span(name) for name in traced.views)
            parts.append(f"*interpreters of this environment: {named}*")
    else:
        parts.append(
            f"**{escaped(subject.name)}** cannot be traced with {_set_words(subject, view)}"
        )
        parts.append(explanation(answer.reply, view))
        parts.append(notes)
    return _hover(subject.name_range, parts, view)


def expression_hover(
    source: str, range: Range, observation: Observation, view: View, became: str = ""
) -> Hover:
    """What one expression, target or parameter was.

    Args:
        source: its text as it stands.
        range: where it stands.
        became: the kernels that compute it.
    """
    lines = []
    name = shortened(source)
    values = view.seen(observation)
    texts = dict.fromkeys(f"{name}: {one_line(seen.text)}" for seen in values)
    shown = (trees.wrapped(text, _WIDTH, _TREE_LINES) for text in texts)
    lines.append(fenced("\n".join(shown)))
    notes = list(_notes(values))
    if observation.more:
        notes.append(f"and {observation.more} other kinds of value")
    subject = view.answer.question.subject
    chosen = view.answer.question.set.name
    inputs = f" with example inputs *{escaped(chosen)}*" if chosen else ""
    notes.append(f"in {span(subject.name)}{inputs}")
    notes += caveats.marks(view.caveats)
    lines.append(" · ".join(notes))
    if became:
        lines.append(prose(became))
    return _hover(range, lines, view)


def helper_hover(function: Function, range: Range, view: View, first_line: int) -> Hover | None:
    """A function without example inputs of its own, as it was called in the trace of another;
    nothing if it was not.

    Args:
        function: relative to its chunk, which begins at `first_line`.
        range: the function's name.
    """
    values: list[Seen] = []
    parameters: list[str] = []
    for parameter in function.parameters:
        observation = view.observed.get(parameter.range.shifted(first_line))
        seen = view.seen(observation) if observation is not None else ()
        values += seen
        texts = " | ".join(dict.fromkeys(one_line(each.text) for each in seen))
        parameters.append(f"{parameter.name}: {texts}" if texts else parameter.name)
    if not values:
        return None
    name = function.qualname.rpartition(".")[2]
    notes = [*_notes(values), f"in {span(view.answer.question.subject.name)}"]
    parts = [fenced(_call(name, parameters)), " · ".join(notes)]
    return _hover(range, parts, view)


def shortened(source: str) -> str:
    """An expression on one line, its middle left out when it is long."""
    line = (
        " ".join(source.split())
        .replace("( ", "(")
        .replace("[ ", "[")
        .replace(", )", ")")
        .replace(" )", ")")
        .replace(" ]", "]")
    )
    return (
        line
        if len(line) <= _LONGEST_NAME
        else f"{line[: _LONGEST_NAME - 12].rstrip()} … {line[-8:].lstrip()}"
    )


def unasked_hover(subject: Subject, reason: str) -> Hover:
    return Hover(subject.name_range, f"**{escaped(subject.name)}** is not traced: {prose(reason)}.")


def signature(name: str, traced: Traced) -> str:
    """`f(x: f32[8], n: 2) -> f32[8]`, one parameter a line when it is long; what is static is shown
    by its value.
    """
    parameters = [f"{parameter}: {one_line(text)}" for parameter, text in traced.parameters]
    return _call(name, parameters, one_line(traced.outputs))


def _call(name: str, parameters: list[str], outputs: str = "") -> str:
    line = f"{name}({', '.join(parameters)})" + (f" -> {outputs}" if outputs else "")
    if len(line) <= _WIDTH:
        return line
    wrapped = (trees.wrapped(each, _WIDTH - 4, _TREE_LINES) for each in parameters)
    body = "".join(f"{textwrap.indent(each, '    ')},\n" for each in wrapped)
    shown = trees.wrapped(outputs, _WIDTH - len(") -> "), _TREE_LINES)
    return f"{name}(\n{body})" + (f" -> {shown}" if outputs else "")


def _facts(subject: Subject, view: View, traced: Traced) -> str:
    facts = [f"{traced.equations} equation{'' if traced.equations == 1 else 's'}"]
    total = sum(size for _, size in traced.constants)
    if total:
        count = len(traced.constants)
        facts.append(f"{count} captured constant{'' if count == 1 else 's'}, {units.size(total)}")
    facts.append(f"traced with {_set_words(subject, view)}")
    return " · ".join(facts)


def updates(traced: Traced, *, quoted: bool = False) -> str:
    """`updates: model, optimizer`, and which of these are not in the figures; empty where there are
    none.

    Args:
        quoted: names in backticks, for Markdown.
    """
    if not traced.updates:
        return ""
    written = span if quoted else one_line
    names, missing = (
        ", ".join(written(name) for name in names) for names in (traced.updates, traced.left_out)
    )
    return f"updates: {names}" + (f" · not in the figures: {missing}" if missing else "")


def _set_words(subject: Subject, view: View) -> str:
    chosen = view.answer.question.set.name
    if chosen:
        return f"example inputs *{escaped(chosen)}*"
    if len(subject.examples.sets) > 1:
        return f"the first of {len(subject.examples.sets)} sets of example inputs"
    return "its example inputs"


def _notes(values: Iterable[Seen]) -> Iterable[str]:
    told: set[str] = set()
    for seen in values:
        for note in (
            *(f"inside {place}" for place in [surroundings(seen)] if place),
            "weak type" if seen.weak else "",
            seen.sharding and f"sharding {seen.sharding}",
        ):
            if note and note not in told:
                told.add(note)
                yield escaped(note)


def surroundings(seen: Seen) -> str:
    """What a value lives in, outermost first, `scan body › grad`; calls of jitted functions go
    without saying.
    """
    return " › ".join(place for place in seen.inside if place != "jit")


def _hover(range: Range, parts: Iterable[str], view: View) -> Hover:
    """The parts that are not empty, below a line that says so when they are of an older text."""
    return Hover(range, "\n\n".join(filter(None, (stale.notice(view), *parts))), view.stale)
