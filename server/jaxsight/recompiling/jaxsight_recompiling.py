"""A pytest plugin that records each time JAX retraces a function, with JAX's explanation.

It runs in the Python environment of the user's tests, as `-p jaxsight_recompiling` with its folder
on `PYTHONPATH`, and imports nothing of jaxsight.
The variable `JAXSIGHT_RECOMPILING` is the path of the output: a list of
`{"test": …, "message": …}` in JSON.

JAX logs the explanations with loggers below `jax._src`; the logger's name has changed between
versions (0.8 to 0.12), so messages are recognized by their text.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

TITLE = "TRACING CACHE MISS at "
PATH = os.environ.get("JAXSIGHT_RECOMPILING", "")


class Listener(logging.Handler):
    """Collects JAX's explanation of each cache miss, with the current test."""

    def __init__(self) -> None:
        super().__init__()
        self.misses: list[dict[str, str]] = []
        self.test = ""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message.startswith(TITLE) and is_for_jit():
            self.misses.append({"test": self.test, "message": message})


def is_for_jit() -> bool:
    """Return whether the trace that JAX logs about is `jit`'s own.

    Bodies of `scan`, `while_loop`, `cond` and functions that `jvp` linearizes are traced by the
    same machinery, with the same message, but nothing is compiled for them. Of JAX's frames below
    the caller's, `jit`'s are in `jax._src.pjit` (JAX 0.8 to 0.12).
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module == "jax._src.pjit":
            return True
        if module.partition(".")[0] not in ("jax", "logging", "functools", "contextlib"):
            return False
        frame = frame.f_back
    return False


listener = Listener()


def pytest_configure(config: Any) -> None:
    import jax

    config_of_jax: Any = jax.config
    config_of_jax.update("jax_explain_cache_misses", True)
    logger = logging.getLogger("jax._src")
    logger.addHandler(listener)
    # Print nothing of it on the terminal: it is reported at the end.
    for name in ("jax._src.interpreters.partial_eval", "jax._src.pjit"):
        logging.getLogger(name).propagate = True
    logging.getLogger("jax").propagate = False


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    listener.test = nodeid


def pytest_sessionfinish(session: Any, exitstatus: Any) -> None:
    if PATH:
        Path(PATH).write_text(json.dumps(listener.misses), encoding="utf-8")
