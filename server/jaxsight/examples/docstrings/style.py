"""The three styles of docstrings, and the heading of example inputs in each."""

from __future__ import annotations

import re
from typing import Literal as OneOf

from jaxsight.examples.notation.chunk_text import ChunkText

Style = OneOf["google", "numpydoc", "rest"]

_NUMPYDOC = re.compile(r"^[ \t]*[A-Z][\w ]*\r?\n[ \t]*-{3,}[ \t]*\r?$", re.MULTILINE)
_REST = re.compile(
    r"^[ \t]*:(?:param|parameter|arg|type|returns?|rtype|raises)\b[^:\n]*:", re.MULTILINE
)


def style_of(source: ChunkText) -> Style:
    """Return the style of a docstring; Google's if nothing else is recognized."""
    if _NUMPYDOC.search(source.text):
        return "numpydoc"
    return "rest" if _REST.search(source.text) else "google"


def heading_lines(title: str, style: Style) -> list[str]:
    """Return the lines of a section's heading."""
    match style:
        case "google":
            return [f"{title}:"]
        case "numpydoc":
            return [title, "-" * len(title)]
        case "rest":
            return [f":{title}:"]
