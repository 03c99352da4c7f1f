"""Track effects of files that cannot be undone, and which files can still be traced.

The file itself can, as long as its earlier results are kept; for another file, or the same file
from its beginning, the answer would differ from that of a fresh process.
Such a request ends in `Spoilt`, and the server replaces the process and repeats it.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from types import FrameType

from jaxsight.tracer.compat import registrations
from jaxsight.tracer.isolation import code_origins

_REGISTERED_TWICE = (
    "Duplicate custom PyTreeDef type registration",
    "Duplicate serialization registration",
)
"""JAX's messages about a class that is registered again.

In a fresh process there may be no such error.
"""

_GRACE = 0.2
"""Seconds for killed child processes to exit.

A fresh process, which is the alternative, takes longer to import JAX.
"""

_POOL = "concurrent/futures/thread.py"


class Spoilt(Exception):
    """This process cannot answer like a fresh one; the message has the reason."""


class IrreversibleEffects:
    """Known effects; `owner` is the file that caused them."""

    def __init__(self) -> None:
        self.reason = ""
        """The reason with the file's name; empty if there are none."""
        self.owner = ""
        self._file = ""
        self._used = False
        self._fresh = True
        """Whether the file that began last was the first one to run."""
        self._registered: list[str] = []
        registrations.watch(self._entered)
        self._register_codec = codecs.register
        codecs.register = self._codec_registered

    def begin(self, file: str) -> None:
        """Start a file.

        Raises:
            Spoilt: another file has left something.
        """
        if self.reason and file != self.owner:
            raise Spoilt(self.reason)
        self._file = file
        self._fresh = not self._used
        self._registered.clear()

    def start_over(self) -> None:
        """Start the current file from its beginning again.

        Raises:
            Spoilt: it has left something.
        """
        if self.reason:
            raise Spoilt(self.reason)
        self._fresh = False

    def end(self, lost: Iterable[str]) -> None:
        """Record the end of the file's run.

        `lost` has the effects that could not be undone, such as `lowered a resource limit`.
        """
        self._used = True
        # All threads, those that `threading` has not started included.
        here, frames = threading.get_ident(), sys._current_frames()
        reasons = [*lost, *self._registered]
        if any(ident != here and _is_of_user(frame) for ident, frame in frames.items()):
            reasons.append("left a thread running")
        if not end_children():
            reasons.append("left a child process running")
        if reasons and not self.reason:
            self.owner = self._file
            self.reason = f"{PurePath(self._file).name} {reasons[0]}"

    def doubt(self, message: str) -> None:
        """Check whether an error may be caused by registrations of an earlier run.

        Raises:
            Spoilt: it may be.
        """
        if not self._fresh and any(words in message for words in _REGISTERED_TWICE):
            raise Spoilt(f"{PurePath(self._file).name} registers a class again")

    def _codec_registered(self, search: Callable[[str], codecs.CodecInfo | None]) -> None:
        """Replace `codecs.register`, because registered functions cannot be listed."""
        if code_origins.called_by_user(()):
            self._registered.append("registered a codec")
        self._register_codec(search)

    def _entered(self, kind: type) -> None:
        """Record a pytree registration by user code of a class of another module."""
        for frame in code_origins.outwards(sys._getframe(2)):
            name = frame.f_globals.get("__name__", "")
            if code_origins.of_file(frame.f_code.co_filename) == code_origins.USER:
                # Factories of libraries name only the library.
                if kind.__module__ != name and (
                    getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
                ):
                    class_name = f"{kind.__module__}.{kind.__qualname__}"
                    self._registered.append(f"registered {class_name} as a pytree")
                return
            if name.startswith("importlib"):
                return  # during the import of a library
            if name != _TREES and kind.__module__.partition(".")[0] == name.partition(".")[0]:
                return  # a library's own class, on its first use


_TREES = "jax._src.tree_util"


def _is_of_user(frame: FrameType) -> bool:
    """Return whether a thread may run user code, now or later.

    An idle thread of a pool does not.
    """
    if frame.f_code.co_name == "_worker" and frame.f_code.co_filename.endswith(_POOL):
        return False
    frames = [*code_origins.outwards(frame)]
    whose = {code_origins.of_file(each.f_code.co_filename) for each in frames}
    if code_origins.USER in whose:
        return True
    names = (each.f_globals.get("__name__", "") for each in frames)
    is_ours = any(name.startswith("jaxsight.") for name in names)
    return code_origins.LIBRARY not in whose and not is_ours


def end_children() -> bool:
    """End the processes below this one, but helpers of `multiprocessing`; return whether they did.

    They stay to be waited for by the objects that started them. Before Landlock 6, a confined
    process may not end them.
    """
    end = time.monotonic() + _GRACE
    # Repeat: a signal takes a moment, and a child may have started others.
    while children := _children():
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        if time.monotonic() > end:
            return False
        time.sleep(_GRACE / 100)
    return True


def _children() -> set[int]:
    """Return the running processes below this one, except helpers of `multiprocessing`."""
    below, todo = set[int](), [os.getpid()]
    while todo:
        tasks = f"/proc/{todo.pop()}/task"
        with contextlib.suppress(OSError):  # not Linux, or a process that has just ended
            # `children` lists only the processes that one thread has started.
            for task in os.listdir(tasks):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    found = Path(tasks, task, "children").read_text().split()
                    todo += map(int, found)
                    below.update(map(int, found))
    for name, holder, pid in _HELPERS:
        if (module := sys.modules.get(name)) is not None:
            below.discard(getattr(getattr(module, holder, None), pid, None) or 0)
    return {each for each in below if _runs(each)}


def _runs(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        # The program's name before it is in parentheses, and may have spaces and parentheses.
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


_HELPERS = (
    ("multiprocessing.resource_tracker", "_resource_tracker", "_pid"),
    ("multiprocessing.forkserver", "_forkserver", "_forkserver_pid"),
)
