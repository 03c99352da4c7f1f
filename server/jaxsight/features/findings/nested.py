"""Report example inputs of nested functions that no trace calls.

A nested function exists only while the enclosing function runs, so it is never traced by itself:
its shapes come from the calls in other functions' traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.examples.problems import quoted
from jaxsight.queries.documents import Subject
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.finding import Finding, finding_of
from jaxsight.source.text import Position, Range

CODE = "JX911"
_LOCALS = ".<locals>."


def findings(subjects: Sequence[Subject], views: Sequence[View]) -> Iterator[Finding]:
    """Yield a finding for each nested function that no trace calls, once all traces are known."""
    nested = [subject for subject in subjects if _LOCALS in subject.name and subject.examples.sets]
    by_name = {view.subject.name: view for view in views}
    outer_names = {subject.name for subject in subjects if _LOCALS not in subject.name}
    for subject in nested:
        if subject.broken or subject.examples.source != "docstring":
            continue
        outer = subject.name.partition(_LOCALS)[0]
        around = by_name.get(outer)
        if outer in outer_names and (around is None or not around.is_traced or around.stale):
            continue  # The enclosing function has an error or is not traced yet.
        if any(not view.stale and _calls(view, subject) for view in views):
            continue
        inner = subject.name.rpartition(".")[2]
        message = f"unused example inputs of nested function {quoted(inner)}"
        if around is not None:
            help = f"add example inputs to a function that calls `{inner}`"
            notes = (f"`{outer}` is traced, but does not call `{inner}`",)
        else:
            help = f"add example inputs to `{outer}`"
            notes = ("a nested function cannot be traced by itself",)
        line = subject.examples.sets[0].line
        text = subject.chunk.text.split("\n")[line]
        start = len(text) - len(text.lstrip())
        heading = Range(Position(line, start), Position(line, max(start + 1, len(text.rstrip()))))
        place = subject.placed.place(heading)
        yield finding_of(CODE, place, message, help=help, notes=notes)


def _calls(view: View, subject: Subject) -> bool:
    """Return whether a trace entered the body of a function."""
    body = subject.body
    parameters = {
        subject.placed.place(parameter.range) for parameter in subject.function.parameters
    }
    return any(place in parameters or body.holds(place) for place in view.observed)
