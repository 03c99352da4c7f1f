"""The statements that run before a function is traced, each with its key.

All acting chunks run, in order, and so do all imports, because both may change anything. Of the
other chunks, those run that the function or the acting ones need, found by following names. Skipped
chunks that may matter are reported: see `chunk_roles`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from jaxsight.lru import Recent
from jaxsight.source.bindings import Bindings
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.slicing.caveat import SliceCaveat, redefined, skipped
from jaxsight.source.slicing.chunk_roles import ChunkRoles, Role, roles_of
from jaxsight.source.slicing.gathering import Gathering
from jaxsight.source.slicing.slice_keys import Dependencies, SliceKeys
from jaxsight.source.statements import TopLevelStatement
from jaxsight.wire.chunks import Chunk

_PLANS_KEPT = 64
"""Plans that are kept for a module's roles: those of the functions that are in view."""
STAR = "*"
"""The name in `Chunk.binds` of a chunk with `from … import *`: it may bind any name."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The chunks to execute, in file order; `module_chunks` are the same chunks at their places.

    * `key` changes exactly when the effects of the slice may have changed.
    * `broken`: chunks that the slice needs but that do not parse.
    * `unknown`: names that the module does not bind.
    * `caveats`: statements that are skipped and may change the outcome.
    """

    chunks: tuple[Chunk, ...]
    module_chunks: tuple[ModuleChunk, ...]
    key: str
    keyed: tuple[bool, ...]
    """Which of the chunks are part of the key.

    Slices with equal keys have the same such chunks, in the same order.
    """
    broken: tuple[ModuleChunk, ...] = ()
    unknown: tuple[str, ...] = ()
    caveats: tuple[SliceCaveat, ...] = ()
    skipped: tuple[tuple[Chunk, ModuleChunk], ...] = ()
    """Of a slice with all that can be kept, the others: programs run them dry."""
    harmless: frozenset[str] = frozenset()
    """Ids of chunks that the answer does not depend on: it may be stopped without a caveat."""


def slice_for(
    module: Module,
    names: Iterable[str],
    chunk: ModuleChunk | None = None,
    *,
    keep_all: bool = False,
    in_cells: bool = False,
) -> Slice:
    """Return the slice that gives `names` their values.

    Args:
        names: the function's top-level name, and the names that its example inputs use.
        chunk: the function's chunk. It is needed if the module binds the name again further down:
            then the slice ends before that.
        keep_all: skip no chunk that only binds names, because other modules may read them.
        in_cells: the module is a notebook: a function is called by the cells after it, so the slice
            ends where a name that it needs is bound again.
    """
    roots = tuple(names)
    own_index = module.number_of(chunk) if chunk is not None else None
    statements = [chunk.statement for chunk in module.chunks]
    roles = roles_of(statements, [chunk.mark for chunk in module.chunks], module.bindings)
    plans = _plans.get(roles)
    if plans is None:
        plans = _plans[roles] = Recent(_PLANS_KEPT)
    plan = plans.get((roots, own_index, keep_all, in_cells))
    if plan is None or not plan.is_valid_for(module):
        gathered = Gathering(module, roles, roots, own_index, keep_all)
        while in_cells and gathered.redefining is not None:
            gathered = Gathering(module, roles, roots, own_index, keep_all, gathered)
        plan = SlicePlan(module, roles, gathered, in_cells)
        plans.put((roots, own_index, keep_all, in_cells), plan)
    return plan.slice(module, roles)


