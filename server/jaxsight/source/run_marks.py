"""Add or replace the comments `# jaxsight: always` and `# jaxsight: never` of statements."""

from __future__ import annotations

import io
import re
import tokenize

from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.text import Edit, Position, Range

ALWAYS = "always"
NEVER = "never"

_MARK = re.compile(rf"#[ \t]*jaxsight:[ \t]*({ALWAYS}|{NEVER})\b")
_ENDS = (tokenize.COMMENT, tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)


def mark_of(module: Module, chunk: ModuleChunk) -> tuple[str, Range] | None:
    """Return the mark of a statement and the range of its word, if it has one.

    The mark is on the statement's first or last line, or in a comment line above it.
    """
    for line in dict.fromkeys((0, max(chunk.statement.lines_used - 1, 0))):
        start = _comment(chunk.text, line)
        if start is not None and (match := _MARK.search(chunk.text.split("\n")[line], start)):
            return _word(match, chunk.first_line + line)
    above = module.line(chunk.first_line - 1)
    if above.lstrip().startswith("#") and (match := _MARK.search(above)) is not None:
        return _word(match, chunk.first_line - 1)
    return None


def mark_edit(module: Module, chunk: ModuleChunk, mark: str) -> Edit:
    """Return the edit that marks a statement.

    It replaces the other mark, or adds a comment at the end of the statement's first line; above
    the statement if that line ends inside a string or with a backslash.
    """
    present = mark_of(module, chunk)
    if present is not None:
        return Edit(present[1], mark)
    first = chunk.first_line
    line = module.line(first)
    if _comment(chunk.text, 0, or_end=True) is None:
        start = Position(first, 0)
        return Edit(Range(start, start), f"# jaxsight: {mark}\n")
    end = Position(first, len(line.rstrip()))
    return Edit(Range(end, Position(first, len(line))), f"  # jaxsight: {mark}")


def _word(match: re.Match[str], line: int) -> tuple[str, Range]:
    return match[1], Range(Position(line, match.start(1)), Position(line, match.end(1)))


def _comment(text: str, line: int, *, or_end: bool = False) -> int | None:
    """Return the column of the comment in a line (from 0); with `or_end`, where it could begin."""
    wanted = _ENDS if or_end else (tokenize.COMMENT,)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.start[0] == line + 1 and token.type in wanted:
                return token.start[1]
    except (tokenize.TokenError, SyntaxError):
        return None
    return None
