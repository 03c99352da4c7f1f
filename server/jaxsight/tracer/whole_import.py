"""Import a whole file like Python, and return the programs of its functions, to verify slices.

A process answers one `Import` and exits.
JAX is not imported before the file, so that variables and settings that it sets first take effect.
User code may do anything here; the parent ends the process with all its children.
"""

from __future__ import annotations

import ast
import faulthandler
import gc
import importlib
import importlib.util
import linecache
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from jaxsight.tracer.importing.finding import AfterImport, import_folders, lies_in
from jaxsight.tracer.isolation import refusals
from jaxsight.wire import frames as wire
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.messages.replies import VERSION, Failed, Hello, Imported, ImportedProgram
from jaxsight.wire.messages.requests import Import, Trace

_STANDARD_ERROR = 2


def answer(incoming: int, outgoing: int) -> None:
    """Send the handshake, answer one `Import`, and exit."""
    own = os.getpid()
    hello = Hello(VERSION, platform.python_version(), sys.executable, pid=own)
    wire.write(outgoing, hello)
    request = _request(incoming)
    if request is not None:
        # `start.py` has disabled it.
        gc.enable()
        # A thread in C prints the traceback, even while other code holds the GIL.
        faulthandler.dump_traceback_later(request.deadline, exit=True, file=_STANDARD_ERROR)
        refusals.watch()
        reply = _reply(request)
        if os.getpid() == own:  # not in a process that the file forked
            wire.write(outgoing, reply)
    os._exit(0)


def _request(incoming: int) -> Import | None:
    frames = wire.FrameReader()
    while data := os.read(incoming, wire.READ_AT_ONCE):
        for message in frames.feed(data):
            if isinstance(message, Import):
                return message
    return None


def _reply(request: Import) -> Imported | Failed:
    """Return the answer; the import is repeated with as many devices as the file needs."""
    before = set(sys.modules)
    # The file sees the device of the target as soon as it has imported JAX.
    device = next((function.device for function in request.functions), None)

    def show() -> None:
        from jaxsight.tracer.compat import fake_devices

        fake_devices.watch(lambda frame, unknown: None)
        fake_devices.see(device)

    if device is not None:
        AfterImport("jax", show)
    while True:
        try:
            return _answered(request)
        except _NeedsDevices as need:
            count: int = need.args[0]
        from jaxsight.tracer.compat import devices

        devices.reset(count, target=count == _target(request))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if name == request.module or lies_in(file, request.root):
                # Its arrays were on the deleted backend.
                del sys.modules[name]


class _NeedsDevices(Exception):
    """So many devices are needed for an answer."""


def _answered(request: Import) -> Imported | Failed:
    """Return the answer.

    Raises:
        _NeedsDevices: there are too few devices for one.
    """
    problem: BaseException | None = None
    module = ModuleType(request.module)
    try:
        module = _imported(request)
    except BaseException as error:  # noqa: BLE001 - user code, `SystemExit` included
        problem = error
    if (count := _wanted(problem, request)) is not None:
        raise _NeedsDevices(count)
    if problem is not None:
        from jaxsight.tracer.failures import failure

        return Failed(request.id, failure(problem, "execute"))
    return Imported(request.id, tuple(_program(each, module) for each in request.functions))


def _wanted(error: BaseException | None, request: Import) -> int | None:
    """Return how many devices a file needs that was imported with fewer, or that raised an error.

    Without JAX, it needs none.
    """
    if "jax" not in sys.modules:
        return None
    from jaxsight.tracer.compat import devices
    from jaxsight.tracer.execution import device_demand

    if target := _target(request):
        # A file that sets the number itself is imported only twice.
        return target if not devices.are_targets() and devices.simulated() else None
    text = "".join(linecache.getlines(request.file))
    if error is not None:
        demand = device_demand.wanted(error, [text])
        return demand.count if demand is not None else None
    meshes = (function.mesh.size for function in request.functions if function.mesh is not None)
    count = max([device_demand.written_in([text]), *meshes])
    if count == 1 or devices.mentioned(text) or count <= (devices.simulated() or count):
        return None
    return count


def _target(request: Import) -> int:
    """Return the number of devices of the target; 0 if it has none."""
    return max((function.devices for function in request.functions), default=0)


def _imported(request: Import) -> ModuleType:
    file, name = request.file, request.module
    folders = import_folders(file, name, request.root)
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
    sys.argv[:] = [file]
    if Path(request.root).is_dir():
        os.chdir(request.root)
    if request.lines:
        _run_only(file, request.lines)
    if "." in name or name not in sys.modules:
        module = importlib.import_module(name)
        if os.path.realpath(getattr(module, "__file__", None) or "") == os.path.realpath(file):
            return module
    # Python finds another module by that name.
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module at {file}")
    module = importlib.util.module_from_spec(spec)
    # Before it runs, as Python does: others may import it meanwhile.
    sys.modules[name] = module
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def _run_only(file: str, lines: Sequence[tuple[int, int]]) -> None:
    """Have imports of a file run the top-level statements that begin within some lines."""
    every, file = SourceFileLoader.get_code, os.path.realpath(file)

    def runs(statement: ast.stmt) -> bool:
        match statement:
            # The docstring and `__future__` imports apply to the whole module.
            case ast.ImportFrom(module="__future__") | ast.Expr(ast.Constant()):
                return True
        return any(first <= statement.lineno <= last for first, last in lines)

    def get_code(self: Any, fullname: str) -> CodeType | None:
        if os.path.realpath(self.path) != file:
            return every(self, fullname)
        tree = ast.parse(self.get_data(self.path), self.path)
        tree.body = [*filter(runs, tree.body)]
        code: CodeType = compile(tree, self.path, "exec", dont_inherit=True)
        return code

    # On the class: whichever finder finds the file, Python's loader asks for its code.
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def _program(request: Trace, module: ModuleType) -> ImportedProgram:
    """Return the program of a function, traced like in a tracer.

    Raises:
        _NeedsDevices: there are too few devices.
    """
    from jaxsight.tracer.calls.inputs import Evaluator
    from jaxsight.tracer.execution.device_demand import MoreDevices
    from jaxsight.tracer.failures import UserError, failure
    from jaxsight.tracer.handlers.trace import trace
    from jaxsight.tracer.job import ExecutedModule, Job, Traces
    from jaxsight.tracer.observation.recorder import Recorder
    from jaxsight.tracer.programs.jaxpr_text import fingerprint

    try:
        traces = Traces()
        # Whether it uses `pmap` is read off the statements, which an import does not have.
        whole = Chunk("", "", "".join(linecache.getlines(request.file)))
        request = replace(request, chunks=(whole,))
        executed = ExecutedModule(request, vars(module), Recorder(), Evaluator())
        trace(Job(request, traces, executed=executed))
        return ImportedProgram(fingerprint(traces.of(request.id).shown.jaxpr))
    except MoreDevices as need:
        raise _NeedsDevices(need.demand.count) from None
    except UserError as error:
        return ImportedProgram(failure=error.failure)
    except BaseException as error:  # noqa: BLE001 - user code, `SystemExit` included
        return ImportedProgram(failure=failure(error, "trace"))