class SlicePlan:
    """The chunks of a slice and their dependencies; valid while each of them reads the same names.

    The bindings of the chunks are fixed: a plan belongs to a module's bindings and roles.
    """

    def __init__(
        self, module: Module, roles: ChunkRoles, gathered: Gathering, in_cells: bool
    ) -> None:
        self.indices = tuple(sorted(gathered.included))
        self.broken = tuple(sorted(gathered.broken))
        self.unknown = tuple(sorted(gathered.unknown))
        self._needed = frozenset(gathered.needed_chunks)
        self._left_out = frozenset(gathered.left_out)
        self._harmless = frozenset(gathered.harmless)
        self._end = module.bindings.count if in_cells else gathered.end
        self._keeps_all = gathered.keep_all
        self._sees_lines = gathered.sees_lines
        statements = {index: module.chunks[index].statement for index in self.indices}
        self._reads = tuple(statement.reads for statement in statements.values())
        self._deciding = gathered.deciding
        self._documented = gathered.keep_all or any(
            s.name_effects.documented for s in statements.values()
        )
        events = gathered.events()
        bindings = module.bindings
        acting = {i for i in self.indices if roles.of(i) is Role.ACTS}
        self._acting = frozenset(acting)
        self._executing = self._acting | {i for i in self.indices if roles.of(i) is Role.COMPUTES}
        importing = {i for i, statement in statements.items() if statement.name_effects.packages}
        self._keyed = self._needed | acting | importing | (roles.plain & {*self.indices})
        self._keys = SliceKeys(
            Dependencies(
                chunks=self.indices,
                reads={
                    index: sorted(name for name in statement.reads.all if events.get(name))
                    for index, statement in statements.items()
                },
                events={name: chunks for name, chunks in events.items() if chunks},
                executing=frozenset(
                    i
                    for i, statement in statements.items()
                    if statement.name_effects.executes or i in acting
                ),
                acting=frozenset(self.indices) if gathered.keep_all else self._acting,
                imports=frozenset(importing),
                before={
                    index: ",".join(
                        f"{name}:{bindings.before(name, index)}"
                        for name in sorted(_read_now(index, statements, bindings))
                        if name in bindings.definers
                    )
                    for index, statement in statements.items()
                    if statement.reads.now
                },
                future_flags=bindings.future_flags,
            )
        )

    def is_valid_for(self, module: Module) -> bool:
        """Return whether the chunks of `module` read the same names as when the plan was made.

        The module must have the same bindings.
        """
        chunks = module.chunks
        return all(
            chunks[index].statement.reads == reads
            for index, reads in zip(self.indices, self._reads, strict=True)
        ) and all(chunks[index].statement.reads == reads for index, reads in self._deciding.items())

    def slice(self, module: Module, roles: ChunkRoles) -> Slice:
        """Return the slice of a module for which the plan is valid."""
        chunks = tuple(module.chunks[index] for index in self.indices)
        keys = self._chunk_keys(module)
        keyed = [key for i, key in zip(self.indices, keys, strict=True) if i in self._keyed]
        caveats = [skipped(module.chunks[i], roles.all[i]) for i in sorted(self._left_out)]
        if self._end < module.bindings.count:
            caveats.append(redefined(module.chunks[self._end]))
        return Slice(
            chunks=tuple(
                self._message(index, chunk, key)
                for index, chunk, key in zip(self.indices, chunks, keys, strict=True)
            ),
            module_chunks=chunks,
            key=hashlib.blake2b("\0".join(keyed).encode(), digest_size=16).hexdigest(),
            keyed=tuple(index in self._keyed for index in self.indices),
            broken=tuple(module.chunks[index] for index in self.broken),
            unknown=self.unknown,
            caveats=tuple(caveats),
            skipped=tuple(
                (self._message(index, chunk, chunk.meaning), chunk)
                for index, chunk in enumerate(module.chunks)
                if self._keeps_all and index not in self.indices and chunk.broken is None
            ),
            harmless=frozenset(module.chunks[index].id for index in self._harmless),
        )

    def _chunk_keys(self, module: Module) -> list[str]:
        chunks = {index: module.chunks[index] for index in self.indices}
        if self._sees_lines:
            # The key includes the text and its place, because code may read its own lines.
            return self._keys.keys({i: f"{c.id}@{c.first_line}" for i, c in chunks.items()})
        if self._documented:
            meanings = {i: c.statement.meaning_with_docstrings for i, c in chunks.items()}
            return self._keys.keys(meanings)
        return self._keys.keys({i: c.meaning for i, c in chunks.items()})

    def _message(self, index: int, chunk: ModuleChunk, key: str) -> Chunk:
        effects = chunk.name_effects
        star = (STAR,) if effects.star else ()
        return Chunk(
            id=chunk.id,
            key=key,
            text=chunk.text,
            binds=(*effects.binds, *effects.may_bind, *star),
            executes=index in self._executing,
            acts=index in self._acting,
            needed=index in self._needed,
            unlimited=chunk.mark == "always" or bool(effects.packages),
            above=chunk.first_line,
        )


_plans: WeakKeyDictionary[
    ChunkRoles, Recent[tuple[tuple[str, ...], int | None, bool, bool], SlicePlan]
] = WeakKeyDictionary()
"""By roles: the plans of their slices, by the arguments of `slice_for`."""


def _read_now(
    index: int, statements: Mapping[int, TopLevelStatement], bindings: Bindings
) -> set[str]:
    """Return the names that executing a chunk may read, also in functions that it may call."""
    statement = statements[index]
    names = set(statement.reads.now)
    todo = list(names) if statement.name_effects.executes else []
    while todo:
        for definer in bindings.definers.get(todo.pop(), ()):
            if definer in statements:
                added = statements[definer].reads.later - names
                names |= added
                todo += added
    return names
