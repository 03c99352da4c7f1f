"""Run jaxsight with what Python has on Windows: `python on_windows.py COMMAND…`.

Windows is simulated for jaxsight's own modules alone: `os.name` and `sys.platform` say so, and
functions, signals and modules that are missing there are missing. The standard library and other
packages are imported before and keep theirs. Processes that are started are not simulated.
"""

from __future__ import annotations

import asyncio.subprocess
import importlib
import multiprocessing
import os
import pathlib
import select
import signal
import sys
import tempfile
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import jax.export
import lsprotocol.types
import markdown_it
import platformdirs
import pygls.lsp.server
import pytest
import rich.traceback
import rich_click.rich_help_rendering

LOADED = (
    asyncio,
    jax,
    lsprotocol,
    markdown_it,
    multiprocessing,
    pathlib,
    platformdirs,
    pygls,
    pytest,
)
LOADED += (rich, rich_click, tempfile)

# Of the documentation of these modules: what is marked "Availability: Unix".
MISSING: dict[ModuleType, str] = {
    os: """fork forkpty getuid geteuid getgid getegid getgroups setsid setpgid getpgid killpg chown
        fchown mkfifo uname getloadavg sched_getaffinity nice O_NONBLOCK O_CLOEXEC O_NOFOLLOW
        O_DIRECTORY WNOHANG WIFSIGNALED WTERMSIG sysconf pread pwrite posix_spawn openpty wait3 wait4
        pipe2 register_at_fork memfd_create getxattr setxattr""",
    signal: """SIGKILL SIGHUP SIGCHLD SIGCONT SIGSTOP SIGPIPE SIGALRM SIGUSR1 SIGUSR2 SIGQUIT SIGTSTP
        pthread_sigmask SIG_BLOCK SIG_SETMASK setitimer getitimer ITIMER_REAL alarm""",
    select: "poll epoll PIPE_BUF POLLIN POLLOUT",
}
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}


class NotThere:
    """Finds none of the modules that Windows lacks."""

    def find_spec(self, name: str, _: Sequence[str] | None, __: object = None) -> ModuleSpec | None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def kill(process: int, number: int) -> None:
    raise AssertionError(f"os.kill({process}, {number}) ends or interrupts a process on Windows")


def simulate() -> None:
    for system in MISSING:
        others = types.ModuleType(system.__name__)
        vars(others).update(vars(system))
        for module in [*sys.modules.values()]:
            for name, value in [*getattr(module, "__dict__", {}).items()]:
                if value is system and module is not sys.modules["__main__"]:
                    setattr(module, name, others)
    for system, names in MISSING.items():
        for name in names.split():
            vars(system).pop(name, None)
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, NotThere())
    locking = types.ModuleType("msvcrt")
    vars(locking).update(LK_NBLCK=2, locking=lambda *_: None)
    sys.modules["msvcrt"] = locking
    os.kill, os.name, sys.platform = kill, "nt", "win32"


def import_all() -> int:
    """Import all modules of jaxsight but programs of the dataset; return their number."""
    import jaxsight

    package = pathlib.Path(jaxsight.__path__[0])
    for file in sorted(package.rglob("*.py")):
        name = ".".join(file.relative_to(package.parent).with_suffix("").parts)
        if not name.endswith((".__main__", ".cli.agents")):
            importlib.import_module(name.removesuffix(".__init__"))
    return len([name for name in sys.modules if name.startswith("jaxsight.")])


if __name__ == "__main__":
    simulate()
    if sys.argv[1:] == ["import"]:
        print(import_all())
    else:
        from jaxsight.__main__ import main

        main()
