"""The machine while it measures: one measurement at a time, and what else it does.

What a system does not tell is unknown, and never an error.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from jaxsight.files import reading
from jaxsight.files.locks import try_lock

_POLL = 0.05
"""Seconds between attempts to lock, a choice: a measurement takes seconds."""
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_STAT = Path("/proc/stat")
_CPUINFO = Path("/proc/cpuinfo")
_LIMIT = 1 << 20
"""Bytes that are read of such a file; `/proc/cpuinfo` of 512 cores has 800,000."""


@contextlib.contextmanager
def alone(on_wait: Callable[[], None]) -> Iterator[float]:
    """Wait until no other measurement of this user runs on this machine; then keep others waiting.

    The lock goes with the process, however it ends. Where no file can be locked, nothing waits.

    Args:
        on_wait: called once if there is another measurement.

    Yields:
        The seconds that it waited.
    """
    begin = time.monotonic()
    user = os.getuid() if hasattr(os, "getuid") else ""
    path = Path(tempfile.gettempdir(), f"jaxsight-measuring-{user}.lock")
    # Not through a link that somebody else may have put there.
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        yield 0.0
        return
    try:
        has_told = False
        while not try_lock(descriptor):
            if not has_told:
                on_wait()
                has_told = True
            time.sleep(_POLL)
        yield time.monotonic() - begin if has_told else 0.0
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class OtherWork:
    """What the rest of the machine does, from now on."""

    load: float
    """Processes that were ready to run, on average over the last minute; -1 if unknown."""
    _begin: float
    _busy: float | None
    _own: float

    @staticmethod
    def now() -> OtherWork:
        """Begin to watch."""
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else -1.0
        return OtherWork(load, time.monotonic(), _busy_seconds(), _own_seconds())

    def others(self) -> float:
        """Return how many cores other processes have kept busy since, on average; -1 if unknown."""
        busy, elapsed = _busy_seconds(), time.monotonic() - self._begin
        if busy is None or self._busy is None or elapsed <= 0:
            return -1.0
        return max(0.0, (busy - self._busy - (_own_seconds() - self._own)) / elapsed)


def cores() -> int:
    """Return how many CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """Return the model of the CPU, such as `AMD EPYC 7B13`; empty if unknown.

    Linux has it in `/proc/cpuinfo` for each core, but not for those of Arm (proc_cpuinfo(5)).
    """
    names = (line for line in (_read(_CPUINFO) or "").splitlines() if line.startswith("model name"))
    return next(names, "").partition(":")[2].strip() or platform.processor()


def governor() -> str:
    """Return the frequency governor of the CPU, such as `powersave`; empty if unknown."""
    return (_read(_GOVERNOR) or "").strip()


def clock_seconds() -> float:
    """Return the shortest difference of two readings of the clock."""
    readings = [time.perf_counter() for _ in range(1_000)]
    steps = (after - before for before, after in pairwise(readings))
    return min((step for step in steps if step > 0), default=0.0)


def page_faults() -> int:
    """Return how often a page of memory was new to this process; 0 if unknown."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _busy_seconds() -> float | None:
    """Return the seconds that all cores together have worked; `None` if unknown.

    The first line of `/proc/stat` is `cpu user nice system idle iowait irq softirq steal …`
    (proc_stat(5)), in ticks; `steal` is time that other machines on the same host took.
    """
    first = (_read(_STAT) or "").partition("\n")[0].split()
    if len(first) < 9 or first[0] != "cpu" or not hasattr(os, "sysconf"):
        return None
    user, nice, system, _, _, irq, softirq, steal = map(float, first[1:9])
    ticks: int = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + steal) / ticks


def _own_seconds() -> float:
    """Return the seconds that all threads of this process have worked."""
    return time.process_time()


def _read(path: Path) -> str | None:
    try:
        return reading.data(path, _LIMIT).decode("ascii", "replace")
    except OSError:
        return None
