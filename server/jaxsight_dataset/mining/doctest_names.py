"""Names of functions whose docstrings have examples, read from text without JAX."""

from __future__ import annotations

import ast

from jaxsight.files import reading


def with_doctests(text: str) -> list[str]:
    """Return the names of the functions of a module whose docstrings have examples."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        statement.name
        for statement in tree.body
        if isinstance(statement, ast.FunctionDef)
        and ">>>" in (ast.get_docstring(statement, clean=False) or "")
    ]


def doctests_of(path: str) -> list[str]:
    """Return the names of the functions with examples in a file; none if it cannot be read."""
    try:
        return with_doctests(reading.source(path))
    except reading.UnreadableError:
        return []
