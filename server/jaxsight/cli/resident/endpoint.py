"""Where clients find the server of their version, Python, environment variables and limits.

That is a socket in a folder of the user's alone, whose name is a digest of all four. This module
is imported by each command before anything else, so it uses only a few modules of Python.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import struct
import sys
from pathlib import Path

from jaxsight import __version__

VARIABLE = "JAXSIGHT_SERVER"
"""`no` in the environment: commands neither start a server nor ask one."""

ENDING = ".sock"

IDLE = 300.0
"""Seconds without a command after which a server ends, a choice: people and agents come back within
minutes, and it has half a GiB with a tracer and a compiler."""

_LONGEST = 100
"""Bytes of a socket's path, as `sockaddr_un.sun_path` has 104 on macOS and 108 on Linux."""

OF_TERMINALS = frozenset(
    {
        *("_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR"),
        *("FORCE_COLOR", "WINDOWID", "TERM_SESSION_ID", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY"),
    }
)
"""Variables that differ from terminal to terminal, and that programs do not compute with."""

_OF_SESSIONS = OF_TERMINALS | {
    *("TMUX", "TMUX_PANE", "STY", "WINDOW", "GPG_TTY", "SSH_AUTH_SOCK", "SSH_AGENT_PID"),
    *("XDG_SESSION_ID", "XDG_VTNR", "DESKTOP_STARTUP_ID", "INVOCATION_ID", "JOURNAL_STREAM"),
    *("TERM_PROGRAM", "TERM_PROGRAM_VERSION", "VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID"),
    *("ITERM_SESSION_ID", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE"),
}
"""These, and the names of a window, a login or an agent: with others, the same server answers. It
takes their values from each command."""


def variables_of_session() -> dict[str, str]:
    """Return the environment variables that a command brings along."""
    return {name: os.environ[name] for name in _OF_SESSIONS if name in os.environ}


def take_variables(variables: dict[str, str]) -> None:
    """Replace this process's variables of a terminal by those of a command."""
    for name in _OF_SESSIONS - variables.keys():
        os.environ.pop(name, None)
    os.environ.update(variables)


def folder() -> Path | None:
    """Return the folder of the sockets, which only the user may use; `None` if there is none."""
    chosen = (os.environ.get(name, "") for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME"))
    tops = (Path(top) for top in (*chosen, os.path.expanduser("~/.cache")))  # noqa: PTH111
    top = next((top for top in tops if top.is_absolute()), None)
    if top is None:
        return None
    place = top / "jaxsight" / "servers"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.lstat()
    except OSError:
        return None
    is_private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    return place if is_private and status.st_uid == os.geteuid() else None


def socket_path() -> Path | None:
    """Return the path of the socket for this process's environment, if there may be one."""
    place = folder()
    if place is None:
        return None
    environment = sorted(item for item in os.environ.items() if item[0] not in _OF_SESSIONS)
    parts = (
        *(__version__, __file__, sys.executable, sys.version, sys.flags.isolated),
        *(os.uname().nodename, environment),  # home folders are shared between machines
        _limits(),
    )
    name = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    path = place / f"{name}{ENDING}"
    return path if len(os.fsencode(path)) <= _LONGEST else None


def _limits() -> tuple[object, ...]:
    """Return what a server would have of the command that starts it, and pass on to processes."""
    import resource  # not on Windows

    names = sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))
    limits = [(name, resource.getrlimit(getattr(resource, name))) for name in names]
    scheduled: tuple[object, ...] = ()
    if sys.platform == "linux":
        scheduled = sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0)
    groups = os.getegid(), sorted(os.getgroups())
    return limits, os.getpriority(os.PRIO_PROCESS, 0), *scheduled, *groups


def is_own_peer(connection: socket.socket) -> bool:
    """Return whether the process at the other end of a socket belongs to this user."""
    if sys.platform == "linux":
        format = "3i"  # struct ucred: pid, uid, gid (unix(7))
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(format))
        _, user, _ = struct.unpack(format, data)
    elif sys.platform == "darwin":
        # struct xucred: version, uid, …, by SOL_LOCAL and LOCAL_PEERCRED (sys/un.h)
        _, user = struct.unpack_from("2I", connection.getsockopt(0, 1, 76))
    else:
        return False
    return bool(user == os.geteuid())
