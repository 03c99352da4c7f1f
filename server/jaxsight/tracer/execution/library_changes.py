"""Each file's changes of libraries and of the project's modules, applied during its requests.

Changes are searched for if statements ran that may make some, which excludes imports and plain
definitions.
They belong to these statements: if one of them is no longer part of the slice, the file starts
again from its beginning.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary, ref

from jaxsight.tracer.execution.file_namespace import FileNamespace
from jaxsight.tracer.importing.imports import Imports
from jaxsight.tracer.isolation.irreversible_effects import IrreversibleEffects
from jaxsight.tracer.isolation.library_snapshot import Changes, Snapshot
from jaxsight.tracer.isolation.process_state import MODULES
from jaxsight.wire.chunks import Chunk

_PATCHES = re.compile(r"setattr|patch")
_ASSIGNS = re.compile(r"^[ \t]*(?!self\.)[A-Za-z_][\w.]*(?:\.\w+|\[.*\])\s*=[^=]", re.MULTILINE)
"""Assignments in a traced function that may change objects other than its own names."""


_FileChanges = tuple[Changes, frozenset[str]]
"""The changes, and the keys of the statements that may have made them."""


class LibraryChanges:
    """The changes of all files, of which at most one file's are applied."""

    def __init__(self, imports: Imports, irreversible: IrreversibleEffects) -> None:
        self._irreversible = irreversible
        self._modules = imports.modules
        self._snapshot = Snapshot(MODULES)
        self._by_namespace: WeakKeyDictionary[FileNamespace, _FileChanges] = WeakKeyDictionary()
        self._ran: WeakKeyDictionary[FileNamespace, set[str]] = WeakKeyDictionary()
        imports.arrived = self._snapshot.extend

    def begin(self, namespace: FileNamespace, chunks: Iterable[Chunk]) -> None:
        """Apply a file's changes before its statements run, or have it start again."""
        self._snapshot.extend()
        # A weak reference: a namespace that refers to itself is freed by a collection only.
        namespace.starting_over = functools.partial(self._start_over, ref(namespace))
        if namespace in self._by_namespace:
            changes, keys = self._by_namespace[namespace]
            if not keys <= {chunk.key for chunk in chunks}:
                namespace.outdate()
            changes.redo()

    def _start_over(self, namespace: ref[FileNamespace]) -> None:
        """Undo a file's changes, as all of its statements run again."""
        if (live_namespace := namespace()) is not None:
            if live_namespace in self._by_namespace:
                self._by_namespace.pop(live_namespace)[0].undo()
            self._ran.pop(live_namespace, None)
        self._irreversible.start_over()

    def end(self, namespace: FileNamespace, chunks: Iterable[Chunk]) -> tuple[str, ...]:
        """Undo a file's changes after a request, and return those that cannot be undone."""
        ran = self._ran.setdefault(namespace, set())
        new = [chunk for chunk in chunks if chunk.key not in ran]
        if len(new) != namespace.executed:  # some ran once more
            new = list(chunks)
        suspects = [chunk for chunk in new if _may_patch(chunk)] if namespace.executed else []
        ran.update(chunk.key for chunk in chunks)
        if suspects and (found := self._snapshot.changes()):
            _, earlier = self._by_namespace.get(namespace, (None, frozenset()))
            keys = earlier | {chunk.key for chunk in suspects}
            self._by_namespace[namespace] = found, keys
        if namespace not in self._by_namespace:
            return ()
        if namespace.executed:
            self._modules.note_changes()
        changes, _ = self._by_namespace[namespace]
        changes.undo()
        return tuple(changes.lost)

    @contextlib.contextmanager
    def applied(self, namespace: FileNamespace | None) -> Iterator[None]:
        """Apply a file's changes for a request about its earlier trace."""
        if namespace is None or namespace not in self._by_namespace:
            yield
            return
        changes, _ = self._by_namespace[namespace]
        changes.redo()
        try:
            yield
        finally:
            changes.undo()


def _may_patch(chunk: Chunk) -> bool:
    """Return whether running a statement, or tracing its definitions, may change a module."""
    if chunk.executes or chunk.acts or _PATCHES.search(chunk.text) is not None:
        return True
    return _ASSIGNS.search(chunk.text) is not None and _assigns_beyond(chunk.text)


def _assigns_beyond(text: str) -> bool:
    """Return whether functions modify objects that are neither arguments nor their own."""
    own: set[str] = set()
    changed: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                own.add(name)
            case ast.Attribute(ctx=context) | ast.Subscript(ctx=context) if not isinstance(
                context, ast.Load
            ):
                root: ast.expr = node
                while isinstance(root, ast.Attribute | ast.Subscript):
                    root = root.value
                changed.add(root.id if isinstance(root, ast.Name) else "")
    return not changed <= own
