"""Statements of imported modules that are refused an effect: the rest of their module runs.

What they would have bound are placeholders, as of a statement of the traced file.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable
from types import CodeType

from jaxsight.text.names import bound_in_scope
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.isolation import refusals

_IS_REFUSED, _UNKNOWN = "__jaxsight_refused__", "__jaxsight_unknown__"
"""Builtins that protected statements call; they end in `__`, so that they are never mangled."""

_PLAIN = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.Pass


def compiled(text: str | bytes, path: str) -> CodeType:
    """Return a module's code, whose statements go on after one that is refused an effect."""
    try:
        tree: ast.Module = ast.parse(text, path)
        _protect(tree)
        return compile(tree, path, "exec", dont_inherit=True)
    except RecursionError:
        # Python can compile deeper nesting from text than from a tree.
        return compile(text, path, "exec", dont_inherit=True)


def _protect(tree: ast.Module) -> None:
    tree.body = [
        each if isinstance(each, _PLAIN) or _is_text(each) else _protected(each)
        for each in tree.body
    ]


def install(note: Callable[[str, int, str], None]) -> None:
    """Install what protected statements call.

    Args:
        note: gets the module's name, the line and what the statement would have done.
    """

    def is_refused(first: int, last: int) -> tuple[type[Exception], ...]:
        error = sys.exc_info()[1]
        names = sys._getframe(1).f_globals
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


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _protected(statement: ast.stmt) -> ast.Try:
    """Return a statement whose names become placeholders where it is refused.

    It is `try: STATEMENT`, `except __jaxsight_refused__(3, 4): name = __jaxsight_unknown__(3, 4)`.
    """
    lines: list[ast.expr] = [
        ast.Constant(statement.lineno), ast.Constant(statement.end_lineno or statement.lineno)
    ]  # fmt: skip
    load, store = ast.Load(), ast.Store()
    bound = sorted(name for name in {*bound_in_scope(statement)} if name.isidentifier())
    names = [ast.Name(name, store) for name in bound]
    unknown = ast.Call(ast.Name(_UNKNOWN, load), lines, [])
    handler = ast.ExceptHandler(
        ast.Call(ast.Name(_IS_REFUSED, load), lines, []),
        None,
        [ast.Assign(list[ast.expr](names), unknown) if names else ast.Expr(unknown)],
    )
    tried = ast.Try([statement], [handler], [], [])
    for each in (tried, handler, *ast.walk(handler)):
        if isinstance(each, ast.expr | ast.stmt | ast.ExceptHandler):
            ast.copy_location(each, statement)
    return tried
