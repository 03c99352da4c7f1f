"""Makes a dataset in a folder, and goes on where an earlier run ended.

First programs are surveyed, in the order of their numbers, until enough different ones are known;
then rows of these are made. Programs that are rejected then are replaced by later ones, so that the
table has as many rows as were asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from jaxsight.files import private, reading
from jaxsight_dataset.making.engines import ShardMaker
from jaxsight_dataset.making.selection import Selection
from jaxsight_dataset.making.shards import ShardKind, ShardTask
from jaxsight_dataset.program import Record
from jaxsight_dataset.spec import Spec

WORK = "work"
"""The folder of shards."""

_BATCH = 4
"""Shards that are surveyed at the same time, a choice: the cores of a small machine. More survey in
vain at the end; a number of its own keeps rows independent of the number of workers."""

_SMALLEST = 16
"""The least number of programs that are surveyed together: a worker must start for them."""

_FUNCTIONS, _PROGRAMS = 50, 100
"""Functions, and mined programs, of a shard: what is lost when a run is killed, minutes of work."""

_HARNESSES = 40
"""Parts of JAX's 5,486 harnesses: about 140 each, which is minutes of work."""


ASSUMED = "assumed-inputs"
"""The label of programs whose inputs jaxsight assumed: nobody wrote or made such a call."""


Report: TypeAlias = Callable[[str, int, int], None]
"""Takes the stage, how many of its programs are done, and how many there are (0 if unknown)."""


class CannotMake(Exception):
    """A dataset cannot be made; the text says why."""


@dataclass(slots=True)
class DatasetResult:
    """What was made.

    Attributes:
        rows: how many rows there are.
        surveyed: how many programs were surveyed.
        rejected: how many were no rows, by cause.
        disagreements: how many programs were run with results that differ.
        structures: how many different structures rows have at most.
        shards: the digest of each shard's records, by the name of its file.
    """

    rows: int = 0
    surveyed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    disagreements: int = 0
    structures: int = 0
    shards: dict[str, str] = field(default_factory=dict)

    def add(self, shard: str, digest: str, records: list[Record]) -> None:
        """Count the records of a shard of rows."""
        self.shards[shard] = digest
        for record in records:
            self.rows += "row" in record
            self.disagreements += "disagreement" in record
            if "rejected" in record:
                self.rejected[record["rejected"]] += 1

    def finish(self, selection: Selection) -> None:
        """Add what is known of all programs that were surveyed."""
        self.surveyed = selection.surveyed
        self.rejected += selection.rejected
        self.structures = selection.structures

    def record(self) -> Record:
        """Return this as JSON, the same for the same shards."""
        return {
            "rows": self.rows,
            "surveyed": self.surveyed,
            "rejected": dict(sorted(self.rejected.items())),
            "disagreements": self.disagreements,
            "structures": self.structures,
            "shards": dict(sorted(self.shards.items())),
        }


class Store:
    """The shards in a folder. A shard is written beside its place, and then renamed."""

    def __init__(self, out: Path, title: Record) -> None:
        """Open a folder.

        Args:
            out: a new or empty folder, or one with shards of the same `title`.
            title: what the shards are made of.

        Raises:
            CannotMake: the folder has shards of something else, or cannot be written.
        """
        self.folder = out / WORK
        self.digests: dict[str, str] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            known = self.folder / "title.json"
            text = json.dumps(title, sort_keys=True, indent=1) + "\n"
            if known.exists() and reading.text(known) != text:
                raise CannotMake(f"{out} has a dataset of another specification, seed or JAX")
            private.replace(known, text.encode(), 0o644)
        except OSError as error:
            raise CannotMake(f"cannot write {out}: {error}") from error

    def has(self, task: ShardTask) -> bool:
        """Return whether a shard is done."""
        return (self.folder / task.name).exists()

    def records(self, task: ShardTask) -> list[Record]:
        """Return the records of a shard that is done."""
        with reading.opened(self.folder / task.name) as file:
            data = file.read()
        self.digests[task.name] = hashlib.sha256(data).hexdigest()
        return [json.loads(line) for line in data.splitlines()]

    def add(self, task: ShardTask, records: list[Record]) -> None:
        """Store the records of a shard."""
        lines = [json.dumps(record, sort_keys=True) + "\n" for record in records]
        data = "".join(lines).encode()
        self.digests[task.name] = hashlib.sha256(data).hexdigest()
        private.replace(self.folder / task.name, data, 0o644)


def generate(spec: Spec, store: Store, engine: ShardMaker, report: Report) -> DatasetResult:
    """Make the rows of generated programs.

    Args:
        spec: what to generate.
        store: where shards are kept.
        engine: what makes shards.
        report: called with the stage, how many of its programs are done, and how many there are.

    Raises:
        CannotMake: the generator has too few programs that differ.
    """
    record, shards = spec.record(), itertools.count()
    surveyed = _surveyed(spec, store, engine)
    made, selection = DatasetResult(), Selection()
    used = 0
    while made.rows < spec.samples:
        missing = spec.samples - made.rows
        while len(selection.chosen) - used < missing:
            survey, records = next(surveyed)
            for source, found in zip(survey.sources, records, strict=True):
                selection.add(source["number"], found)
            report("surveyed", selection.surveyed, 0)
            # A choice: a specification that allows too few programs must not search for ever.
            if selection.surveyed > 100 * spec.samples + 1000:
                raise CannotMake(f"only {len(selection.chosen)} different programs were found")
        wave = selection.chosen[used : used + missing]
        used += missing
        report("rows", made.rows, spec.samples)
        tasks = []
        for start in range(0, len(wave), spec.shard_size):
            block = wave[start : start + spec.shard_size]
            sources = [{"spec": record, "number": at, "split": split} for at, split in block]
            tasks.append(ShardTask("rows", next(shards), tuple(sources), spec.targets))
        for task, records in _done(tasks, store, engine):
            made.add(task.name, store.digests[task.name], records)
            report("rows", made.rows, spec.samples)
    made.finish(selection)
    return made


