"""Say what code would change outside of its process, and refuse it there.

The system refuses it to a confined process anyway (`workers/confinement`); here it gets words and a
place. Python announces what reaches the system (`sys.addaudithook`,
https://docs.python.org/3/library/audit_events.html), and an error in the hook prevents it. Where a
system confines nothing, this is all there is: libraries in C that reach it by themselves are not
covered.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from jaxsight.files.ownership import WRITABLE
from jaxsight.text.names import words
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.isolation.file_reads import is_written

_FILES = {
    "os.chmod": "change", "os.chown": "change", "os.link": "link", "os.mkdir": "make",
    "os.remove": "delete", "os.removexattr": "change", "os.rename": "rename", "os.rmdir": "delete",
    "os.setxattr": "change", "os.symlink": "link", "os.truncate": "truncate", "os.utime": "change",
    "shutil.rmtree": "delete", "sqlite3.connect": "write", "tempfile.mkdtemp": "make",
    "tempfile.mkstemp": "make",
}  # fmt: skip
"""Verbs, by events whose first argument is a path."""
_PATHS = {"os.rename": slice(2), "os.link": slice(1, 2), "os.symlink": slice(1, 2)}
"""Arguments that are paths which are changed; of other events the first one is."""
_BY_FOLDER = frozenset(
    words("""os.chmod os.chown os.link os.mkdir os.remove os.rename os.rmdir os.symlink os.utime""")
)
"""Events whose last argument is a descriptor of the folder that the path is relative to, or -1."""
_PROCESSES = frozenset(
    words(
        """os.exec os.fork os.forkpty os.kill os.killpg os.posix_spawn os.spawn os.startfile
        os.startfile/2 os.system pty.spawn subprocess.Popen webbrowser.open"""
    )
)
_THREADS = frozenset({"_thread.start_new_thread", "_thread.start_joinable_thread"})
"""A thread would go on after the block; the former event is Python's since 3.12."""
_STARTS = _PROCESSES | _THREADS
_NETWORK = frozenset(
    words(
        """socket.bind socket.connect socket.getaddrinfo socket.gethostbyaddr socket.gethostbyname
        socket.sendmsg socket.sendto urllib.Request"""
    )
)
_NOTHING = tuple(f"{os.sep}dev{os.sep}{name}" for name in ("null", "zero", "full"))
PREFIX = "refused: it would "
"""How messages of refusals begin."""
_LONGEST = 60
"""Characters of a path in a message, of which a clause has 100."""

_refusing: list[None] = []
"""An element for each block that is active."""
_confined: list[None] = []
"""An element if this process is confined."""
_seen: list[tuple[str, int, int]] = []
"""What was refused since `forget`, with the innermost module that was running: the id of its names,
and its line."""


class RefusedError(PermissionError):
    """An effect was prevented; code that can do without it may catch this."""

    __module__ = "jaxsight"  # as users read it


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Refuse processes and threads, too, which a call that nobody asked for would leave behind."""
    _refusing.append(None)
    try:
        yield
    finally:
        _refusing.pop()


def watch() -> None:
    """Refuse all changes outside of this process for the rest of it, but of its own folders.

    In a process that is not confined, as the user asked for a run, only `refusing` refuses.
    """
    if WRITABLE in os.environ:
        _confined.append(None)
    # Remove it: user code sees the environment.
    folders = os.environ.pop(WRITABLE, "").split(os.pathsep)
    own = tuple(f"{_real(folder)}{os.sep}" for folder in folders if folder)

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if not (_refusing or (_confined and event not in _STARTS)):
            return
        what = "start a thread" if event in _THREADS else effect_of(event, arguments, own)
        if what:
            _note(what)
            raise RefusedError(PREFIX + what)

    sys.addaudithook(audit)
    if sys.version_info < (3, 12):  # Python announces threads since then
        start: Any = threading._start_new_thread  # type: ignore[attr-defined]

        def announced(*arguments: object) -> object:
            sys.audit("_thread.start_new_thread", *arguments)
            return start(*arguments)

        threading._start_new_thread = announced  # type: ignore[attr-defined]


def forget() -> None:
    """Begin a statement: what was refused before it is not why it fails."""
    _seen.clear()


def cause(error: BaseException, names: dict[str, object], first: int = 0, last: int = 0) -> str:
    """Return what a statement was refused, as "delete `x`", if that is why it fails.

    Code may go on after a refusal, and fail because of it. What a library does for itself while it
    is imported is not meant.

    Args:
        error: what the statement raised.
        names: those of its module.
        first: its first line; by default, all lines are meant.
        last: its last line.
    """
    if isinstance(error, RefusedError):
        return str(error).removeprefix(PREFIX)
    for what, module, line in _seen:
        if module == id(names) and (not last or first <= line <= last):
            return what
    if _confined and isinstance(error, PermissionError):
        # Refused by the system alone, as Python does not announce the call.
        name = error.filename
        is_named = isinstance(name, str | bytes) and os.path.lexists(name)
        if not is_named or os.access(name, os.R_OK):  # else the user may not read it either
            return "change something outside of its process"
    return ""


def _note(effect: str) -> None:
    for frame in code_origins.outwards(sys._getframe(2)):
        if frame.f_code.co_name == "<module>":
            _seen.append((effect, id(frame.f_globals), frame.f_lineno))
            break


def effect_of(event: str, arguments: tuple[object, ...], own: tuple[str, ...]) -> str:
    """Return what an event would change outside of a process, but below folders of its own."""
    if event == "open":
        name, mode, flags = arguments
        return _changing("write", (name,), own) if is_written(mode, flags) else ""
    if verb := _FILES.get(event):
        paths = arguments[_PATHS.get(event, slice(1))]
        return _changing(verb, paths, own, arguments[-1] if event in _BY_FOLDER else -1)
    if event.startswith("shutil."):
        return _changing("write", arguments[1:2] or arguments, own)
    if event in _PROCESSES:
        return "start or end a process"
    return "use the network" if event in _NETWORK else ""


def _changing(
    verb: str, paths: tuple[object, ...], own: tuple[str, ...], folder: object = -1
) -> str:
    named = [os.fsdecode(path) for path in paths if isinstance(path, str | bytes | os.PathLike)]
    # A descriptor was opened before; a database may be in memory.
    outside = [path for path in named if path not in (*_NOTHING, ":memory:", "")]
    # The system's name for it, where there is one: elsewhere the path is taken as it is.
    base = f"/proc/self/fd/{folder}" if isinstance(folder, int) and folder >= 0 else ""
    real = (f"{_real(os.path.join(base, path))}{os.sep}" for path in outside)  # noqa: PTH118
    if not outside or all(path.startswith(own) for path in real):
        return ""
    path, here = outside[-1], f"{os.getcwd()}{os.sep}"  # noqa: PTH109 - plain text
    text = " ".join(path.removeprefix(here).replace("`", "'").split())
    return f"{verb} `{text if len(text) <= _LONGEST else f'…{text[-_LONGEST:]}'}`"


_real = os.path.realpath  # bound now, as user code may replace it
