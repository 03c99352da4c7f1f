"""A higher recursion limit, for programs that are nested deeper than Python's default allows."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

_DEEP = 30_000
"""Frames: a hundred nested loops take a few thousand, most of them JAX's own while tracing."""


@contextlib.contextmanager
def room_for_nesting() -> Iterator[None]:
    """Raise the recursion limit inside the block.

    The walks recurse per level of nesting, never per equation.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
