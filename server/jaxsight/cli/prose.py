"""The engine's Markdown in a terminal: code as it is, coloured where colours are, prose without its marks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

_FENCED = re.compile(r"^```(\w*)\n(.*?)\n?```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_STRONG = re.compile(r"\*\*(.+?)\*\*|(?<![\w*])\*(?!\s)(.+?)(?<!\s)\*(?![\w*])")


def print_markdown(console: Console, markdown: str) -> None:
    """Print `markdown`, its parts an empty line apart."""
    for number, (language, text) in enumerate(_parts(markdown)):
        if number:
            console.print()
        if language is None:
            console.print(Text(plain(text)))
        elif language == "python" and console.is_terminal:
            console.print(Syntax(text, "python", theme="ansi_dark", background_color="default"))
        else:
            console.print(Text(text))


def plain(text: str) -> str:
    """Prose without emphasis and links' marks; code spans keep theirs, which read well as they are."""
    without_links = _LINK.sub(r"\1, \2", text)
    return _STRONG.sub(lambda found: found[1] or found[2], without_links)


def _parts(markdown: str) -> Iterator[tuple[str | None, str]]:
    """Prose (language `None`) and fenced code, in turn, without what is empty."""
    at = 0
    for found in _FENCED.finditer(markdown):
        if prose := markdown[at : found.start()].strip():
            yield None, prose
        yield found[1], found[2]
        at = found.end()
    if prose := markdown[at:].strip():
        yield None, prose
