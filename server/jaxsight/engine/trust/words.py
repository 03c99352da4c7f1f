"""Paths and names of a workspace in a question to its user: they are the workspace's own words, so
they are made inert.
"""

from __future__ import annotations

from jaxsight.engine.inert import one_line

_MOST = 200
_LINKS = str.maketrans({"[": "\\x5b", "]": "\\x5d", "<": "\\x3c", "`": "\\x60"})
"""Characters that make links, markup or code of a text in some editors."""


def shown_path(text: str) -> str:
    """Return a path or name on one line, without controls or markup; a long one without its
    middle.
    """
    shown = one_line(text).translate(_LINKS)
    if len(shown) > _MOST:
        half = _MOST // 2
        shown = f"{shown[:half]}…{shown[-half:]}"
    return shown
