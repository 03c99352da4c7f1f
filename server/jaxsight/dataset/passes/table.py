"""The table of passes: asks a worker for them, and adds them to a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jaxsight.dataset import beside
from jaxsight.dataset.making.worker_process import WorkerDied, WorkerProcess
from jaxsight.dataset.program import Record
from jaxsight.dataset.tables.manifest import Manifest

COLUMNS = (*beside.COLUMNS, "directions", "stablehlo", "backward_stablehlo")
"""What `count` reads of a row."""

_HANG = 60.0
"""Seconds after which a compile hangs, a choice: JAX starts in up to 10 s on a busy machine, and a
program of a dataset compiles in at most a few."""


def count(rows: Iterable[Record], python: str) -> Iterator[Record]:
    """Compile rows with the user's Python, and yield a record for each direction.

    It is that of the table, or has `rejected`: why there is none. StableHLO is compiled, and not
    run; a process that it crashes costs this direction.

    Args:
        rows: with `COLUMNS`.
        python: an interpreter that has JAX.
    """
    with WorkerProcess(python, seconds=_HANG) as worker:
        for row in rows:
            for direction in row["directions"]:
                name = "stablehlo" if direction == "forward" else "backward_stablehlo"
                try:
                    answer = worker.ask({"action": "passes", "stablehlo": row[name]})
                except WorkerDied as died:
                    answer = {"rejected": died.cause}
                if "rejected" in answer:
                    yield {"rejected": answer["rejected"]}
                else:
                    yield {**beside.of_row(row), "direction": direction, **answer}


def add(out: Path, described: Manifest, counted: Sequence[Record]) -> Manifest:
    """Add counts to a dataset, write its card, and return its manifest.

    They take the place of earlier ones of the same direction by the same version of jaxlib.

    Raises:
        UnreadableFile: a file cannot be read.
        MissingLibrary: the format requires pyarrow.
        OSError: the folder cannot be written.
    """
    return beside.add(
        out, described, "passes", counted, lambda record: record["versions"]["jaxlib"]
    )
