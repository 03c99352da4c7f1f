"""Divide a text into its top-level statements, also if it does not parse.

A statement begins at a line that can begin a statement (a *starter*: its first column is not blank,
and it does not begin with a closing bracket, `else` or the like). It ends before the first later
starter up to which the text parses: a proper prefix of a statement never parses when it is cut at a
line, so this is exactly the statement's end. A statement that cannot be completed is broken, from
one starter to the next and no further, so an unclosed quote or bracket affects its statement, not
the file.

Statements are found from top to bottom, and each depends only on the text from there on: this makes
parsing after an edit cheap (`Split.reach`). Nothing here may scan a whole file at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxsight.source.statements import TopLevelStatement, statement_of

_STARTER = re.compile(
    r"^(?:[ \t\f]*\f)?(?!(?:else|elif|except|finally)\b)[^ \t\f\n#)\]}]", re.MULTILINE
)
_FIRST = re.compile(r"^[ \t\f]*[^ \t\f\n#]", re.MULTILINE)
_IDLE = re.compile(r"[ \t\f]*(?:#|\Z)")
"""A line that is blank or a comment."""

_TOKEN = re.compile(r"#[^\n]*|\"\"\"|'''|[\"'()\[\]{}\n]|\\(?:\n|.)|[^\\#\"'()\[\]{}\n]+")
_STRING_END = {
    '"""': re.compile(r'[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""', re.DOTALL),
    "'''": re.compile(r"[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''", re.DOTALL),
    '"': re.compile(r'[^"\\\n]*(?:\\.[^"\\\n]*)*"', re.DOTALL),
    "'": re.compile(r"[^'\\\n]*(?:\\.[^'\\\n]*)*'", re.DOTALL),
}
_REST_OF_LINES = re.compile(r"[^\\\n]*(?:\\.[^\\\n]*)*", re.DOTALL)
"""A line's end, with the lines that backslashes join to it."""
_CLOSES = {")": "(", "]": "[", "}": "{"}
_MOST_STARTERS = 500
"""Lines inside brackets that could begin another statement, a choice: tables of calls have fewer.
If there are more, a bracket is assumed to be unclosed."""
_VALUES = frozenset("0123456789+-.\"'")
"""First characters of the lines of a table. They do not count as starters."""
_MOST_DECORATORS = 200
"""Lines of decorators of a statement, a choice. If there are more, it is taken to be broken."""
_NEVER_IN_BRACKETS = re.compile(
    r"(?:async\s+def|def|class|import|return|with|while|try|del|pass|raise|global|nonlocal|break|continue|assert)\b"
    r"|from\s+[\w.]+\s+import\b"
)


@dataclass(frozen=True, slots=True)
class SplitText:
    """One step through a text: a statement (`None` for a stray continuation line), and offsets.

    `next` is where the next statement begins. The step depends only on the text up to `reach`
    (exclusive); `None` says that it depends on where the text ends.
    """

    statement: TopLevelStatement | None
    start: int
    next: int
    reach: int | None


def first_start(text: str) -> int:
    """Return where the first statement begins; the text's length if there is none."""
    match = _FIRST.search(text)
    return match.start() if match else len(text)


def split_at(text: str, start: int) -> SplitText:
    """Return the statement at `start`: the text's first start or another step's `next`."""
    single = _next_start(text, start)
    if not _begins_with(text, start, "@"):
        statement = _read(text[start:single])
        if statement is None or statement.broken is None or statement.broken.too_large:
            return SplitText(statement, start, single, _reach(text, single))
    end, looked = _logical_end(text, start)
    if end is not None and end != single:
        statement = _read(text[start:end])
        if statement is None or statement.broken is None:
            return SplitText(statement, start, end, _reach(text, end))
    reach = _reach(text, max(single, looked))
    return SplitText(statement_of(_trimmed(text[start:single])), start, single, reach)


def _read(block: str) -> TopLevelStatement | None:
    """Return the statement of a block up to the next starter; `None` if it contains none."""
    trimmed = _trimmed(block)
    statement = statement_of(trimmed)
    # Blank lines and comments may be the end of a string, or follow a backslash: then they belong
    # to it.
    if statement.broken is None or statement.broken.too_large or len(trimmed) == len(block):
        return statement
    untrimmed = statement_of(block)
    if untrimmed.broken is not None:
        return statement
    return statement_of(_to_last_line_used(untrimmed)) if untrimmed.lines_used else None


def _to_last_line_used(statement: TopLevelStatement) -> str:
    """Return the text without the blank lines after its last statement that are not part of it.

    A backslash at the end of its last line makes one a part.
    """
    lines = statement.text.split("\n")
    used = statement.lines_used
    while used < len(lines) and lines[used - 1].rstrip().endswith("\\"):
        used += 1
    text = "\n".join(lines[:used])
    return text + "\n" if text.endswith("\\\n") else text


def _trimmed(block: str) -> str:
    """Return the block without blank lines and comments at its end."""
    end = len(block)
    while (line := block.rfind("\n", 0, end)) >= 0 and _IDLE.match(block, line + 1, end):
        end = line
    return block[:end]


def _next_start(text: str, start: int) -> int:
    line_end = text.find("\n", start)
    if line_end < 0:
        return len(text)
    match = _STARTER.search(text, line_end + 1)
    return match.start() if match else len(text)


def _reach(text: str, end: int) -> int | None:
    """Return the end of the line at `end`, which was examined to end the statement before it."""
    if end >= len(text):
        return None
    line_end = text.find("\n", end)
    return line_end + 1 if line_end >= 0 else None


def _begins_with(text: str, start: int, character: str) -> bool:
    match = _STARTER.match(text, start)
    return match is not None and text[match.end() - 1] == character


def _logical_end(text: str, start: int) -> tuple[int | None, int]:
    """Return where a statement ends and how far was read.

    It ends where its brackets, quotes and backslashes allow it. The end is a starter or the text's
    end. It is `None` if a bracket or quote is never closed or closed wrongly, or if a statement
    begins inside brackets. Decorators belong to the decorated statement.
    """
    position = start
    brackets: list[str] = []
    decorating = _begins_with(text, start, "@")
    starters = decorators = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        # Without these limits an unclosed bracket at the top makes each edit read the whole file.
        if match is None or starters > _MOST_STARTERS or decorators > _MOST_DECORATORS:
            return None, position
        token = match.group()
        position = match.end()
        if token in _STRING_END:
            closed = _STRING_END[token].match(text, position)
            if closed is None:
                return None, _unterminated(text, position, token)
            position = closed.end()
        elif token in "([{":
            brackets.append(token)
        # A wrong bracket is never repaired by what follows.
        elif token in _CLOSES and (not brackets or brackets.pop() != _CLOSES[token]):
            return None, position
        elif token == "\\\n" and _STARTER.match(text, position):
            starters += 1
        elif token == "\n" and (starter := _STARTER.match(text, position)):
            starters += text[starter.end() - 1] not in _VALUES
            if brackets:
                if _NEVER_IN_BRACKETS.match(text, starter.end() - 1):
                    return None, position
            elif not decorating:
                return position, position
            else:
                decorating = text[starter.end() - 1] == "@"
                decorators += 1
    return (None if brackets else len(text)), len(text)


def _unterminated(text: str, position: int, quote: str) -> int:
    """Return how far an unclosed string reaches: one in single quotes ends with its line.

    Lines that backslashes join to it are part of it.
    """
    if len(quote) == 3 or text.find("\n", position) < 0:
        return len(text)
    match = _REST_OF_LINES.match(text, position)
    return match.end() if match else position
