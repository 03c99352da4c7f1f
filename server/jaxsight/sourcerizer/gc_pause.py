"""Control of Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_collected() -> Iterator[None]:
    """Disable the cyclic garbage collector inside the block.

    For work that keeps nearly all the objects it creates: each collection traverses all of them,
    and the program from which they are made, which for a large program takes longer than the work.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
