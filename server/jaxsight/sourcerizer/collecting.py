"""When Python looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_collected() -> Iterator[None]:
    """No looking for garbage meanwhile.

    For work that keeps nearly all that it makes: each look walks over all of it, and over the
    program that it is made of, which for a large one takes longer than the work.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
