"""Limits on the size of text that is analyzed.

They keep indivisible work (Python's parser holds the GIL) below a twentieth of a second;
`tools/perf/turns.py` measures this. Text that exceeds a limit is not analyzed and is reported; the
rest of the file is analyzed.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST_FILE: Final = 2_000_000
"""Characters of a file: some 50,000 lines, more than anybody writes by hand."""
MOST_STATEMENTS: Final = 10_000
"""Top-level statements of a file: each is looked at after each edit."""
LONGEST_STATEMENT: Final = 1_000_000
"""Characters of a top-level statement, including docstrings and comments, which are few tokens."""
MOST_TOKENS: Final = 30_000
"""Tokens of a top-level statement: about 2,500 lines of code."""
LONGEST_DOCSTRING: Final = 100_000
"""Characters of a docstring that is searched for example inputs, some thousand lines."""

_TOKENS = re.compile(
    r'(?<![fFtT])(?<![fFtT][rR])(?:"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*''')"
    r"|#[^\n]*|\w+|[^\w\s]",
    re.DOTALL,
)


def file_problem(text: str) -> str:
    """Return why a file is too large to be analyzed; empty if it is not."""
    return _too_long("file", text, "analyzed", LONGEST_FILE)


def statements_problem(count: int) -> str:
    """Return why a file with so many top-level statements is not analyzed; empty if it is."""
    if count > MOST_STATEMENTS:
        return f"file of more than {MOST_STATEMENTS:,} top-level statements is not analyzed"
    return ""


def statement_problem(text: str) -> str:
    """Return why a top-level statement is too large to be analyzed; empty if it is not."""
    # A token has at least one character, so that a short text needs no count.
    if len(text) <= MOST_TOKENS:
        return ""
    if problem := _too_long("statement", text, "analyzed", LONGEST_STATEMENT):
        return problem
    for count, _ in enumerate(_TOKENS.finditer(text)):
        if count == MOST_TOKENS:
            return f"statement of more than {MOST_TOKENS:,} tokens is not analyzed"
    return ""


def docstring_problem(text: str) -> str:
    """Return why a docstring is too long to be searched for example inputs; empty if it is not."""
    return _too_long("docstring", text, "searched for example inputs", LONGEST_DOCSTRING)


def _too_long(part: str, text: str, done: str, limit: int) -> str:
    size = len(text)
    return f"{part} of {size:,} characters is not {done} (limit: {limit:,})" if size > limit else ""
