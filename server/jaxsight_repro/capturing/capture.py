"""The capture of a process: what it is about to trace, compile or run, and how it ended."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from jaxsight.tracer.importing.finding import AfterImport
from jaxsight_repro import environment
from jaxsight_repro.capturing import case
from jaxsight_repro.capturing.call_tree.tracker import Tracker
from jaxsight_repro.failures import FINISHED, HANG, RunFailure, failure_of
from jaxsight_source.files.ours import OURS

if TYPE_CHECKING:
    from jaxsight_repro.capturing.recorder import CaseRecorder


@functools.cache
def tracker_of_process() -> Tracker:
    """Return the tracker of this process: JAX's functions are wrapped once."""
    return Tracker()


class Capture:
    """The capture of one process: patches JAX once it is imported, and writes cases."""

    def __init__(self, folder: Path, *, finds_nan: bool = False) -> None:
        self.folder = folder
        self.recorder: CaseRecorder | None = None
        self._finds_nan = finds_nan
        self._baseline: dict[str, object] = {}
        self._stack = contextlib.ExitStack()
        self._start = time.monotonic()
        self._tracker = tracker_of_process()
        folder.mkdir(parents=True, exist_ok=True)

    def begin(self) -> None:
        """Capture from now on: at once if JAX is imported, else once it is."""
        self._tracker.install()
        self._stack.enter_context(case.with_stack(self.folder))
        if "jax" in sys.modules and hasattr(sys.modules["jax"], "jit"):
            self._patch(imported_before=True)
        else:
            self._stack.callback(AfterImport("jax", self._patch).cancel)

    def _patch(self, *, imported_before: bool = False) -> None:
        from jaxsight_repro.capturing.recorder import CaseRecorder
        from jaxsight_repro.compat import configuration, executions, host_callbacks

        self._baseline = configuration.defaults() if imported_before else configuration.at_start()
        self.recorder = recorder = CaseRecorder(
            self.folder, self._baseline, self._tracker.current, finds_nan=self._finds_nan
        )
        case.write_json(self.folder, case.INFO, {"environment": asdict(environment.current())})
        self._stack.enter_context(executions.observed(recorder))
        self._stack.enter_context(host_callbacks.observed(recorder.calling))
        self._tracker.on_call = recorder.traced

    def end(self, error: BaseException | None) -> case.Ended:
        """Write how the program ended, and stop capturing."""
        self._stack.close()
        self._tracker.uninstall()
        self._tracker.on_call = lambda starts: None
        ended = self._ended(error)
        if error is not None and self.recorder is not None:
            self.recorder.write_tree(self._tracker.failed(error), case.TREE)
        if self.recorder is not None:
            self.recorder.close()
        case.write_ended(self.folder, ended)
        return ended

    def _ended(self, error: BaseException | None) -> case.Ended:
        recorder = self.recorder
        if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
            if recorder is None or recorder.nan_program is None:
                return case.Ended(RunFailure(FINISHED))
            return case.Ended(RunFailure(FINISHED), recorder.nan_program, recorder.nan_line())
        links = list(chain(error))
        program = None
        for number, raised in recorder.failures if recorder is not None else ():
            if any(raised is link for link in links):
                program = number
        tb = error.__traceback__
        at_trace = program is None and self._tracker.failed(error) is not None
        interrupted = recorder is not None and recorder.host_calls.interrupted
        if interrupted or isinstance(error, KeyboardInterrupt):
            seconds = time.monotonic() - self._start
            failure = RunFailure(HANG, message=f"within {seconds:.0f} s")
            return case.Ended(failure, program, user_line(tb), at_trace)
        return case.Ended(failure_of(error, is_ours), program, user_line(tb), at_trace)


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception with its causes and contexts."""
    pending: list[BaseException | None] = [error]
    known: set[int] = set()
    while pending:
        link = pending.pop()
        if link is not None and id(link) not in known:
            known.add(id(link))
            yield link
            pending += [link.__cause__, link.__context__]


def user_line(tb: TracebackType | None) -> str:
    """Return the user's innermost line: the last one that is in no installed package."""
    place = ""
    for frame, line in traceback.walk_tb(tb):
        file = frame.f_code.co_filename
        if not (case.is_installed(file) or is_ours(file)):
            place = f"{file}:{line} in {frame.f_code.co_name}"
    return place


def is_ours(file: str) -> bool:
    """Return whether a file belongs to the capture."""
    return file.startswith(OURS) or file.endswith("runpy.py") or file == "<frozen runpy>"
