"""Makes shards of rewrite pairs: checks programs as `jaxsight check --fix` does, and keeps proofs.

Findings and fixes come from a `Session`; the rows of pairs from workers in the user's Python, which
trace, compile and run both forms once more.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable

from jaxsight.features.fixes.verifier import Fix
from jaxsight.rules.fixing.context import applied
from jaxsight_dataset.cli.fixing import program_fixes
from jaxsight_dataset.making import shards
from jaxsight_dataset.making.shards import ShardTask
from jaxsight_dataset.making.worker_process import WorkerDied, WorkerProcess
from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import PASSED, is_fine


def make(task: ShardTask, python: str, on_program: Callable[[], None]) -> list[Record]:
    """Return the records of a shard of any kind, one for each program."""
    if task.kind != "rewrites":
        return shards.make(task, python, on_program)
    return asyncio.run(_pairs(task, python, on_program))


async def _pairs(task: ShardTask, python: str, on_program: Callable[[], None]) -> list[Record]:
    records: list[Record] = []
    with (
        WorkerProcess(python, x64=task.x64) as first,
        WorkerProcess(python, x64=task.x64, other_path=True) as second,
    ):
        async with program_fixes(python) as known:
            for source in task.sources:
                program = source["program"]
                fixes = await known.of(f"program_{program['number']}", program["text"])
                records.append(
                    {"rejected": "check: hang"}
                    if fixes is None
                    else await asyncio.to_thread(_record, first, second, source, fixes)
                )
                on_program()
    return records


def _record(
    first: WorkerProcess, second: WorkerProcess, source: Record, fixes: list[Fix]
) -> Record:
    """Return the pair of the first fix that both workers confirm, or why there is none."""
    record: Record = {"rejected": "no proved fix"}
    for fix in fixes:
        record = _confirmed(first, second, source, fix)
        if "rewrite" in record:
            break
    return record


def _confirmed(first: WorkerProcess, second: WorkerProcess, source: Record, fix: Fix) -> Record:
    program = source["program"]
    code = fix.finding.code
    after = applied(program["text"], fix.edits)
    try:
        compared = first.ask({"action": "rewrite", "program": program, "after": after})
        if "rejected" in compared:
            return {"rejected": f"{code}: {compared['rejected']}", "message": compared["message"]}
        row = compared["rewrite"]
        checked = second.ask(
            {
                "action": "check",
                "program": {**program, "text": after},
                "digest": row["after_digest"],
                "stablehlo": row.pop("_stablehlo"),
                "hlo": row["hlo_after"],
                "results": row.pop("_results"),
            }
        )
    except WorkerDied as died:
        return {"rejected": f"{code}: {died.cause}", "message": str(died)}
    if "checks" not in checked:
        return {"rejected": f"{code}: {checked['rejected']}", "message": checked["message"]}
    row["validation"] |= {"fix": PASSED, **checked["checks"]}
    for name, outcome in checked["checks"].items():
        if not is_fine(outcome):
            return {"rejected": f"{code}: {name}", "message": outcome}
    was, now = program["text"].splitlines(keepends=True), after.splitlines(keepends=True)
    diff = difflib.unified_diff(was, now, "before", "after")
    return {
        "rewrite": {
            **row,
            "split": source["split"],
            "rule": code,
            "message": fix.finding.message,
            "title": fix.action,
            "is_safe": fix.safe,
            "diff": "".join(diff),
        }
    }
