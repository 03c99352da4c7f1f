"""Words about functions whose example inputs are those of calls."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.features.findings.reached import ReachedPlaces
from jaxsight.queries.traces.located_answer import View
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.text.markdown import prose
from jaxsight.wire.messages.replies import Traced

_NAMED = ("program", "recorded")


def origin(view: View) -> str:
    """Return which call or run example inputs are from; empty if other words say it, or none."""
    return one_line(view.set_name) if view.subject.examples.source in _NAMED else ""


def words(view: View) -> str:
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
