"""Each file's changes of libraries and of the project's modules, applied during its requests.

Changes are searched for if statements ran that may make some, which excludes imports and plain
definitions.
They belong to these statements: if one of them is no longer part of the slice, the file starts
again from its beginning.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator

from jaxsight.tracer.execution.file_namespace import FileNamespace
from jaxsight.tracer.importing.imports import Imports
from jaxsight.tracer.isolation.irreversible_effects import IrreversibleEffects
from jaxsight.tracer.isolation.library_snapshot import Changes, Snapshot
from jaxsight.tracer.isolation.process_state import MODULES
from jaxsight.wire.chunks import Chunk

_PATCHES = re.compile(
    r"setattr|patch|^[ \t]*(?!self\.)[A-Za-z_][\w.]*(?:\.\w+|\[.*\])\s*=[^=]", re.MULTILINE
)
"""Calls and assignments in a function that may change objects other than its own names."""


class LibraryChanges:
    """The changes of all files, of which at most one file's are applied."""

    def __init__(self, imports: Imports, irreversible: IrreversibleEffects) -> None:
        self._irreversible = irreversible
        self._modules = imports.modules
        self._snapshot = Snapshot(MODULES)
        imports.arrived = self._snapshot.extend

    def begin(self, namespace: FileNamespace, chunks: Iterable[Chunk]) -> None:
        """Apply a file's changes before its statements run, or have it start again."""
        self._snapshot.extend()
        namespace.starting_over = self._irreversible.start_over
        if not namespace.changed_by <= {chunk.key for chunk in chunks}:
            namespace.outdate()
        namespace.changes.redo()

    def end(self, namespace: FileNamespace, chunks: Iterable[Chunk]) -> tuple[str, ...]:
        """Undo a file's changes after a request, and return those that cannot be undone."""
        new = [chunk for chunk in chunks if chunk.key not in namespace.ran]
        if len(new) != namespace.executed:  # some ran once more
            new = list(chunks)
        suspects = [chunk for chunk in new if _may_patch(chunk)] if namespace.executed else []
        namespace.ran.update(chunk.key for chunk in chunks)
        if suspects and (found := self._snapshot.changes()):
            namespace.changes = found
            namespace.changed_by |= {chunk.key for chunk in suspects}
        if not namespace.changes:
            return ()
        if namespace.executed:
            self._modules.note_changes()
        namespace.changes.undo()
        return tuple(namespace.changes.lost)

    @contextlib.contextmanager
    def applied(self, namespace: FileNamespace | None) -> Iterator[None]:
        """Apply a file's changes for a request about its earlier trace."""
        changes = namespace.changes if namespace is not None else Changes()
        changes.redo()
        try:
            yield
        finally:
            changes.undo()


def _may_patch(chunk: Chunk) -> bool:
    """Return whether running a statement, or tracing its definitions, may change a module."""
    return chunk.executes or chunk.acts or _PATCHES.search(chunk.text) is not None
