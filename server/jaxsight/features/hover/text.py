"""Hover texts: the signature of a traced function, and the types of expressions inside it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace

from jaxsight.features import caveats, inputs, shardings
from jaxsight.features.findings.failures import explanation
from jaxsight.features.hover import random_keys
from jaxsight.features.hover import trees as array_trees
from jaxsight.features.model import Hover
from jaxsight.queries.documents import Subject
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Unasked
from jaxsight.queries.traces.tracer_requests import Waits
from jaxsight.source.module import PlacedFunction
from jaxsight.source.text import Range
from jaxsight.text import pytree_display as trees
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.text.markdown import escaped, fenced, prose, span
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.observations import ExprValue, Observation

_WIDTH = 88
"""Columns of code in a hover, the default of Black; VS Code makes a wider one scroll."""
_TREE_LINES = 24
"""Lines of a value, a choice: about a hover; longer ones have their inner containers folded."""
_INPUT_LINES = 10
"""Lines of each input that is a module or a large tree, a choice: two and a result fit a hover."""
_LONGEST_INPUT = 60
"""Characters of such an input in a signature, a choice: a longer one has its figures there."""
_LONGEST_NAME = 72
"""Characters of a headline, a choice: it must not wrap. Of a longer one the last 8 are kept."""
_INNER_SPACE = re.compile(r"(?<=[(\[]) | ?,? (?=\))| (?=\])")
"""What an expression of several lines has inside its brackets, once it is on one line."""
_SHORT_JAXPR, _JAXPR_LINES = 20, 10
"""Lines up to which a jaxpr is shown whole, and lines of a longer one: kernels follow on screen."""


def function_hover(
    subject: Subject,
    view: View,
    targets: str = "",
    notes: str = "",
    opens: str = "`jaxsight: show jaxpr` opens",
) -> Hover:
    """Return the hover of a function: its figures, its signature with avals, and its jaxpr.

    If the trace failed, the hover explains the error.

    Args:
        targets: Markdown about the compiled function on each target.
        notes: Markdown of the answer's caveats (`caveats.markdown`).
        opens: what shows the whole jaxpr, before "the jaxpr".
    """
    answer = view.answer
    parts: list[str] = []
    if isinstance(answer.reply, Traced):
        traced = view.with_sizes(answer.reply) if view.assumed else answer.reply
        parts.append(f"*{inputs.WITH_SIZES}:*" if targets and view.assumed else "")
        parts.append(targets)
        forms = [view.with_sizes(traced)] if view.assumed else [view.with_sizes(traced), traced]
        signatures = dict.fromkeys(signature(subject.name, form) for form in forms)
        parts.append(fenced("\n".join(signatures)))
        parts.append(_facts(subject, view, traced))
        parts += [
            array_trees.block(tree, name, _INPUT_LINES)
            for name, tree in traced.trees
            if len(tree.rows) > 1
        ]
        parts.append(updates(traced, quoted=True))
        parts.append(notes)
        lines = view.words(traced.jaxpr).split("\n")
        is_folded = len(lines) > _SHORT_JAXPR
        jaxpr = "\n".join([*lines[:_JAXPR_LINES], "    …"] if is_folded else lines)
        parts.append(fenced(jaxpr, "jaxpr") if jaxpr else "")
        if not jaxpr:
            parts.append(f"*{opens} the jaxpr, with assumed sizes*")
        elif traced.folded or is_folded:
            parts.append(f"*folded; {opens} the whole jaxpr*")
        if traced.views:
            named = ", ".join(span(name) for name in traced.views)
            parts.append(f"*jaxpr interpreters in this environment: {named}*")
    else:
        parts.append(
            f"**{escaped(subject.name)}** {'is shown' if view.is_run else 'cannot be traced'} "
            f"{inputs.caller(view) or f'with {_set_words(subject, view)}'}"
        )
        parts.append(explanation(view))
        parts.append(notes)
    hover = _hover(subject.name_range, parts, view)
    return replace(hover, function=subject.id if isinstance(answer.reply, Traced) else "")


def expression_hover(
    source: str,
    range: Range,
    observation: Observation,
    view: View,
    became: str = "",
    layouts: str = "",
) -> Hover:
    """Return the hover of an expression, assignment target or parameter: its types.

    Args:
        source: its current text.
        range: its current range.
        became: the kernels that compute it.
        layouts: Markdown of how its parts are laid out over devices.
    """
    lines = []
    name = shortened(source)
    values = view.values(observation)
    types = (
        *zip(view.named(observation), values, strict=True),
        *((value.text, value) for value in values),
    )
    texts = {f"{name}: {one_line(text)}": value.tree for text, value in types}
    plain = [trees.wrapped(text, _WIDTH, _TREE_LINES) for text, tree in texts.items() if not tree]
    if plain:
        lines.append(fenced("\n".join(plain)))
    of_trees = dict.fromkeys(tree for tree in texts.values() if tree is not None)
    lines += [array_trees.block(tree, name) for tree in of_trees]
    key = random_keys.key_note(view, range, (value.text for value in values))
    notes = [*filter(None, [key]), *_notes(values)]
    if observation.more:
        notes.append(f"and {observation.more} more")
    subject = view.answer.question.subject
    chosen = view.set_name
    given = f" with example inputs *{escaped(chosen)}*" if chosen else ""
    if view.subject.is_proposed:
        given = " with assumed inputs"
    if calls := inputs.caller(view):
        given = f" {calls}"
    notes.append(f"in {span(subject.name)}{given}" if subject.name else given.strip())
    notes += caveats.marks(view.caveats)
    lines.append(" · ".join(notes))
    if layouts:
        lines.append(layouts)
    if became:
        lines.append(prose(became))
    return _hover(range, lines, view)


def helper_hover(placed: PlacedFunction, view: View) -> Hover | None:
    """Return the hover of a function as it was called in the trace of another one.

    Returns `None` if it was not called.

    Args:
        placed: the function.
        view: the trace.
    """
    function = placed.function
    values: list[ExprValue] = []
    named: list[str] = []
    numbers: list[str] = []
    for parameter in function.parameters:
        observation = view.observed.get(placed.place(parameter.range))
        observed = view.values(observation) if observation is not None else ()
        names = view.named(observation) if observation is not None else ()
        values += observed
        named.append(_parameter(parameter.name, names, observed))
        texts = [value.text for value in observed]
        numbers.append(_parameter(parameter.name, texts, observed))
    if not values:
        return None
    name = function.qualname.rpartition(".")[2]
    calls = dict.fromkeys(_call(name, parameters) for parameters in (named, numbers))
    notes = [*_notes(values), f"in {span(view.answer.question.subject.name)}"]
    parts = [fenced("\n".join(calls)), " · ".join(notes)]
    return _hover(placed.name_range, parts, view)


def _parameter(name: str, types: Sequence[str], values: Sequence[ExprValue]) -> str:
    short = (
        array_trees.brief(value.tree, one_line(text), _LONGEST_INPUT)
        for text, value in zip(types, values, strict=True)
    )
    texts = " | ".join(dict.fromkeys(short))
    return f"{name}: {texts}" if texts else name


def shortened(source: str) -> str:
    """Return an expression on one line, without its middle if it is long."""
    line = _INNER_SPACE.sub("", " ".join(source.split()))
    if len(line) <= _LONGEST_NAME:
        return line
    return f"{line[: _LONGEST_NAME - 12].rstrip()} … {line[-8:].lstrip()}"


def unasked_hover(subject: Subject, why: Unasked, range: Range | None = None) -> Hover:
    """Return a hover that says why a function is not traced, at its name by default."""
    words = f"**{escaped(subject.name)}** is not traced"
    if isinstance(why, Waits):
        return Hover(range or subject.name_range, with_wait(f"{words} yet", why))
    return Hover(range or subject.name_range, f"{words}: {prose(why.reason)}")


def with_wait(markdown: str, held: Waits) -> str:
    """Return a hover's text with what its answer waits for, and how to stop that."""
    how = f"help: {prose(held.how)}" if held.how else ""
    return "\n\n".join(filter(None, (markdown, prose(held.reason), how)))


