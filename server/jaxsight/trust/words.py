"""Paths and names of a workspace in a question to its user, made inert."""

from __future__ import annotations

from jaxsight.text.inert import one_line

_MOST = 200
"""Characters of a path in a question, a choice: editors show it in a small dialog. Shorter ones
hide folders that tell projects apart."""
_LINKS = str.maketrans({"[": "\\x5b", "]": "\\x5d", "<": "\\x3c", "`": "\\x60"})
"""Characters that some editors interpret as links, markup or code."""


def shown_folder(folder: str, real: str) -> str:
    """Return a folder as it was opened, and where it really is."""
    leads = f" (leads to {shown_path(real)})" if real != folder else ""
    return f"{shown_path(folder)}{leads}"


def shown_path(text: str) -> str:
    """Return a path or name on one line, without control characters or markup.

    The middle of a long one is omitted.
    """
    shown = one_line(text).translate(_LINKS)
    if len(shown) > _MOST:
        half = _MOST // 2
        shown = f"{shown[:half]}…{shown[-half:]}"
    return shown
