"""Compile texts whose trees are rewritten; find functions in code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import CodeType

from jaxsight.text.parsing import alone


def compiled(
    text: str | bytes,
    file: str,
    *rewrite: Callable[[ast.Module], object],
    above: int = 0,
    flags: int = 0,
    parsed_as: str = "",
) -> CodeType:
    """Return the code of a text as a module.

    Args:
        text: the text.
        file: the name of its file.
        rewrite: functions that rewrite its tree in place, with lines from 1 in the text. They are
            left out if it is nested too deeply.
        above: the number of lines above it in the file, whose line numbers the code has.
        flags: those of `__future__` imports.
        parsed_as: the name of its file in errors with lines from 1 in the text.

    Raises:
        SyntaxError: (or ValueError, RecursionError, MemoryError) it cannot be compiled.
    """
    parsing = ast.PyCF_ONLY_AST | flags
    try:
        with alone():
            tree: ast.Module = compile(text, parsed_as or file, "exec", parsing, dont_inherit=True)
        for each in rewrite:
            each(tree)
        ast.increment_lineno(tree, above)
        code: CodeType = compile(tree, file, "exec", flags, dont_inherit=True)
    except RecursionError:
        # Python can compile deeper nesting from text than from a tree.
        lines = text if isinstance(text, bytes) else "\n" * above + text
        code = compile(lines, file, "exec", flags, dont_inherit=True)
    return code


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield code and that of all functions inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)
