"""The table of measured times: asks workers for them, and adds them to a dataset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from jaxsight.dataset import beside
from jaxsight.dataset.program import Record
from jaxsight.dataset.schema import TIMINGS, problem
from jaxsight.dataset.tables import again
from jaxsight.dataset.tables.manifest import Manifest
from jaxsight.dataset.tasks.workers import TaskWorkers
from jaxsight.measuring import machine

SECONDS = 2.0
"""Most time of timed runs of a direction, a choice: most medians of rows are known to 1 % by then
on a quiet machine, and 100 rows take about 10 minutes."""

_HANG = 120.0
"""Seconds after which a direction hangs, without those of its timed runs, a choice: JAX starts in
up to 10 s, and a program of a dataset takes about 1 s and runs twice before the timed runs."""

_ORIGIN = ("processor", "cores", "versions")
"""Columns of a measurement that takes the place of an earlier one with the same values."""


def measure(
    rows: Sequence[Record], python: str, seconds: float, on_wait: Callable[[], None]
) -> Iterator[Record]:
    """Measure rows with the user's Python, and yield a record for each direction.

    It is that of the table, or has `rejected`: why the direction was not measured. Its program runs
    in a worker that may have no effects, has limits of time and memory, and may die.
    Nothing else is measured on this machine meanwhile.

    Args:
        rows: whole rows.
        python: an interpreter that has JAX.
        seconds: the most time of timed runs of a direction.
        on_wait: called if another measurement has to be waited for.
    """
    processor = machine.processor() or None
    with TaskWorkers(python, seconds=_HANG + 2 * seconds) as workers:
        for row in rows:
            known = {**beside.of_row(row), "processor": processor}
            for direction in row["directions"]:
                try:
                    program = again.program(row)
                except ValueError:
                    yield {"rejected": "damaged arguments"}
                    continue
                request = {
                    "action": "time",
                    "program": program,
                    "direction": direction,
                    "seconds": seconds,
                }
                with machine.alone(on_wait):
                    answer = workers.ask(request, x64=row["x64"])
                if "rejected" in answer:
                    yield {"rejected": str(answer["rejected"])}
                    continue
                timed = answer.get("time")
                record = {**timed, **known} if isinstance(timed, dict) else {}
                # The program can write to whatever its process can.
                is_valid = not problem(record, TIMINGS) and record["direction"] == direction
                yield record if is_valid else {"rejected": "invalid answer"}


def add(out: Path, described: Manifest, measured: Sequence[Record]) -> Manifest:
    """Add measurements to a dataset, write its card, and return its manifest.

    They take the place of earlier ones of the same row and direction, by the same processor, number
    of cores and versions.

    Raises:
        UnreadableFile: a file cannot be read.
        MissingLibrary: the format requires pyarrow.
        OSError: the folder cannot be written.
    """
    return beside.add(out, described, "timings", measured, _origin)


def _origin(record: Record) -> str:
    return json.dumps([record[name] for name in _ORIGIN], sort_keys=True)
