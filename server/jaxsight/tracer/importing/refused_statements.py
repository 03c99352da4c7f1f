"""Statements of imported modules that are refused an effect: the rest of their module runs.

What they would have bound are placeholders, as of a statement of the traced file.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable
from types import CodeType

from jaxsight.rewriting import compiling
from jaxsight.rewriting.nodes import assign, call, placed
from jaxsight.text.names import bound_in_scope
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.isolation import refusals

_IS_REFUSED, _UNKNOWN = "__jaxsight_refused__", "__jaxsight_unknown__"
"""Builtins that protected statements call; they end in `__`, so that they are never mangled."""

_PLAIN = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.Pass


def compiled(text: str | bytes, path: str) -> CodeType:
    """Return a module's code, whose statements go on after one that is refused an effect."""
    return compiling.compiled(text, path, _protect)


def _protect(tree: ast.Module) -> None:
    for index, each in enumerate(tree.body):
        is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not (is_text or isinstance(each, _PLAIN)):
            tree.body[index] = _protected(each)


def install(note: Callable[[str, int, str], None]) -> None:
    """Install what protected statements call.

    Args:
        note: gets the module's name, the line and what the statement would have done.
    """

    def is_refused(first: int, last: int) -> tuple[type[Exception], ...]:
        error = sys.exc_info()[1]
        names = sys._getframe(1).f_globals
        # An empty tuple catches nothing.
        return (Exception,) if error and refusals.cause(error, names, first, last) else ()

    def unknown(first: int, last: int) -> object:
        error = sys.exc_info()[1]
        names = sys._getframe(1).f_globals
        assert error is not None
        what = refusals.cause(error, names, first, last)
        refusals.forget()
        note(names.get("__name__", ""), first, what)
        return placeholders.refused(what)

    setattr(builtins, _IS_REFUSED, is_refused)
    setattr(builtins, _UNKNOWN, unknown)


def _protected(statement: ast.stmt) -> ast.Try:
    """Return a statement whose names become placeholders where it is refused.

    It is `try: STATEMENT`, `except __jaxsight_refused__(3, 4): name = __jaxsight_unknown__(3, 4)`.
    """
    lines = statement.lineno, statement.end_lineno or statement.lineno
    bound = sorted(name for name in {*bound_in_scope(statement)} if name.isidentifier())
    unknown = call(_UNKNOWN, *lines)
    after = assign(unknown, *bound) if bound else ast.Expr(unknown)
    # Python evaluates the classes of an `except` only once something is raised.
    handler = ast.ExceptHandler(call(_IS_REFUSED, *lines), None, [after])
    tried = ast.Try([statement], [placed(handler, statement)], [], [])
    return ast.copy_location(tried, statement)
