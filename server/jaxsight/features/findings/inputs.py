"""Where the example inputs of a function are from, in words."""

from __future__ import annotations

from jaxsight.examples.notation.values import show
from jaxsight.queries.traces.located_answer import View
from jaxsight.text.inert import clause, one_line
from jaxsight.wire.messages.inputs import ValueSpec

ASSUMED = "assumed"
"""The origin of inputs that jaxsight proposed and nobody wrote."""
_LONGEST = 200
"""Maximum length of assumed inputs, in characters."""
_WRITTEN = {
    "docstring": "in the docstring",
    "class": "in the docstring of the class",
    "project": "in the project's settings",
    "doctest": "in a doctest",
    "annotations": "in annotations",
}
"""What the user wrote, by origin."""


def origin(view: View) -> str:
    """Return the origin of a function's inputs, such as `docstring`, `recorded` or `assumed`."""
    source = view.subject.examples.source
    return ASSUMED if source == "proposed" else source


def is_written(view: View) -> bool:
    """Return whether the user wrote the inputs as example inputs."""
    return origin(view) in _WRITTEN


def assumed(view: View) -> str:
    """Return assumed inputs as written, `x: f32[B,D]`; empty for others."""
    if origin(view) != ASSUMED:
        return ""
    chosen = view.answer.question.set
    nodes = dict(chosen.nodes)
    parts: list[str] = []
    for argument in chosen.arguments:
        if argument.name in nodes:
            parts.append(f"{argument.name}: {show(nodes[argument.name]).replace(', ', ',')}")
        elif isinstance(argument.spec, ValueSpec):
            parts.append(f"{argument.name} = {argument.spec.source}")
    return clause(one_line(", ".join(parts)), _LONGEST) or "proposed by jaxsight"


def described(view: View) -> str:
    """Return the inputs in a clause: `in the docstring (decode)`, `as recorded`, `x: f32[B,D]`."""
    if words := assumed(view):
        return words
    name = one_line(view.set_name)
    if not is_written(view):
        return name
    where = _WRITTEN[origin(view)]
    return f"{where} ({name})" if name else where


def record(view: View) -> dict[str, object]:
    """Return the inputs for JSON: their origin, a clause, and whether they are assumed."""
    from_ = origin(view)
    return {"origin": from_, "description": described(view), "assumed": from_ == ASSUMED}