def mine(
    packages: Sequence[str],
    project: Sequence[Record],
    read: Callable[[str, str], list[Record]],
    assumed: int,
    targets: Sequence[str],
    store: Store,
    engine: ShardMaker,
    report: Report,
) -> DatasetResult:
    """Make the rows of functions with example inputs, and of calls that docstrings make.

    For `jax`, also of the calls with which JAX tests its primitives.

    Args:
        packages: the names of installed packages.
        project: the sources of tasks that mine a project's own functions.
        read: returns the sources of an installed module's functions with example inputs, from its
            name and its file.
        assumed: the most functions of each package that are called with assumed inputs; unless it
            is 0, the engine has to make shards of the kind `assume`, too.
        targets: devices that are described in rows.
        store: where shards are kept.
        engine: what makes shards.
        report: called with the stage, how many of its programs are done, and how many there are.

    Raises:
        CannotMake: a package is not installed.
    """
    made, selection = DatasetResult(), Selection()
    programs: list[Record] = []
    unwritten = 0
    tasks = _mining(packages, project, read, assumed, store, engine, report)
    functions = sum(len(task.sources) for task in tasks)
    done = 0
    for _, records in _done(tasks, store, engine):
        for record in records:
            for program in record.get("programs", []):
                programs.append({**program, "number": len(programs)})
            causes = record.get("rejected_calls", {})
            causes |= {record["rejected"]: 1} if "rejected" in record else {}
            made.rejected.update(causes)
            unwritten += sum(causes.values())
        done += len(records)
        report("functions", done, functions)
    surveys = _tasks("survey", [{"program": each} for each in programs])
    for task, records in _done(surveys, store, engine):
        for source, record in zip(task.sources, records, strict=True):
            selection.add(source["program"]["number"], record)
        report("surveyed", selection.surveyed, len(programs))
    chosen = [{"program": programs[number], "split": split} for number, split in selection.chosen]
    for task, records in _done(_tasks("rows", chosen, tuple(targets)), store, engine):
        made.add(task.name, store.digests[task.name], records)
        report("rows", made.rows, len(chosen))
    made.finish(selection)
    made.surveyed += unwritten
    return made


def _mining(
    packages: Sequence[str],
    project: Sequence[Record],
    read: Callable[[str, str], list[Record]],
    assumed: int,
    store: Store,
    engine: ShardMaker,
    report: Report,
) -> list[ShardTask]:
    """Return the tasks that mine packages and a project.

    Raises:
        CannotMake: a package is not installed.
    """
    sources = list(project)
    listing = ShardTask("mine", 0, tuple({"package": package} for package in packages), x64=False)
    ((_, records),) = _done([listing], store, engine)
    assuming: list[ShardTask] = []
    for package, record in zip(packages, records, strict=True):
        if "modules" not in record:
            raise CannotMake(record["message"])
        files = {module: about["file"] for module, about in record["modules"].items()}
        source = {"package": package, "modules": files, "most": assumed}
        assuming.append(ShardTask("assume", len(assuming), (source,), x64=False))
        for module, about in record["modules"].items():
            sources += [{"module": module, "doctest": name} for name in about["doctests"]]
            sources += read(module, about["file"])
        if package == "jax":
            sources += [{"harnesses": [start, _HARNESSES]} for start in range(_HARNESSES)]
    for done, (_, (record,)) in enumerate(_done(assuming if assumed else [], store, engine)):
        labelled = [{"trace": trace, "labels": [ASSUMED]} for trace in record["traces"]]
        sources += labelled
        report("packages", done + 1, len(packages))
    return _tasks("mine", sources, first=1)


def _tasks(
    kind: ShardKind, sources: Sequence[Record], targets: tuple[str, ...] = (), first: int = 0
) -> list[ShardTask]:
    """Return the tasks of mined programs, or of functions."""
    size = _FUNCTIONS if kind == "mine" else _PROGRAMS
    blocks = [tuple(sources[start : start + size]) for start in range(0, len(sources), size)]
    return [
        ShardTask(kind, shard, block, targets, x64=False)
        for shard, block in enumerate(blocks, start=first)
    ]


def _surveyed(
    spec: Spec, store: Store, engine: ShardMaker
) -> Iterator[tuple[ShardTask, list[Record]]]:
    """Yield shards of surveyed programs without end."""
    record = spec.record()
    size = min(spec.shard_size, max(spec.samples + spec.samples // 4, _SMALLEST))
    batch = min(_BATCH, -(-spec.samples // size))
    for first in itertools.count(0, batch):
        tasks = []
        for shard in range(first, first + batch):
            numbers = range(shard * size, (shard + 1) * size)
            sources = tuple({"spec": record, "number": number} for number in numbers)
            tasks.append(ShardTask("survey", shard, sources))
        yield from _done(tasks, store, engine)


def _done(
    tasks: Sequence[ShardTask], store: Store, engine: ShardMaker
) -> Iterator[tuple[ShardTask, list[Record]]]:
    """Yield tasks with their records, in order; those that are not in the store are made."""
    missing = [task for task in tasks if not store.has(task)]
    with contextlib.closing(engine.run(missing)) as making:
        for task in tasks:
            if task not in missing:
                yield task, store.records(task)
                continue
            _, records = next(making)
            store.add(task, records)
            yield task, records
