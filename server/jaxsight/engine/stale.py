"""How what describes an older text is marked: hints by `~`, hovers, tooltips and documents by a
first line.
"""

from __future__ import annotations

from dataclasses import replace

from jaxsight.engine.answers import Shown
from jaxsight.engine.failures import explanation
from jaxsight.engine.views import View

MARK = "~"
"""Before the figure it qualifies: one ASCII column in every font, and never cut off at the window's
edge.
"""
_WORDS = "stale: describes the text before the last edits"


def mark(view: View) -> str:
    """The mark of a hint; empty for one of the text as it stands."""
    return MARK if view.stale else ""


def notice(view: View) -> str:
    """The first line of a hover or a tooltip, with the error of the newest trace below it; empty
    when fresh.
    """
    if not view.stale:
        return ""
    failed = view.failed
    if failed is None:
        return f"*{_WORDS}*"
    error = explanation(failed.answer.reply, failed)
    return f"*{_WORDS}; the newest trace fails:*\n\n{error}"


def marked(shown: Shown, comment: str) -> Shown:
    """A document with a first line that says it is stale, if it is.

    Args:
        comment: what begins a comment in the document's language.
    """
    if not shown.stale:
        return shown
    links = tuple(replace(link, line=link.line + 1) for link in shown.links)
    return replace(shown, text=f"{comment} {_WORDS}\n{shown.text}", links=links)
