"""Run a user's program under capture: a script, a module, tests, or a call of a function."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import pickle
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING

from jaxsight.tracer.importing.after_import import AfterImport
from jaxsight.wire.frames import HEADER, decode
from jaxsight.wire.messages.requests import Trace
from jaxsight_repro import environment
from jaxsight_repro.capturing import case, claims, more_devices, stacks
from jaxsight_repro.capturing.call_tree.tracker import Tracker
from jaxsight_repro.failures import FINISHED, HANG, RunFailure, failure_of
from jaxsight_source.files import reading
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
        self._stack.enter_context(stacks.written(self.folder))
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
        info = {
            "executable": sys.executable,
            "arguments": sys.argv,
            "folder": str(Path.cwd()),
            "environment": asdict(environment.current()),
        }
        case.write_json(self.folder, case.INFO, info)
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
        chain = list(_chain(error))
        program = None
        for number, raised in recorder.failures if recorder is not None else ():
            if any(raised is link for link in chain):
                program = number
        tb = error.__traceback__
        at_trace = program is None and self._tracker.failed(error) is not None
        interrupted = recorder is not None and recorder.interrupted
        if interrupted or isinstance(error, KeyboardInterrupt):
            seconds = time.monotonic() - self._start
            failure = RunFailure(HANG, message=f"within {seconds:.0f} s")
            return case.Ended(failure, program, user_line(tb), at_trace)
        if program is None and not at_trace and recorder is not None:
            claimed = claims.claim_of(error, recorder.maker_of)
            if claimed is not None:
                claim, made = claimed
                recorder.keep(made)
                case.write(self.folder, case.CLAIM, pickle.dumps(claim))
                program = made.number
        return case.Ended(failure_of(error, is_ours), program, user_line(tb), at_trace)


def run_program(
    folder: Path, kind: case.ProgramKind, arguments: Sequence[str], *, finds_nan: bool
) -> int:
    """Run a program with its arguments as Python would, and return the exit status.

    A function is given by the file of its request, and optionally by one with the text of its
    module as an editor has it. The program's exceptions print as they would without capture.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background of a shell. A program that hangs is interrupted, to be captured.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    capture = Capture(folder, finds_nan=finds_nan)
    if kind != "pytest":  # which captures each test for itself
        capture.begin()
    try:
        code = _run(kind, list(arguments), capture)
    except SystemExit as error:
        capture.end(error)
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
    except BaseException as error:  # noqa: BLE001 - whatever the program raises
        capture.end(error)
        for link in _chain(error):
            link.__traceback__ = _without_ours(link.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1  # as shells: 128 + SIGINT
    capture.end(None)
    return code


def _run(kind: case.ProgramKind, arguments: list[str], capture: Capture) -> int:
    """Run a program, and return the exit status that it has if it does not end by itself."""
    match kind:
        case "script":
            sys.argv = arguments
            folder = os.path.dirname(os.path.abspath(arguments[0]))  # noqa: PTH100, PTH120
            sys.path.insert(0, folder)
            runpy.run_path(arguments[0], run_name="__main__")
        case "module":
            sys.argv = arguments
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        case "pytest":
            import pytest

            from jaxsight_repro.capturing.pytest_plugin import Plugin

            sys.path.insert(0, str(Path.cwd()))
            return int(pytest.main(arguments, plugins=[Plugin(capture.folder)]))
        case "function":
            _run_function(arguments, capture)
    return 0


def _run_function(arguments: list[str], capture: Capture) -> None:
    request = decode(Path(arguments[0]).read_bytes()[HEADER.size :])
    assert isinstance(request, Trace)
    texts = [reading.text(argument) for argument in arguments[1:]]
    more_devices.use_target(request)
    restarting = more_devices.Restarting(capture.folder)
    for folder in (Path(request.root, "src"), Path(request.root), Path(request.file).parent):
        sys.path.insert(0, str(folder))
    sys.argv = [request.file]
    try:
        if texts:
            # The text of the file, as it is in an editor.
            text, file = texts[0], request.file
            case.write(capture.folder, case.TEXT, text.encode())
            module = ModuleType(Path(file).stem)
            module.__file__ = file
            sys.modules[module.__name__] = module
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            namespace = vars(module)
            exec(compile(text, file, "exec"), namespace)  # noqa: S102 - the user's own program
        else:
            namespace = runpy.run_path(request.file, run_name=Path(request.file).stem)
        # It imports JAX, whose settings the file may have made.
        from jaxsight_repro.capturing.call_function import call_function

        call_function(request, namespace, capture.folder)
    except BaseException as error:
        restarting.demanded(error, request, texts[0] if texts else reading.text(request.file))
        raise


def _chain(error: BaseException) -> Iterator[BaseException]:
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
        if not (stacks.is_installed(file) or is_ours(file)):
            place = f"{file}:{line} in {frame.f_code.co_name}"
    return place


def is_ours(file: str) -> bool:
    """Return whether a file belongs to the capture."""
    return file.startswith(OURS) or file.endswith("runpy.py") or file == "<frozen runpy>"


def _without_ours(tb: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of the capture."""
    kept: list[TracebackType] = []
    while tb is not None:
        if not is_ours(tb.tb_frame.f_code.co_filename):
            kept.append(tb)
        tb = tb.tb_next
    rest: TracebackType | None = None
    for part in reversed(kept):
        rest = TracebackType(rest, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return rest
