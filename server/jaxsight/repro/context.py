"""`jaxsight.repro.capturing`: a context that writes a repro of the exception that leaves it."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jaxsight.repro.capturing.run import Capture


@contextlib.contextmanager
def capture(
    path: str | os.PathLike[str] = "repro.py", *, anonymize: bool = False
) -> Iterator[None]:
    """Capture what the body does with JAX; if it raises, write a repro of the exception.

    The exception is raised again. A line on standard error says what was written. The file is run
    in a fresh process, to check that it fails in the same way.

    Args:
        path: the file to write.
        anonymize: rename everything that came from the program.
    """
    with tempfile.TemporaryDirectory(prefix="jaxsight-case-") as folder:
        captured = Capture(Path(folder))
        captured.begin()
        try:
            yield
        except BaseException as error:
            captured.end(error)
            from jaxsight.repro.emit.from_case import emit_in_fresh_process

            line = emit_in_fresh_process(
                sys.executable, Path(folder), Path(path).absolute(), anonymous=anonymize
            )
            sys.stderr.write(f"jaxsight: {line}\n")
            raise
        captured.end(None)
