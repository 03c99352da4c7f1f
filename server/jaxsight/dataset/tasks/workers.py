"""Workers that run programs of a dataset, or of a model: they may have no effects, and may die."""

from __future__ import annotations

from typing import Self

from jaxsight.dataset.making.worker_process import WorkerDied, WorkerProcess
from jaxsight.dataset.program import Record

_SECONDS = 30.0
"""After which a program hangs, a choice: one of a dataset takes about 1 s in all."""

_MEMORY = 4 << 30
"""Bytes that a worker may use, a choice: JAX takes 0.5 GiB, programs of a dataset less."""


class TaskWorkers:
    """Workers by what they need, started when they are asked, and again after they died.

    They are refused files, processes and the network, as those of `dataset verify --sample`.
    """

    def __init__(self, python: str) -> None:
        """Prepare workers with an interpreter that has JAX."""
        self._python = python
        self._running: dict[tuple[str, bool, bool], WorkerProcess] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._running.values():
            worker.end()

    def ask(
        self, request: Record, *, x64: bool, other_path: bool = False, purpose: str = ""
    ) -> Record:
        """Return the answer to a request; `rejected` says why there is none.

        Args:
            request: as `rows.worker` takes it.
            x64: whether JAX has 64-bit types.
            other_path: whether XLA takes another code path than it does by default.
            purpose: workers of another purpose are other processes.
        """
        key = purpose, x64, other_path
        if key not in self._running:
            self._running[key] = WorkerProcess(
                self._python,
                x64=x64,
                other_path=other_path,
                is_foreign=True,
                seconds=_SECONDS,
                memory=_MEMORY,
            )
        try:
            return self._running[key].ask(request)
        except WorkerDied as died:
            return {"rejected": died.cause, "message": str(died)}
