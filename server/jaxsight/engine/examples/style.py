"""The three ways in which docstrings are laid out, and how an example-input heading looks in
each.
"""

from __future__ import annotations

import re
from typing import Literal as OneOf

from jaxsight.engine.examples.source import Source

Style = OneOf["google", "numpydoc", "rest"]

_NUMPYDOC = re.compile(r"^[ \t]*[A-Z][\w ]*\r?\n[ \t]*-{3,}[ \t]*\r?$", re.MULTILINE)
_REST = re.compile(
    r"^[ \t]*:(?:param|parameter|arg|type|returns?|rtype|raises)\b[^:\n]*:", re.MULTILINE
)


def style_of(source: Source) -> Style:
    """The style that a docstring is written in; Google's where nothing tells."""
    if _NUMPYDOC.search(source.text):
        return "numpydoc"
    return "rest" if _REST.search(source.text) else "google"


def heading_lines(title: str, style: Style) -> list[str]:
    """The heading of a section, line by line."""
    match style:
        case "google":
            return [f"{title}:"]
        case "numpydoc":
            return [title, "-" * len(title)]
        case "rest":
            return [f":{title}:"]
