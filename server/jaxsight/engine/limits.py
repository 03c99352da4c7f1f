"""How large a text may be to be analyzed.

The limits keep what cannot be divided (Python's parser holds the interpreter's lock) below a
twentieth of a second. What exceeds one is not analyzed and says so; the rest of the file is.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST_FILE: Final = 2_000_000
"""Characters of a file."""
MOST_STATEMENTS: Final = 10_000
"""Statements at the top level of a file."""
LONGEST_STATEMENT: Final = 1_000_000
"""Characters of a statement at the top level, docstrings and comments included."""
MOST_TOKENS: Final = 30_000
"""Tokens of a statement at the top level: some 2,500 lines of code."""
LONGEST_DOCSTRING: Final = 100_000
"""Characters of a docstring that is searched for example inputs."""

_TOKENS = re.compile(
    r'(?<![fFtT])(?<![fFtT][rR])(?:"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*''')"
    r"|#[^\n]*|\w+|[^\w\s]",
    re.DOTALL,
)


def file_problem(text: str) -> str:
    """Why a file is too large to be analyzed; empty when it is not."""
    if len(text) > LONGEST_FILE:
        return f"file of {len(text):,} characters is not analyzed (limit: {LONGEST_FILE:,})"
    return ""


def statements_problem(count: int) -> str:
    """Why a file of so many top-level statements is not analyzed; empty when it is."""
    if count > MOST_STATEMENTS:
        return f"file of more than {MOST_STATEMENTS:,} top-level statements is not analyzed"
    return ""


def statement_problem(text: str) -> str:
    """Why a top-level statement is too large to be analyzed; empty when it is not."""
    if len(text) <= MOST_TOKENS:
        return ""
    if len(text) > LONGEST_STATEMENT:
        return (
            f"statement of {len(text):,} characters is not analyzed (limit: {LONGEST_STATEMENT:,})"
        )
    for count, _ in enumerate(_TOKENS.finditer(text)):
        if count == MOST_TOKENS:
            return f"statement of more than {MOST_TOKENS:,} tokens is not analyzed"
    return ""


def docstring_problem(text: str) -> str:
    """Why a docstring is too long to be searched for example inputs; empty when it is not."""
    if len(text) > LONGEST_DOCSTRING:
        return (
            f"docstring of {len(text):,} characters is not searched for example inputs"
            f" (limit: {LONGEST_DOCSTRING:,})"
        )
    return ""
