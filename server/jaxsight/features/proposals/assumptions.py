"""Words about inputs that jaxsight assumed: what they are, and which figures follow from them."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.examples.notation.values import show
from jaxsight.examples.resizing import SizedInputs
from jaxsight.queries.sizes.explorer import inputs_of
from jaxsight.queries.sizes.naming import SizeNames
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question
from jaxsight.source.slicing.chunk_roles import quoted_line
from jaxsight.text.inert import clause
from jaxsight.text.markdown import prose
from jaxsight.wire.messages.inputs import ValueSpec

MARK = "?"
"""The mark before what follows from assumed inputs: an ASCII column, as that of stale figures."""
WITH_SIZES = "with assumed sizes"

_LONGEST = 120  # characters of a sentence in a tooltip, a choice: about two of its lines


def mark(view: View) -> str:
    """Return the mark of a hint; empty if no type is assumed: an unknown size has its own."""
    return MARK if view.is_proposed else ""


def notice(view: View) -> str:
    """Return the first line of a hover or tooltip, `assumed inputs: x: f32[N,M]`, as Markdown."""
    return f"*{prose(words(view.answer.question, view.size_names))}*" if view.assumed else ""


def words(question: Question, names: SizeNames | None = None) -> str:
    """Return `assumed inputs: x: f32[B, D], n: N`, with names for sizes."""
    outside = question.set.outside
    sizes = outside.sizes if outside is not None else ()
    unknown = ", ".join(f"{name} of {quoted_line(line)}" for name, line, _ in sizes)
    if outside is not None and outside.origin != "proposed" and unknown:
        return clause(f"{question.set.name}; not known: {unknown}", _LONGEST)
    inputs = _inputs(question, names)
    others = f"; others {inputs.set.name}" if inputs.set.dry_call is not None else ""
    listed = ", ".join(_examples(inputs)) or "none"
    return f"{clause(f'assumed inputs: {listed}', _LONGEST)}{others}"


def header(question: Question, names: SizeNames | None = None) -> str:
    """Return the same with the assumed sizes, for the first line of a text with numbers."""
    inputs = _inputs(question, names)
    unknown = question.set.outside.sizes if question.set.outside is not None else ()
    numbers = {name: number for name, _, number in unknown}
    sizes = ", ".join(f"{name}={size}" for name, size in {**inputs.sizes, **numbers}.items())
    examples = ", ".join(_examples(inputs)) or "sizes"
    return f"assumed inputs: {examples}{f' where {sizes}' if sizes else ''}"


def _inputs(question: Question, names: SizeNames | None) -> SizedInputs:
    if names is not None and names.inputs is not None:
        return names.inputs
    inputs, by_number = inputs_of(question)
    return by_number or inputs


def _examples(inputs: SizedInputs) -> Iterator[str]:
    assumed = set(inputs.set.assumed)
    for argument in inputs.set.arguments:
        name = argument.name
        if name not in assumed:
            continue
        if isinstance(argument.spec, ValueSpec):
            source = "".join(inputs.sources.get(name, (argument.spec.source,)))
            yield f"{name}: {source}" if argument.spec.literal else f"{name} = {source}"
        elif (node := inputs.nodes.get(name)) is not None:
            yield f"{name}: {show(node)}"
