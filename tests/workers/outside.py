"""What a program might change outside of its process: files, a process, sockets, a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import psutil

_BYTES = 1000
"""What a pipe holds of which programs read a byte to say that they ran."""


class Outside:
    """Things that a program may change; `state` has all that can be seen of them.

    `names` is what the program calls them: `HERE` is the folder, `PID` the process, `TCP`, `UDP`,
    `UNIX` and `DATAGRAMS` are sockets, `TERMINAL` is a terminal, `PIPE` says that the program runs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "kept").mkdir(parents=True)
        (folder / "empty").mkdir()
        for path in (folder / "kept.txt", folder / "kept" / "inner.txt"):
            path.write_text("text")
        os.setxattr(folder / "kept.txt", "user.kept", b"value")
        os.mkfifo(folder / "pipe")
        self._open = contextlib.ExitStack()
        self._pipe = self._open.enter_context((folder / "pipe").open("r+b", buffering=0))
        self._pipe.write(bytes(_BYTES))
        self._process = subprocess.Popen(
            ["sleep", "3600"], start_new_session=True, stdout=subprocess.DEVNULL
        )
        self._open.callback(self._end)
        self._servers = [
            self._server(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            self._server(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            self._server(socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "unix")),
            self._server(socket.AF_UNIX, socket.SOCK_DGRAM, str(folder / "datagrams")),
        ]
        self._terminal, theirs = pty.openpty()
        for descriptor in (self._terminal, theirs):
            self._open.callback(os.close, descriptor)
        self.names: dict[str, object] = {
            "HERE": str(folder),
            "PID": self._process.pid,
            "TCP": self._servers[0].getsockname()[1],
            "UDP": self._servers[1].getsockname()[1],
            "UNIX": self._servers[2].getsockname(),
            "DATAGRAMS": self._servers[3].getsockname(),
            "TERMINAL": os.ttyname(theirs),
            "PIPE": str(folder / "pipe"),
        }
        self._before = self.state()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def changes(self) -> list[str]:
        """Return what differs from the beginning, or from the last call."""
        before, self._before = self._before, self.state()
        names = sorted({*before, *self._before})
        return [name for name in names if before.get(name) != self._before.get(name)]

    def is_changed_soon(self) -> bool:
        """Wait until something changes; return `False` after a minute."""
        return soon(lambda: bool(self.changes()))

    def state(self) -> dict[str, object]:
        """Return what there is, by names."""
        state: dict[str, object] = {
            f"file {path.relative_to(self.folder)}": _file(path)
            for path in [self.folder, *self.folder.rglob("*")]
        }
        for server in self._servers:
            state[f"socket {server.getsockname()}"] = _arrived(server)
        state["process"] = _process(self._process)
        state["terminal"] = (
            termios.tcgetattr(self._terminal),
            os.get_terminal_size(self._terminal),
        )
        return state

    @property
    def runs(self) -> int:
        """How often a program read a byte of the pipe."""
        left = fcntl.ioctl(self._pipe, termios.FIONREAD, bytes(4))
        return _BYTES - int.from_bytes(left, sys.byteorder)

    def _server(self, family: int, kind: int, address: object) -> socket.socket:
        server = self._open.enter_context(socket.socket(family, kind))
        server.bind(address)
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.setblocking(False)
        return server

    def _end(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def soon(condition: Callable[[], bool]) -> bool:
    """Wait for a condition; return `False` after a minute."""
    deadline = time.monotonic() + 60
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds


def marked(mark: str) -> Iterator[psutil.Process]:
    """Yield the processes that have a word among their variables."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if mark in Path(f"/proc/{process.pid}/environ").read_text(errors="replace"):
                yield process


def _file(path: Path) -> object:
    status = path.lstat()
    seen = [getattr(status, f"st_{name}") for name in _STATUS]
    if path.is_symlink():
        return *seen, path.readlink()
    extra = [(name, os.getxattr(path, name)) for name in os.listxattr(path)]
    return *seen, extra, path.read_bytes() if path.is_file() else b""


_STATUS = ("mode", "uid", "gid", "ino", "nlink", "size", "mtime_ns", "ctime_ns")


def _arrived(server: socket.socket) -> int:
    arrived = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            if server.type == socket.SOCK_STREAM:
                server.accept()[0].close()
            else:
                server.recv(100)
            arrived += 1
    return arrived


def _process(process: subprocess.Popen[bytes]) -> object:
    if process.poll() is not None:
        return process.returncode
    seen = psutil.Process(process.pid)
    is_stopped = seen.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    scheduling = (os.sched_getscheduler(seen.pid), os.sched_getaffinity(seen.pid))
    return is_stopped, seen.nice(), seen.ionice(), *scheduling, seen.rlimit(psutil.RLIMIT_NOFILE)
