"""Python's parser, for several threads and without the warnings meant for who runs a text."""

from __future__ import annotations

import ast
import gc
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_lock = threading.RLock()
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


@contextmanager
def without_collections() -> Iterator[None]:
    """Let the garbage collector not run meanwhile."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def alone() -> Iterator[None]:
    """Let no other thread parse, nor this one collect garbage, while a syntax tree is made.

    Before Python 3.11.8 and 3.12.2, the interpreter has one recursion depth for all threads that
    make trees: it raises `SystemError: AST constructor recursion depth mismatch` where one begins
    in the midst of another (python/cpython#106905). Only a finalizer or a callback of the garbage
    collector can let it begin there, so others wait no longer than for the interpreter anyway.
    """
    with _lock, without_collections():
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings, whose filters all threads share, and let no other thread parse.

    Use it only around a call of Python's compiler: other threads wait meanwhile.
    """
    with alone(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def parse(text: str) -> ast.Module:
    """Return the syntax tree of a text.

    Raises:
        SyntaxError: (or ValueError, RecursionError, MemoryError) it does not parse.
    """
    with quiet():
        return ast.parse(text)


def module_in(text: str) -> ast.Module | None:
    """Return the syntax tree of a text; `None` if it does not parse."""
    try:
        return parse(text)
    except _UNREADABLE:
        return None


def expression_in(text: str) -> ast.expr | None:
    """Return the syntax tree of an expression, with or without space around; `None` for others."""
    try:
        with quiet():
            return ast.parse(text.strip(), mode="eval").body
    except _UNREADABLE:
        return None


def literal_in(text: str) -> object:
    """Return the value of a literal.

    Raises:
        ValueError: it is none.
    """
    with suppress(ValueError, TypeError, RecursionError):  # a name, or a set of lists
        if (tree := expression_in(text)) is not None:
            return ast.literal_eval(tree)
    raise ValueError(f"not a literal: {text}")


def enclosing_nodes(tree: ast.AST, at: tuple[int, int], *, whole: bool = False) -> list[ast.AST]:
    """Return the nodes around a place, from the innermost function on, outermost first.

    Args:
        tree: a syntax tree.
        at: a line (from 1) and a column in bytes, as nodes have them.
        whole: whether to return those around the innermost function, too.
    """
    around: list[ast.AST] = []
    node: ast.AST | None = tree
    while node is not None:
        node = next((each for each in ast.iter_child_nodes(node) if _holds(each, at)), None)
        if isinstance(node, FUNCTIONS) and not whole:
            around.clear()
        if node is not None:
            around.append(node)
    return around


def _holds(node: ast.AST, at: tuple[int, int]) -> bool:
    line = getattr(node, "lineno", None)
    if line is None:
        # Some nodes have no position: `comprehension`, `arguments`, `match_case`.
        return any(_holds(child, at) for child in ast.iter_child_nodes(node))
    end = (getattr(node, "end_lineno", None) or line, getattr(node, "end_col_offset", None) or 0)
    return (line, getattr(node, "col_offset", 0)) <= at < end
