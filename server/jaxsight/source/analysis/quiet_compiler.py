"""Python's compiler without its warnings, which are for the user who runs the text."""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
"""Warning filters are global to the process, and two threads parse texts."""


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings.

    Use it only around a call of Python's compiler: the other thread waits meanwhile.
    """
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def expression_in(text: str) -> ast.expr | None:
    """Return the syntax tree of an expression; `None` if it does not parse."""
    try:
        with quiet():
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
