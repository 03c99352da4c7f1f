"""Where shards are made: in processes of this machine, or on a Ray cluster.

An engine only schedules tasks. What comes of each does not depend on it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeAlias

from jaxsight_dataset.making.shards import ShardTask, make
from jaxsight_dataset.program import Record

_SURVEY = "survey"
"""Tasks whose programs are counted when they are done: rows are made at the same time."""

Make: TypeAlias = Callable[[ShardTask, str, Callable[[], None]], list[Record]]
"""Makes a shard, with a Python that has JAX; calls a function after each program."""


class ShardMaker(Protocol):
    """Makes shards."""

    def run(self, tasks: Iterable[ShardTask]) -> Generator[tuple[ShardTask, list[Record]]]:
        """Yield each task with its records, in the order of the tasks."""
        ...

    def end(self) -> None:
        """Give up what is not done."""
        ...


class Local:
    """Makes shards on this machine, in two worker processes for each job."""

    def __init__(
        self,
        python: str,
        jobs: int,
        on_program: Callable[[], None],
        make: Make = make,
    ) -> None:
        """Start nothing yet; `make` makes a shard."""
        self._make = make
        self._python = python
        self._jobs = jobs
        self._on_program = on_program
        self._is_ended = False
        self._threads = ThreadPoolExecutor(jobs)

    def run(self, tasks: Iterable[ShardTask]) -> Generator[tuple[ShardTask, list[Record]]]:
        """Yield each task with its records; at most two for each job are under way."""
        waiting: deque[tuple[ShardTask, Future[list[Record]]]] = deque()
        for task in tasks:
            step = partial(self._step, is_counted=task.kind != _SURVEY)
            waiting.append((task, self._threads.submit(self._make, task, self._python, step)))
            while len(waiting) >= 2 * self._jobs:
                first, future = waiting.popleft()
                yield first, future.result()
        for task, future in waiting:
            yield task, future.result()

    def end(self) -> None:
        """Give up shards that are under way: their workers end with the next program."""
        self._is_ended = True
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _step(self, *, is_counted: bool) -> None:
        if self._is_ended:
            raise InterruptedError
        if is_counted:
            self._on_program()


class Ray:
    """Makes shards on the Ray cluster that is there, or that Ray starts on this machine."""

    def __init__(self, python: str, jobs: int, on_program: Callable[[], None]) -> None:
        """Connect to the cluster.

        Raises:
            ImportError: Ray is not installed.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends them unless told not to
        import ray  # type: ignore[import-not-found]

        self._ray: Any = ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False)
        self._jobs = jobs
        self._on_program = on_program
        self._make = ray.remote(num_cpus=1)(_made)
        self._python = python

    def run(self, tasks: Iterable[ShardTask]) -> Generator[tuple[ShardTask, list[Record]]]:
        """Yield each task with its records."""
        waiting: deque[tuple[ShardTask, Any]] = deque()
        for task in tasks:
            waiting.append((task, self._make.remote(task, self._python)))
            while len(waiting) >= 2 * self._jobs:
                yield self._next(waiting)
        while waiting:
            yield self._next(waiting)

    def _next(self, waiting: deque[tuple[ShardTask, Any]]) -> tuple[ShardTask, list[Record]]:
        task, reference = waiting.popleft()
        records: list[Record] = self._ray.get(reference)
        for _ in records if task.kind != _SURVEY else ():
            self._on_program()
        return task, records

    def end(self) -> None:
        """Disconnect; tasks that are under way are cancelled."""
        self._ray.shutdown()


def _made(task: ShardTask, python: str) -> list[Record]:
    return make(task, python, lambda: None)
