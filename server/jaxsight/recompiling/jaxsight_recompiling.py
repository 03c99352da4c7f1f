"""A plugin for pytest that writes down each time JAX traces a function again, in JAX's own words.

It runs in the interpreter of the user's tests, as `-p jaxsight_recompiling` with its folder on `PYTHONPATH`, and imports nothing of jaxsight. Where to write is
in the variable `JAXSIGHT_RECOMPILING`: a list of `{"test": …, "message": …}` in JSON.

JAX logs what it says by loggers below `jax._src`; which one has changed between versions (0.8 to 0.12), so the message decides.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

TITLE = "TRACING CACHE MISS at "
PATH = os.environ.get("JAXSIGHT_RECOMPILING", "")


class Listener(logging.Handler):
    """Keeps what JAX says of each miss, with the test that is running."""

    def __init__(self) -> None:
        super().__init__()
        self.misses: list[dict[str, str]] = []
        self.test = ""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message.startswith(TITLE):
            self.misses.append({"test": self.test, "message": message})


listener = Listener()


def pytest_configure(config: Any) -> None:
    import jax

    config_of_jax: Any = jax.config
    config_of_jax.update("jax_explain_cache_misses", True)
    logger = logging.getLogger("jax._src")
    logger.addHandler(listener)
    # Nothing of it goes to the terminal: it is reported when all is done.
    for name in ("jax._src.interpreters.partial_eval", "jax._src.pjit"):
        logging.getLogger(name).propagate = True
    logging.getLogger("jax").propagate = False


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    listener.test = nodeid


def pytest_sessionfinish(session: Any, exitstatus: Any) -> None:
    if PATH:
        Path(PATH).write_text(json.dumps(listener.misses), encoding="utf-8")
