"""Makes one shard. What it contains depends on its task alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from jaxsight_dataset.making.worker_process import WorkerDied, WorkerProcess
from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import is_fine

ShardKind = Literal["mine", "assume", "survey", "rows"]


@dataclass(frozen=True, slots=True)
class ShardTask:
    """What a shard is made of.

    Attributes:
        kind: `mine`, `survey` or `rows`; the module `assuming` of the terminal makes `assume`.
        shard: its number among those of its kind.
        sources: what each of its programs is made of: `{"spec": …, "number": …}` for a generated
            one, `{"program": …}` for a mined one, `{"doctest": …}`, `{"trace": …}` or
            `{"harnesses": …}` where programs are to be mined, `{"package": …}` where inputs are to
            be assumed.
        targets: devices that are described in rows.
        x64: whether JAX has 64-bit types.
        is_foreign: whether others wrote the programs, which may have no effects then.
    """

    kind: ShardKind
    shard: int
    sources: tuple[Record, ...]
    targets: tuple[str, ...] = ()
    x64: bool = True
    is_foreign: bool = False

    @property
    def name(self) -> str:
        """The name of the file with its records."""
        return f"{self.kind}-{self.shard:05}.jsonl"


def make(task: ShardTask, python: str, on_program: Callable[[], None]) -> list[Record]:
    """Return the records of a shard, one for each program.

    A program that kills its worker, hangs or uses up memory is a record with that cause.

    Args:
        task: what to make.
        python: an interpreter that has JAX.
        on_program: called after each program.
    """
    records: list[Record] = []
    with (
        WorkerProcess(python, x64=task.x64, is_foreign=task.is_foreign) as first,
        WorkerProcess(python, x64=task.x64, other_path=True, is_foreign=task.is_foreign) as second,
    ):
        for source in task.sources:
            if task.kind == "rows":
                records.append(_row(first, second, {**source, "targets": task.targets}))
            else:
                records.append(_asked(first, {"action": task.kind, **source}))
            on_program()
    return records


def _asked(worker: WorkerProcess, request: Record) -> Record:
    try:
        return worker.ask(request)
    except WorkerDied as died:
        return {"rejected": died.cause, "message": str(died)}


def _row(describer: WorkerProcess, checker: WorkerProcess, source: Record) -> Record:
    """Return a row that two processes agree about, or what they disagree about."""
    described = _asked(describer, {"action": "describe", **source})
    if "rejected" in described:
        return described
    row = {**described["row"], "split": source["split"]}
    request = {
        "action": "check",
        "program": described["program"],
        "digest": row["canonical_digest"],
        "stablehlo": row["stablehlo"],
        "hlo": row["hlo"],
        "results": row.pop("_results"),
    }
    checked = _asked(checker, request)
    checks = checked.get(
        "checks", {"eager": f"{checked.get('rejected')}: {checked.get('message')}"}
    )
    row["validation"] |= checks
    problems = {name: text for name, text in row["validation"].items() if not is_fine(text)}
    row["test_success"] = not problems
    return {"row": row} if not problems else {"disagreement": row}
