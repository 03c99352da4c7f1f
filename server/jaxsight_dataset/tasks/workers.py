"""Workers that run programs of a dataset: they may have no effects, and may die."""

from __future__ import annotations

from typing import Self

from jaxsight_dataset.making.worker_process import WorkerDied, WorkerProcess
from jaxsight_dataset.program import Record

_SECONDS = 60.0
"""After which a program hangs, a choice: one of a dataset takes about 1 s, and JAX starts first, in
up to 10 s on a busy machine."""

_MEMORY = 4 << 30
"""Bytes that a worker may use, a choice: JAX takes 0.5 GiB, programs of a dataset less."""


class TaskWorkers:
    """Workers with 64-bit types and without, started when asked, and again after they died.

    They are refused files, processes and the network, as those of `dataset verify --sample`.
    """

    def __init__(self, python: str, seconds: float = _SECONDS, memory: int = _MEMORY) -> None:
        """Prepare workers.

        Args:
            python: an interpreter that has JAX.
            seconds: after which a request is a hang.
            memory: bytes that a worker and its children may use.
        """
        self._python = python
        self._seconds = seconds
        self._memory = memory
        self._asked = 0
        self._running: dict[bool, WorkerProcess] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._running.values():
            worker.end()

    def ask(self, request: Record, *, x64: bool) -> Record:
        """Return the answer to a request; `rejected` says why there is none.

        Args:
            request: as `worker` takes it.
            x64: whether JAX has 64-bit types.
        """
        if x64 not in self._running:
            self._running[x64] = WorkerProcess(
                self._python,
                x64=x64,
                is_foreign=True,
                seconds=self._seconds,
                memory=self._memory,
            )
        self._asked += 1
        try:
            answer = self._running[x64].ask({**request, "serial": self._asked})
        except WorkerDied as died:
            return {"rejected": died.cause, "message": str(died)}
        if answer.pop("serial", None) != self._asked:  # a program wrote among the answers
            self._running[x64].end()
            return {"rejected": "crash", "message": "it wrote something else than an answer"}
        return answer

    def versions(self) -> dict[str, str]:
        """Return the versions of what programs run with; empty if that cannot be asked."""
        answer = self.ask({"action": "versions"}, x64=True)
        found: dict[str, str] = answer.get("versions", {})
        return found
