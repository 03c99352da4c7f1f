"""Caveats in words: how an answer may differ from that of the imported module, or is stale.

Hovers, hints, documents and the terminal show them. A caveat's reason quotes the workspace (names,
messages of exceptions), so it is not trusted: it is one line without hidden characters
(`text/inert.py`), and in Markdown only its code spans are markup (`text/markdown.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxsight.features.model import DocumentKind, VirtualText
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.source.text import Range
from jaxsight.text.inert import clause
from jaxsight.text.markdown import prose
from jaxsight.text.units import count

if TYPE_CHECKING:
    # Clients convert caveats before the engine is imported.
    from jaxsight.queries.engine import Engine


from jaxsight.features import inputs
from jaxsight.features.findings.failures import explanation
from jaxsight.text.inert import one_line

MARK = "⚠"
MOST = 3
"""Caveats that are listed, a choice: more would fill a tooltip; further ones are counted."""
_LONGEST = 200
"""Characters of a reason, a choice: two or three lines of a hover; some quote a statement."""
_COMMENTS = {"stablehlo": "//", "hlo": "//", "hlo-metadata": "//"}
"""The comment prefix of a virtual document, by its kind; `#` in all others."""


@dataclass(frozen=True, slots=True)
class Completeness:
    """The caveats of the answer about one function; the answer is complete if there are none."""

    function: str
    range: Range
    """The whole definition."""
    caveats: tuple[SliceCaveat, ...] = ()


def reason(caveat: SliceCaveat) -> str:
    """Return the reason on one line, with control characters escaped."""
    return clause(caveat.reason, _LONGEST)


def line(caveat: SliceCaveat) -> int:
    """Return the line of the statement, from 1."""
    return caveat.range.start.line + 1


def marks(caveats: Sequence[SliceCaveat]) -> list[str]:
    """Return `⚠ 1 caveat` in a list; an empty list without caveats."""
    return [f"{MARK} {count(len(caveats), 'caveat')}"] if caveats else []


def text(caveat: SliceCaveat) -> str:
    """Return a caveat as text: ``line 120: `train()` was not run and may change `CFG` ``."""
    return f"line {line(caveat)}: {reason(caveat)}"


def markdown(caveats: Sequence[SliceCaveat]) -> str:
    """Return a Markdown list of the first caveats for hovers; empty if there are none."""
    if not caveats:
        return ""
    bullets = "\n".join(f"* {prose(entry)}" for entry in lines(caveats))
    return f"{MARK} may differ from the imported module:\n\n{bullets}"


def lines(caveats: Sequence[SliceCaveat]) -> list[str]:
    """Return a line of plain text for each of the first caveats, and the number of further ones."""
    shown = [text(caveat) for caveat in caveats[:MOST]]
    return [*shown, f"{len(caveats) - MOST} more"] if len(caveats) > MOST else shown


def commented(shown: VirtualText, kind: DocumentKind) -> VirtualText:
    """Return a virtual document with its caveats as comments on top."""
    comment = _COMMENTS.get(kind, "#")
    return shown.below([f"{comment} note: {note}" for note in lines(shown.caveats)])


def record(caveats: Sequence[SliceCaveat]) -> dict[str, object]:
    """Return the keys of a function's JSON: `complete`, and `caveats` by line."""
    return {
        "complete": not caveats,
        "caveats": [{"line": line(caveat), "reason": reason(caveat)} for caveat in caveats],
    }


async def completeness(engine: Engine, path: str) -> list[Completeness]:
    """Return the caveats of the answer about each traced function of a file."""
    document = await engine.documents.read(path)
    views = await engine.traces.views(document, None) if document is not None else []
    return [Completeness(view.subject.name, view.subject_range, view.caveats) for view in views]


# Marks of answers about an older text, `~`, and of assumed inputs, `?`.


STALE = "~"
"""The mark before a figure: one ASCII column in every font, never cut off at the window's edge."""
_WORDS = "stale: describes the text before the last edits"
_AGAIN = "stale: it is being traced again"
"""Of a text that was not edited: settings, calls or other files have changed."""


def mark(view: View) -> str:
    """Return the mark of a hint; empty if it is current, and no input is assumed."""
    return f"{STALE if view.stale else ''}{inputs.mark(view)}"


def notice(view: View) -> str:
    """Return the first lines of a hover or tooltip: about an older text, and assumed inputs.

    The error of the newest trace follows, if it failed with inputs that are not assumed.
    """
    is_edited = view.answer.question.module.text != view.module.text
    stale = f"*{_WORDS if is_edited else _AGAIN}*" if view.stale else ""
    failed = view.failed
    if view.stale and failed is not None and not failed.assumed:
        stale = f"*{_WORDS}; the newest trace fails:*\n\n{explanation(failed)}"
    return "\n\n".join(filter(None, (stale, inputs.notice(view))))


def marked(shown: VirtualText, comment: str, assumed: str = "") -> VirtualText:
    """Return a document, with first lines that mark it if it is stale or of assumed inputs.

    Args:
        shown: the document.
        comment: the comment prefix of the document's language.
        assumed: the assumed inputs; empty if there are none.
    """
    lines = [*([_WORDS] if shown.stale else []), *([one_line(assumed)] if assumed else [])]
    return shown.below([f"{comment} {line}" for line in lines])