def signature(name: str, traced: Traced) -> str:
    """Return `f(x: f32[8], n: 2) -> f32[8]`, with one parameter per line if it is long.

    Static arguments are shown by their values.
    """
    of_trees = dict(traced.trees)
    parameters = [
        f"{parameter}: {array_trees.brief(of_trees.get(parameter), one_line(text), _LONGEST_INPUT)}"
        for parameter, text in traced.parameters
    ]
    return _call(name, parameters, one_line(traced.outputs))


def _call(name: str, parameters: list[str], outputs: str = "") -> str:
    line = f"{name}({', '.join(parameters)})" + (f" -> {outputs}" if outputs else "")
    if len(line) <= _WIDTH:
        return line
    wrapped = (trees.wrapped(parameter, _WIDTH - 4, _TREE_LINES) for parameter in parameters)
    body = "".join(f"{textwrap.indent(text, '    ')},\n" for text in wrapped)
    shown = trees.wrapped(outputs, _WIDTH - len(") -> "), _TREE_LINES)
    return f"{name}(\n{body})" + (f" -> {shown}" if outputs else "")


def _facts(subject: Subject, view: View, traced: Traced) -> str:
    facts = [units.count(traced.equations, "equation")]
    if total := sum(size for _, size in traced.constants):
        number = units.count(len(traced.constants), "captured constant")
        facts.append(f"{number}, {units.size(total)}")
    facts += random_keys.parameter_notes(view, traced.parameters)
    facts.append(f"traced {inputs.caller(view) or f'with {_set_words(subject, view)}'}")
    return " · ".join(facts)


def updates(traced: Traced, *, quoted: bool = False) -> str:
    """Return `updates: model, optimizer`, and which of them the figures exclude; empty without any.

    Args:
        quoted: whether names are in backticks, for Markdown.
    """
    if not traced.updates:
        return ""
    written = span if quoted else one_line
    names, missing = (
        ", ".join(written(name) for name in names) for names in (traced.updates, traced.left_out)
    )
    return f"updates: {names}" + (f" · not in the figures: {missing}" if missing else "")


def _set_words(subject: Subject, view: View) -> str:
    chosen = view.set_name
    if subject.is_proposed:
        return "assumed inputs"
    if chosen:
        return f"example inputs *{escaped(chosen)}*"
    if len(subject.examples.sets) > 1:
        return f"the first of {len(subject.examples.sets)} example sets"
    return "its example inputs"


def _notes(values: Iterable[ExprValue]) -> Iterable[str]:
    return dict.fromkeys(note for value in values for note in value_notes(value))


def value_notes(value: ExprValue) -> list[str]:
    """Return what is known of a value besides its type, in Markdown.

    What it was computed in is `inside scan body › grad`, without calls of jitted functions.
    """
    inside = " › ".join(place for place in value.inside if place != "jit")
    notes = [f"inside {escaped(inside)}" if inside else "", "weak type" if value.weak else ""]
    return [*filter(None, notes), *shardings.notes(value)]


def _hover(range: Range, parts: Iterable[str], view: View) -> Hover:
    """Return the hover of the non-empty parts, below a notice if they are stale."""
    return Hover(range, "\n\n".join(filter(None, (caveats.notice(view), *parts))), view.stale)
