"""Restore state of the operating system and of Python's libraries for this process.

None of it influences the results of a file's code, so it need not be applied again with the file:
resource limits, the file mode mask, priority, identity, time zone, and settings of `threading`,
`socket`, `multiprocessing`, `faulthandler` and `sys.monitoring`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

if sys.platform != "win32":
    import resource

_TOOLS = range(6)
"""Ids of tools in `sys.monitoring`."""


class System:
    """The state at the creation of this object.

    `restore` returns descriptions of state that cannot be restored.
    """

    def __init__(self) -> None:
        self._limits = _limits()
        self._mask = os.umask(0o022)
        os.umask(self._mask)
        self._priority = _priority()
        self._identity = _identity()
        self._stack = threading.stack_size()

    def restore_limits(self) -> list[str]:
        """Restore resource limits; call this before anything that needs memory or descriptors."""
        lost: list[str] = []
        if sys.platform == "win32":
            return lost
        for number, limit in self._limits.items():
            if resource.getrlimit(number) != limit:
                try:
                    resource.setrlimit(number, limit)
                except (OSError, ValueError):
                    lost.append("lowered a resource limit")
        return lost

    def restore(self) -> list[str]:
        """Restore everything else."""
        lost: list[str] = []
        os.umask(self._mask)
        if _priority() != self._priority:
            try:
                os.setpriority(os.PRIO_PROCESS, 0, self._priority)
            except OSError:
                lost.append("lowered the priority of its process")
        if _identity() != self._identity:
            lost.append("changed the user of its process")
        threading.settrace(None)
        threading.setprofile(None)
        threading.stack_size(self._stack)
        if hasattr(time, "tzset"):
            time.tzset()
        if (socket := sys.modules.get("socket")) is not None:
            socket.setdefaulttimeout(None)
        if (faults := sys.modules.get("faulthandler")) is not None:
            faults.cancel_dump_traceback_later()
        if (processes := sys.modules.get("multiprocessing")) is not None:
            with contextlib.suppress(Exception):
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
        return lost


def _limits() -> dict[int, tuple[int, int]]:
    if sys.platform == "win32":
        return {}
    numbers = {n for name, n in vars(resource).items() if name.startswith("RLIMIT_")}
    return {number: resource.getrlimit(number) for number in numbers}


def _priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else 0


def _identity() -> tuple[object, ...]:
    if sys.platform == "win32":
        return ()
    return os.getuid(), os.geteuid(), os.getgid(), os.getegid()
