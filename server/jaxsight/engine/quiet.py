"""Python's compiler without its warnings about the text that it reads: they are for whoever runs
the text.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
"""Filters of warnings belong to the process, and texts are read by two threads."""


@contextmanager
def quiet() -> Iterator[None]:
    """Hold back warnings.

    Only for a call of Python's compiler: the other thread waits meanwhile.
    """
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
