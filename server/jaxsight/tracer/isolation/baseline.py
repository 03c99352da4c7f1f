"""Restore the state of this process that user code may have changed, after every request.

State that influences results of a file's own code is in `process_state`, and is applied again
when that file is traced again.
The state here must only be restored for the next request: descriptors 0 to 2 and their streams,
`builtins`, JAX's namespaces, loaded modules, signal handlers and timers, hooks, tracing functions,
the garbage collector, and limits and settings of the system and of Python's libraries.
Changes that cannot be undone are reported to `irreversible_effects`, which keeps other files out of
this process.
Open files, and functions that `atexit` would call (a tracer never exits that way), are not touched:
no later answer depends on them.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from types import ModuleType
from typing import TextIO, TypeGuard

from jaxsight.tracer.isolation import code_origins, process_state
from jaxsight.tracer.isolation.library_snapshot import same_objects
from jaxsight.tracer.isolation.process_state import SIGNALS, State, Variable, attribute
from jaxsight.wire.descriptors import private

if sys.platform != "win32":
    import resource

_TOOLS = range(6)
"""Ids of tools in `sys.monitoring`."""


def _limits() -> dict[int, tuple[int, int]]:
    if sys.platform == "win32":
        return {}
    numbers = {n for name, n in vars(resource).items() if name.startswith("RLIMIT_")}
    return {number: resource.getrlimit(number) for number in numbers}


def _for_good() -> tuple[object, ...]:
    """Return what cannot be restored, or only in part; nothing on Windows."""
    if sys.platform == "win32":
        return ()
    priority = os.getpriority(os.PRIO_PROCESS, 0)
    return _limits(), priority, os.getuid(), os.geteuid(), os.getgid(), os.getegid()


def _file_mask() -> int:
    # Python can read the mask only by setting another one.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _restore_libraries() -> None:
    """Restore settings of `time`, `socket`, `multiprocessing`, `asyncio` and such.

    None of it influences the results of a file's code, so it need not be applied again with the
    file.
    """
    # `TZ` is restored by now, but the C library reads it only here. Windows lacks this.
    if hasattr(time, "tzset"):
        time.tzset()
    if (socket := sys.modules.get("socket")) is not None:
        socket.setdefaulttimeout(None)
    if (faults := sys.modules.get("faulthandler")) is not None:
        faults.cancel_dump_traceback_later()
    if (processes := sys.modules.get("multiprocessing")) is not None:
        with contextlib.suppress(Exception):
            # `None`: no method has been chosen yet.
            processes.set_start_method(None, force=True)
    if (loops := sys.modules.get("asyncio.events")) is not None:
        # A loop belongs to a thread; a policy is global.
        loops._event_loop_policy = None  # type: ignore[attr-defined]
        loops._set_running_loop(None)
    monitoring = getattr(sys, "monitoring", None)  # Python 3.12
    for tool in _TOOLS:
        if monitoring is not None and monitoring.get_tool(tool) is not None:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)


_BUILTINS = vars(builtins)


class Baseline:
    """The state of the process after JAX was imported and before any user code ran."""

    def __init__(self) -> None:
        self._output = private(1)
        self._nothing = private(0)
        self._streams: dict[str, TextIO] = {}
        self._give_streams()
        self._builtins = dict(_BUILTINS)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # A server started in the background inherits this. User code expects Python's default.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._state: State = process_state.capture()
        self._environ = os.environ
        self._modules = dict(sys.modules)
        self._listed: list[object] = []
        """The modules that were loaded at the last restore."""
        self._finders = tuple(sys.meta_path)
        self._handlers = SIGNALS.read()
        if sys.platform != "win32":
            self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._settings = [(write, read()) for read, write in _SETTINGS]
        self._finder_types = {type(finder) for finder in sys.path_importer_cache.values()}
        self._limits, self._for_good = _limits(), _for_good()

    def restore_python(self) -> None:
        """Restore what our own code relies on, so that an answer can be sent.

        Call this first after user code has run, however that ended.
        """
        # First, and by a method only, as `len` and `isinstance` may have been replaced.
        _BUILTINS.update(self._builtins)
        # A trace function that raises or a low recursion limit would fail the code below.
        for write, value in self._settings:
            write(value)
        # Before anything that needs memory or descriptors. A hard limit cannot be raised again.
        for number, limit in self._limits.items():
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(number, limit)
        for descriptor, good in ((0, self._nothing), (1, self._output), (2, self._output)):
            # User code may have closed or replaced it.
            if not _same(descriptor, good):
                os.dup2(good, descriptor)
        self._give_streams()
        for name, handler in SIGNALS.read().items():
            if handler != self._handlers[name]:
                SIGNALS.write(name, self._handlers[name])
        if sys.platform != "win32":
            # An alarm of user code would interrupt the next request.
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        gc.enable()
        # Send the output before the answer.
        self._streams["stdout"].flush()
        self._streams["stderr"].flush()

    def restore(self) -> tuple[str, ...]:
        """Restore the rest, after `restore_python`.

        Returns the changes that cannot be undone, as predicates.
        """
        os.environ = self._environ  # noqa: B003 - the object; its contents come with the effects
        if not same_objects(self._listed, sys.modules.values()):
            # A file may have removed modules, ours included.
            sys.modules.update(self._modules)
            loaded: dict[str, object] = dict(sys.modules)
            for name, module in loaded.items():
                if module is None:
                    del sys.modules[name]  # a file has blocked this import
                elif self._modules.get(name) is not module and _is_installed(module):
                    self._modules[name] = module
            self._listed = list(sys.modules.values())
        # Reversed, as each one goes to the front.
        for finder in reversed(self._finders):
            if finder not in sys.meta_path:
                sys.meta_path.insert(0, finder)
        # A finder that a library such as `six` adds on import is needed by its later importers.
        own = set(map(id, self._finders))
        sys.meta_path[:] = [each for each in sys.meta_path if id(each) in own or not _is_hook(each)]
        # Finders of a path hook that user code had set are still used for folders seen before.
        cache = sys.path_importer_cache
        foreign = [f for f, finder in cache.items() if type(finder) not in self._finder_types]
        for folder in foreign:
            del cache[folder]
        process_state.restore(self._state)
        _restore_libraries()
        if _for_good() == self._for_good:
            return ()
        return ("changed the limits, the priority or the user of its process",)

    def _give_streams(self) -> None:
        """Set streams over the descriptors, which stay open if user code closes the streams."""
        for descriptor, name in enumerate(_STREAMS):
            stream = self._streams.get(name)
            if stream is None or stream.closed:
                stream = self._streams[name] = _stream(descriptor)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


_STREAMS = ("stdin", "stdout", "stderr")

_SETTINGS: tuple[Variable, ...] = (
    (sys.gettrace, sys.settrace),
    (sys.getprofile, sys.setprofile),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.getswitchinterval, sys.setswitchinterval),
    (gc.get_threshold, lambda threshold: gc.set_threshold(*threshold)),
    (gc.get_debug, gc.set_debug),
    (_file_mask, os.umask),
    # For threads to come.
    (threading.gettrace, threading.settrace),
    (threading.getprofile, threading.setprofile),
    (threading.stack_size, threading.stack_size),
    *(
        attribute(sys, name)
        for name in ("excepthook", "unraisablehook", "displayhook", "breakpointhook")
    ),
    attribute(threading, "excepthook"),
)
"""What is set again as it was."""


def _is_installed(module: object) -> TypeGuard[ModuleType]:
    """Return whether a module of an installed package was imported completely."""
    return (
        isinstance(module, ModuleType)
        and code_origins.is_imported(module)
        and code_origins.of_module(module.__name__) != code_origins.USER
    )


def _is_hook(finder: object) -> bool:
    """Return whether a file added this finder to `sys.meta_path`.

    It is the file's own, or a library's import hook.
    """
    kind = finder if isinstance(finder, type) else type(finder)
    name = kind.__module__
    return code_origins.of_module(name) != code_origins.LIBRARY or "hook" in name


def _stream(descriptor: int) -> TextIO:
    """Return a line-buffered stream, so that output of code that never returns is shown."""
    return open(
        descriptor,
        "r" if descriptor == 0 else "w",
        buffering=1,
        encoding="utf-8",
        errors="backslashreplace",
        closefd=False,
    )


def _same(descriptor: int, expected: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.fstat(expected))
    except OSError:  # closed
        return False
