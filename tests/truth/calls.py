"""Inputs from calls in programs, compared with those of a recorded run of the same program.

Each file is run once under observation, by its tests if it has some, and its programs are run once
without values. A function is judged if it was called in both: the types of the arrays that it is
called with in the dry run must be those of a recorded call.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from jaxsight.recording import recorded_file, running
from jaxsight.source.module import Module
from tests.truth.measure import session

_ALL = 10_000
"""Calls of a function that are kept of a recorded run."""
_TYPE = re.compile(r"(?P<name>\w+(?:, \w+)*): (?P<type>\w+(?:<\w+>)?\[[^\]]*\])")
_ARRAY = re.compile(r"\w+(?:<\w+>)?\[[^\]]*\]")

Types = Mapping[str, str]
"""The types of arrays by parameter."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The arrays that a function is called with in a dry run, and those of a recorded run."""

    file: str
    function: str
    dry: Types
    recorded: Sequence[Types]

    @property
    def is_same(self) -> bool:
        return any(
            all(types.get(name, text) == text for name, text in self.dry.items())
            for types in self.recorded
        )


def measured(files: Sequence[Path], python: str) -> list[Compared]:
    """Compare the functions of files, one file after another."""
    found: list[Compared] = []
    for file in files:
        found += _of_file(file, python)
    return found


def _of_file(file: Path, python: str) -> list[Compared]:
    with tempfile.TemporaryDirectory(prefix="jaxsight-calls-") as name:
        top = _top(file)
        root = Path(os.path.realpath(name), top.name)
        shutil.copytree(top, root)
        own = root / file.relative_to(top)
        recorded = _recorded(own, root, python)
        dry = asyncio.run(_dry(own, root, python)) if recorded else {}
    return [
        Compared(str(file), function, types, recorded[function])
        for function, calls in dry.items()
        if function in recorded
        for types in calls
    ]


def _top(file: Path) -> Path:
    """Return the folder that is copied: that above the packages around a file."""
    folder = file.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _recorded(file: Path, root: Path, python: str) -> dict[str, list[Types]]:
    """Run a file's tests, or the file, and return what its functions were called with."""
    test = file.with_name(f"{file.stem}_test.py")
    module = ".".join(file.relative_to(root).with_suffix("").parts)
    program = ["-m", f"{module}_test"] if test.exists() else [str(file)]
    variables = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(root)}
    with mock.patch.object(recorded_file, "SETS", _ALL):
        recording = running.record([python, *program], root, variables)
        functions = recorded_file.read(root)
    shutil.rmtree(root / recorded_file.FOLDER, ignore_errors=True)
    if recording.status:
        return {}  # it ended early
    return {
        name: [dict(_types(call.inputs)) for call in calls]
        for (path, name), calls in functions.items()
        if root / path == file
    }


def _types(inputs: str) -> Iterator[tuple[str, str]]:
    for line in inputs.splitlines():
        if match := _TYPE.fullmatch(line.strip()):
            for name in match["name"].split(", "):
                yield name, match["type"].replace(" ", "")


async def _dry(file: Path, root: Path, python: str) -> dict[str, list[Types]]:
    """Return what a file's functions are called with in dry runs of its programs."""
    found: dict[str, list[Types]] = {}
    async with session(root, python, examplesAssumed=False) as opened:
        text = await asyncio.to_thread(file.read_text)
        opened.open(str(file), text)
        document = await opened.engine.documents.read(str(file))
        assert document is not None
        await opened.engine.dry_runs.update(document)
        for _, function in Module.parse(text).functions:
            for call, _ in opened.engine.dry_runs.calls(str(file), function.qualname):
                types = {n: t for n, t in call.inputs if _ARRAY.fullmatch(t)}
                if types:
                    found.setdefault(function.qualname, []).append(types)
    return found
