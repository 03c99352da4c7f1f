"""Room for programs that are nested deeper than Python's usual recursion limit allows."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

_DEEP = 30_000
"""Frames: a hundred nested loops take a few thousand, most of them JAX's own when it traces them.
"""


@contextlib.contextmanager
def room_for_nesting() -> Iterator[None]:
    """Raises the recursion limit while the context lasts.

    The walks are recursive per level of nesting, never per equation.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
