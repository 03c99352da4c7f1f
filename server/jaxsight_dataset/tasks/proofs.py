"""Proofs of pairs of programs, kept in the user's cache: questions are made again at no cost.

Only this process writes there: programs of a dataset run where no file can be written.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property

from jaxsight import __version__
from jaxsight.files import private
from jaxsight.files.cache_folder import CacheFolder
from jaxsight_dataset.program import Record
from jaxsight_dataset.tasks.workers import TaskWorkers

_LIMIT = 256 << 20
"""Bytes of all proofs, a choice: those of a row take about 3 KB, so that 80,000 rows fit."""

_LONGEST = 16 << 20
"""Bytes of the proofs of a row, a choice: four times the longest module of a dataset, and more."""


class PairProofs:
    """Asks workers which pairs are proved, once for each program, its changes and versions."""

    def __init__(self, workers: TaskWorkers) -> None:
        self._workers = workers
        folder = private.cache_folder("dataset-pairs", f"v{__version__}")
        self._kept = CacheFolder(folder, f"pairs {__version__}", ".pairs", _LIMIT)

    @cached_property
    def _versions(self) -> dict[str, str]:
        return self._workers.versions()

    def of(self, request: Record, *, x64: bool) -> list[Record]:
        """Return the answer `proved` to a request `compare`; empty if there is none.

        A program that ends its process, or takes too long, is tried again each time.
        """
        asked = json.dumps([self._versions, x64, request], sort_keys=True)
        name = hashlib.blake2b(asked.encode(), digest_size=20).hexdigest()
        content = self._kept.load(name, _LONGEST)
        if content is not None:
            kept: list[Record] = json.loads(content)
            return kept
        proved: list[Record] | None = self._workers.ask(request, x64=x64).get("proved")
        if proved is not None and self._versions:
            self._kept.store(name, json.dumps(proved).encode())
        return proved or []
