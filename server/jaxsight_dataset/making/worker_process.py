"""A worker process that is asked one question at a time, and may die of it.

It is confined: it may change nothing outside of a temporary folder of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import replace
from typing import Self

from jaxsight.workers.child import ChildProcess
from jaxsight.workers.compilation import environments
from jaxsight.workers.confinement import start as confinement
from jaxsight.workers.own_python import booted, with_packages
from jaxsight.workers.watchdog import guardian
from jaxsight_dataset.program import Record

_LONGEST = 512 << 20
"""Bytes of an answer: one row, with its results; those of the largest program have 8 MiB."""

_TUNABLES = "glibc.malloc.mxfast=0"
"""XLA frees much at once: without fast bins, malloc does not search them each time, which takes 4 %
of the time of compiling. Other C libraries ignore it."""

_PAUSE = 0.2
"""Seconds between looks at a worker's memory, a choice: with more, it may fill meanwhile."""


class WorkerDied(Exception):
    """The worker is gone; `cause` is `crash`, `hang` or `memory`."""

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


class WorkerProcess:
    """A worker, which is started when it is asked, and again after it died."""

    def __init__(
        self,
        python: str,
        *,
        x64: bool = True,
        other_path: bool = False,
        is_foreign: bool = False,
        seconds: float = 120.0,
        memory: int = 6 << 30,
    ) -> None:
        """Prepare a worker.

        Args:
            python: an interpreter that has JAX.
            x64: whether JAX has 64-bit types there.
            other_path: whether XLA takes another code path than it does by default.
            is_foreign: whether others wrote the programs, which are told then what they may not do.
            seconds: after which a question is a hang, a choice: programs compile in at most a few.
            memory: bytes that the worker and its children may use, a choice: two fit 16 GiB.
        """
        options = {"--other-path": other_path, "--foreign": is_foreign}
        chosen = [option for option, is_chosen in options.items() if is_chosen]
        self._own = with_packages(python, *booted("dataset"), *chosen)
        self._variables = {
            **self._own.environment,
            "JAX_ENABLE_X64": str(int(x64)),
            **environments.located(),
            "GLIBC_TUNABLES": _TUNABLES,
        }
        self._seconds = seconds
        self._memory = memory
        self._process: ChildProcess | None = None
        self._own_folder = contextlib.ExitStack()
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def ask(self, request: Record) -> Record:
        """Return the answer to a request.

        Raises:
            WorkerDied: the worker crashed, took too long, or used too much memory.
        """
        process = self._process or self._start()
        with contextlib.suppress(BrokenPipeError):
            line = memoryview(json.dumps(request).encode() + b"\n")
            while line:
                line = line[os.write(process.requests, line) :]
        try:
            answer = json.loads(self._line(process))
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            self.end()
            raise WorkerDied("crash", "it wrote something else than an answer")
        return answer

    def end(self) -> None:
        """Kill the worker and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        process.end()
        self._own_folder.close()
        self._unread = b""

    def _start(self) -> ChildProcess:
        variables = self._own_folder.enter_context(confinement.temporary(self._variables))
        command = confinement.confined(self._own.command)
        self._process = ChildProcess(replace(self._own, command=command, environment=variables))
        return self._process

    def _line(self, process: ChildProcess) -> bytes:
        deadline = time.monotonic() + self._seconds
        while b"\n" not in self._unread:
            if (data := process.read(_PAUSE)) is not None:
                if not data:
                    code = process.status()
                    self.end()
                    raise WorkerDied("crash", f"exit status {code}")
                self._unread += data
                if len(self._unread) > _LONGEST:
                    self.end()
                    raise WorkerDied("memory", f"an answer of more than {_LONGEST >> 20} MiB")
                continue
            if guardian.resident(process.tree) > self._memory:
                self.end()
                raise WorkerDied("memory", f"more than {self._memory >> 20} MiB")
            if time.monotonic() > deadline:
                self.end()
                raise WorkerDied("hang", f"more than {self._seconds:g} s")
        line, _, self._unread = self._unread.partition(b"\n")
        return line
