"""Python's compiler without its warnings, which are for the user who runs the text."""

from __future__ import annotations

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
