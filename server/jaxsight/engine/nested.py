"""Example inputs of nested functions: used where the trace of a function around them calls them, else reported as unused.

A nested function exists only while the function around it runs, so it is never traced by itself: what is seen of it
are the calls that happen in other functions' traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.engine.answers import Finding, finding_of
from jaxsight.engine.documents import Subject
from jaxsight.engine.text import Position, Range
from jaxsight.engine.views import View
from jaxsight.tracer.protocol import Traced

CODE = "JX911"
_LOCALS = ".<locals>."


def findings(subjects: Sequence[Subject], views: Sequence[View]) -> Iterator[Finding]:
    """Report sections of nested functions that no trace has come to, once all traces are known."""
    nested = [subject for subject in subjects if _LOCALS in subject.name and subject.examples.sets]
    by_name = {view.subject.name: view for view in views}
    outer_names = {subject.name for subject in subjects if _LOCALS not in subject.name}
    for subject in nested:
        if subject.broken or subject.examples.source != "docstring":
            continue
        outer = subject.name.partition(_LOCALS)[0]
        around = by_name.get(outer)
        if outer in outer_names and (around is None or not _is_traced(around)):
            continue  # Its own error or state is what there is to say.
        if any(not view.stale and _calls(view, subject) for view in views):
            continue
        inner = subject.name.rpartition(".")[2]
        if around is not None:
            why = f"`{outer}` never calls `{inner}`; trace a function that calls it"
        else:
            why = f"`{inner}` is nested; add example inputs to `{outer}`"
        message = f"these example inputs are not used: {why}"
        yield finding_of(CODE, _heading(subject), message)


def _is_traced(view: View) -> bool:
    return isinstance(view.answer.reply, Traced) and not view.stale


def _calls(view: View, subject: Subject) -> bool:
    """Whether a trace went through the body of a function."""
    body = Range(subject.function.body_start.down(subject.chunk.first_line), subject.range.end)
    parameters = {
        parameter.range.shifted(subject.chunk.first_line)
        for parameter in subject.function.parameters
    }
    return any(
        place in parameters or (body.start <= place.start and place.end <= body.end)
        for place in view.observed
    )


def _heading(subject: Subject) -> Range:
    """The line of the section's heading."""
    line = subject.examples.sets[0].line
    text = subject.chunk.text.split("\n")[line]
    start = len(text) - len(text.lstrip())
    heading = Range(Position(line, start), Position(line, max(start + 1, len(text.rstrip()))))
    return heading.shifted(subject.chunk.first_line)
