"""What a file left in this process that cannot be undone, and who may still be answered after that.

The file itself may, as long as its results so far are kept; another file, or the same file from its
beginning, would not get a fresh process's answer. Such a request ends in `Spoilt`, the server
replaces the process and asks again.
"""

from __future__ import annotations

import codecs
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from types import FrameType

from jaxsight.tracer import origins
from jaxsight.tracer.compat import registrations
from jaxsight.tracer.protocol import Failure

_REGISTERED_TWICE = (
    "Duplicate custom PyTreeDef type registration",
    "Duplicate serialization registration",
)
"""How the messages of JAX begin where a class is registered that has been.

A fresh process may not have been there.
"""

GRACE = 0.2
"""Seconds that child processes have to end when another file is asked about."""

_POOL = "concurrent/futures/thread.py"

_TASKS = Path("/proc/self/task")


class Spoilt(Exception):
    """This process cannot answer as a fresh one would; the message says why."""


class Leftovers:
    """What is known to be left. `owner` is the file that left it."""

    def __init__(self) -> None:
        self.reason = ""
        """In words, with the file's name; empty while nothing is left."""
        self.owner = ""
        self._file = ""
        self._used = False
        self._fresh = True
        """Whether nothing had run before the file that began last."""
        self._registered: list[str] = []
        self._waits_for_children = False
        """Whether it is over when the child processes are."""
        registrations.watch(self._entered)
        self._register_codec = codecs.register
        codecs.register = self._codec_registered

    def begin(self, file: str) -> None:
        """A file is about to run. Raises `Spoilt` when another one has left something."""
        if self._waits_for_children and file != self.owner and _end_soon():
            self._waits_for_children = False
            self.reason = ""
        if self.reason and file != self.owner:
            raise Spoilt(self.reason)
        self._file = file
        self._fresh = not self._used
        self._registered.clear()

    def start_over(self) -> None:
        """The file is about to run from its beginning, after it has run before.

        Raises `Spoilt` when it has left something.
        """
        if self.reason:
            raise Spoilt(self.reason)

    def end(self, lost: Iterable[str]) -> None:
        """The file that began has run.

        `lost` says what could not be restored: `lowered a resource limit`.
        """
        self._used = True
        for what in (*lost, *self._registered, *_threads()):
            self._note(what)
            self._waits_for_children = False
        if not self.reason and _children():
            self._note("left a child process running")
            self._waits_for_children = True

    def _note(self, what: str) -> None:
        if not self.reason or self._waits_for_children:
            self.owner = self._file
            self.reason = f"{PurePath(self._file).name} {what}"

    def doubt(self, failure: Failure) -> None:
        """Raise `Spoilt` where a failure may come from what an earlier run has registered."""
        if not self._fresh and failure.message.startswith(_REGISTERED_TWICE):
            raise Spoilt(f"{PurePath(self._file).name} registers a class again")

    def _codec_registered(self, search: Callable[[str], codecs.CodecInfo | None]) -> None:
        """Stands in for `codecs.register`: which functions are registered cannot be asked."""
        if origins.asked_by_user(()):
            self._registered.append("registered a codec")
        self._register_codec(search)

    def _entered(self, kind: type) -> None:
        """A class is registered as a pytree: note it where user code does so and the class is
        another module's.
        """
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            if origins.of_file(frame.f_code.co_filename) == origins.USER:
                if kind.__module__ != name and _lives_there(kind):
                    what = f"{kind.__module__}.{kind.__qualname__}"
                    self._registered.append(f"registered {what} as a pytree")
                return
            if name.startswith("importlib"):
                return  # part of importing a library
            if name != _TREES and kind.__module__.partition(".")[0] == name.partition(".")[0]:
                return  # a library's own class, when it is first needed
            frame = frame.f_back


_TREES = "jax._src.tree_util"


def _lives_there(kind: type) -> bool:
    """Whether the module that a class names has it: classes made by a library's functions name that
    library.
    """
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def _threads() -> Iterator[str]:
    """Threads of user code that go on."""
    here = threading.get_ident()
    for ident, frame in sys._current_frames().items():
        if ident != here and _is_of_user(frame):
            yield "left a thread running"
            break


def _is_of_user(frame: FrameType) -> bool:
    """Whether a thread may run user code: it does, or it is one of Python's that waits to.

    A pool without work does not.
    """
    if frame.f_code.co_name == "_worker" and frame.f_code.co_filename.endswith(_POOL):
        return False
    whose = origins.of_frames(frame)
    if origins.USER in whose:
        return True
    return origins.LIBRARY not in whose and not _is_ours(frame)


def _is_ours(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("jaxsight."):
            return True
        frame = frame.f_back
    return False


def _end_soon() -> bool:
    """Whether the child processes end within a moment."""
    end = time.monotonic() + GRACE
    while _children():
        if time.monotonic() > end:
            return False
        time.sleep(GRACE / 20)
    return True


def _children() -> set[int]:
    """The processes below this one that run, but for the helpers of `multiprocessing`."""
    children: set[int] = set()
    try:
        for task in os.listdir(_TASKS):  # noqa: PTH208
            children.update(map(int, (_TASKS / task / "children").read_text().split()))
    except OSError:  # not Linux, or a thread that has just ended
        return set()
    for name, holder, pid in _HELPERS:
        if (module := sys.modules.get(name)) is not None:
            children.discard(getattr(getattr(module, holder, None), pid, None) or 0)
    return {child for child in children if _runs(child)}


def _runs(process: int) -> bool:
    """Whether a process is there and not over, waiting for somebody to ask how it ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


_HELPERS = (
    ("multiprocessing.resource_tracker", "_resource_tracker", "_pid"),
    ("multiprocessing.forkserver", "_forkserver", "_forkserver_pid"),
)
