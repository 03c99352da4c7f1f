"""Where the inputs of functions are from, in words, and which functions their traces reach."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from jaxsight.examples.notation.values import show
from jaxsight.examples.resizing import SizedInputs
from jaxsight.queries.sizes.explorer import inputs_of
from jaxsight.queries.sizes.naming import SizeNames
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question
from jaxsight.source.module import PlacedFunction
from jaxsight.source.slicing.chunk_roles import quoted_line
from jaxsight.text import units
from jaxsight.text.inert import clause, one_line
from jaxsight.text.markdown import prose
from jaxsight.wire.messages.inputs import ValueSpec
from jaxsight.wire.messages.replies import Traced

ASSUMED = "assumed"
"""The origin of inputs that jaxsight proposed and nobody wrote, at least for some parameters."""
WRITTEN = {
    "docstring": "in the docstring",
    "class": "in the docstring of the class",
    "project": "in the project's settings",
    "annotations": "in annotations",
}
"""What the user wrote, by origin."""


def origin(view: View) -> str:
    """Return the origin of a function's inputs, such as `docstring`, `recorded` or `assumed`."""
    return ASSUMED if view.assumed else view.subject.examples.source


def is_written(view: View) -> bool:
    """Return whether the user wrote the inputs as example inputs."""
    return origin(view) in WRITTEN


def described(view: View) -> str:
    """Return the inputs in a clause: `in the docstring (decode)`, `as recorded`, `x: f32[B, D]`."""
    if view.assumed:
        words = assumed(view.answer.question, view.size_names)
        return one_line(words.removeprefix("assumed inputs: "))
    name = one_line(view.set_name)
    if (where := WRITTEN.get(origin(view))) is None:
        return name
    return f"{where} ({name})" if name else where


def record(view: View) -> dict[str, object]:
    """Return the inputs for JSON: their origin, a clause, and whether they are assumed."""
    from_ = origin(view)
    return {"origin": from_, "description": described(view), "assumed": from_ == ASSUMED}


# Words about inputs that jaxsight assumed: what they are, and which figures follow from them.


MARK = "?"
"""The mark before what follows from assumed inputs: an ASCII column, as that of stale figures."""
WITH_SIZES = "with assumed sizes"

_LONGEST = 120  # characters of a sentence in a tooltip, a choice: about two of its lines


def mark(view: View) -> str:
    """Return the mark of a hint; empty if no type is assumed: an unknown size has its own."""
    return MARK if view.is_proposed else ""


def notice(view: View) -> str:
    """Return the first line of a hover or tooltip, `assumed inputs: x: f32[N,M]`, as Markdown."""
    return f"*{prose(assumed(view.answer.question, view.size_names))}*" if view.assumed else ""


def assumed(question: Question, names: SizeNames | None = None) -> str:
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
    guessed = set(inputs.set.assumed)
    for argument in inputs.set.arguments:
        name = argument.name
        if name not in guessed:
            continue
        if isinstance(argument.spec, ValueSpec):
            source = "".join(inputs.sources.get(name, (argument.spec.source,)))
            yield f"{name}: {source}" if argument.spec.literal else f"{name} = {source}"
        elif (node := inputs.nodes.get(name)) is not None:
            yield f"{name}: {show(node)}"


# Which functions the traces of a file have reached, be it their own or those of their callers.


class ReachedPlaces:
    """The places of a file that traces have reached, with the traced functions."""

    def __init__(self, views: Sequence[View]) -> None:
        places = ((place.start, view.subject.name) for view in views for place in view.observed)
        self._places = sorted(places)

    def by(self, function: PlacedFunction) -> str:
        """Return a traced function whose trace has reached the body of one; empty if none."""
        first = bisect_left(self._places, (function.body.start, ""))
        if first == len(self._places):
            return ""
        place, name = self._places[first]
        return name if place in function.range else ""


# Words about functions whose example inputs are those of calls.


_NAMED = ("program", "recorded")


def call_of(view: View) -> str:
    """Return which call or run example inputs are from; empty if other words say it, or none."""
    return one_line(view.set_name) if view.subject.examples.source in _NAMED else ""


def caller(view: View) -> str:
    """Return Markdown that says by whom or where a function is called; empty for other ones."""
    return prose(view.set_name) if view.subject.is_called else ""


def not_compiled(view: View) -> str:
    """Return a clause about a function that the file's own program does not compile."""
    if view.compiled_as == "inside":
        return "not compiled by itself: it is a part of other programs"
    reply = view.answer.reply
    operations = units.count(reply.equations, "operation") if isinstance(reply, Traced) else ""
    return f"not compiled: runs op by op, {operations}"


def without_repeats(views: Sequence[View]) -> list[View]:
    """Return the views without functions that a trace of another one in their file reaches.

    That trace describes them as they are used, so it takes precedence: it does for parts of other
    programs, and for nested functions if it is that of the function around them. A trace of an
    earlier text does so only for views of earlier texts.
    """
    others = [v for v in views if v.compiled_as != "inside" and not v.subject.is_program]
    traced = [view for view in others if view.is_traced]
    ever, now = ReachedPlaces(traced), ReachedPlaces([v for v in traced if not v.stale])
    return [
        view
        for view in views
        if not (
            view.compiled_as == "inside" and (ever if view.stale else now).by(view.subject.placed)
        )
        and not (
            view.subject.examples.source == "program" and any(_is_around(v, view) for v in views)
        )
    ]


def _is_around(view: View, nested: View) -> bool:
    """Return whether a view is of a function around a nested one, and describes that too."""
    subject = nested.subject
    if not subject.name.startswith(f"{view.subject.name}.<locals>.") or not view.is_traced:
        return False
    body = subject.body
    return any(place.start in body for place in view.observed)
