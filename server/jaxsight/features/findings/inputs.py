"""Where the inputs of a function are from, in words."""

from __future__ import annotations

from jaxsight.features.proposals import assumptions
from jaxsight.queries.traces.located_answer import View
from jaxsight.text.inert import one_line

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
        words = assumptions.words(view.answer.question, view.size_names)
        return one_line(words.removeprefix("assumed inputs: "))
    name = one_line(view.set_name)
    if not is_written(view):
        return name
    where = WRITTEN[origin(view)]
    return f"{where} ({name})" if name else where


def record(view: View) -> dict[str, object]:
    """Return the inputs for JSON: their origin, a clause, and whether they are assumed."""
    from_ = origin(view)
    return {"origin": from_, "description": described(view), "assumed": from_ == ASSUMED}
