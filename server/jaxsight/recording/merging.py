"""Merge what the processes of a run logged into the files of their projects."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from jaxsight.files.reading import is_marked
from jaxsight.recording import recorded_file
from jaxsight.recording.observing import log
from jaxsight.recording.recorded_file import Functions, RecordedCall, RecordedFileError
from jaxsight.text import units
from jaxsight.text.inert import clause, one_line

_MOST_ERRORS = 5
"""Errors of the observation that are printed: the first ones tell the cause."""

Unwritten = Mapping[tuple[str, str], tuple[tuple[str, str], ...]]
"""Arguments that have no form, with the reasons, by file and name of the function."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A run of a program."""

    status: int
    """Its exit status, as a shell reports it."""
    functions: Mapping[Path, Functions]
    """What was recorded in this run, by the root of a project."""
    unwritten: Mapping[Path, Unwritten] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


class Merger:
    """Merges what processes logged into the files of projects, again whenever there is more."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.functions: dict[Path, Functions] = {}
        self.unwritten: dict[Path, dict[tuple[str, str], tuple[tuple[str, str], ...]]] = {}
        self.problems: dict[str, None] = {}
        self.logged = log.Logged()
        """All that was logged."""
        self._folder = folder
        self._root = root
        self._size = 0
        self._earlier: dict[Path, Functions] = {}
        self._roots: dict[str, Path] = {}

    def merge(self) -> bool:
        """Merge what was logged since the last time; return whether there was anything."""
        if not self.read():
            return False
        self.write()
        return True

    def read(self) -> bool:
        """Read what was logged since the last time; return whether there was anything."""
        if (size := log.size(self._folder)) == self._size:
            return False
        self._size = size
        self.logged = log.read(self._folder)
        return True

    def write(self) -> None:
        """Write what was read into the files of projects."""
        found: dict[Path, list[tuple[tuple[str, str], RecordedCall]]] = defaultdict(list)
        today = date.today().isoformat()
        self.unwritten = {}
        logged = self.logged
        errors = list(logged.errors)[:_MOST_ERRORS]
        self.problems |= {f"internal error in a call of {error}": None for error in errors}
        for call in logged.calls:
            root = self._root_of(call.file)
            key = (self._root / call.file).relative_to(root).as_posix(), call.function
            if call.unwritten:
                self.unwritten.setdefault(root, {}).setdefault(key, call.unwritten)
            if call.text:
                recorded = RecordedCall(call.text, call.count, call.is_traced, today)
                found[root].append((key, recorded))
        for root, calls in found.items():
            functions = self.functions[root] = recorded_file.counted(calls)
            try:
                recorded_file.write(
                    root, recorded_file.merged(self._earlier_of(root), functions, root)
                )
            except OSError as error:
                path = recorded_file.path_in(root)
                self.problems[f"cannot write {path}: {error.strerror or error}"] = None

    def result(self, status: int) -> Recording:
        """Return the whole run, which ended with an exit status."""
        return Recording(status, self.functions, self.unwritten, tuple(self.problems))

    def _root_of(self, file: str) -> Path:
        """Return the root of the project that a file belongs to."""
        folder = (self._root / file).parent
        if (known := self._roots.get(str(folder))) is None:
            above = [folder, *folder.parents]
            known = next(filter(is_marked, above[: above.index(self._root)]), self._root)
            self._roots[str(folder)] = known
        return known

    def _earlier_of(self, root: Path) -> Functions:
        """Return what the file of a project had when this run began."""
        if root not in self._earlier:
            try:
                self._earlier[root] = recorded_file.read(root)
            except RecordedFileError as error:
                self._earlier[root] = {}
                path = recorded_file.path_in(root)
                self.problems[f"{path} was replaced: {error}"] = None
        return self._earlier[root]


# What a run recorded, as lines for people.

_WIDTH, _MOST_REASONS = 100, 10
"""Columns of a line, and lines with reasons: what fits in a terminal."""


def summary(recording: Recording, root: Path, limit: int) -> Iterator[str]:
    """Yield what was recorded, and what could not be."""
    if not any(recording.functions.values()):
        yield (
            f"recorded nothing: no function in {one_line(str(root))} was called with arrays of JAX"
        )
    for project, functions in recording.functions.items():
        path = recorded_file.path_in(project)
        relative = os.path.relpath(path)
        file = str(path) if relative.startswith(os.pardir) else relative
        unwritten = recording.unwritten.get(project, {})
        whole = {key: calls for key, calls in functions.items() if key not in unwritten}
        yield f"recorded {units.count(len(whole), 'function')} in {one_line(file)}"
        yield from listed(whole, limit)
        yield from _unwritten(unwritten)
    yield from map(one_line, recording.problems)


def listed(functions: Functions, limit: int) -> Iterator[str]:
    """Yield each function with its first inputs on one line."""
    for number, ((file, name), calls) in enumerate(functions.items()):
        if number == limit:
            yield f"  … and {len(functions) - limit} more"
            return
        inputs = ", ".join(calls[0].inputs.split("\n"))
        more = f" (and {len(calls) - 1} more)" if len(calls) > 1 else ""
        head = one_line(f"  {file}:{name}")
        yield f"{head}  {clause(inputs, max(_WIDTH - len(head) - len(more), 30))}{more}"


def _unwritten(unwritten: Unwritten) -> Iterator[str]:
    if unwritten:
        count = units.count(len(unwritten), "function")
        yield f"recorded in part, as arguments have no form as example inputs: {count}"
    for number, ((file, name), reasons) in enumerate(unwritten.items()):
        if number == _MOST_REASONS:
            yield f"  … and {len(unwritten) - number} more"
            return
        parts = [f"{name_of}: {reason}" if name_of else reason for name_of, reason in reasons]
        yield one_line(f"  {file}:{name}  {'; '.join(parts)}")
