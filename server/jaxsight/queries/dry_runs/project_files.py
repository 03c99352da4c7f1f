"""Which files of a project import which, for the programs that reach a file.

It is looked up in a thread, and only what has changed is read again. A text in the editor takes
precedence over that on disk. The number of files, their size and their depth are limited: a folder
may be somebody's home.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePath

from jaxsight.examples.programs.ranking import (
    TextImport,
    code_of_markdown,
    code_of_notebook,
    importers_of,
    imports_in,
    paths_of,
    programs,
)
from jaxsight.examples.sets import ExampleSet
from jaxsight.files import reading
from jaxsight.files.texts import Version, stamp_of, version_of_text
from jaxsight.lru import Recent
from jaxsight.queries.documents import Document, Subject, module_name
from jaxsight.queries.traces.query import mesh_names
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.source.module import Module
from jaxsight.wire.messages.inputs import EntryPoint, InputCall

# The functions of a file that have example inputs: what they call is observed.

_MOST = 40
"""Functions of a file that are traced for their calls, a choice: all of most files."""


def example_calls(
    module: Module, subjects: Iterable[tuple[Subject, ExampleSet | None]]
) -> tuple[InputCall, ...]:
    """Return the functions whose inputs are written or recorded.

    Args:
        module: the file's text.
        subjects: its functions with their active example sets.
    """
    found = (
        InputCall(
            function=subject.name,
            arguments=chosen.arguments,
            sizes=chosen.sizes,
            mesh=chosen.mesh,
            mesh_is_default=chosen.mesh_is_default,
            mesh_source=chosen.mesh_source,
            mesh_names=mesh_names(module) if chosen.needs_mesh else (),
        )
        for subject, chosen in subjects
        if chosen is not None
        and not (subject.is_called or subject.is_proposed or chosen.assumed)
        and not subject.function.refused
    )
    return tuple(islice(found, _MOST))


def file_calls(path: str, text: str, outside: ExampleSettings) -> tuple[InputCall, ...]:
    """Return the functions of a file that is not open whose inputs are written or recorded."""
    document = Document(path, text)
    every = document.subjects(outside)
    return example_calls(
        document.module,
        ((each, each.examples.sets[0] if each.examples.sets else None) for each in every),
    )


_MOST_FILES = 1500
_MOST_FOLDERS = 400
_DEEPEST = 8
_LONGEST = 400_000
"""Files and folders of a project that are looked at, levels of folders, and bytes of a file, a
choice: more is data or a repository of many projects, and reading all of it takes seconds."""
_CODE_IN: dict[str, Callable[[str], str]] = {
    ".py": str,
    ".ipynb": code_of_notebook,
    ".md": code_of_markdown,
}
"""What returns the Python in a file, by its suffix."""
_OTHERS = frozenset(
    {
        *("node_modules", "site-packages", "dist-packages", "__pycache__", "build", "dist"),
        *("venv", "env", "third_party", "vendor"),
    }
)
"""Folders without a project's own files."""
_LISTED = 10.0
"""Seconds for which a list of files is used, a choice: new files are found after as long."""
_KEPT = 4000
"""Files whose imports are remembered, a choice: those of two projects, some names each."""
_LISTINGS = 32  # lists of files, one for each folder of an open file; and files with inputs


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was last looked at."""

    version: Version
    imports: tuple[TextImport, ...]


@dataclass(slots=True)
class _Listing:
    """The files near a file, when they were listed, and which of them import which."""

    at: float
    files: tuple[str, ...]
    places: dict[str, str]
    """The Python files by what they are imported by."""
    imported: dict[str, tuple[_Known, Mapping[str, tuple[TextImport, ...]]]] = field(
        default_factory=dict
    )
    """By file: the file as it was, and what it imports of which other files."""


class ProgramFiles:
    """The imports of files; used by one thread at a time."""

    def __init__(self) -> None:
        self._known: Recent[str, _Known] = Recent(_KEPT)
        self._given: Recent[str, tuple[str, ExampleSettings, tuple[InputCall, ...]]] = Recent(
            _LISTINGS
        )
        """The functions of closed files that have example inputs, with what they follow from."""
        self._listings: Recent[tuple[str, str], _Listing] = Recent(_LISTINGS)
        self._is_outdated = False

    def retry(self) -> None:
        """List files again: some have changed on disk."""
        self._is_outdated = True  # not cleared here: the thread may be reading

    def programs(
        self,
        path: str,
        text: str,
        root: str,
        opened: Mapping[str, str],
        given: Mapping[str, tuple[InputCall, ...]],
        outside: ExampleSettings,
    ) -> tuple[EntryPoint, ...]:
        """Return the programs that may call functions of a file, in order.

        Args:
            path: the file.
            text: its text.
            root: the folder of its project.
            opened: the texts in the editor, by path.
            given: the functions of open files that have example inputs, by path.
            outside: what the example inputs in other files depend on.
        """
        listing = self._listed(root, str(PurePath(path).parent))
        if listing.places.setdefault(_place(path), path) != path or path not in listing.files:
            listing.imported.clear()  # the file is not saved yet, or has two suffixes
            listing.places[_place(path)] = path
        imported_by: dict[str, dict[str, tuple[TextImport, ...]]] = {}
        # Files that are open may be newer than the list.
        inside = (file for file in opened if PurePath(file).is_relative_to(root))
        every = (*listing.files, *(f for f in inside if PurePath(f).suffix in _CODE_IN))
        for file in dict.fromkeys(every):
            for target, imports in self._imported(file, root, listing, opened).items():
                imported_by.setdefault(target, {})[file] = imports

        def read(file: str) -> str:
            return _text(file, opened)

        def given_of(file: str, text: str) -> tuple[InputCall, ...]:
            if file in given or not file.endswith(".py"):
                return given.get(file, ())
            known = self._given.get(file)
            if known is None or known[0] != text or known[1] is not outside:
                known = text, outside, file_calls(file, text, outside)
                self._given.put(file, known)
            return known[2]

        importers = importers_of(path, imported_by)
        return programs(path, text, importers, read, module_name, given_of)

    def _imported(
        self, file: str, root: str, listing: _Listing, opened: Mapping[str, str]
    ) -> Mapping[str, tuple[TextImport, ...]]:
        """Return the files that a file imports, with what it imports of each."""
        known = self._looked_at(file, opened)
        if (before := listing.imported.get(file)) is not None and before[0] is known:
            return before[1]
        targets: dict[str, tuple[TextImport, ...]] = {}
        # Absolute imports are found in the file's folder and those above it.
        above = map(str, PurePath(file).parents)
        inside = (folder for folder in above if PurePath(folder).is_relative_to(root))
        folders = tuple(dict.fromkeys((*inside, str(PurePath(root, "src")))))
        for imported in known.imports:
            places = paths_of(imported, file, folders)
            target = next((listing.places[p] for p in places if p in listing.places), file)
            if target != file:
                targets[target] = (*targets.get(target, ()), imported)
        listing.imported[file] = known, targets
        return targets

    def _looked_at(self, path: str, opened: Mapping[str, str]) -> _Known:
        """Return what a file imports; it is read only if it has changed."""
        unsaved = opened.get(path)
        version = version_of_text(unsaved) if unsaved is not None else stamp_of(path)
        if (known := self._known.get(path)) is None or known.version != version:
            code_in = _CODE_IN.get(PurePath(path).suffix, str)
            known = _Known(version, imports_in(code_in(_text(path, opened))))
            self._known.put(path, known)
        return known

    def _listed(self, root: str, folder: str) -> _Listing:
        """Return the files of a project, those near a folder first."""
        listing = self._listings.get((root, folder))
        now = time.monotonic()
        if self._is_outdated:
            self._is_outdated = False
            self._listings.clear()
        elif listing is not None and now - listing.at <= _LISTED:
            return listing
        files = tuple(_found(root, folder))
        if listing is None or listing.files != files:
            places = {_place(file): file for file in reversed(files) if file.endswith(".py")}
            listing = _Listing(now, files, places)
        listing.at = now
        self._listings.put((root, folder), listing)
        return listing


def _text(path: str, opened: Mapping[str, str]) -> str:
    """Return the text of a file; empty if it cannot be read, or is too large."""
    if (unsaved := opened.get(path)) is not None:
        return unsaved
    try:
        return reading.text(path, _LONGEST, strict=False)
    except OSError:
        return ""


def _place(path: str) -> str:
    """Return what a file is imported by: its path without the suffix, or its package's folder."""
    file = PurePath(path)
    return str(file.parent if file.stem == "__init__" else file.with_suffix(""))


def _found(root: str, folder: str) -> Iterator[str]:
    """Return the files of a project: those below a folder first, then those below its parents."""
    seen: set[str] = set()
    todo = (f for f in (PurePath(folder), *PurePath(folder).parents) if f.is_relative_to(root))
    return islice((file for start in todo for file in _below(str(start), seen)), _MOST_FILES)


def _below(top: str, seen: set[str]) -> Iterator[str]:
    """Yield the files below a folder, without folders that were seen; the shallow ones first."""
    level = [top]
    for _ in range(_DEEPEST):
        deeper: list[str] = []
        for folder in level:
            if folder in seen or len(seen) >= _MOST_FOLDERS:
                continue
            seen.add(folder)
            try:
                with os.scandir(folder) as listed:
                    entries = sorted(listed, key=lambda entry: entry.name)
                for entry in entries:
                    if entry.name.startswith(".") or entry.name in _OTHERS:
                        continue
                    if entry.is_symlink():
                        continue  # it may lead to what nobody trusts, and programs are run
                    if entry.is_dir(follow_symlinks=False):
                        deeper.append(entry.path)
                    elif PurePath(entry.name).suffix in _CODE_IN:
                        yield entry.path
            except OSError:
                continue
        level = deeper
