"""Inputs from calls in programs, compared with those of a recorded run of the same program.

Each file is run once under `jaxsight record`, by its tests if it has some, and opened once without
that recording. A function is judged if it was called in the run: the types of its arguments must be
those of a recorded call.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.queries.documents import Subject
from jaxsight.queries.traces.located_answer import View
from jaxsight.recording import recorded_file
from jaxsight.session import Session
from jaxsight.wire.messages.replies import Traced
from tests.truth.measure import session

_TIME = 240
"""Seconds of a recorded run."""
_NAMES = frozenset({"variables", "rngs", "captured", "self"})
"""Arguments that one of both forms has alone, as that of a Linen module's method."""
_TYPE = re.compile(r"^\w+(?:<\w+>)?\[[^\]]*\]$")


@dataclass(frozen=True, slots=True)
class Compared:
    """The inputs of a function in a dry run, and those of a recorded run."""

    file: str
    function: str
    is_same: bool
    dry: tuple[tuple[str, str], ...]
    recorded: tuple[tuple[tuple[str, str], ...], ...]


async def measured(files: Sequence[Path], python: str) -> list[Compared]:
    """Compare the functions of files, one file after another."""
    found: list[Compared] = []
    for file in files:
        found += await _of_file(file, python)
    return found


async def _of_file(file: Path, python: str) -> list[Compared]:
    with tempfile.TemporaryDirectory(prefix="jaxsight-calls-") as name:
        top = _top(file)
        root = Path(os.path.realpath(name), top.name)
        await asyncio.to_thread(shutil.copytree, top, root, symlinks=False)
        own = root / file.relative_to(top)
        await asyncio.to_thread(_record, own, root, python)
        recorded = await _inputs(own, root, python, "recorded")
        shutil.rmtree(root / recorded_file.FOLDER, ignore_errors=True)
        seen = await _inputs(own, root, python, "program")
    return [
        Compared(str(file), function, any(_agree(dry, each) for each in recorded[function]), dry,
                 tuple(recorded[function]))
        for function, sets in seen.items()
        if function in recorded
        for dry in sets
    ]  # fmt: skip


def _top(file: Path) -> Path:
    """Return the folder that is copied: that above the packages around a file."""
    folder = file.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _record(file: Path, root: Path, python: str) -> None:
    """Run a file's tests, or the file, under `jaxsight record`."""
    test = file.with_name(f"{file.stem}_test.py")
    module = ".".join(file.relative_to(root).with_suffix("").parts)
    program = [python, "-m", f"{module}_test"] if test.exists() else [python, str(file)]
    command = [sys.executable, "-m", "jaxsight", "record", "--python", python, "--", *program]
    try:
        subprocess.run(command, cwd=root, timeout=_TIME, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return


async def _inputs(
    file: Path, root: Path, python: str, source: str
) -> dict[str, list[tuple[tuple[str, str], ...]]]:
    """Return the types of arguments by function, of each example set of a source."""
    found: dict[str, list[tuple[tuple[str, str], ...]]] = {}
    async with session(root, python) as running:
        running.open(str(file), await asyncio.to_thread(file.read_text))
        await running.settle_inputs(str(file))
        document = running.engine.documents.get(str(file))
        assert document is not None
        for subject in running.engine.documents.subjects(document):
            if subject.examples.source == source:
                views = [v async for v in _views(running, subject, str(file))]
                types = [tuple(_types(view)) for view in views]
                found[subject.name] = [each for each in types if each]
    return {name: sets for name, sets in found.items() if sets}


async def _views(running: Session, subject: Subject, path: str):  # type: ignore[no-untyped-def]
    for example_set in subject.examples.sets:
        running.choose_set(path, subject.name, example_set.name)
        document = running.engine.documents.get(path)
        assert document is not None
        view = await running.engine.traces.view(document, subject, None)
        if isinstance(view, View):
            yield view


def _types(view: View) -> Iterator[tuple[str, str]]:
    """Yield the arrays among the arguments of a traced function."""
    reply = view.answer.reply
    for name, text in reply.parameters if isinstance(reply, Traced) else ():
        if name not in _NAMES and _TYPE.match(text):
            yield name, text


def _agree(dry: Sequence[tuple[str, str]], recorded: Sequence[tuple[str, str]]) -> bool:
    types = dict(recorded)
    return all(types.get(name, text) == text for name, text in dry)
