"""Each file's changes of libraries and of the project's modules, applied during its requests.

Changes are searched for if statements ran that may make some, which excludes imports and plain
definitions.
They belong to these statements: if one of them is no longer part of the slice, the file starts
again from its beginning.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary, ref

from jaxsight.tracer.isolation import process_effects as effects
from jaxsight.tracer.isolation.imports import Imports
from jaxsight.tracer.isolation.leftovers import Leftovers
from jaxsight.tracer.isolation.libraries import Changes, Snapshot
from jaxsight.tracer.namespaces import World
from jaxsight.wire.chunks import Chunk

_PATCHES = re.compile(r"setattr|patch")
_ASSIGNS = re.compile(r"^[ \t]*(?!self\.)[A-Za-z_][\w.]*(?:\.\w+|\[.*\])\s*=[^=]", re.MULTILINE)
"""Assignments in a traced function that may change objects other than its own names."""


@dataclass(frozen=True, slots=True)
class _Patched:
    changes: Changes
    keys: frozenset[str]
    """Keys of the statements that may have made the changes."""


class Patches:
    """The changes of all files, of which at most one file's are applied."""

    def __init__(self, imports: Imports, leftovers: Leftovers) -> None:
        self._leftovers = leftovers
        self._snapshot = Snapshot(effects.MODULES)
        self._by_world: WeakKeyDictionary[World, _Patched] = WeakKeyDictionary()
        self._ran: WeakKeyDictionary[World, set[str]] = WeakKeyDictionary()
        imports.arrived = self._snapshot.extend

    def begin(self, world: World, chunks: Iterable[Chunk]) -> None:
        """Apply a file's changes before its statements run, or have it start again."""
        self._snapshot.extend()
        world.starting_over = functools.partial(self._start_over, ref(world))
        patched = self._by_world.get(world)
        if patched is None:
            return
        if not patched.keys <= {chunk.key for chunk in chunks}:
            world.outdate()
        patched.changes.redo()

    def _start_over(self, world: ref[World]) -> None:
        """Undo a file's changes, as all of its statements run again."""
        if (known := world()) is not None:
            if (patched := self._by_world.pop(known, None)) is not None:
                patched.changes.undo()
            self._ran.pop(known, None)
        self._leftovers.start_over()

    def end(self, world: World, chunks: Iterable[Chunk]) -> tuple[str, ...]:
        """Undo a file's changes after a request, and return those that cannot be undone."""
        ran = self._ran.setdefault(world, set())
        new = [chunk for chunk in chunks if chunk.key not in ran]
        if len(new) != world.executed:  # some ran once more
            new = list(chunks)
        suspects = [chunk for chunk in new if _may_patch(chunk)] if world.executed else []
        ran.update(chunk.key for chunk in chunks)
        patched = self._by_world.get(world)
        if suspects:
            changes = self._snapshot.changes()
            keys = frozenset(chunk.key for chunk in suspects)
            if changes:
                keys |= patched.keys if patched is not None else frozenset()
                patched = self._by_world[world] = _Patched(changes, keys)
        if patched is None:
            return ()
        patched.changes.undo()
        return tuple(patched.changes.lost)

    def enter(self, world: World | None) -> None:
        """Apply a file's changes for a request about its earlier trace."""
        if world is not None and world in self._by_world:
            self._by_world[world].changes.redo()

    def leave(self, world: World | None) -> None:
        """Undo a file's changes after such a request."""
        if world is not None and world in self._by_world:
            self._by_world[world].changes.undo()


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
            case (
                ast.Attribute(ctx=ast.Store() | ast.Del())
                | ast.Subscript(ctx=ast.Store() | ast.Del())
            ):
                root: ast.expr = node
                while isinstance(root, ast.Attribute | ast.Subscript):
                    root = root.value
                changed.add(root.id if isinstance(root, ast.Name) else "")
    return not changed <= own
