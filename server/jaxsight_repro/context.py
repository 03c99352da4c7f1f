"""`jaxsight_repro.capturing`: a context that writes a repro of the exception that leaves it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jaxsight_repro.capturing.capture import Capture
from jaxsight_repro.processes import NoResult, difference, emit_command, followed


@contextlib.contextmanager
def capture(path: str | os.PathLike[str] = "repro.py") -> Iterator[None]:
    """Capture what the body does with JAX; if it raises, write a repro of the exception.

    The exception is raised again. A line on standard error says what was written. The file is run
    in a fresh process, to check that it fails in the same way.

    Args:
        path: the file to write.
    """
    with tempfile.TemporaryDirectory(prefix="jaxsight-case-", ignore_cleanup_errors=True) as folder:
        captured = Capture(Path(folder))
        captured.begin()
        try:
            yield
        except BaseException as error:
            captured.end(error)
            line = emit_in_fresh_process(Path(folder), Path(path).absolute())
            sys.stderr.write(f"jaxsight: {line}\n")
            raise
        captured.end(None)


def emit_in_fresh_process(case: Path, out: Path) -> str:
    """Write the repro of a case from another process; return a line that says what came of it.

    The case is removed if the repro fails in the same way.
    """
    try:
        event = followed(emit_command(sys.executable, case, out, None), os.environ)
    except NoResult as error:
        return f"no repro: {error}"
    if not event["reproduces"]:
        return f"{out}: {difference(event)}"
    shutil.rmtree(case, ignore_errors=True)
    return str(out)
