"""The statements that run before a function is traced, each with its key.

All acting chunks run, in order, and so do all imports, because both may change anything. Of the
other chunks, those run that the function or the acting ones need, found by following names. Skipped
chunks that may matter are reported: see `chunk_roles`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from jaxsight.lru import Recent
from jaxsight.source.analysis.name_reads import NameReads
from jaxsight.source.bindings import Bindings
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.slicing.chunk_roles import (
    ChunkRoles,
    Role,
    SliceCaveat,
    redefined,
    roles_of,
    skipped,
)
from jaxsight.source.slicing.slice_keys import Dependencies, SliceKeys, digest_of
from jaxsight.source.statements import TopLevelStatement
from jaxsight.wire.chunks import Chunk

# Collect the chunks of a slice, by following names.


class Gathering:
    """Collects the chunks of a slice.

    A name is needed either at a chunk that reads it while it is executed, or later, when a function
    is called: then at the end, and at every chunk of the slice that may call the function.
    """

    def __init__(
        self,
        module: Module,
        roles: ChunkRoles,
        roots: Iterable[str],
        own_index: int | None,
        keep_all: bool,
        before: Gathering | None = None,
    ) -> None:
        """Collect the chunks; `before` has more of them, and ends where a name is redefined."""
        self.module = module
        self.bindings = module.bindings
        self.roles = roles
        self.included: set[int] = set()
        self.broken: set[int] = set()
        self.needed: dict[str, int] = {}
        """The names that are read, each with the last chunk before which its value matters."""
        self._later: dict[str, None] = {}
        self._pending: list[int] = []
        self._calling: list[int] = []
        self.deciding: dict[int, NameReads] = dict(before.deciding) if before is not None else {}
        """Chunks outside of the slice whose reads affected it."""
        self.end = self._end(own_index)
        if before is not None and before.redefining is not None:
            self.end = before.redefining
        self.without = frozenset(
            i for i, role in enumerate(roles.all) if role.role is Role.LEFT_OUT
        )
        if own_index is not None:
            self._include(own_index)
        for name in roots:
            self._need_later(name)
        self._follow()
        own = set(self.needed)
        self.needed_chunks = frozenset(self.included)
        """Chunks that the function needs by name; errors in others must not affect the answer."""
        broken = frozenset(self.broken)
        # What acts may fail without the function failing, so errors are told apart by
        # `needed_chunks`.
        self._include_acting()
        self.keep_all = keep_all or any(
            module.chunks[i].name_effects.introspects for i in self.included
        )
        if self.keep_all:
            for index in range(self.end):
                if index not in self.without:
                    self._include(index)
            self._follow()
        # A syntax error in a chunk that is not needed does not prevent an answer.
        self.broken = set(broken)
        skipped = {index for index in self.without if index < self.end}
        self.left_out = set(filter(self._may_matter, skipped))
        self.harmless = self._harmless(own)
        """Chunks that run, and that the answer does not depend on."""
        self.sees_lines = any(module.chunks[i].name_effects.sees_lines for i in self.included)
        self.redefining: int | None = self._redefining(own_index)
        """The first chunk that binds a name anew which the function needs, and which it had."""

    def events(self) -> dict[str, list[int]]:
        """Return for each needed name the chunks that bind it or give it rules, in order."""
        events: dict[str, list[int]] = {}
        for name in self.needed:
            chunks = {*self.bindings.definers.get(name, ()), *self.bindings.ruled.get(name, ())}
            events[name] = sorted(chunks & self.included)
        return events

    def _include_acting(self) -> None:
        """Include acting chunks, all imports, and computations before the last acting chunk.

        They must see the state that an import would show them. Computations without functions of
        the module run too, because they may fail.
        """
        last = min(self.end, self.roles.last_act)
        for index in range(self.end):
            role = self.roles.of(index)
            effects = self.module.chunks[index].name_effects
            if (
                role is Role.ACTS
                or (effects.packages and role is not Role.LEFT_OUT)
                or (role is Role.COMPUTES and (index < last or index in self.roles.plain))
            ):
                self._include(index)
        self._follow()

    def _may_matter(self, index: int) -> bool:
        changes = self.roles.all[index].changes
        return changes is None or any(self.needed.get(name, -1) > index for name in changes)

    def _harmless(self, own: set[str]) -> set[int]:
        """Return the chunks that run and change nothing that the names `own` depend on."""
        acting = self.included - self.needed_chunks
        harmless = {i for i in acting if self.roles.of(i) in (Role.ACTS, Role.COMPUTES)}
        while found := {i for i in harmless if self._acts_on(i, own)}:
            harmless -= found
            for index in found:
                own |= self._names_read(index)
        return harmless

    def _acts_on(self, index: int, names: set[str]) -> bool:
        changes = self.roles.all[index].changes
        effects = self.module.chunks[index].name_effects
        return changes is None or not names.isdisjoint(
            (*changes, *effects.binds, *effects.may_bind)
        )

    def _names_read(self, index: int) -> set[str]:
        """Return the names that a chunk reads, also in the functions that it may call."""
        names: set[str] = set()
        todo, visited = [index], {index}
        while todo:
            reads = self.module.chunks[todo.pop()].statement.reads
            for name in (reads.now | reads.later | reads.perhaps) - names:
                names.add(name)
                further = set(self.bindings.definers.get(name, ())) - visited
                visited |= further
                todo += further
        return names

    def _end(self, own_index: int | None) -> int:
        """Return the first chunk that binds a function of `own_index` anew without reading it."""
        if own_index is None:
            return self.bindings.count
        ends = [self.bindings.count]
        for name in self.module.chunks[own_index].name_effects.binds:
            for index in self.bindings.definers.get(name, ()):
                statement = self.module.chunks[index].statement
                rebinds = index > own_index and name in statement.name_effects.binds
                if rebinds and not self._builds_on(name, own_index, index):
                    ends.append(index)
                    break
        return min(ends)

    def _redefining(self, own_index: int | None) -> int | None:
        if own_index is None:
            return None
        found = [
            index
            for name, last in self.needed.items()
            if name not in self.bindings.origins
            and (definers := self.bindings.definers.get(name))
            and definers[0] <= own_index
            for index in definers
            if own_index < index < min(self.end, last)
            and name in self.module.chunks[index].name_effects.binds
            and not self._builds_on(name, own_index, index)
        ]
        return min(found, default=None)

    def _builds_on(self, name: str, own_index: int, end_index: int) -> bool:
        """Return whether chunk `end_index` computes `name` from its value in chunk `own_index`.

        Wrapping a function does.
        """
        todo, visited = [end_index], {end_index}
        while todo:
            index = todo.pop()
            statement = self.module.chunks[index].statement
            self.deciding[index] = statement.reads
            if name in statement.reads.now:
                return True
            for read in (statement.reads.now | statement.reads.later) - {name}:
                for definer in self.bindings.definers.get(read, ()):
                    if own_index < definer < end_index and definer not in visited:
                        visited.add(definer)
                        todo.append(definer)
        return False

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
            statement = self.module.chunks[index].statement
            reads = statement.reads
            for name in reads.now:
                self._need(name, index)
                self._need_later(name)
            for name in reads.later:
                self._need_later(name)
            for name in reads.perhaps:
                if name in self.bindings.definers:
                    self._need(name, index)
                    self._need_later(name)
            if statement.name_effects.executes:
                self._calling.append(index)
                for name in self._later:
                    self._need_when_called(name, index)
            for name in (*statement.name_effects.binds, *statement.name_effects.may_bind):
                for ruling in self.bindings.ruled.get(name, ()):
                    if ruling < self.end and ruling not in self.without:
                        self._include(ruling)

    def _need_later(self, name: str) -> None:
        """Note a name that is read when a function is called, or whose value may be."""
        if name in self._later:
            return
        self._later[name] = None
        self._need(name, self.end)
        for index in self._calling:
            self._need_when_called(name, index)

    def _need_when_called(self, name: str, index: int) -> None:
        if len(self.bindings.definers.get(name, ())) > 1:
            self._need(name, index)

    def _need(self, name: str, end_index: int) -> None:
        self.needed[name] = max(self.needed.get(name, -1), end_index)
        for index in self.bindings.reaching(name, end_index, self.without, self.end):
            self._include(index)


_PLANS_KEPT = 64
"""Plans that are kept for a module's roles: those of the functions that are in view."""
STAR = "*"
"""The name in `Chunk.binds` of a chunk with `from … import *`: it may bind any name."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The chunks to execute, in file order; `module_chunks` are the same chunks at their places.

    * `key` changes exactly when the effects of the slice may have changed.
    * `broken`: chunks that the slice needs but that do not parse.
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
    # Roles are replaced when they change, and their plans go with them.
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
            key=digest_of(keyed),
            keyed=tuple(index in self._keyed for index in self.indices),
            broken=tuple(module.chunks[index] for index in self.broken),
            caveats=tuple(caveats),
            skipped=tuple(
                (self._message(index, chunk, chunk.statement.meaning), chunk)
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
        return self._keys.keys({i: c.statement.meaning for i, c in chunks.items()})

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
