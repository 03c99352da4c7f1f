"""Collect the chunks of a slice, by following names."""

from __future__ import annotations

from collections.abc import Iterable

from jaxsight.source.analysis.name_reads import NameReads
from jaxsight.source.module import Module
from jaxsight.source.slicing.chunk_roles import ChunkRoles, Role
from jaxsight.source.slicing.name_facts import PROVIDED


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
        self.unknown: set[str] = set()
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
        reaching = self.bindings.reaching(name, end_index, self.without, self.end)
        if not reaching and name not in PROVIDED and name not in self.bindings.definers:
            self.unknown.add(name)
        for index in reaching:
            self._include(index)
