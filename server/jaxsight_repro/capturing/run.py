"""Run a user's program under capture: a script, a module, tests, or a call of a function."""

from __future__ import annotations

import linecache
import os
import runpy
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, TracebackType

from jaxsight.files import reading
from jaxsight.wire.frames import HEADER, decode
from jaxsight.wire.messages.requests import Trace
from jaxsight_repro.capturing import case
from jaxsight_repro.capturing.capture import Capture, chain, is_ours


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
        for link in chain(error):
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
    use_target(request)
    restart = restarting(capture.folder, request)
    for folder in (Path(request.root, "src"), Path(request.root), Path(request.file).parent):
        sys.path.insert(0, str(folder))
    sys.argv = [request.file]
    try:
        if texts:
            # The text of the file, as it is in an editor.
            text, file = texts[0], request.file
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

        call_function(request, namespace)
    except BaseException as error:
        restart(error, texts[0] if texts else reading.text(request.file))
        raise


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


VARIABLE = "JAX_NUM_CPU_DEVICES"


Restart = Callable[[BaseException, str], None]
"""Starts again if a call failed for want of devices; returns if it has another reason.

It takes what the file, its example inputs or the function raised, and the text of the file.
"""


def restarting(folder: Path, request: Trace) -> Restart:
    """Return how this process starts again: as it was started, for the case in a folder."""
    working, environment = Path.cwd(), dict(os.environ)

    def start(count: int) -> None:
        """Replace this process by one with more devices, which runs the file anew."""
        sys.stdout.flush()
        sys.stderr.flush()
        shutil.rmtree(folder / case.PROGRAMS, ignore_errors=True)
        os.chdir(working)
        command = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, command, {**environment, VARIABLE: str(count)})

    def restart(error: BaseException, text: str) -> None:
        from jaxsight.tracer.execution import device_demand

        if isinstance(error, device_demand.MoreDevices):
            start(error.demand.count)
        elif isinstance(error, Exception):
            demand = device_demand.wanted(error, [text], request.devices)
            if demand is not None:
                start(demand.count)

    return restart


def use_target(request: Trace) -> None:
    """Set the number of devices of the target, before JAX is imported."""
    if request.devices > 1:
        os.environ[VARIABLE] = str(request.devices)
