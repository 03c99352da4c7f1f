"""Compare the functions of files with `jaxsight.lock` of their project, and update it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.printing import Printer, print_note, write_file
from jaxsight.cli.output.reports.reported import Reported
from jaxsight.cli.sources.arguments import SourceFile
from jaxsight.features.findings.findings import path_in_project
from jaxsight.features.findings.locked import LockableFunction, LockedFile, finding_of_differences
from jaxsight.features.findings.report import is_ignored, wanted
from jaxsight.files import reading
from jaxsight.locks.differences import differences
from jaxsight.locks.notation import (
    LockedFunction,
    LockError,
    LockSection,
    ProjectLock,
    parse,
)
from jaxsight.projects.projects import Projects
from jaxsight.rules.finding import Finding, finding_of
from jaxsight.rules.jx502_changed_program.rule import RULE
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.text.inert import clause, one_line
from jaxsight.text.units import count
from jaxsight.trust.decisions import path_text

LOCK = "jaxsight.lock"
"""The file's name, in the root of a project."""
_HELP = "accept it with `jaxsight check --locked --update`, if this change is intended"
_FAILS = f"fix the error, or remove its line from {LOCK}"
_LONGEST = 100
"""Characters of a message."""

_Gone = tuple[str, str, LockedFunction]
"""A locked function that is no longer there: its file, its name in the lock, and its facts."""


@dataclass(slots=True)
class LockNotes:
    """What a comparison found that is no reason to fail."""

    not_locked: int = 0
    """Functions that the lock does not have."""
    same_figures: int = 0
    """Functions whose programs have changed, but no figure."""
    moved: list[str] = field(default_factory=list)
    """Functions with other names, such as `a.py:f is b.py:f now`."""
    sections: dict[LockSection, None] = field(default_factory=dict)
    """Targets and versions of JAX that the lock does not have."""
    other_versions: list[str] = field(default_factory=list)
    """What differs from the same target with another JAX, where this one has no section."""
    problems: list[str] = field(default_factory=list)
    """Functions without facts, and why."""

    def lines(self) -> Iterator[str]:
        """Yield the notes."""
        for section in self.sections:
            yield f"{LOCK} has no section for {section}; add it with `jaxsight lock`"
        yield from self.other_versions
        for moved in self.moved:
            yield f"{moved}; update its line with `jaxsight lock`"
        yield from self.problems
        if self.not_locked:
            number = count(self.not_locked, "function")
            yield f"{number} not in {LOCK}; add them with `jaxsight lock`"
        if self.same_figures:
            number = count(self.same_figures, "function")
            verb = "compiles" if self.same_figures == 1 else "compile"
            yield f"{number} {verb} to another program with the same figures"


