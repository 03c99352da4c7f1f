"""Finds inputs for functions of packages that have no example inputs, as an editor assumes them.

Inputs are proposed from names, annotations and the text of a function, and kept if it can be traced
with them: see `queries/proposals`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jaxsight.examples import choice
from jaxsight.examples.sets import ExampleSet
from jaxsight.features.proposals.assumed import worth_proposing
from jaxsight.files import reading
from jaxsight.projects.projects import Projects
from jaxsight.queries.documents import Document
from jaxsight.session import Session
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.source.definitions import Function
from jaxsight.source.module import ModuleChunk
from jaxsight.trust import Trust
from jaxsight_dataset.cli import mined_sources
from jaxsight_dataset.cli.mined_sources import SourceFolder
from jaxsight_dataset.making import shards
from jaxsight_dataset.making.shards import ShardTask
from jaxsight_dataset.mining.doctest_names import with_doctests
from jaxsight_dataset.program import Record

_SECONDS = 120.0
"""Seconds after which the proposals of a function are given up, a choice: a trace takes less,
but the first one imports the package."""

_SHARE = 3
"""Functions that are tried for each that is wanted, a choice: of 79 functions of libraries,
inputs of 45 were found (`tests/proposals/measured.md`); some packages have mostly classes."""


def make(task: ShardTask, python: str, on_program: Callable[[], None]) -> list[Record]:
    """Return the records of a shard of any kind; those of `assume` have `traces`."""
    if task.kind != "assume":
        return shards.make(task, python, on_program)
    records = []
    for source in task.sources:
        records.append({"traces": asyncio.run(_traces(source, python))})
        on_program()
    return records


async def _traces(source: Record, python: str) -> list[Record]:
    """Return calls of at most `source["most"]` functions of a package with assumed inputs."""
    files: dict[str, str] = source["modules"]
    folder = Path(files[source["package"]]).parent
    place = SourceFolder(folder, ExampleSettings(sizes={}, examples={}))
    traces: list[Record] = []
    async with _session_in(str(folder), python) as session:
        found: list[_Candidate] = []
        for module, file in files.items():
            found += await _candidates(session, module, file)
        waiting, most = iter(sorted(found, key=_Candidate.rank)), source["most"]
        for _ in range(_SHARE):
            batch = islice(waiting, most - len(traces))
            # Functions of a module one after another: the tracer keeps what it ran of it.
            for candidate in sorted(batch, key=lambda each: (each.module, each.rank())):
                assumed = await _assumed(session, candidate)
                if assumed is not None:
                    call = candidate.module, candidate.document.path
                    traces.append(mined_sources.record(*call, place, candidate.function, assumed))
                while not session.events.empty():  # which nobody shows
                    session.events.get_nowait()
    return traces


@asynccontextmanager
async def _session_in(folder: str, python: str) -> AsyncIterator[Session]:
    """Provide a session that runs the code of a folder, with the rights of the user."""
    hints = {"kernels": False, "barriers": False}
    session = Session(Projects(Trust(trusted=[folder], terminal=True)))
    try:
        session.configure([folder], {"python": python, "target": "cpu", "inlayHints": hints})
        yield session
    finally:
        await session.aclose()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A function without example inputs, in an open document."""

    module: str
    document: Document
    chunk: ModuleChunk
    function: Function

    def rank(self) -> str:
        """Return what functions are ordered by: no module comes first."""
        return hashlib.sha256(f"{self.module}:{self.function.qualname}".encode()).hexdigest()


async def _candidates(session: Session, module: str, file: str) -> list[_Candidate]:
    """Open a module, and return its public functions that use JAX and have no examples."""
    try:
        text = reading.source(file)
    except reading.UnreadableError:
        return []
    session.open(file, text, in_background=False)
    document = await session.engine.documents.read(file)
    assert document is not None
    subjects = session.engine.documents.subjects(document)
    called = set(with_doctests(text))
    return [
        _Candidate(module, document, chunk, function)
        for chunk, function in worth_proposing(document, subjects)
        if function.qualname not in called
        and not any(
            part.startswith("_") and part != "__call__" for part in function.qualname.split(".")
        )
    ]


async def _assumed(session: Session, candidate: _Candidate) -> ExampleSet | None:
    """Return the best inputs that a function can be traced with; None if none are found."""
    outcome = session.engine.proposals.outcome(
        candidate.document, candidate.chunk, candidate.function
    )
    try:
        tried = await asyncio.wait_for(outcome, _SECONDS)
    except TimeoutError:
        return None
    if tried is None or not tried.computes:
        return None
    chosen = choice.of(candidate.function, sizes={}, project=tried.guess.text)
    return next(iter(chosen.sets), None)
