"""What an answer leaves out, in words: a caveat for hovers, hints, documents and the terminal.

A caveat's reason speaks of the workspace (names, messages of exceptions), so nothing of it is
trusted: it is one line without hidden characters (`engine.inert`), and in Markdown nothing but its
code spans is markup (`engine.markdown`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxsight.engine import stale
from jaxsight.engine.answers import Caveat, Hint, Shown
from jaxsight.engine.inert import clause
from jaxsight.engine.markdown import prose
from jaxsight.engine.text import Range
from jaxsight.engine.views import View

MARK = "⚠"
MOST = 3
"""Caveats that are shown before the others are only counted."""
_LONGEST = 200
"""Characters of a reason."""
_COMMENTS = {"stablehlo": "//", "hlo": "//"}
"""How a comment begins in a virtual document, by its kind; `#` in all others."""


@dataclass(frozen=True, slots=True)
class Completeness:
    """What the answer about one function leaves out: nothing where `caveats` is empty."""

    function: str
    range: Range
    """The whole definition."""
    caveats: tuple[Caveat, ...] = ()


def reason(caveat: Caveat) -> str:
    """The reason on one line, without what a terminal or an editor would obey."""
    return clause(caveat.reason, _LONGEST)


def line(caveat: Caveat) -> int:
    """The line (from 1) of the statement."""
    return caveat.range.start.line + 1


def marks(caveats: Sequence[Caveat]) -> list[str]:
    """`⚠ 1 caveat`, where something was left out."""
    many = "" if len(caveats) == 1 else "s"
    return [f"{MARK} {len(caveats)} caveat{many}"] if caveats else []


def text(caveat: Caveat) -> str:
    """``line 120: `train()` was not run and may change `CFG` ``"""
    return f"line {line(caveat)}: {reason(caveat)}"


def markdown(caveats: Sequence[Caveat]) -> str:
    """A list for hovers and tooltips, the first few of many; empty where nothing was left out."""
    if not caveats:
        return ""
    items = "\n".join(f"* {prose(each)}" for each in lines(caveats))
    return f"{MARK} may differ from the imported module:\n\n{items}"


def hint(view: View, at: Range) -> Hint | None:
    """The mark at the end of the function's head, where something was left out."""
    if not view.caveats:
        return None
    (label,) = marks(view.caveats)
    tooltip = "\n\n".join(filter(None, (stale.notice(view), markdown(view.caveats))))
    return Hint(at, f"{stale.mark(view)}{label}", tooltip, view.stale)


def lines(caveats: Sequence[Caveat]) -> list[str]:
    """A line of plain text for each of the first few, and how many more there are."""
    shown = [text(each) for each in caveats[:MOST]]
    return [*shown, f"{len(caveats) - MOST} more"] if len(caveats) > MOST else shown


def comment_lines(caveats: Sequence[Caveat], kind: str) -> list[str]:
    """The same as comments of a virtual document of that kind."""
    return [f"{_COMMENTS.get(kind, '#')} note: {each}" for each in lines(caveats)]


def commented(shown: Shown, kind: str) -> Shown:
    """A virtual document with its caveats as comments on top, its links moved down."""
    comments = comment_lines(shown.caveats, kind)
    if not comments:
        return shown
    links = tuple(replace(link, line=link.line + len(comments)) for link in shown.links)
    return replace(shown, text="\n".join([*comments, shown.text]), links=links)


def record(caveats: Sequence[Caveat]) -> dict[str, object]:
    """The keys of a function's JSON: `complete`, and `caveats` by line."""
    return {
        "complete": not caveats,
        "caveats": [{"line": line(each), "reason": reason(each)} for each in caveats],
    }
