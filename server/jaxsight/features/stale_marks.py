"""Marks of answers about an older text, `~`, and of assumed inputs, `?`.

They begin hints; hovers and documents have a first line.
"""

from __future__ import annotations

from jaxsight.features.findings.failures import explanation
from jaxsight.features.model import VirtualText
from jaxsight.features.proposals import assumptions
from jaxsight.queries.traces.located_answer import View
from jaxsight.text.inert import one_line

MARK = "~"
"""The mark before a figure: one ASCII column in every font, never cut off at the window's edge."""
_WORDS = "stale: describes the text before the last edits"
_AGAIN = "stale: it is being traced again"
"""Of a text that was not edited: settings, calls or other files have changed."""


def mark(view: View) -> str:
    """Return the mark of a hint; empty if it is current, and no input is assumed."""
    return f"{MARK if view.stale else ''}{assumptions.mark(view)}"


def notice(view: View) -> str:
    """Return the first lines of a hover or tooltip: about an older text, and assumed inputs.

    The error of the newest trace follows, if it failed with inputs that are not assumed.
    """
    is_edited = view.answer.question.module.text != view.module.text
    stale = f"*{_WORDS if is_edited else _AGAIN}*" if view.stale else ""
    failed = view.failed
    if view.stale and failed is not None and not failed.assumed:
        stale = f"*{_WORDS}; the newest trace fails:*\n\n{explanation(failed)}"
    return "\n\n".join(filter(None, (stale, assumptions.notice(view))))


def marked(shown: VirtualText, comment: str, assumed: str = "") -> VirtualText:
    """Return a document, with first lines that mark it if it is stale or of assumed inputs.

    Args:
        shown: the document.
        comment: the comment prefix of the document's language.
        assumed: the assumed inputs; empty if there are none.
    """
    lines = [*([_WORDS] if shown.stale else []), *([one_line(assumed)] if assumed else [])]
    return shown.below([f"{comment} {line}" for line in lines])
