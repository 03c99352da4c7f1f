"""Records which lines of the server each test executes, also in processes that it starts.

`import lines` where JAXSIGHT_LINES names a folder is all that a process needs; `recording.py` puts
that import into the environments. Needs Python 3.12, whose `sys.monitoring` calls back once for
each line and test and costs nothing after that. Standard library only: it runs in every process.
"""

from __future__ import annotations

import contextlib
import os
import sys
from types import CodeType

FOLDER = "JAXSIGHT_LINES"
"""Names the folder that lines are written to; without it nothing is recorded."""
TEST = "PYTEST_CURRENT_TEST"
"""Pytest's own variable, which processes that a test starts inherit."""
SERVER = f"{os.sep}server{os.sep}jaxsight"
_TOOL = 4  # 0 to 3 and 5 are taken by debuggers, coverage, profilers and optimizers (PEP 669)


def record(folder: str) -> None:
    """Write each line of the server that this process executes first in a test to its own file.

    Lines are written one by one, as the processes of tests are killed: a row `#TEST` begins what a
    test executes, `FILE:LINE` follows.
    """
    name = os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}")  # noqa: PTH118 (without pathlib)
    output = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    monitoring = sys.monitoring
    now = ""

    def line(code: CodeType, number: int) -> object:
        with contextlib.suppress(OSError):  # a test that lets no file grow
            write(code, number)
        return monitoring.DISABLE

    def write(code: CodeType, number: int) -> None:
        nonlocal now
        test = os.environ.get(TEST, "").rpartition(" (")[0]
        if test != now:
            now = test
            os.write(output, f"#{test}\n".encode())
        path = code.co_filename.rpartition(SERVER)[2]
        os.write(output, f"{path}:{number}\n".encode())

    def start(code: CodeType, offset: int) -> object:
        # Lines of the server alone: those of JAX are a hundred times as many.
        if SERVER in code.co_filename:
            monitoring.set_local_events(_TOOL, code, monitoring.events.LINE)
        return monitoring.DISABLE

    monitoring.use_tool_id(_TOOL, "jaxsight-lines")
    monitoring.register_callback(_TOOL, monitoring.events.LINE, line)
    monitoring.register_callback(_TOOL, monitoring.events.PY_START, start)
    monitoring.set_events(_TOOL, monitoring.events.PY_START)


def next_test() -> None:
    """Report lines again that an earlier test executed."""
    if os.environ.get(FOLDER):
        sys.monitoring.restart_events()


if (_folder := os.environ.get(FOLDER)) and sys.version_info >= (3, 12):
    record(_folder)
