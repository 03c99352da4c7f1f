"""What a function needs: the top-level chunks that must be executed before it can be traced, and the key of each.

Names are followed from the function, transitively, to the chunks that bind them and to those that change what they
stand for. Code that nothing asks for never gets into a slice: no training loop, no `print(f(x))`, no main guard.
"""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from jaxsight.engine.keys import Keying, Links
from jaxsight.engine.module import Module, ModuleChunk
from jaxsight.engine.names import Reads
from jaxsight.tracer import protocol

_PROVIDED = frozenset(
    {
        *dir(builtins),
        *("__name__", "__file__", "__doc__", "__package__", "__spec__", "__loader__", "__path__"),
        *("__builtins__", "__annotations__", "__dict__", "__cached__"),
    }
)
"""Names that every module has."""
STAR = "*"
"""What a chunk with `from … import *` binds, in `protocol.Chunk.binds`: any name."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The chunks to execute, in the file's order; `members` are the same chunks where they stand.

    `key` changes when what the slice does may have changed, and with nothing else. `broken` are chunks that the slice would
    need but that do not parse; `unknown` names that nothing in the module binds.
    """

    chunks: tuple[protocol.Chunk, ...]
    members: tuple[ModuleChunk, ...]
    key: str
    broken: tuple[ModuleChunk, ...] = ()
    unknown: tuple[str, ...] = ()


def slice_for(module: Module, names: Iterable[str], chunk: ModuleChunk | None = None) -> Slice:
    """The slice that gives `names` their values.

    Args:
        names: the function's top-level name, and the names that its example inputs use.
        chunk: where the function stands. Needed when the module binds its name again further down: then the slice
            ends before that.
    """
    roots = tuple(names)
    own = module.number_of(chunk) if chunk is not None else None
    plans = module.bindings.plans
    plan = plans.get((roots, own))
    if plan is None or not plan.holds(module):
        plan = Plan(module, _Gathering(module, roots, own))
        plans.put((roots, own), plan)
    members = tuple(module.chunks[index] for index in plan.members)
    keys = plan.keys(module)
    return Slice(
        chunks=tuple(_sent(member, key) for member, key in zip(members, keys, strict=True)),
        members=members,
        key=hashlib.blake2b("\0".join(keys).encode(), digest_size=16).hexdigest(),
        broken=tuple(module.chunks[index] for index in plan.broken),
        unknown=plan.unknown,
    )


class Plan:
    """Which chunks make a slice and what they have to do with each other: good as long as each of them reads the same names.

    What the chunks bind cannot change under it: a plan belongs to a module's bindings.
    """

    def __init__(self, module: Module, gathered: _Gathering) -> None:
        self.members = tuple(sorted(gathered.included))
        self.broken = tuple(sorted(gathered.broken))
        self.unknown = tuple(sorted(gathered.unknown))
        pieces = {index: module.chunks[index].piece for index in self.members}
        self._reads = tuple(piece.reads for piece in pieces.values())
        self._ends = gathered.looked_at
        self._documented = any(piece.surface.documented for piece in pieces.values())
        events = gathered.events()
        bindings = module.bindings
        self._keying = Keying(
            Links(
                members=self.members,
                reads={
                    index: sorted(name for name in piece.reads.all if events.get(name))
                    for index, piece in pieces.items()
                },
                events={name: chunks for name, chunks in events.items() if chunks},
                executing=frozenset(i for i, piece in pieces.items() if piece.surface.executes),
                configuring=frozenset({*bindings.configuring, *bindings.stars} & {*self.members}),
                future_flags=bindings.future_flags,
            )
        )

    def holds(self, module: Module) -> bool:
        """Whether the chunks of `module`, which has the same bindings, read what they read when the plan was made."""
        chunks = module.chunks
        return all(
            chunks[index].piece.reads == reads
            for index, reads in zip(self.members, self._reads, strict=True)
        ) and all(chunks[index].piece.reads == reads for index, reads in self._ends.items())

    def keys(self, module: Module) -> list[str]:
        """The members' keys."""
        pieces = {index: module.chunks[index].piece for index in self.members}
        if self._documented:
            return self._keying.keys({i: p.meaning_with_docstrings for i, p in pieces.items()})
        return self._keying.keys({i: p.meaning for i, p in pieces.items()})


