"""Comments `# jaxsight: …`: `always` and `never` of statements, `root` of functions."""

from __future__ import annotations

import io
import re
import tokenize

from jaxsight.source.analysis.name_effects import MARK
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.text import Edit, Position, Range

ALWAYS = "always"
NEVER = "never"

_ROOT = re.compile(r"#[ \t]*jaxsight:[ \t]*root\b[^'\"]*$", re.MULTILINE)
_ENDS = (tokenize.COMMENT, tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)


def mark_of(module: Module, chunk: ModuleChunk) -> tuple[str, Range] | None:
    """Return the mark of a statement and the range of its word, if it has one.

    The mark is on the statement's first or last line, or in a comment line above it.
    """
    for line in dict.fromkeys((0, max(chunk.statement.lines_used - 1, 0))):
        start = _comment(chunk.text, line)
        if start is not None and (match := MARK.search(chunk.text.split("\n")[line], start)):
            return _word(match, chunk.first_line + line)
    above = module.line(chunk.first_line - 1)
    if above.lstrip().startswith("#") and (match := MARK.search(above)) is not None:
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
    return _comment_edit(module, chunk, 0, mark)


def is_root(chunk: ModuleChunk, function: Function) -> bool:
    """Return whether the author says that a function is compiled: a comment in its head does."""
    lines = chunk.text.split("\n")[function.range.start.line : function.body_start.line + 1]
    # The body may begin in the line of the head: `def f(x): return "# …"`.
    if len(lines) > 1:
        lines[-1] = lines[-1][: function.body_start.column]
    return any(map(_ROOT.search, lines))


def root_edit(module: Module, chunk: ModuleChunk, function: Function) -> Edit:
    """Return the edit that says of a function that it is compiled, on the line of its name."""
    return _comment_edit(module, chunk, function.name_range.start.line, "root")


def _comment_edit(module: Module, chunk: ModuleChunk, line: int, mark: str) -> Edit:
    """Return the edit that adds a comment to a line of a chunk, or above it where it cannot end."""
    place = chunk.first_line + line
    text = module.line(place)
    if _comment(chunk.text, line, or_end=True) is None:
        start = Position(place, 0)
        indent = text[: len(text) - len(text.lstrip())]
        return Edit(Range(start, start), f"{indent}# jaxsight: {mark}\n")
    end = Position(place, len(text.rstrip()))
    return Edit(Range(end, Position(place, len(text))), f"  # jaxsight: {mark}")


def _word(match: re.Match[str], line: int) -> tuple[str, Range]:
    return match[1], Range(Position(line, match.start(1)), Position(line, match.end(1)))


def _comment(text: str, line: int, *, or_end: bool = False) -> int | None:
    """Return the column of the comment in a line (from 0); with `or_end`, where it could begin."""
    wanted = _ENDS if or_end else (tokenize.COMMENT,)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.start[0] == line + 1 and token.type in wanted:
                return token.start[1]
    # The first at an open bracket or string, the second at a wrong indentation: these have no
    # comment that counts.
    except (tokenize.TokenError, SyntaxError):
        return None
    return None
