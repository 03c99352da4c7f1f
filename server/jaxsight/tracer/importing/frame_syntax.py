"""Read the text around a running statement: whether it handles errors, or calls a decorator."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import itertools
import linecache
from types import FrameType
from typing import Any

from jaxsight.tracer.isolation import code_origins

_TREES_KEPT = 64  # of files whose imports fail: others are parsed again
_ABOVE = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
"""Classes whose handlers handle a missing module."""
_OTHERS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException) and name not in _ABOVE
)


def handles_import_errors(frame: FrameType | None) -> bool:
    """Return whether code of the user, at a frame or its callers, handles a missing module."""
    return any(
        _handles(node, each.f_lineno)
        for each in code_origins.outwards(frame)
        if code_origins.of_file(each.f_code.co_filename) == code_origins.USER
        for node in ast.walk(_tree_of(each))
    )


def _handles(node: ast.AST, line: int) -> bool:
    match node:
        case ast.Try() | ast.TryStar() if _within(node.body, line):
            return any(
                handler.type is None or _may_match(handler.type) for handler in node.handlers
            )
        case ast.With() | ast.AsyncWith() if _within(node.body, line):
            # For example `with contextlib.suppress(ImportError):`.
            texts = [ast.dump(item.context_expr) for item in node.items]
            return any(f"'{name}'" in text for text in texts for name in _ABOVE)
    return False


def _within(body: list[ast.stmt], line: int) -> bool:
    return body[0].lineno <= line <= (body[-1].end_lineno or line)


def _may_match(expression: ast.expr) -> bool:
    """Return whether a handler's classes may include that of a missing module."""
    if isinstance(expression, ast.Tuple):
        return any(map(_may_match, expression.elts))
    # Any other name may stand for a class that includes it.
    return not (isinstance(expression, ast.Name) and expression.id in _OTHERS)


def decorates(frame: FrameType) -> bool:
    """Return whether the call that runs in a frame is one of a decorator."""
    code = frame.f_code
    # One entry for each code unit, which has two bytes.
    line, _, column, _ = next(
        itertools.islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4
    )
    if line is None or column is None:
        return False
    return any(
        (at.lineno, at.col_offset) <= (line, column) < (at.end_lineno or 0, at.end_col_offset or 0)
        for node in ast.walk(_tree_of(frame))
        for at in getattr(node, "decorator_list", ())
    )


def _tree_of(frame: FrameType) -> ast.AST:
    file = frame.f_code.co_filename
    loader: Any = frame.f_globals.get("__loader__")
    lines = linecache.getlines(file)
    text = "".join(lines)
    # The loader has the editor's text, which runs; `linecache` reads the disk.
    if "§" not in file and hasattr(loader, "get_source"):
        with contextlib.suppress(ImportError, OSError, KeyError):
            text = loader.get_source(frame.f_globals["__name__"]) or text
    return tree(text)


@functools.lru_cache(maxsize=_TREES_KEPT)
def tree(text: str) -> ast.Module:
    """Return the tree of a text; that of an empty one if it is not Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])
