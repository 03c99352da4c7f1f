"""Makes rows again from their programs, and compares them with what is stored."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxsight_dataset.making.shards import ShardTask, make
from jaxsight_dataset.program import Record, RowProgram
from jaxsight_dataset.schema import ROWS, problem
from jaxsight_dataset.tables.manifest import Manifest
from jaxsight_dataset.tables.verification import Verified

COLUMNS = (
    *("number", "source_code", "function", "arguments", "category", "template"),
    *("transformations", "directions", "tags", "provenance"),
)
"""What `program` reads of a row."""


def sample(out: Path, manifest: Manifest, count: int) -> list[Record]:
    """Return some rows of a dataset, the same ones each time, but those that the schema refuses.

    Raises:
        UnreadableFile: a file cannot be read.
        MissingLibrary: the format requires pyarrow.
    """
    known = [row.get("number", -1) for _, row in manifest.read_rows(out, "rows", ["number"])]
    chosen = set(random.Random(0).sample(known, min(count, len(known))))
    rows = (row for _, row in manifest.read_rows(out, "rows") if row.get("number") in chosen)
    return [row for row in rows if not problem(row, ROWS)]


def make_again(
    rows: Sequence[Record], python: str, verified: Verified, on_program: Callable[[], None]
) -> None:
    """Make rows again with the user's Python, in fresh processes, and note what differs.

    Their source is executed. It may be anybody's: it may not write files, start processes or use
    the network (see `worker.py`), has limits of time and memory, and sees an empty folder.
    With the same versions of JAX, NumPy and Python, all columns have to be the same. With others,
    all checks have to pass again.
    """
    for row in rows:
        targets = tuple(target["target"] for target in row["targets"])
        source = {"program": program(row), "split": row["split"]}
        task = ShardTask("rows", 0, (source,), targets, row["x64"], is_foreign=True)
        try:
            (record,) = make(task, python, on_program)
            difference = _difference(row, record)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # Its source can write to whatever its process can.
            difference = f"rejected: its process gave an invalid answer ({type(error).__name__})"
        verified.again += 1
        if difference:
            verified.add("again", f"row {row['number']}: {difference}")


def program(row: Record) -> Record:
    """Return the program of a row, as `Program.of_record` reads it."""
    return {
        "number": row["number"],
        "text": row["source_code"],
        "function": row["function"],
        "arguments": json.loads(row["arguments"]),
        "category": row["category"],
        "template": row["template"],
        "transformations": row["transformations"],
        "is_differentiable": "backward" in row["directions"],
        "labels": row["tags"],
        "provenance": row["provenance"],
    }


def bare_program(text: str, function: str, arguments: str) -> Record:
    """Return a program of which only that is known with which it is called."""
    return RowProgram(0, text, function, {}, "", "").record() | {"arguments": json.loads(arguments)}


def _difference(row: Record, record: Record) -> str:
    if "rejected" in record:
        return f"rejected: {record['rejected']}: {record['message']}"
    if "disagreement" in record:
        checks = record["disagreement"]["validation"]
        return f"checks failed: {json.dumps(checks)}"
    made = json.loads(json.dumps(record["row"]))
    if made["versions"] != row["versions"]:
        return ""
    names = [name for name in made if _pruned(made[name]) != _pruned(row[name])]
    return f"differs in {', '.join(names)}" if names else ""


def _pruned(value: object) -> object:
    """Return a value without fields that are null, which tables store and records leave out."""
    match value:
        case dict():
            return {name: _pruned(item) for name, item in value.items() if item is not None}
        case list():
            return [_pruned(item) for item in value]
    return value
