"""Begin to observe this process, before the user's program does.

This module uses only the standard library.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, FrameType, ModuleType
from typing import Any

from jaxsight.recording import FOLDER, MISSING, PROFILE, ROOT, RUN, TESTS
from jaxsight.recording.compiled_calls import reserve
from jaxsight.recording.observing.functions import ProjectFiles
from jaxsight.recording.observing.log import Log
from jaxsight.recording.observing.observer import Observer

# Report each function that begins to run, with `sys.monitoring` (Python 3.12 and later).
#
# The interpreter calls back once for each code object that does not belong to the project, and
# never again: it costs a program nothing from then on.

_NAME = "jaxsight record"


def observe(observer: Observer) -> None:
    """Begin to observe."""
    if (reserved := reserve(_NAME)) is None:
        _observe_all_calls(observer)
        return
    monitoring, tool = reserved
    belongs, began, disable = observer.belongs, observer.began, monitoring.DISABLE
    makes, returned, events = observer.makes, observer.returned, monitoring.events
    get_frame = sys._getframe
    watched: set[CodeType] = set()

    def on_start(code: CodeType, _: int) -> object:
        goes_on = belongs(code) and began(get_frame(1))
        if makes(code) and code not in watched:
            watched.add(code)
            monitoring.set_local_events(tool, code, events.PY_RETURN)
        return None if goes_on else disable

    def on_return(code: CodeType, _: int, value: object) -> object:
        return None if returned(get_frame(1), value) else disable

    monitoring.register_callback(tool, events.PY_START, on_start)
    monitoring.register_callback(tool, events.PY_RETURN, on_return)
    monitoring.set_events(tool, events.PY_START)


def _observe_all_calls(observer: Observer) -> None:
    """Begin to observe with a profile function, which slows down every call of the program."""
    # By identity, as the hash of code reads all of it; the code is kept, so that none takes its.
    done: dict[int, CodeType] = {}
    watched: dict[int, CodeType] = {}

    def on_event(frame: FrameType, event: str, value: object) -> None:
        code = frame.f_code
        if event == "call" and id(code) not in done:
            if not (observer.belongs(code) and observer.began(frame)):
                done[id(code)] = code
            if observer.makes(code):
                watched[id(code)] = code
        elif event == "return" and id(code) in watched:
            observer.returned(frame, value)

    sys.setprofile(on_event)
    threading.setprofile(on_event)


def start() -> None:
    """Observe this process if the environment asks for it."""
    if compiled := os.environ.get(RUN):
        sys.meta_path.insert(0, _Finder(compiled))
        return
    if os.environ.get(PROFILE):
        if sys.version_info >= (3, 12):
            from jaxsight.recording.observing import profiled

            profiled.start()
        return
    folder, root = os.environ.get(FOLDER), os.environ.get(ROOT)
    if not folder or not root:
        return
    observer = Observer(ProjectFiles(root, tests=bool(os.environ.get(TESTS))), Log(folder))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=observer.forked)
    observe(observer)
    if (missing := os.environ.get(MISSING)) is not None:
        from jaxsight.recording.observing import missing_modules

        missing_modules.watch(observer.log)
        missing_modules.replace(filter(None, missing.split(",")))


# Collect what this process compiles, as soon as it has imported JAX.


class _Finder:
    """Finds JAX once, as Python does, with a loader that reports that it was imported."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of JAX; `None` for all other modules."""
        if name != "jax":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            # Only this one object executes JAX otherwise: its class stays as it is.
            loader: Any = spec.loader
            loader.exec_module = functools.partial(self._execute, loader.exec_module)
        return spec

    def _execute(self, execute: Callable[[ModuleType], None], module: ModuleType) -> None:
        """Execute the module, and begin to collect."""
        execute(module)
        try:
            from jaxsight.recording.programs.collector import Collector

            Collector(self._folder).begin()
        except Exception:  # noqa: BLE001, S110 - then the program runs without being observed
            pass