def _sent(chunk: ModuleChunk, key: str) -> protocol.Chunk:
    surface = chunk.surface
    star = (STAR,) if surface.star else ()
    return protocol.Chunk(
        id=chunk.id,
        key=key,
        text=chunk.text,
        binds=(*surface.binds, *surface.may_bind, *star),
        configures=surface.configures or chunk.always,
    )


class _Gathering:
    """Collects the chunks of a slice.

    A name is needed either at a chunk, which reads it while it is executed, or later, when a function is called: then at the end, and at every
    chunk of the slice that may call the function.
    """

    def __init__(self, module: Module, roots: Iterable[str], own: int | None) -> None:
        self.module = module
        self.bindings = module.bindings
        self.included: set[int] = set()
        self.broken: set[int] = set()
        self.unknown: set[str] = set()
        self.needed: set[str] = set()
        self._later: dict[str, None] = {}
        self._pending: list[int] = []
        self._calling: list[int] = []
        self.looked_at: dict[int, Reads] = {}
        """Chunks outside of the slice whose reads had a say in it."""
        self.end = self._end(own)
        self.anchor = own if own is not None else self._anchor(roots)
        for index in self.bindings.configuring:
            if index < self.end:
                self._include(index)
        if own is not None:
            self._include(own)
        for name in roots:
            self._need_later(name)
        self._follow()
        if self.unknown and self.bindings.stars:
            for index in self.bindings.stars:
                self._include(index)
            self._follow()

    def events(self) -> dict[str, list[int]]:
        """For every needed name the chunks of the slice that bind or change it, in order."""
        found: dict[str, list[int]] = {}
        for name in self.needed:
            chunks = {*self.bindings.definers.get(name, ()), *self.bindings.changing(name)}
            found[name] = sorted(chunks & self.included)
        return found

    def _end(self, own: int | None) -> int:
        """The first chunk below `own` that binds one of its functions' names anew without reading it."""
        if own is None:
            return self.bindings.count
        ends = [self.bindings.count]
        for name in self.module.chunks[own].surface.binds:
            for index in self.bindings.definers.get(name, ()):
                piece = self.module.chunks[index].piece
                if index > own and name in piece.surface.binds:
                    self.looked_at[index] = piece.reads
                    if name not in piece.reads.now:
                        ends.append(index)
                        break
        return min(ends)

    def _anchor(self, roots: Iterable[str]) -> int:
        definers = [
            self.bindings.definers[name][-1] for name in roots if name in self.bindings.definers
        ]
        return max(definers, default=self.bindings.count)

    def _include(self, index: int) -> None:
        if index not in self.included and index not in self.broken:
            if self.module.chunks[index].broken is not None:
                self.broken.add(index)
            else:
                self.included.add(index)
                self._pending.append(index)

    def _follow(self) -> None:
        while self._pending:
            index = self._pending.pop()
            piece = self.module.chunks[index].piece
            reads = piece.reads
            for name in reads.now:
                self._need(name, index)
                self._need_later(name)
            for name in reads.later:
                self._need_later(name)
            for name in reads.perhaps:
                if name in self.bindings.definers:
                    self._need(name, index)
                    self._need_later(name)
            if piece.surface.executes:
                self._calling.append(index)
                for name in self._later:
                    self._need_when_called(name, index)
            for name in (*piece.surface.binds, *piece.surface.may_bind):
                if name in self.needed:
                    self._include_changers(name)

    def _need_later(self, name: str) -> None:
        """A name that is read when a function is called, or whose value may be."""
        if name in self._later:
            return
        self._later[name] = None
        self._need(name, self.end)
        for index in self._calling:
            self._need_when_called(name, index)

    def _need_when_called(self, name: str, index: int) -> None:
        if len(self.bindings.definers.get(name, ())) > 1:
            self._need(name, index)

    def _need(self, name: str, place: int) -> None:
        self.needed.add(name)
        reaching = self.bindings.reaching(name, place, self.anchor)
        if not reaching and name not in _PROVIDED and name not in self.bindings.definers:
            self.unknown.add(name)
        for index in reaching:
            self._include(index)
        self._include_changers(name)

    def _include_changers(self, name: str) -> None:
        """Includes what changes the value that an included chunk binds to `name`."""
        for index in self.bindings.changing(name):
            if index in self.included or index >= self.end:
                continue
            if self.bindings.is_idle_loop(name, index, self.anchor):
                continue
            changed = self.bindings.reaching(name, index, self.anchor)
            if not changed or any(definer in self.included for definer in changed):
                self._include(index)
