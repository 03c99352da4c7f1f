"""Marks of answers about an older text: `~` in hints, a first line in hovers and documents."""

from __future__ import annotations

from dataclasses import replace

from jaxsight.features.findings.failures import explanation
from jaxsight.features.model import Shown
from jaxsight.queries.traces.located_answer import View

MARK = "~"
"""The mark before a figure: one ASCII column in every font, never cut off at the window's edge."""
_WORDS = "stale: describes the text before the last edits"


def mark(view: View) -> str:
    """Return the mark of a hint; empty if it is current."""
    return MARK if view.stale else ""


def notice(view: View) -> str:
    """Return the first line of a hover or tooltip; empty if it is current.

    The error of the newest trace follows, if it failed. Inputs that nobody wrote are named.
    """
    if not view.stale:
        is_proposed = view.subject.examples.source == "proposed"
        return "*traced with inputs that jaxsight proposed*" if is_proposed else ""
    failed = view.failed
    if failed is None:
        return f"*{_WORDS}*"
    error = explanation(failed.answer.reply, failed)
    return f"*{_WORDS}; the newest trace fails:*\n\n{error}"


def marked(shown: Shown, comment: str) -> Shown:
    """Return a document, with a first line that marks it if it is stale.

    Args:
        comment: the comment prefix of the document's language.
    """
    if not shown.stale:
        return shown
    links = tuple(replace(link, line=link.line + 1) for link in shown.links)
    return replace(shown, text=f"{comment} {_WORDS}\n{shown.text}", links=links)