@dataclass(slots=True)
class LockFiles:
    """The locks of the projects of one command, by the folders that they are in."""

    projects: Projects
    chosen: Sequence[str] = ()
    """The targets of the command line, in place of those that locks have."""
    _locks: dict[str, ProjectLock | None] = field(default_factory=dict)
    notes: LockNotes = field(default_factory=LockNotes)

    def of(self, path: str) -> ProjectLock | None:
        """Return the lock of a file's project; `None` if there is none.

        Raises:
            CommandError: it cannot be read.
        """
        root = self.projects.of(path).root
        if root not in self._locks:
            try:
                file = reading.inside(root, LOCK)
                found = parse(reading.text(file)) if reading.exists(file) else None
            except (reading.UnreadableError, LockError) as error:
                why = getattr(error, "reason", error)
                raise CommandError(
                    f"cannot read {Path(root, LOCK)}: {why}; remove it, and run `jaxsight lock`"
                ) from error
            self._locks[root] = found
        return self._locks[root]

    def targets(self, path: str) -> tuple[str, ...]:
        """Return the chosen targets, or those of a file's lock that can be compiled for here."""
        lock = self.of(path) if not self.chosen else None
        names = (section.target_name for section in (lock.sections if lock is not None else ()))
        return tuple(self.chosen) or tuple(dict.fromkeys(filter(None, names)))

    def require(self, paths: Sequence[str]) -> None:
        """Make sure that there is a lock.

        Raises:
            CommandError: there is none for any file.
        """
        if not any(self.of(path) is not None for path in paths):
            root = self.projects.of(paths[0]).root if paths else Path.cwd()
            raise CommandError(f"no {LOCK} in {root}; create it with `jaxsight lock`")

    def finish(
        self, files: Sequence[LockedFile], sources: Mapping[str, SourceFile], updates: bool
    ) -> list[Reported]:
        """Return what differs from the locks, or write it into them; print notes.

        Raises:
            CommandError: a lock cannot be written.
        """
        errors = Printer(stderr=True)
        found = list(self.compared(files, sources))
        if updates:
            for path in self.update(files):
                differ = count(len(found), "difference")
                print_note(errors, f"note: wrote {one_line(path_text(str(path)))}: {differ}")
            return []
        for line in self.notes.lines():
            print_note(errors, f"note: {line}")
        return found

    def compared(
        self, files: Sequence[LockedFile], sources: Mapping[str, SourceFile]
    ) -> Iterator[Reported]:
        """Yield a finding for each function that differs from its lock, or is gone."""
        gone = list(self._gone(files))
        programs = {locked.facts.program for _, _, locked in gone}
        new = {
            function.facts.program: self.name(file.path, function.name)
            for file in files
            for function in file.functions
            if function.facts is not None and function.facts.program in programs
            if self._locked(file.path, function) is None
        }
        for file in files:
            text, cells = sources[file.path].read()
            module = Module.parse(text)
            differing = self._differing(file, module, set(new.values()))
            found = [*differing, *self._missing(file, gone, new)]
            project = self.projects.of(file.path)
            codes = wanted(project.settings, path_in_project(project.root, file.path))
            for finding in found:
                if finding.code in codes and not is_ignored(module, finding):
                    yield Reported(file.path, text, finding, cells=cells)

    def name(self, path: str, function: str) -> str:
        """Return the name of a function in the lock of its project: `src/model.py:loss`."""
        root = self.projects.of(path).root
        return f"{os.path.relpath(path, root).replace(os.sep, '/')}:{function}"

    def _locked(self, path: str, function: LockableFunction) -> LockedFunction | None:
        lock = self.of(path)
        functions = lock.sections.get(function.section, {}) if lock is not None else {}
        return functions.get(self.name(path, function.name))

    def _differing(
        self, file: LockedFile, module: Module, moved: AbstractSet[str]
    ) -> Iterator[Finding]:
        lock = self.of(file.path)
        for function in file.functions:
            locked = self._locked(file.path, function)
            if lock is None or function.section not in lock.sections:
                self.notes.sections[function.section] = None
                self.notes.other_versions += self._other_versions(file.path, function)
            elif locked is None:
                is_moved = self.name(file.path, function.name) in moved
                self.notes.not_locked += not is_moved
            elif function.facts is None:
                message = clause(f"`{function.name}` is locked, but {function.problem}", _LONGEST)
                yield finding_of(RULE.code, function.range, message, help=_FAILS)
            else:
                if found := differences(locked.facts, function.facts, locked.tolerances):
                    yield finding_of_differences(function, found, module, _HELP)
                elif locked.facts.program != function.facts.program:
                    self.notes.same_figures += 1

    def _other_versions(self, path: str, function: LockableFunction) -> Iterator[str]:
        """Yield what differs from the sections of the same target with other versions of JAX."""
        lock, name = self.of(path), self.name(path, function.name)
        for section, functions in (lock.sections if lock is not None else {}).items():
            is_other = section.target == function.section.target and name in functions
            if not is_other or function.facts is None:
                continue
            locked = functions[name]
            if found := differences(locked.facts, function.facts, locked.tolerances):
                words = "; ".join(each.change for each in found)
                yield one_line(f"{name} differs from jax {section.jax}: {words}")

    def _gone(self, files: Sequence[LockedFile]) -> Iterator[_Gone]:
        """Yield the locked functions of files that are no longer there: path, name and facts."""
        for file in files:
            lock = self.of(file.path)
            found = {self.name(file.path, function.name) for function in file.functions}
            prefix = self.name(file.path, "")
            sections = {function.section for function in file.functions}
            for section, functions in (lock.sections if lock is not None else {}).items():
                is_here = section in sections or not sections
                for name, locked in functions.items():
                    if is_here and name.startswith(prefix) and name not in found:
                        yield file.path, name, locked

    def _missing(
        self, file: LockedFile, gone: Sequence[_Gone], new: dict[str, str]
    ) -> Iterator[Finding]:
        """Yield the functions of a file that the lock has and the file has not."""
        for path, name, locked in (each for each in gone if each[0] == file.path):
            if other := new.get(locked.facts.program):
                self.notes.moved.append(one_line(f"{name} is {other} now"))
                continue
            function = name.removeprefix(self.name(path, ""))
            message = clause(f"`{function}` is locked, but has no known inputs", _LONGEST)
            start = Range(Position(0, 0), Position(0, 0))
            yield finding_of(RULE.code, start, message, help=_HELP)

    def update(self, files: Sequence[LockedFile]) -> Iterator[Path]:
        """Write the functions of files into their locks; yield the locks that have changed.

        Lines of other files, targets and versions of JAX stay, and so do tolerances.

        Raises:
            CommandError: a lock cannot be written.
        """
        for _, name, _ in list(self._gone(files)):
            for lock in filter(None, self._locks.values()):
                for functions in lock.sections.values():
                    functions.pop(name, None)
        for file in files:
            root = self.projects.of(file.path).root
            for function in file.functions:
                if function.facts is not None:
                    own = self.of(file.path)
                    if own is None:
                        own = self._locks[root] = ProjectLock()
                    own.put(function.section, self.name(file.path, function.name), function.facts)
        for root, changed in self._locks.items():
            path = reading.inside(root, LOCK)
            text = changed.text() if changed is not None else ""
            if changed is not None and (
                not reading.exists(path) or reading.text(path, strict=False) != text
            ):
                write_file(path, text.encode())
                yield path
