"""Refuse effects outside of the process while code runs that nobody asked to run.

jaxsight calls functions with inputs that it proposes or has recorded: such a function may be one
that saves a checkpoint or removes a folder. Python announces what reaches the system
(`sys.addaudithook`, https://docs.python.org/3/library/audit_events.html), and an error in the hook
prevents it. Libraries in C that reach the system by themselves are not covered.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from jaxsight.text.names import words
from jaxsight.tracer.isolation.file_reads import is_written

_FILES = frozenset(
    words(
        """os.chmod os.chown os.link os.mkdir os.remove os.removexattr os.rename os.rmdir
        os.setxattr os.symlink os.truncate os.utime sqlite3.connect tempfile.mkdtemp
        tempfile.mkstemp"""
    )
)
_PROCESSES = frozenset(
    words(
        """os.exec os.fork os.forkpty os.kill os.killpg os.posix_spawn os.spawn os.startfile
        os.startfile/2 os.system pty.spawn subprocess.Popen webbrowser.open"""
    )
)
_THREADS = frozenset({"_thread.start_new_thread", "_thread.start_joinable_thread"})
"""A thread would go on after the block; the former event is Python's since 3.12."""
_NETWORK = frozenset(
    words(
        """socket.bind socket.connect socket.getaddrinfo socket.gethostbyaddr socket.gethostbyname
        socket.sendmsg socket.sendto urllib.Request"""
    )
)
_NATIVE = frozenset({"ctypes.call_function", "ctypes.dlopen", "ctypes.dlsym", "sys.addaudithook"})
_refusing: list[None] = []
"""An element for each block that is active."""


class RefusedError(PermissionError):
    """An effect was prevented; code that can do without it may catch this."""


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Raise `RefusedError` where code in the block would have an effect outside of the process."""
    _refusing.append(None)
    try:
        yield
    finally:
        _refusing.pop()


def watch() -> None:
    """Make `refusing` work for the rest of the process."""
    sys.addaudithook(_audit)
    if sys.version_info < (3, 12):  # Python announces threads since then
        start: Any = threading._start_new_thread  # type: ignore[attr-defined]

        def announced(*arguments: object) -> object:
            sys.audit("_thread.start_new_thread", *arguments)
            return start(*arguments)

        threading._start_new_thread = announced  # type: ignore[attr-defined]


def seal() -> None:
    """Refuse all that `refusing` refuses, and native code, for the rest of the process.

    This cannot be switched off again. The system itself lets no file grow. It stops programs that
    do what they say, not those that exploit Python or JAX; what may be read can be read.
    """
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind, error = _kind, RefusedError

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        refused = "running native code" if event in _NATIVE else kind(event, arguments)
        if refused:
            raise error(f"{refused} is refused to programs of a dataset")

    sys.addaudithook(audit)


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if not _refusing:
        return
    kind = "starting a thread" if event in _THREADS else _kind(event, arguments)
    if kind:
        detail = f": {arguments[0]!r}" if arguments and isinstance(arguments[0], str) else ""
        raise RefusedError(f"{kind} is refused with inputs that you did not write{detail}")


def _kind(event: str, arguments: tuple[object, ...]) -> str:
    if event == "open":
        name, mode, flags = arguments
        is_path = isinstance(name, str | bytes) and os.fsdecode(name) != os.devnull
        return "writing a file" if is_path and is_written(mode, flags) else ""
    if event in _FILES or event.startswith("shutil."):
        return "changing files"
    if event in _PROCESSES:
        return "starting or ending a process"
    return "using the network" if event in _NETWORK else ""
